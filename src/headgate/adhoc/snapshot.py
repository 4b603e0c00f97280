"""A SELECT on topics that ends: the records that are committed when it begins, read as one batch."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.adhoc.live import give
from headgate.adhoc.results import Results
from headgate.errors import StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.ends import ranges_of
from headgate.statements.whole import (
    LEARNINGS,
    SparkErrors,
    WholeQuery,
    last_changes,
    what_is_left,
)


class Snapshot:
    """The topics of a plan, each up to where it ended when this was made."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        plan: Plan,
        starts: Mapping[str, str],
        skip_bad: bool = False,
        tasks: int = 4,
    ) -> None:
        self._plan = plan
        self.ranges = ranges_of(access, list(plan.tables), starts)
        self._query = WholeQuery(spark, access, schemas, plan, self.ranges, skip_bad, tasks)

    def frame(self) -> DataFrame:
        """The rows of the plan, and of those that change what they came to."""
        rows = self._query.frame()
        match self._plan.changelog:
            case "append":
                return rows
            case "retract":
                return what_is_left(rows, self._plan.columns.names)
            case _:
                there = last_changes(rows, self._plan).where(f.col(quote(r.OP)) == r.UPSERT)
                return there if self._plan.limit is None else there.limit(self._plan.limit)

    def run(self, results: Results) -> None:
        """Schemas that nobody knew are learned on the way."""
        for _ in range(LEARNINGS):
            try:
                give(self.frame(), self._plan, results, changing=False)
            except SparkErrors as error:
                if not self._query.learn(error):
                    raise
            else:
                return
        raise StatementFailed("The topics have records whose schemas cannot be learned.")
