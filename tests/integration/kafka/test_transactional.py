"""The transactional writer on a real broker: killed, fenced, aborted, repeated."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from headgate.embedded.broker import Broker
from headgate.embedded.ports import free_port
from headgate.errors import ConfigError, InvalidRequest, KafkaUnavailable, NotFound, StaleBatch
from headgate.kafka import Topics
from headgate.kafka.client import Link
from headgate.kafka.markers import (
    MARKER_PARTITIONS,
    Marker,
    _await_decided,
    marker_partition,
    prepare_markers,
    read_marker,
)
from headgate.kafka.records import committed_records
from headgate.kafka.transactional import Row, TransactionalWriter, end_open, take_over_markers
from tests.integration.kafka.writing import ROWS

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
MARKERS = "transactional.markers"


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def topic(topics: Topics) -> str:
    return topics.create(f"transactional-{uuid4().hex[:12]}", partitions=2).name


@pytest.fixture
def name() -> str:
    return f"writer-{uuid4().hex[:12]}"


def values(broker: Broker, topic: str) -> list[bytes]:
    """What a reader of committed records sees, in the order of each partition."""
    found = committed_records(broker.bootstrap, topic, {0: 0, 1: 0}, idle_seconds=None)
    return [bytes(message.value() or b"") for message in found]


def open_writer(broker: Broker, name: str, task: int = 0, markers: str = MARKERS) -> TransactionalWriter:
    return TransactionalWriter(broker.bootstrap, name, task, markers)


def test_a_batch_is_written_whole_with_all_that_a_row_has(broker: Broker, topic: str, name: str) -> None:
    sent = Row(
        b"k", b"v", [("a", b"1"), ("a", None), ("b", b"")], partition=1, timestamp_ms=1_700_000_000_123
    )
    with open_writer(broker, name) as writer:
        assert writer.committed() is None
        assert writer.write(7, topic, [sent, Row(None, None)])
        assert writer.committed() == 7
    found = {m.key(): m for m in committed_records(broker.bootstrap, topic, {0: 0, 1: 0}, 2)}
    assert found[b"k"].value() == b"v"
    assert found[b"k"].partition() == 1
    assert found[b"k"].headers() == [("a", b"1"), ("a", None), ("b", b"")]
    assert found[b"k"].timestamp()[1] == 1_700_000_000_123
    assert found[None].value() is None


def test_a_key_goes_where_javas_clients_put_it(broker: Broker, topic: str, name: str) -> None:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random", "log_level": 0}
    )
    keys = [f"key-{n}".encode() for n in range(20)]
    for key in keys:
        producer.produce(topic, b"java", key)
    assert producer.flush(10) == 0
    with open_writer(broker, name) as writer:
        writer.write(1, topic, [Row(key, b"ours") for key in keys])
    found = list(committed_records(broker.bootstrap, topic, {0: 0, 1: 0}, 40))
    places = {(m.key(), m.partition()) for m in found}
    assert len(found) == 40
    assert len(places) == 20


def test_rows_without_a_key_are_in_all_partitions(broker: Broker, topic: str, name: str) -> None:
    """Also those of a small batch: a partition that gets none holds up the event time of whoever reads it."""
    with open_writer(broker, name) as writer:
        for batch in range(5):
            before = Counter(
                m.partition()
                for m in committed_records(broker.bootstrap, topic, {0: 0, 1: 0}, idle_seconds=None)
            )
            assert writer.write(batch, topic, [Row(None, b"row") for _ in range(40)])
            found = Counter(
                m.partition()
                for m in committed_records(broker.bootstrap, topic, {0: 0, 1: 0}, idle_seconds=None)
            )
            assert set(found - before) == {0, 1}


def test_a_batch_that_is_repeated_does_nothing(broker: Broker, topic: str, name: str) -> None:
    with open_writer(broker, name) as writer:
        assert writer.write(3, topic, [Row(b"k", b"three")])
        assert not writer.write(3, topic, [Row(b"k", b"three")])
        assert not writer.write(2, topic, [Row(b"k", b"two")])
    with open_writer(broker, name) as again:
        assert again.committed() == 3
        assert not again.write(3, topic, [Row(b"k", b"three")])
        assert again.write(4, topic, [])
    with open_writer(broker, name) as third:
        assert third.committed() == 4
    assert values(broker, topic) == [b"three"]


def test_a_batch_of_another_checkpoint_or_plan_is_not_taken_for_done(
    broker: Broker, topic: str, name: str
) -> None:
    """A statement looks at the markers when it starts: what is other later was written by another engine."""
    with open_writer(broker, name) as writer:
        assert writer.write(Marker(7, "one", "entry 7", "entry 6"), topic, [Row(b"k", b"seven")])
        assert not writer.write(Marker(7, "one", "entry 7", "entry 6"), topic, [Row(b"k", b"again")])
        # The batch before it is done where this one is.
        assert not writer.write(Marker(6, "one", "entry 6"), topic, [Row(b"k", b"six")])
        for other in (Marker(0, "two", "entry 0"), Marker(7, "one", "entry 7b"), Marker(5, "one", "entry 5")):
            with pytest.raises(StaleBatch, match="batch 7 of another run"):
                writer.write(other, topic, [Row(b"k", b"never")])
        writer.replace_marker(Marker(-1, "two"))
    assert take_over_markers(broker.bootstrap, name, 2, MARKERS) == [Marker(-1, "two"), None]
    with open_writer(broker, name) as again:
        assert again.write(Marker(0, "two", "entry 0"), topic, [Row(b"k", b"zero")])
    assert values(broker, topic) == [b"seven", b"zero"]


def test_tasks_and_names_have_markers_of_their_own(broker: Broker, topic: str, name: str) -> None:
    for task in range(3):
        with open_writer(broker, name, task) as writer:
            assert writer.committed() is None
            writer.write(task, topic, [])
    for task in range(3):
        with open_writer(broker, name, task) as writer:
            assert writer.committed() == task


def test_the_older_of_two_writers_is_fenced(broker: Broker, topic: str, name: str) -> None:
    with open_writer(broker, name) as older:
        older.write(1, topic, [Row(b"k", b"one")])

        def overtaken() -> Iterator[Row]:
            yield Row(b"k", b"never")
            with open_writer(broker, name) as newer:
                assert newer.committed() == 1
                newer.write(2, topic, [Row(b"k", b"two")])
            yield Row(b"k", b"never")

        with pytest.raises(StaleBatch, match=f"{name}/0"):
            older.write(2, topic, overtaken())
        with pytest.raises(RuntimeError, match="open a new one"):
            older.write(3, topic, [Row(b"k", b"never")])
    assert values(broker, topic) == [b"one", b"two"]


def test_an_older_writer_cannot_commit_while_the_marker_is_read(
    broker: Broker, topic: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that it committed behind the marker that was read would be written a second time."""

    def read_late(link: Link, markers: str, key: str) -> Marker | None:
        found = read_marker(link, markers, key)
        with pytest.raises(StaleBatch):
            older.write(1, topic, [Row(b"k", b"never")])
        return found

    with open_writer(broker, name) as older:
        monkeypatch.setattr("headgate.kafka.transactional.read_marker", read_late)
        with open_writer(broker, name) as newer:
            assert newer.committed() is None
            assert newer.write(1, topic, [Row(b"k", b"once")])
    assert values(broker, topic) == [b"once"]


