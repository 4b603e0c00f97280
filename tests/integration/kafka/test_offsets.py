"""Offsets on a real broker, with transactions open, committed and aborted."""

import time
from collections.abc import Mapping
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headgate.embedded.broker import Broker
from headgate.embedded.ports import free_port
from headgate.errors import InvalidRequest, KafkaUnavailable, NotFound
from headgate.kafka import Offsets, Topics
from headgate.model import Start, StartKind, Topic


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def offsets(broker: Broker) -> Offsets:
    return Offsets(broker.bootstrap)


@pytest.fixture
def topic(topics: Topics) -> Topic:
    return topics.create(f"offsets-{uuid4().hex[:12]}", partitions=2)


def producer(broker: Broker, transactional_id: str | None = None) -> Producer:
    config = {"bootstrap.servers": broker.bootstrap, "log_level": 0}
    return Producer(config | ({"transactional.id": transactional_id} if transactional_id else {}))


def write(broker: Broker, topic: Topic, counts: Mapping[int, int], first_ms: int = 1_000) -> None:
    """Records a second apart, from the same time on in each partition."""
    client = producer(broker)
    for partition, count in counts.items():
        for index in range(count):
            client.produce(
                topic.name, b"v" * 10, b"k" * 5, partition=partition, timestamp=first_ms + 1_000 * index
            )
    assert client.flush(10) == 0


def high_watermark(broker: Broker, topic: Topic, partition: int) -> int:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "watermarks",
            "isolation.level": "read_uncommitted",
            "log_level": 0,
        }
    )
    try:
        found = consumer.get_watermark_offsets(TopicPartition(topic.name, partition), timeout=10)
    finally:
        consumer.close()
    assert found is not None
    return found[1]


def wait_for_end(offsets: Offsets, topic: Topic, end: int) -> None:
    """Brokers write the markers of a transaction after they have answered its commit or abort."""
    deadline = time.monotonic() + 10
    while (found := offsets.stable_ends([topic])[topic.name][0]) != end:
        assert time.monotonic() < deadline, f"the end is {found}, not {end}"
        time.sleep(0.02)


def test_an_empty_topic_begins_and_ends_at_zero(offsets: Offsets, topic: Topic) -> None:
    assert offsets.earliest([topic]) == offsets.stable_ends([topic]) == {topic.name: {0: 0, 1: 0}}


def test_records_move_the_end_and_not_the_beginning(broker: Broker, offsets: Offsets, topic: Topic) -> None:
    write(broker, topic, {0: 7, 1: 2})
    assert offsets.earliest([topic]) == {topic.name: {0: 0, 1: 0}}
    assert offsets.stable_ends([topic]) == {topic.name: {0: 7, 1: 2}}


def test_an_open_transaction_holds_the_end_back(broker: Broker, offsets: Offsets, topic: Topic) -> None:
    write(broker, topic, {0: 3})
    client = producer(broker, f"open-{topic.name}")
    client.init_transactions(10)
    client.begin_transaction()
    client.produce(topic.name, b"undecided", partition=0)
    assert client.flush(10) == 0
    write(broker, topic, {0: 4})

    assert high_watermark(broker, topic, 0) == 8
    assert offsets.stable_ends([topic])[topic.name][0] == 3

    client.commit_transaction(10)
    # Eight records and the marker of the commit.
    wait_for_end(offsets, topic, 9)


def test_an_aborted_transaction_leaves_a_gap_and_no_records(
    broker: Broker, offsets: Offsets, topic: Topic
) -> None:
    client = producer(broker, f"aborted-{topic.name}")
    client.init_transactions(10)
    client.begin_transaction()
    for _ in range(5):
        client.produce(topic.name, b"x" * 1000, partition=0)
    assert client.flush(10) == 0
    client.abort_transaction(10)

    wait_for_end(offsets, topic, 6)
    assert offsets.record_size_sample(topic, {0: 0, 1: 0}) == 0.0

    write(broker, topic, {0: 2})
    assert offsets.record_size_sample(topic, {0: 0, 1: 0}) == 15.0


def test_a_timestamp_is_the_first_record_as_new_or_the_end(
    broker: Broker, offsets: Offsets, topic: Topic
) -> None:
    write(broker, topic, {0: 5, 1: 1})
    assert offsets.at_timestamp(topic, 0) == {0: 0, 1: 0}
    assert offsets.at_timestamp(topic, 3_000) == {0: 2, 1: 1}
    assert offsets.at_timestamp(topic, 3_001) == {0: 3, 1: 1}
    assert offsets.at_timestamp(topic, 60_000) == {0: 5, 1: 1}
    with pytest.raises(InvalidRequest):
        offsets.at_timestamp(topic, -5)


