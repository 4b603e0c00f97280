"""What it costs to look at two hundred topics that nothing happens in."""

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from headgate.embedded.broker import Broker
from headgate.errors import KafkaUnavailable
from headgate.kafka import Offsets, Topics
from headgate.kafka.client import Link
from headgate.model import Topic

TOPICS, PARTITIONS = 200, 4
# Of one core, when all is looked up once a second.
SHARE = 0.1


@pytest.fixture(scope="module")
def idle(broker: Broker) -> Iterator[list[Topic]]:
    names = [f"idle-{uuid4().hex[:8]}-{number}" for number in range(TOPICS)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        future.result()
    topics = Topics(broker.bootstrap)
    offsets = Offsets(broker.bootstrap)
    deadline = time.monotonic() + 60
    found = 0
    while found < TOPICS:
        assert time.monotonic() < deadline
        with suppress(KafkaUnavailable):  # they have no leaders yet
            found = len(offsets.stable_ends(topics.describe_many(names).values()))
    yield list(topics.describe_many(names).values())
    for future in admin.delete_topics(names).values():
        future.result()


def test_a_round_takes_little_of_a_core(broker: Broker, idle: list[Topic]) -> None:
    topics, offsets = Topics(broker.bootstrap), Offsets(broker.bootstrap)
    names = [topic.name for topic in idle]

    def look() -> None:
        found = topics.describe_many(names).values()
        assert len(offsets.stable_ends(found)) == len(offsets.earliest(found)) == TOPICS

    look()
    rounds, before = 10, time.process_time()
    for _ in range(rounds):
        look()
    assert (time.process_time() - before) / rounds < SHARE


def test_a_look_up_is_one_request(broker: Broker, idle: list[Topic]) -> None:
    told: list[dict[str, int]] = []

    def stats(text: str) -> None:
        told.append(
            {b["nodeid"]: b["req"].get("ListOffsets", 0) for b in json.loads(text)["brokers"].values()}
        )

    offsets = Offsets(broker.bootstrap)
    extra = {
        "group.id": "counted",
        "isolation.level": "read_committed",
        "stats_cb": stats,
        "statistics.interval.ms": 50,
    }
    counted = Link(broker.bootstrap).consumer(extra)
    offsets._asker = counted
    for _ in range(3):
        assert len(offsets.stable_ends(idle)) == TOPICS
    deadline = time.monotonic() + 10
    while not told or sum(told[-1].values()) < 3:
        assert time.monotonic() < deadline
        counted.poll(0.05)
    time.sleep(0.2)
    counted.poll(0)
    assert sum(told[-1].values()) == 3