def test_what_is_given_up_half_way_is_never_seen(broker: Broker, topic: str, name: str) -> None:
    def broken() -> Iterator[Row]:
        yield from (Row(b"k", b"never") for _ in range(100))
        raise ZeroDivisionError

    with open_writer(broker, name) as writer:
        with pytest.raises(ZeroDivisionError):
            writer.write(1, topic, broken())
        assert writer.committed() is None
    with open_writer(broker, name) as writer:
        assert writer.write(1, topic, [Row(b"k", b"once")])
    assert values(broker, topic) == [b"once"]


def test_a_row_that_the_topic_does_not_take_is_named_and_nothing_is_written(
    broker: Broker, topics: Topics, name: str
) -> None:
    small = topics.create(f"small-{name}", 2, config={"max.message.bytes": "2000"}).name
    rows = [Row(b"a", b"never"), Row(b"b", os.urandom(9000)), Row(b"c", b"never")]
    said = rf"write to topic '{small}'.*[Mm]essage size"
    with open_writer(broker, name) as writer, pytest.raises(InvalidRequest, match=said):
        writer.write(1, small, rows)
    with open_writer(broker, name) as writer:
        assert writer.write(1, small, [Row(b"a", b"fits")])
    assert values(broker, small) == [b"fits"]


def test_large_rows_fit(broker: Broker, topics: Topics, name: str) -> None:
    large = topics.create(f"large-{name}", 2, config={"max.message.bytes": "16000000"}).name
    value = os.urandom(10_000_000)
    with open_writer(broker, name) as writer:
        assert writer.write(1, large, [Row(b"a", value)])
    assert values(broker, large) == [value]


