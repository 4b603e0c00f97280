"""A topic as a streaming frame: what is read of it, and what is watched as it passes.

Event time goes on by our own clock, not by Spark's (docs/adr/0007): so the column is marked as event time
with a delay that Spark's own watermark never catches up with, and its metadata say what was declared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.debezium import HAS_ROW
from headgate.errors import InvalidRequest
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.topics import TopicReader
from headgate.tables.lane import FETCH

# Longer than any event time is old: what Spark makes of it lies before 1970, and is never reached.
_NEVER = "1000000 days"
# Where Spark keeps the delay of a column of event time.
_DELAY_KEY = "spark.watermarkDelayMs"
# How Spark's Kafka source takes the beginning of one partition.
_EARLIEST = -2
# Records of partitions that were not there when the scan was made.
OTHERS = "others"
ROWS, BAD, WITHOUT_ROW, AHEAD = "rows", "bad", "without_row", "ahead"
# A time that is so far ahead of the wall clock is somebody's mistake: it must not make others late.
_FAR_AHEAD = "INTERVAL 1 HOUR"


@dataclass(frozen=True)
class Reading:
    """How a topic is read. `start`: where, the first time, in the words of Spark's Kafka source."""

    kafka: Mapping[str, str]
    start: str = "earliest"
    max_rows: int = 1_000_000


def scan(
    spark: SparkSession,
    reader: TopicReader,
    watermark: r.Watermark | None,
    reading: Reading,
    partitions: Sequence[int],
    name: str,
) -> DataFrame:
    """The rows of a topic; what is observed of each batch is called `name`."""
    rows = reader.rows(kafka_source(spark, reader.table.name, reading))
    if watermark is not None:
        rows = _with_event_time(rows, reader.table, watermark)
    # Filters stop here: below, they would have each record decoded twice.
    rows = _watched(rows, watermark, partitions, name)
    rows = reader.with_rows(rows)
    if watermark is not None:
        rows = _marked(rows, watermark)
    return rows


def start_of_all(topic: str, start: str, partitions: Sequence[int]) -> str:
    """Offsets for those partitions too that the topic was given since they were named: from their beginning.
    Spark wants each of them."""
    if not start.startswith("{"):
        return start
    known = json.loads(start)[topic]
    return json.dumps({topic: {str(p): known.get(str(p), _EARLIEST) for p in partitions}})


def kafka_source(spark: SparkSession, topic: str, reading: Reading) -> DataFrame:
    """The committed records of a topic."""
    options = {
        **FETCH,
        **reading.kafka,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "startingOffsets": reading.start,
        "maxOffsetsPerTrigger": str(reading.max_rows),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }
    return spark.readStream.format("kafka").options(**options).load()


def _with_event_time(rows: DataFrame, table: r.Table, watermark: r.Watermark) -> DataFrame:
    if watermark.expression is not None:
        rows = rows.withColumn(watermark.column, f.expr(watermark.expression))
    kind = next((field.dataType for field in rows.schema.fields if field.name == watermark.column), None)
    if not isinstance(kind, t.TimestampType):
        said = "is not there" if kind is None else f"is of type {kind.simpleString()}"
        raise InvalidRequest(
            f"Column '{watermark.column}' of '{table.name}' cannot have a watermark: it {said}.",
            "Declare the watermark on a column of type TIMESTAMP_LTZ.",
        )
    return rows


def _watched(
    rows: DataFrame, watermark: r.Watermark | None, partitions: Sequence[int], name: str
) -> DataFrame:
    partition = f.col(quote(r.PARTITION))
    seen = [f.count(f.lit(1)).alias(ROWS), f.count_if("`$bad`").alias(BAD)]
    if HAS_ROW in rows.columns:
        seen.append(f.count_if(~f.col(quote(HAS_ROW))).alias(WITHOUT_ROW))
    if watermark is not None:
        moment = f.col(quote(watermark.column))
        is_far = moment > f.expr(f"current_timestamp() + {_FAR_AHEAD}")
        millis = f.when(~is_far, f.unix_millis(moment))
        seen += [f.max(f.when(partition == p, millis)).alias(str(p)) for p in partitions]
        seen.append(f.count_if(is_far).alias(AHEAD))
        seen.append(f.count_if(~partition.isin(*partitions)).alias(OTHERS))
    return rows.observe(name, *seen)


def _marked(rows: DataFrame, watermark: r.Watermark) -> DataFrame:
    marked = rows.withWatermark(quote(watermark.column), _NEVER)
    return marked.select(
        *(
            f.col(quote(name)).alias(name, metadata={_DELAY_KEY: watermark.delay_ms})
            if name == watermark.column
            else f.col(quote(name))
            for name in marked.columns
        )
    )
