"""A frame into a topic, exactly once, inside Spark's tasks."""

import json
from uuid import uuid4

import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.errors import NotFound, StaleBatch
from headgate.kafka import Topics
from headgate.kafka.frames import _distributed, _rows, collect_frame, write_frame
from headgate.kafka.records import committed_records
from headgate.kafka.transactional import Row, TransactionalWriter
from tests.support.services import Services

TASKS = 3
MARKERS = "frames.markers"


@pytest.fixture
def kafka(services: Services) -> str:
    return services.runtime.kafka


@pytest.fixture
def topic(kafka: str) -> str:
    return Topics(kafka).create(f"frames-{uuid4().hex[:12]}", 2).name


def frame(spark: SparkSession, rows: int = 300, keys: int = 20) -> DataFrame:
    """Rows whose order within a key is told by `at`, in no order at all."""
    return (
        spark.range(rows)
        .withColumn("at", (f.col("id") * 7919) % rows)
        .select(
            f.when(f.col("id") % 10 != 0, f.concat(f.lit("k"), f.col("id") % keys))
            .cast("binary")
            .alias("key"),
            f.to_json(f.struct("id", "at")).cast("binary").alias("value"),
            f.array(
                f.struct(
                    f.lit("h").alias("key"), f.encode(f.col("id").cast("string"), "utf-8").alias("value")
                )
            ).alias("headers"),
            f.timestamp_millis(f.lit(1_700_000_000_123) + f.col("id")).alias("timestamp"),
            "at",
        )
    )


def test_each_row_is_there_once_in_the_order_of_its_key(spark: SparkSession, kafka: str, topic: str) -> None:
    name = f"frame-{topic}"
    assert write_frame(frame(spark), kafka, name, 1, topic, TASKS, MARKERS, order=["at"]).tasks == TASKS
    # A second time, as after a crash of the driver: nothing.
    assert write_frame(frame(spark), kafka, name, 1, topic, TASKS, MARKERS, order=["at"]).tasks == 0
    found = list(committed_records(kafka, topic, {0: 0, 1: 0}, idle_seconds=None))
    values = [json.loads(message.value() or b"") for message in found]
    assert sorted(value["id"] for value in values) == list(range(300))
    for message, value in zip(found, values, strict=True):
        assert message.headers() == [("h", str(value["id"]).encode())]
        assert message.timestamp()[1] == 1_700_000_000_123 + value["id"]
        assert message.key() == (f"k{value['id'] % 20}".encode() if value["id"] % 10 else None)
    by_key: dict[bytes, list[int]] = {}
    for message, value in zip(found, values, strict=True):
        if (key := message.key()) is not None:
            by_key.setdefault(bytes(key), []).append(value["at"])
    assert len(by_key) == 18
    assert all(order == sorted(order) for order in by_key.values())


def test_tasks_that_had_committed_are_left_out(spark: SparkSession, kafka: str, topic: str) -> None:
    """As after a crash in the middle of the job."""
    name = f"half-{topic}"
    whole = frame(spark).repartition(TASKS, "key").withColumn("task", f.spark_partition_id())
    own = {json.loads(row["value"])["id"] for row in whole.where("task = 1").collect()}
    assert 0 < len(own) < 300
    with TransactionalWriter(kafka, name, 1, MARKERS) as writer:
        writer.write(4, topic, [])
    assert write_frame(frame(spark), kafka, name, 4, topic, TASKS, MARKERS).tasks == TASKS - 1
    found = [
        json.loads(m.value() or b"")["id"]
        for m in committed_records(kafka, topic, {0: 0, 1: 0}, idle_seconds=None)
    ]
    assert sorted(found) == sorted(set(range(300)) - own)


def test_tasks_without_rows_are_tasks_too(spark: SparkSession, kafka: str, topic: str) -> None:
    name = f"empty-{topic}"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    nothing = frame(spark, 5, 1)
    assert write_frame(nothing.where("false"), kafka, name, 1, topic, TASKS, MARKERS).tasks == 0
    assert write_frame(nothing.where("at < 0"), kafka, name, 1, topic, TASKS, MARKERS).tasks == TASKS
    assert write_frame(frame(spark, 1, 1), kafka, name, 2, topic, TASKS, MARKERS, by=["at"]).tasks == TASKS
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    for task in range(TASKS):
        with TransactionalWriter(kafka, name, task, MARKERS) as writer:
            assert writer.committed() == 2


def test_tasks_without_rows_may_be_spared(spark: SparkSession, kafka: str, topic: str) -> None:
    name = f"spared-{topic}"
    arguments = (kafka, name, 1, topic, TASKS, MARKERS)
    assert write_frame(frame(spark, 1, 1), *arguments, by=["at"], mark_empty=False).tasks == 1
    assert write_frame(frame(spark, 1, 1), *arguments, by=["at"], mark_empty=False).tasks == 0
    assert len(list(committed_records(kafka, topic, {0: 0, 1: 0}, idle_seconds=None))) == 1
    last = []
    for task in range(TASKS):
        with TransactionalWriter(kafka, name, task, MARKERS) as writer:
            last.append(writer.committed())
    assert sorted(last, key=str) == [1, None, None]


def test_errors_of_a_task_are_errors_of_ours(spark: SparkSession, kafka: str, topic: str) -> None:
    with pytest.raises(NotFound, match=f"no-such-{topic}"):
        write_frame(frame(spark, 5), kafka, f"lost-{topic}", 1, f"no-such-{topic}", 1, MARKERS)


def test_a_writer_that_the_frame_overtook_is_stale(spark: SparkSession, kafka: str, topic: str) -> None:
    name = f"overtaken-{topic}"
    with TransactionalWriter(kafka, name, 0, MARKERS) as older:
        assert write_frame(frame(spark, 5), kafka, name, 1, topic, 1, MARKERS).tasks == 1
        with pytest.raises(StaleBatch):
            older.write(1, topic, [Row(b"k", b"never")])
    assert len(list(committed_records(kafka, topic, {0: 0, 1: 0}, idle_seconds=None))) == 5


def test_rows_of_another_task_are_not_taken(spark: SparkSession) -> None:
    """What would happen if Spark joined partitions."""
    spread = _distributed(frame(spark), TASKS, ["at"], ["key"])
    assert spread.rdd.getNumPartitions() == TASKS
    with pytest.raises(RuntimeError, match="Task 0 was given rows of others"):
        list(_rows(spread.toArrow().to_batches(), 0))


@pytest.mark.parametrize("is_narrow", [False, True])
def test_a_small_frame_has_the_rows_that_tasks_would_have(spark: SparkSession, is_narrow: bool) -> None:
    """In their order too: a batch may be written one way first and the other when it is tried again."""
    spread = _distributed(frame(spark), TASKS, ["at"], ["key"]).toArrow()
    rows, written = collect_frame(frame(spark).repartition(5), TASKS, ["at"], ["key"], is_narrow)
    by_task: dict[int, list[Row]] = {}
    for task in range(TASKS):
        own = spread.filter(pc.equal(spread["headgate_task"], task))
        by_task[task] = list(_rows(own.to_batches(), task))
    assert rows == by_task
    assert written == (0, 300, written.bytes)
    assert written.bytes > 300 * 20