def test_a_time_that_cannot_be_kept_is_refused(broker: Broker, topic: str, name: str) -> None:
    with open_writer(broker, name) as writer, pytest.raises(InvalidRequest, match="no time"):
        writer.write(1, topic, [Row(b"k", b"v", timestamp_ms=0)])


def test_a_topic_that_is_not_there_is_named(broker: Broker, name: str) -> None:
    with open_writer(broker, name) as writer, pytest.raises(NotFound, match=f"no-such-{name}"):
        writer.write(1, f"no-such-{name}", [Row(b"k", b"v")])


def test_markers_are_kept_in_a_compacted_topic(broker: Broker, topics: Topics, topic: str, name: str) -> None:
    own = f"markers-{name}"
    with open_writer(broker, name, markers=own) as writer:
        writer.write(1, topic, [Row(b"k", b"v")])
    assert topics.config(own)["cleanup.policy"] == "compact"
    assert len(topics.describe(own).partitions) == MARKER_PARTITIONS
    deleting = topics.create(f"deleting-{name}", MARKER_PARTITIONS).name
    few = topics.create(f"few-{name}", 1, config={"cleanup.policy": "compact"}).name
    for wrong in (deleting, few):
        with pytest.raises(ConfigError, match=f"'{wrong}' cannot keep the markers"):
            prepare_markers(broker.bootstrap, wrong)


def test_a_marker_far_back_is_found(broker: Broker, topic: str, name: str) -> None:
    own = f"markers-{name}"
    with open_writer(broker, name, markers=own) as writer:
        writer.write(5, topic, [])
    crowd = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    partition = marker_partition(f"{name}/0")
    for number in range(6000):
        crowd.produce(own, Marker(number).to_bytes(), f"other-{number}".encode(), partition=partition)
    assert crowd.flush(20) == 0
    began = time.monotonic()
    with open_writer(broker, name, markers=own) as writer:
        assert writer.committed() == 5
    assert time.monotonic() - began < 5


def test_anothers_open_transaction_does_not_hide_a_marker(broker: Broker, topic: str, name: str) -> None:
    """Behind a record of a transaction that is open no committed one can be read: the reader must wait."""
    own = f"markers-{name}"
    prepare_markers(broker.bootstrap, own)
    open_one = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": f"open-{name}", "log_level": 0}
    )
    open_one.init_transactions(20)
    open_one.begin_transaction()
    open_one.produce(own, Marker(9).to_bytes(), b"somebody", partition=marker_partition(f"{name}/0"))
    assert open_one.flush(10) == 0
    # The marker of this first writer lies behind the open record.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.kafka.writing", broker.bootstrap, name, topic, own, "1"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    # It waits for the other one before it begins: what it knows of itself is hidden until then.
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    open_one.abort_transaction(10)
    told, _ = process.communicate(timeout=30)
    assert told.splitlines() == ["committed None", "0 True", "done"]
    with open_writer(broker, name, markers=own) as writer:
        assert writer.committed() == 0