def test_starts_are_resolved(broker: Broker, offsets: Offsets, topic: Topic) -> None:
    write(broker, topic, {0: 5, 1: 4})
    cases = [
        (Start(), {0: 0, 1: 0}),
        (Start(StartKind.LATEST), {0: 5, 1: 4}),
        (Start(StartKind.TIMESTAMP, timestamp_ms=2_000), {0: 1, 1: 1}),
        (Start(StartKind.OFFSETS, offsets={1: 3}), {0: 0, 1: 3}),
    ]
    for start, expected in cases:
        assert offsets.start_offsets(start, topic) == expected


def test_starts_that_make_no_sense_are_refused(broker: Broker, offsets: Offsets, topic: Topic) -> None:
    write(broker, topic, {0: 5})
    with pytest.raises(InvalidRequest, match=r"partition 0 .* from 0 to 5"):
        offsets.start_offsets(Start(StartKind.OFFSETS, offsets={0: 6}), topic)
    with pytest.raises(InvalidRequest, match="no partition 2"):
        offsets.start_offsets(Start(StartKind.OFFSETS, offsets={2: 0}), topic)
    with pytest.raises(InvalidRequest, match="names none"):
        offsets.start_offsets(Start(StartKind.TIMESTAMP), topic)


def test_a_deleted_topic_is_absent_beside_one_that_is_there(
    offsets: Offsets, topics: Topics, topic: Topic
) -> None:
    gone = topics.create(f"{topic.name}-gone", partitions=1)
    topics.delete(gone.name)
    assert set(offsets.stable_ends([gone, topic])) == {topic.name}
    assert offsets.stable_ends([gone]) == {}
    assert offsets.earliest([gone]) == {}
    with pytest.raises(NotFound, match=gone.name):
        offsets.start_offsets(Start(), gone)


def test_a_topic_created_again_with_fewer_partitions_is_absent(
    offsets: Offsets, topics: Topics, topic: Topic
) -> None:
    topics.delete(topic.name)
    now = topics.create(topic.name, partitions=1)
    assert offsets.stable_ends([topic]) == {}
    assert offsets.stable_ends([now]) == {topic.name: {0: 0}}


def test_the_sample_counts_keys_values_and_headers(broker: Broker, offsets: Offsets, topic: Topic) -> None:
    client = producer(broker)
    client.produce(
        topic.name, b"v" * 100, b"k" * 20, partition=0, headers=[("name", b"12345"), ("none", None)]
    )
    client.produce(topic.name, None, b"k" * 7, partition=1)
    assert client.flush(10) == 0
    assert offsets.record_size_sample(topic, {0: 0}) == 100 + 20 + 4 + 5 + 4
    assert offsets.record_size_sample(topic, {0: 0, 1: 0}) == (133 + 7) / 2
    assert offsets.record_size_sample(topic, {0: 1, 1: 1}) == 0.0
    assert offsets.record_size_sample(topic, {}) == 0.0


def test_the_sample_takes_an_equal_share_of_each_partition(
    broker: Broker, offsets: Offsets, topic: Topic
) -> None:
    client = producer(broker)
    for partition, size in ((0, 10), (1, 30)):
        for _ in range(50):
            client.produce(topic.name, b"v" * size, partition=partition)
    assert client.flush(10) == 0
    assert offsets.record_size_sample(topic, {0: 0, 1: 0}, records=20) == 20.0
    assert offsets.record_size_sample(topic, {0: 0, 1: 45}, records=20) == (10 * 10 + 5 * 30) / 15


def test_two_hundred_topics_in_one_call_each(broker: Broker, offsets: Offsets, topics: Topics) -> None:
    prefix = f"many-{uuid4().hex[:8]}"
    created = [topics.create(f"{prefix}-{index:03}", partitions=2) for index in range(200)]
    client = producer(broker)
    for index, topic in enumerate(created):
        for _ in range(index % 3):
            client.produce(topic.name, b"v", partition=1)
    assert client.flush(20) == 0

    described = topics.describe_many([topic.name for topic in created])
    assert described == {topic.name: topic for topic in created}
    assert offsets.stable_ends(created) == {t.name: {0: 0, 1: i % 3} for i, t in enumerate(created)}
    assert offsets.earliest(created) == {t.name: {0: 0, 1: 0} for t in created}


def test_nobody_listening_is_transient(topic: Topic) -> None:
    nowhere = Offsets(f"127.0.0.1:{free_port()}", timeout=0.5)
    with pytest.raises(KafkaUnavailable):
        nowhere.stable_ends([topic])
    with pytest.raises(KafkaUnavailable):
        nowhere.record_size_sample(topic, {0: 0})
