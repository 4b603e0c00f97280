"""Offset ranges become data files: the narrow place where another lane may stand one day.

Nothing is committed here. The files are handed to Iceberg's coordinator of staged files and come back as
DataFile objects, so that the rows can be judged before there is a snapshot and the commit is ours alone.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.model import Batch
from headgate.tables.frames import Frame
from headgate.tables.handles import table_cache
from headgate.tables.records import BAD_RECORD, SKIPPED, SOURCE, UNKNOWN_SCHEMA, RecordPlan

# What the lane asks of the session it runs in.
SESSION = {
    # Names of fields and tables are taken as they are written.
    "spark.sql.caseSensitive": "true",
    # Each batch reads with consumers of its own; Spark would keep them, and what they fetched, for minutes.
    "spark.kafka.consumer.cache.capacity": "4",
    "spark.kafka.consumer.cache.timeout": "5s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "5s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}
# Bigger polls and fetches than the defaults: measured 1.08 of them.
FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.fetch.max.bytes": str(16 * 1024 * 1024),
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
}
# With more partitions than this in a batch, rows are sorted by partition first: each open file takes memory.
MANY_PARTITIONS = 32


@dataclass(frozen=True)
class Staged:
    """What came of a batch: files that no snapshot knows yet."""

    files: Sequence[Any]

    @property
    def rows(self) -> int:
        return sum(file.recordCount() for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.fileSizeInBytes() for file in self.files)

    @property
    def partitions(self) -> int:
        """How many partitions of the table got rows."""
        return len({file.partition().toString() for file in self.files})


@dataclass(frozen=True)
class BadGroup:
    """Bad records with the same problem: how many, the first of them, and the schema that nobody knows."""

    kind: str
    message: str
    count: int
    partition: int
    offset: int
    unknown: tuple[str, Frame] | None


class SparkLane:
    """Spark's Kafka batch source, native readers, Iceberg's Parquet writer."""

    def __init__(self, spark: SparkSession, kafka: Mapping[str, str]) -> None:
        """`kafka`: the source's options for this cluster."""
        self.spark = spark
        self._kafka = dict(kafka)
        self._jvm = cast(Any, spark._jvm)

    def read(self, batch: Batch, topic: str) -> DataFrame:
        """The records of a batch, as they are in Kafka."""
        ranges = batch.ranges
        options = {
            **FETCH,
            **self._kafka,
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({topic: [r.partition for r in ranges]}),
            "startingOffsets": json.dumps({topic: {str(r.partition): r.start for r in ranges}}),
            "endingOffsets": json.dumps({topic: {str(r.partition): r.end for r in ranges}}),
            "failOnDataLoss": "true",
            "includeHeaders": "true",
        }
        return self.spark.read.format("kafka").options(**options).load()

    def write(self, plan: RecordPlan, source: DataFrame, table: Any, sort: bool) -> Staged | None:
        """Write all records to files of `table`; None, and no files, when some record is bad."""
        try:
            return Staged(self._stage(plan.rows(source), table, sort))
        except (PySparkException, Py4JJavaError) as error:
            if BAD_RECORD in str(error):
                return None
            raise

    def bad(self, plan: RecordPlan, source: DataFrame, limit: int = 500) -> list[BadGroup]:
        """The bad records, grouped; those with a schema that is not in play by that schema."""
        mark: Column = f.col("value_mark")
        if plan.key is not None:
            mark = f.when(f.col("problem.part") == "key", f.col("key_mark")).otherwise(mark)
        unknown = f.when(f.col("problem.class") == UNKNOWN_SCHEMA, mark).alias("mark")
        found = (
            plan.judged(source)
            .where(f.col("problem").isNotNull() & (f.col("problem.class") != SKIPPED))
            .groupBy("problem.class", "problem.message", "problem.part", unknown)
            .agg(f.count(f.lit(1)).alias("count"), f.min(f.struct("partition", "offset")).alias("at"))
            .orderBy("at")
            .limit(limit)
        )
        return [
            BadGroup(
                row["class"],
                row["message"],
                row["count"],
                row["at"].partition,
                row["at"].offset,
                None
                if row["mark"] is None
                else (row["part"], Frame(row["mark"].in_header, bytes(row["mark"].mark))),
            )
            for row in found.collect()
        ]

    def has_headers(self, source: DataFrame) -> bool:
        return bool(source.where(f.col("headers").isNotNull()).select("offset").limit(1).collect())

    def present(self, source: DataFrame, part: str, marks: Sequence[bytes]) -> list[bytes]:
        """Those marks that some message begins with."""
        begins = [
            f.max(f.substring(part, 1, len(mark)) == f.lit(mark)).alias(str(number))
            for number, mark in enumerate(marks)
        ]
        row = source.select(*begins).collect()[0]
        return [mark for number, mark in enumerate(marks) if row[str(number)]]

    def good(self, plan: RecordPlan, source: DataFrame) -> DataFrame:
        """Where the good records are."""
        sound = f.col("problem").isNull()
        return plan.judged(source).where(sound).select("topic", "partition", "offset")

    def write_good(self, plan: RecordPlan, source: DataFrame, table: Any, sort: bool) -> Staged:
        """Only the good records; bad ones are another's business."""
        rows = plan.judged(source).where(f.col("problem").isNull()).select("row.*")
        return Staged(self._stage(rows, table, sort))

    def dead(self, plan: RecordPlan, source: DataFrame) -> DataFrame:
        """The bad records, raw, with what is wrong with them."""
        bad = f.col("problem").isNotNull() & (f.col("problem.class") != SKIPPED)
        return (
            plan.judged(source)
            .where(bad)
            .select(
                *SOURCE,
                "schema_id",
                f.col("problem.class").alias("error_class"),
                f.col("problem.message").alias("error_message"),
            )
        )

    def stage(self, rows: DataFrame, table: Any) -> Staged:
        return Staged(self._stage(rows, table, sort=False))

    def _stage(self, rows: DataFrame, table: Any, sort: bool) -> list[Any]:
        """Iceberg's writer for rewrites leaves its files with the coordinator instead of committing them."""
        # Iceberg's source looks for its catalogs in the session of the calling thread, a worker's.
        session = self._jvm.org.apache.spark.sql.classic.SparkSession
        session.setActiveSession(cast(Any, self.spark)._jsparkSession)
        spark = self._jvm.org.apache.iceberg.spark
        cache = table_cache(cast(Any, self.spark.sparkContext)._gateway)
        coordinator = spark.FileRewriteCoordinator.get()
        group = str(uuid.uuid4())
        cache.add(group, table)
        try:
            writer = rows.write.format("iceberg").mode("append")
            writer.option("fanout-enabled", str(not sort).lower()).save(group)
            return list(coordinator.fetchNewFiles(table, group))
        finally:
            coordinator.clearRewrite(table, group)
            cache.remove(group)