def test_a_marker_behind_anothers_open_transaction_is_read_when_that_is_decided(
    broker: Broker, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer before that would be that of a writer who never wrote, and its batch be written again."""
    own, key = f"markers-{name}", f"{name}/0"
    prepare_markers(broker.bootstrap, own)
    others, ours = (
        Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{who}-{name}", "log_level": 0})
        for who in ("others", "ours")
    )
    for producer, record_key, batch in ((others, "somebody", 9), (ours, key, 5)):
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(own, Marker(batch).to_bytes(), record_key.encode(), partition=marker_partition(key))
        assert producer.flush(10) == 0
    ours.commit_transaction(20)

    def await_decided(link: Link, place: TopicPartition, end: int) -> None:
        others.abort_transaction(20)
        _await_decided(link, place, end)

    monkeypatch.setattr("headgate.kafka.markers._await_decided", await_decided)
    assert read_marker(Link(broker.bootstrap), own, key) == Marker(5)


def test_what_was_left_open_is_ended_for_all_tasks(broker: Broker, topic: str, name: str) -> None:
    """As after a crash: nobody else has to wait until the broker gives those transactions up."""
    left = []
    for task in range(2):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{name}/{task}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(topic, b"never", partition=0)
        assert producer.flush(30) == 0
        left.append(producer)
    end_open(broker.bootstrap, name, 2)
    for producer in left:
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
    # Nothing is open: what is committed behind it can be read at once.
    with TransactionalWriter(broker.bootstrap, name, 0, MARKERS) as writer:
        assert writer.write(1, topic, [Row(None, b"seen", partition=0)])
    found = committed_records(broker.bootstrap, topic, {0: 0}, limit=1)
    assert [message.value() for message in found] == [b"seen"]


def test_kafka_that_does_not_answer_is_a_pause(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("headgate.kafka.transactional.CALL_SECONDS", 1.0)
    monkeypatch.setattr("headgate.kafka.transactional.PATIENCE_SECONDS", 1.0)
    with pytest.raises(KafkaUnavailable):
        TransactionalWriter(f"127.0.0.1:{free_port()}", name, 0, MARKERS)


@pytest.mark.soak
def test_killed_at_any_time_each_row_is_there_once(
    broker: Broker, topic: str, name: str, tmp_path: Path
) -> None:
    batches, kills = (300, 60) if SOAK else (60, 6)
    command = [
        sys.executable,
        "-m",
        "tests.integration.kafka.writing",
        broker.bootstrap,
        name,
        topic,
        MARKERS,
    ]
    chance = random.Random(name)
    killed = 0
    log = tmp_path / "writing.log"
    while True:
        with log.open("ab") as out:
            process = subprocess.Popen([*command, str(batches)], stdout=out, stderr=subprocess.STDOUT)
        if killed < kills:
            wait_for_batches(process, log, at_least=1)
            time.sleep(chance.uniform(0, 0.08))
            process.kill()
        code = process.wait(timeout=120)
        if code == 0:
            break
        assert code == -9, log.read_text()
        killed += 1
    assert killed >= kills / 2, f"it was done after {killed} kills"
    found = Counter(values(broker, topic))
    expected = {f"{b}:0:{n}".encode() for b in range(batches) for n in range(ROWS)}
    assert set(found) == expected
    assert set(found.values()) == {1}


def wait_for_batches(process: subprocess.Popen[bytes], log: Path, at_least: int) -> None:
    """Until this run has committed something: a kill while it starts would teach nothing."""
    before = log.read_text().count("True")
    deadline = time.monotonic() + 60
    while log.read_text().count("True") < before + at_least:
        if process.poll() is not None:
            return
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.005)
