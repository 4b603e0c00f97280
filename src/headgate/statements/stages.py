"""Internal topics between the queries of one statement: made, written, read, shortened, deleted.

Nothing expires in them: a reader that was stopped for a year finds all of it. What every reader has done with
is deleted instead, up to the offsets that their checkpoints have committed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import RESERVED, Topics
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.codec import Codec, codec_of
from headgate.statements.scan import ROWS, Reading, kafka_source
from headgate.statements.sink import Sink

PREFIX = f"{RESERVED}.stage."
CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "lz4",
    # What is deleted leaves the disk when all of its segment is.
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": "3600000",
    # A row of a statement may be longer than the records that it was made of.
    "max.message.bytes": str(64 * 1024 * 1024),
}
_ROW = "row"


@dataclass(frozen=True)
class StageTopic:
    """A stage with the topic that its rows go through."""

    stage: r.StageOf
    codec: Codec
    topic: str


def stage_topics(statement_id: str, stages: Sequence[r.StageOf]) -> dict[str, StageTopic]:
    """By the name under which later queries scan them; in order."""
    return {
        stage.name: StageTopic(stage, codec_of(stage), f"{PREFIX}{statement_id}.{number}")
        for number, stage in enumerate(stages, 1)
    }


def create_topics(access: KafkaAccess, topics: Collection[StageTopic], partitions: int) -> None:
    """Before a statement is settled: what an earlier try has left there is empty, and stays if it fits."""
    kafka = Topics(access)
    there = kafka.describe_many([stage.topic for stage in topics])
    for stage in topics:
        found = there.get(stage.topic)
        if found is not None and len(found.partitions) == partitions:
            continue
        if found is not None:
            kafka.delete(stage.topic)
        kafka.create(stage.topic, partitions, config=CONFIG)


def delete_topics(access: KafkaAccess, statement_id: str, every: bool = False) -> None:
    """All that a statement has, whatever is known of it. `every`: what all have whose ids begin so."""
    kafka = Topics(access)
    for name in kafka.beginning_with(f"{PREFIX}{statement_id}{'' if every else '.'}"):
        with suppress(NotFound):
            kafka.delete(name)


def delete_done(
    spark: SparkSession,
    access: KafkaAccess,
    topic: str,
    checkpoints: Iterable[str],
    before: Mapping[int, int] | None = None,
) -> Mapping[int, int]:
    """Deletes what all readers, by their checkpoints, will not read again; up to where, by partition.

    `before`: what an earlier call said.
    """
    passed = [Checkpoint(spark, checkpoint).passed(topic) for checkpoint in checkpoints]
    known = [reading for reading in passed if reading is not None]
    if not known or len(known) < len(passed):
        return {}
    everywhere = set.intersection(*(set(reading) for reading in known))
    done = {partition: min(reading[partition] for reading in known) for partition in sorted(everywhere)}
    done = {partition: offset for partition, offset in done.items() if offset > 0}
    if done != before:
        Topics(access).delete_before(topic, done)
    return done


def stable_ends(access: KafkaAccess, topics: Collection[str]) -> dict[str, dict[int, int]]:
    """Up to where internal topics are committed."""
    found = Topics(access).describe_many(list(topics))
    return Offsets(access).stable_ends(found.values()) if found else {}


def scan_stage(
    spark: SparkSession, stage: StageTopic, table: r.Table, reading: Reading, name: str
) -> DataFrame:
    """The rows of a stage, as a later query wants them; what is observed of each batch is called `name`."""
    codec = stage.codec
    source = kafka_source(spark, stage.topic, reading)
    rows = source.select(codec.decoded(f.col("value")).alias(_ROW), "partition", "offset", "timestamp")
    # Filters stop here: below, they would have each record decoded twice.
    rows = rows.observe(name, f.count(f.lit(1)).alias(ROWS))
    return rows.select(
        *(codec.column(_ROW, column) for column in table.columns.names),
        f.coalesce(codec.rowtime(_ROW), f.col("timestamp")).alias(r.ROWTIME),
        f.col("partition").alias(r.PARTITION),
        f.col("offset").alias(r.OFFSET),
        f.create_map().cast("map<string,binary>").alias(r.HEADERS),
    )


class StageSink(Sink):
    """Rows into the internal topic of a stage. Each task writes the partition of its own number."""

    def __init__(self, stage: StageTopic, access: KafkaAccess, name: str, tasks: int) -> None:
        self._stage = stage
        self._keys = [f"k{number}" for number in range(len(stage.stage.key))]
        super().__init__(stage.topic, access, name, tasks, self._keys or ("value",), 0)

    def encoded(self, schema: t.StructType) -> Sequence[Sequence[Column]]:
        """Without keys: partitions are chosen here, and a NULL in a key is one like any other.

        Without times too: a row has its own, which Kafka might not take for a record's.
        """
        carried = [name for name in (r.PARTITION, r.OFFSET) if name in schema.names]
        keys = [
            f.col(quote(name)).alias(k) for name, k in zip(self._stage.stage.key, self._keys, strict=True)
        ]
        made = [
            f.lit(None).cast("binary").alias("key"),
            self._stage.codec.encoded(schema.names).alias("value"),
            *keys,
            *(f.col(quote(name)) for name in carried),
        ]
        partition = f.pmod(f.hash(*self.by), f.lit(self._tasks)).cast("int")
        return made, [f.col("*"), partition.alias("partition")]
