"""A plan over topics that end: each is read from where it begins up to a fixed offset, all at once.

The plan is that of the stream. All of its rows are there, so none is late, each window is closed, and of a
row that changes there is what it came to.
"""

import json
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from headgate.kafka.access import KafkaAccess
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.sql.tables import Source, watermarked
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.ends import Ranges
from headgate.statements.scan import BAD, ROWS
from headgate.statements.topics import TopicReader
from headgate.tables.lane import FETCH
from headgate.tables.records import BAD_RECORD_PLACE

SESSION = {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
# What is found to be empty while it runs would forget what was observed below it.
_COUNTED = {
    "spark.sql.adaptive.optimizer.excludedRules": (
        "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
    )
}
# How often a schema is learned that nobody knew, before it is believed that there is no end of them.
LEARNINGS = 100
# What Spark raises for a query, here and in the JVM.
SparkErrors = (PySparkException, Py4JJavaError)


class WholeQuery:
    """Not for two threads at once."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        plan: Plan,
        ranges: Mapping[str, Ranges],
        skip_bad: bool = False,
        tasks: int = 4,
        counted: bool = False,
    ) -> None:
        """`counted`: what its scans read is observed."""
        self.session = spark.newSession()
        settings = {
            **plan.settings,
            **SESSION,
            **(_COUNTED if counted else {}),
            "spark.sql.shuffle.partitions": str(tasks),
        }
        for key, value in settings.items():
            self.session.conf.set(key, value)
        self._access = access
        self._plan = plan
        self._ranges = ranges
        self._counted = counted
        self._readers = {
            name: TopicReader(table, schemas, access, skip_bad) for name, table in plan.tables.items()
        }
        #: What each scan of the last frame has read.
        self.read: list[Observation] = []

    def frame(self) -> DataFrame:
        """The rows as the plan gives them: of those that change, their changes."""
        self.read = []
        return self._plan.build(self._scan, at_once=True)

    def learn(self, error: Exception) -> bool:
        """Whether it was for a schema that nobody knew, and is known now."""
        place = BAD_RECORD_PLACE.search(str(error))
        if place is not None:
            self._readers[place[3]].learn(int(place[1]), int(place[2]), self.session)
        return place is not None

    def _scan(self, source: Source) -> DataFrame:
        table = source.table
        reader = self._readers[table.name]
        rows = reader.rows(self._records(table.name))
        if self._counted:
            self.read.append(Observation())
            seen = f.count(f.lit(1)).alias(ROWS), f.count_if("`$bad`").alias(BAD)
            rows = rows.observe(self.read[-1], *seen)
        return watermarked(reader.with_rows(rows), source.watermark)

    def _records(self, topic: str) -> DataFrame:
        ranges = self._ranges[topic]
        options = {
            **FETCH,
            **self._access.spark_options(),
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({topic: list(ranges)}),
            "startingOffsets": json.dumps({topic: {str(p): start for p, (start, _) in ranges.items()}}),
            "endingOffsets": json.dumps({topic: {str(p): end for p, (_, end) in ranges.items()}}),
            "failOnDataLoss": "true",
            "includeHeaders": "true",
        }
        return self.session.read.format("kafka").options(**options).load()


def what_is_left(rows: DataFrame, names: list[str]) -> DataFrame:
    """Each row as often as it came and was not retracted."""
    columns = [f.col(quote(name)) for name in names]
    sign = f.when(f.col(quote(r.OP)).startswith("-"), f.lit(-1)).otherwise(f.lit(1))
    counted = rows.groupBy(*columns).agg(f.sum(sign).alias("$left")).where("`$left` > 0")
    return counted.select(*columns, f.explode(f.expr("array_repeat(0, int(`$left`))")).alias("$one")).drop(
        "$one"
    )


def last_changes(rows: DataFrame, plan: Plan) -> DataFrame:
    """Of the changes of a key in these rows, the last: as the records came, where that is to be seen."""
    if plan.changelog != "upsert" or r.OFFSET not in rows.columns or not plan.key:
        return rows
    rest = [name for name in rows.columns if name not in plan.key]
    order = f.struct(f.col(quote(r.PARTITION)), f.col(quote(r.OFFSET)))
    last = rows.groupBy(*(f.col(quote(name)) for name in plan.key)).agg(
        f.max_by(f.struct(*(f.col(quote(name)) for name in rest)), order).alias("$last")
    )
    return last.select(
        *(f.col(quote(name)) for name in plan.key),
        *(f.col(f"`$last`.{quote(name)}").alias(name) for name in rest),
    )
