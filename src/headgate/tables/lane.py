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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro import decode, is_whole, null_record, table_type
from headgate.decode.project import project, same_type
from headgate.decode.text import is_text_valid
from headgate.model import Batch

# One magic byte, four bytes of schema id, then Avro.
PREFIX_LENGTH = 5
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
_FETCH = {
    "kafka.max.poll.records": "20000",
    "kafka.fetch.max.bytes": str(16 * 1024 * 1024),
    "kafka.max.partition.fetch.bytes": str(16 * 1024 * 1024),
}
# What a task says when it meets a record that does not decode; looked for in the failure of its job.
_BAD_RECORD = "headgate: a record does not decode"


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


@dataclass(frozen=True)
class BadRecord:
    """One record that did not decode, and why."""

    partition: int
    offset: int
    schema_id: int | None
    problem: str


class SparkLane:
    """Spark's Kafka batch source, `from_avro` with each writer's own schema, Iceberg's Parquet writer."""

    def __init__(self, spark: SparkSession, bootstrap: str) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._jvm = cast(Any, spark._jvm)

    def write(
        self, batch: Batch, topic: str, table: Any, columns: t.StructType, schemas: Mapping[int, str]
    ) -> Staged | None:
        """Write `batch` to files of `table`; None, and no files, when some record does not decode.

        The first bad record ends the job: counting them on the way would break Spark's generated code apart.
        """
        # Iceberg's source looks for its catalogs in the session of the calling thread, a worker's.
        session = self._jvm.org.apache.spark.sql.classic.SparkSession
        session.setActiveSession(cast(Any, self._spark)._jsparkSession)
        record = f.col("record")
        # No filter on the record: it would be pushed down, and each value decoded twice.
        sound = f.when(record.isNotNull(), record).otherwise(f.raise_error(_BAD_RECORD))
        decoded = self._decode(batch, topic, columns, schemas)
        try:
            return Staged(self._stage(decoded.select(sound.alias("record")).select("record.*"), table))
        except (PySparkException, Py4JJavaError) as error:
            if _BAD_RECORD in str(error):
                return None
            raise

    def bad_records(
        self, batch: Batch, topic: str, columns: t.StructType, schemas: Mapping[int, str], limit: int = 20
    ) -> list[BadRecord]:
        """The first bad record of each schema id, for the reason that a person reads."""
        bad = (
            self._decode(batch, topic, columns, schemas)
            .where(f.col("record").isNull())
            .groupBy("prefix")
            .agg(f.min(f.struct("partition", "offset")).alias("at"))
            .orderBy("at")
            .limit(limit)
        )
        return [_bad_record(row.prefix, row["at"].partition, row["at"].offset) for row in bad.collect()]

    def _decode(
        self, batch: Batch, topic: str, columns: t.StructType, schemas: Mapping[int, str]
    ) -> DataFrame:
        """The range with `record`: a struct of the table's columns, NULL when it cannot be decoded.

        In two steps, so that each value is decoded once however many columns are taken from it.
        """
        prefix = f.substring("value", 1, PREFIX_LENGTH)
        body = f.expr(f"substring(value, {PREFIX_LENGTH + 1})")
        decoded = []
        record = f.lit(None).cast(columns)
        for schema_id, schema in schemas.items():
            name, blank = f"of_{schema_id}", f"blank_{schema_id}"
            mine = prefix == f.lit(wire_prefix(schema_id))
            decoded += [
                f.when(mine, decode(body, schema)).alias(name),
                (body == f.lit(null_record(schema))).alias(blank),
            ]
            written = table_type(schema)
            whole = is_whole(f.col(name), f.col(blank), schema)
            readable = is_text_valid(f.col(name), written)
            if readable is not None:
                whole = whole & readable
            # Fields are copied one by one only where the record differs from the table.
            fits_as_is = same_type(written, columns)
            fitted = f.col(name) if fits_as_is else f.struct(*project(f.col(name), written, columns))
            record = f.when(whole, fitted).otherwise(record)
        return (
            self._read(batch, topic)
            .select("partition", "offset", prefix.alias("prefix"), *decoded)
            .select("partition", "offset", "prefix", record.alias("record"))
        )

    def _read(self, batch: Batch, topic: str) -> DataFrame:
        ranges = batch.ranges
        options = {
            "kafka.bootstrap.servers": self._bootstrap,
            "kafka.isolation.level": "read_committed",
            "assign": json.dumps({topic: [r.partition for r in ranges]}),
            "startingOffsets": json.dumps({topic: {str(r.partition): r.start for r in ranges}}),
            "endingOffsets": json.dumps({topic: {str(r.partition): r.end for r in ranges}}),
            "failOnDataLoss": "true",
            **_FETCH,
        }
        return self._spark.read.format("kafka").options(**options).load()

    def _stage(self, rows: DataFrame, table: Any) -> list[Any]:
        """Iceberg's writer for rewrites leaves its files with the coordinator instead of committing them."""
        spark = self._jvm.org.apache.iceberg.spark
        cache = spark.SparkTableCache.get()
        coordinator = spark.FileRewriteCoordinator.get()
        group = str(uuid.uuid4())
        cache.add(group, table)
        try:
            rows.write.format("iceberg").mode("append").save(group)
            return list(coordinator.fetchNewFiles(table, group))
        finally:
            coordinator.clearRewrite(table, group)
            cache.remove(group)


def wire_prefix(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def _bad_record(prefix: bytes | None, partition: int, offset: int) -> BadRecord:
    if prefix is None:
        return BadRecord(partition, offset, None, "its value is null")
    if len(prefix) < PREFIX_LENGTH or prefix[0] != 0:
        return BadRecord(partition, offset, None, "its value does not begin with a schema id")
    schema_id = int.from_bytes(prefix[1:], "big")
    return BadRecord(partition, offset, schema_id, f"its bytes do not fit schema {schema_id}")
