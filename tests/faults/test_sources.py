"""Topics as they are: transactions, topics created again, retention, new partitions, gaps, large records."""

import io
import os
import random
from typing import Any

import fastavro
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]

from headgate.model import OnError, Position, TableState
from scripts.readers import pyiceberg_on
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg, without_metadata
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.stream import Letter, Stream, committed

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
ROWS = 2_000 if SOAK else 60
TRANSACTIONS = 100 if SOAK else 20


def enable(stack: Stack, stream: Stream, on_error: OnError = OnError.SUSPEND) -> None:
    options = ("--freshness", "1s", "--on-error", on_error.value, "--mode", "append")
    stack.run("table", "enable", stream.topic, *options)


def sync(stack: Stack, stream: Stream) -> None:
    stack.run("table", "sync", stream.topic, "--timeout", "180s")


def suspended(stack: Stack, stream: Stream) -> str:
    """Until the table is suspended; why."""

    def reason() -> str | None:
        status = stack.store.table(stream.topic).status
        return status.reason if status.state is TableState.SUSPENDED else None

    return str(wait_for(f"'{stream.topic}' to be suspended", reason))


def summaries(stack: Stack, stream: Stream) -> list[dict[str, Any]]:
    table = pyiceberg_on(stack.runtime.iceberg).load_table(("local", stream.topic))
    return [s.summary.additional_properties for s in table.snapshots() if s.summary is not None]


@pytest.fixture(scope="module")
def compacted(stack: Stack) -> Stream:
    """The broker takes its time to compact a topic: begun with the first test, wanted by the last."""
    often = {
        "cleanup.policy": "compact",
        "segment.ms": "100",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "500",
        "min.compaction.lag.ms": "0",
    }
    stream = Stream(stack.runtime, "sources.compacted", partitions=1, config=often)
    producer = Producer({"bootstrap.servers": stack.runtime.kafka})
    rows = stream.new_rows(200)
    for row in rows:
        # Ten keys: of each, the last record stays.
        producer.produce(stream.topic, stream.encode(row), key=str(row["n"] % 10).encode(), partition=0)
        if row["n"] % 50 == 49:
            assert producer.flush(30) == 0
    assert producer.flush(30) == 0
    return stream


