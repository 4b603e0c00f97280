"""A SELECT on topics that ends: the records that are committed when it begins, read as one batch.

The plan is that of the stream. All of its rows are there at once, so none is late, each window is closed, and
of a row that changes there is what it came to.
"""

import json
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.adhoc.live import LEARNINGS, give, last_changes
from headgate.adhoc.results import Results
from headgate.errors import NotFound, StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.sql.tables import Source, watermarked
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.topics import TopicReader
from headgate.tables.lane import FETCH
from headgate.tables.records import BAD_RECORD_PLACE

SESSION = {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"}
# By partition, from this offset on and up to that one.
Ranges = Mapping[int, tuple[int, int]]


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
        self._spark = spark.newSession()
        settings = {**plan.settings, **SESSION, "spark.sql.shuffle.partitions": str(tasks)}
        for key, value in settings.items():
            self._spark.conf.set(key, value)
        self._access = access
        self._plan = plan
        tables = plan.tables
        self.ranges = ranges_of(access, list(tables), starts)
        self._readers = {
            name: TopicReader(table, schemas, access, skip_bad) for name, table in tables.items()
        }

    def frame(self) -> DataFrame:
        """The rows of the plan, and of those that change what they came to."""
        rows = self._plan.build(self._scan, at_once=True)
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
            except (PySparkException, Py4JJavaError) as error:
                place = BAD_RECORD_PLACE.search(str(error))
                if place is None:
                    raise
                self._readers[place[3]].learn(int(place[1]), int(place[2]), self._spark)
            else:
                return
        raise StatementFailed("The topics have records whose schemas cannot be learned.")

    def _scan(self, source: Source) -> DataFrame:
        table = source.table
        reader = self._readers[table.name]
        rows = reader.with_rows(reader.rows(self._records(table.name)))
        return watermarked(rows, source.watermark)

    def _records(self, topic: str) -> DataFrame:
        ranges = self.ranges[topic]
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
        return self._spark.read.format("kafka").options(**options).load()


def what_is_left(rows: DataFrame, names: list[str]) -> DataFrame:
    """Each row as often as it came and was not taken back."""
    columns = [f.col(quote(name)) for name in names]
    sign = f.when(f.col(quote(r.OP)).startswith("-"), f.lit(-1)).otherwise(f.lit(1))
    counted = rows.groupBy(*columns).agg(f.sum(sign).alias("$left")).where("`$left` > 0")
    return counted.select(*columns, f.explode(f.expr("array_repeat(0, int(`$left`))")).alias("$one")).drop(
        "$one"
    )


def ranges_of(access: KafkaAccess, names: list[str], starts: Mapping[str, str]) -> dict[str, Ranges]:
    """What is committed now, by topic; from where its table begins to be read."""
    topics = Topics(access).describe_many(names)
    offsets = Offsets(access)
    ends, firsts = offsets.stable_ends(topics.values()), offsets.earliest(topics.values())
    found: dict[str, Ranges] = {}
    for name in names:
        if name not in ends or name not in firsts:
            raise NotFound(f"There is no topic '{name}'.", "`headgate topic list` shows those that are.")
        first = ends[name] if starts.get(name) == "latest" else firsts[name]
        # Retention may have moved on between the two looks.
        found[name] = {p: (min(first[p], end), end) for p, end in sorted(ends[name].items())}
    return found