def test_transactions_aborted_and_one_left_open(stack: Stack, compacted: Stream) -> None:
    """Of what was aborted nothing is there; what is open holds back what comes behind it."""
    stream = Stream(stack.runtime, "sources.transactions")
    chance = random.Random(4)
    producer = Producer({"bootstrap.servers": stack.runtime.kafka, "transactional.id": "sources-writer"})
    producer.init_transactions(60)
    enable(stack, stream)
    aborted = 0
    for number in range(TRANSACTIONS):
        rows = stream.new_rows(chance.randint(1, ROWS // 10))
        producer.begin_transaction()
        for row in rows:
            producer.produce(stream.topic, stream.encode(row), partition=row["n"] % 2)
        assert producer.flush(30) == 0
        if number % 10 in (1, 4, 7):
            producer.abort_transaction(60)
            aborted += 1
        else:
            producer.commit_transaction(60)
            stream.rows += rows
    assert aborted == TRANSACTIONS * 3 // 10
    sync(stack, stream)
    stream.check()

    opened = Producer({"bootstrap.servers": stack.runtime.kafka, "transactional.id": "sources-open"})
    opened.init_transactions(60)
    opened.begin_transaction()
    pending = stream.new_rows(5)
    for row in pending:
        opened.produce(stream.topic, stream.encode(row), partition=0)
    assert opened.flush(30) == 0
    before = list(stream.rows)
    behind = ROWS // 2
    stream.send(behind, partition=0)
    stream.send(behind, partition=1)
    waiting = stream.rows[len(before) : len(before) + behind]
    # What waits behind the open one is not the table's yet; the other partition goes on.
    stream.rows = before + stream.rows[len(before) + behind :]
    sync(stack, stream)
    stream.check()
    opened.commit_transaction(60)
    stream.rows += waiting + pending
    sync(stack, stream)
    stream.check()
    stack.verify(stream.topic)


# With fewer, its table would be ahead of it, which is the easiest to see.
@pytest.mark.soak
@pytest.mark.parametrize("others", ["fewer", "equal", "more"] if SOAK else ["equal", "more"])
def test_a_topic_created_again(stack: Stack, compacted: Stream, others: str) -> None:
    """Offsets mean nothing in another topic, however many records it has."""
    stream = Stream(stack.runtime, f"sources.again-{others}")
    enable(stack, stream, OnError.LOG)
    stream.send(ROWS)
    stream.send_bad(stream.poison())
    sync(stack, stream)
    count = {"fewer": ROWS // 2, "equal": ROWS, "more": ROWS * 2}[others]
    stream.create_again(partitions=3 if others == "more" else 2)
    old = list(stream.rows)
    stream.send(count)
    stream.send_bad(stream.poison())
    reason = suspended(stack, stream)
    assert "deleted and created again" in reason
    assert f"headgate table resume {stream.topic} --accept new-topic" in reason
    # Nothing of the new topic got in meanwhile, and the old rows can be read.
    new, stream.rows = stream.rows[len(old) :], old
    stream.check()
    stack.run("table", "resume", stream.topic, "--accept", "new-topic")
    sync(stack, stream)
    stream.rows = old + new
    stream.check()
    stream.check_dead()
    stream.send(ROWS)
    sync(stack, stream)
    stream.check()
    stack.verify(stream.topic)
    accepted = [s["headgate.accepted"] for s in summaries(stack, stream) if "headgate.accepted" in s]
    assert len(accepted) == 1


def test_replay_after_the_topic_was_created_again(stack: Stack, compacted: Stream) -> None:
    """Dead letters of both topics have the same coordinates; each is replayed as itself."""
    stream = Stream(stack.runtime, "sources.replayed", partitions=1)
    enable(stack, stream, OnError.LOG)
    later = stream.register(1) + 1
    rows = stream.new_rows(3, version=2)
    old, new, last = ((None, stream.encode(row, version=2, schema_id=later)) for row in rows)
    stream.send_mixed([old, (None, b"junk"), last])
    sync(stack, stream)
    stream.create_again()
    stream.send_mixed([(None, b"other junk"), new])
    suspended(stack, stream)
    stack.run("table", "resume", stream.topic, "--accept", "new-topic")
    sync(stack, stream)
    assert stream.register(2) == later
    assert stack.json("dlq", "replay", stream.topic) == {"replayed": 3, "dead": 2}
    assert stack.json("dlq", "replay", stream.topic) == {"replayed": 0, "dead": 2}
    stream.rows += rows
    stream.check(version=2)
    stream.check_dead(replayed=3)
    stack.verify(stream.topic)


def test_retention_overtakes_the_position(stack: Stack, compacted: Stream) -> None:
    stream = Stream(stack.runtime, "sources.retention")
    enable(stack, stream)
    stream.send(ROWS)
    sync(stack, stream)
    position = Position.from_dict(stack.store.table(stream.topic).status.detail["position"])
    stack.run("table", "suspend", stream.topic)
    suspended(stack, stream)
    kept = list(stream.rows)
    stream.send(ROWS)
    ends = stream.ends()
    # All but the last ten of the first partition are gone before the table has seen them.
    first = ends[0] - 10
    admin = AdminClient({"bootstrap.servers": stack.runtime.kafka})
    for future in admin.delete_records([TopicPartition(stream.topic, 0, first)]).values():
        future.result(30)
    stack.run("table", "resume", stream.topic)
    reason = suspended_for(stack, stream, "no longer has records")
    assert f"partition 0: {position.offsets[0]} to {first - 1}" in reason
    assert f"headgate table resume {stream.topic} --accept lost" in reason
    everything, stream.rows = stream.rows, kept
    stream.check()

    stack.run("table", "resume", stream.topic, "--accept", "lost")
    sync(stack, stream)
    # Rows go over the partitions in turn.
    new = everything[len(kept) :]
    even = sorted((row for row in new if row["n"] % 2 == 0), key=lambda row: int(row["n"]))
    stream.rows = kept + [row for row in new if row["n"] % 2] + even[-10:]
    stream.check()
    accepted = [s["headgate.accepted"] for s in summaries(stack, stream) if "headgate.accepted" in s]
    assert accepted == [f"lost 0:{position.offsets[0]}-{first - 1}"]
    done = stack.run("table", "resume", stream.topic, "--accept", "lost", code=1)
    assert "has lost nothing" in done.stderr
    stack.verify(stream.topic)


def suspended_for(stack: Stack, stream: Stream, what: str) -> str:
    def reason() -> str | None:
        status = stack.store.table(stream.topic).status
        return status.reason if status.state is TableState.SUSPENDED and what in status.reason else None

    return str(wait_for(f"'{stream.topic}' to be suspended: {what}", reason))


def test_partitions_added_while_running(stack: Stack, compacted: Stream) -> None:
    stream = Stream(stack.runtime, "sources.partitions")
    enable(stack, stream)
    stream.send(ROWS)
    sync(stack, stream)
    admin = AdminClient({"bootstrap.servers": stack.runtime.kafka})
    for future in admin.create_partitions([NewPartitions(stream.topic, 5)]).values():
        future.result(30)
    wait_for("the new partitions", lambda: len(stream.ends()) == 5)
    stream.partitions = 5
    stream.new_producer()
    stream.send(ROWS)
    sync(stack, stream)
    stream.check()
    position = Position.from_dict(stack.store.table(stream.topic).status.detail["position"])
    assert dict(position.offsets) == stream.ends()
    stack.verify(stream.topic)


def test_records_of_10_mb(stack: Stack, compacted: Stream) -> None:
    stream = Stream(stack.runtime, "sources.large", partitions=1)
    producer = Producer({"bootstrap.servers": stack.runtime.kafka, "message.max.bytes": 12_000_000})
    enable(stack, stream, OnError.LOG)
    large = [stream.new_rows(1, text=letter * 10_000_000)[0] for letter in "xyz"]
    broken = stream.encode(large[0])[:-1]
    for row in large:
        producer.produce(stream.topic, stream.encode(row), partition=0)
        assert producer.flush(60) == 0
    stream.rows += large
    stream.send(ROWS)
    sync(stack, stream)
    stream.check()
    # A bad one of that size is a dead letter, in the table and in the topic.
    offset = stream.ends()[0]
    producer.produce(stream.topic, broken, partition=0)
    assert producer.flush(60) == 0
    stream.dead.append(Letter(0, offset, broken))
    sync(stack, stream)
    stream.check()
    stream.check_dead()
    stack.verify(stream.topic)


def test_a_compacted_topic_with_gaps(stack: Stack, compacted: Stream) -> None:
    stream = compacted
    producer = Producer({"bootstrap.servers": stack.runtime.kafka})

    def left() -> list[dict[str, Any]]:
        """What a consumer finds now, as rows: compaction decides."""
        return [decoded(stream, value) for value, _ in committed(stack.runtime.kafka, stream.topic) if value]

    def compact() -> bool:
        # The segment that is written to is never compacted: a new record begins another.
        row = stream.new_rows(1)[0]
        producer.produce(stream.topic, stream.encode(row), key=b"clock", partition=0)
        assert producer.flush(30) == 0
        return len(left()) < 100

    wait_for("compaction", compact, 120)
    enable(stack, stream)
    found = left()
    sync(stack, stream)
    # Compaction may go on between the two looks; what both looks have must be there.
    assert len(found) < 200
    stream.rows = found
    table = rows_of(stack, stream)
    assert {row["n"] for row in left()} <= {row["n"] for row in table} <= {row["n"] for row in found}
    assert len({row["n"] for row in table}) == len(table)
    expected = {row["n"]: row for row in found}
    assert all(row == expected[row["n"]] for row in table)
    assert max(stream.ends().values()) > len(table)
    stack.verify(stream.topic)


def rows_of(stack: Stack, stream: Stream) -> list[dict[str, Any]]:
    one = [without_metadata(row) for row in read_duckdb(stack.runtime.iceberg, "local", stream.topic)]
    other = [without_metadata(row) for row in read_pyiceberg(stack.runtime.iceberg, "local", stream.topic)]
    assert sorted(map(canonical, one)) == sorted(map(canonical, other))
    return other


def decoded(stream: Stream, value: bytes) -> dict[str, Any]:
    schema = fastavro.parse_schema(stream.schema(1))
    found: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
    return dict(found)
