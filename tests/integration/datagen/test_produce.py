"""The scenario `orders` on a real broker with a real registry."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from headgate.datagen import Orders, Record, produce
from headgate.datagen.orders import counts
from headgate.embedded.broker import Broker
from headgate.embedded.ports import free_port
from headgate.errors import InvalidRequest, RegistryUnavailable
from headgate.kafka import Offsets, Topics
from headgate.kafka.records import committed_records

LIMIT = 400


def read(broker: Broker, topic: str) -> dict[int, list[tuple[bytes, bytes, int]]]:
    """All records of a topic, by partition: key, value and timestamp."""
    described = Topics(broker.bootstrap).describe(topic)
    ends = Offsets(broker.bootstrap).stable_ends([described])[topic]
    found: dict[int, list[tuple[bytes, bytes, int]]] = {partition: [] for partition in ends}
    for message in committed_records(broker.bootstrap, topic, dict.fromkeys(ends, 0), sum(ends.values())):
        partition, key, value = message.partition(), message.key(), message.value()
        assert partition is not None
        assert isinstance(key, bytes)
        assert isinstance(value, bytes)
        assert message.offset() == len(found[partition])
        found[partition].append((key, value, message.timestamp()[1]))
    assert {partition: len(records) for partition, records in found.items()} == ends
    return found


def schema_id(registry: str, subject: str) -> int:
    return int(httpx.get(f"{registry}/subjects/{subject}/versions/latest").raise_for_status().json()["id"])


def expected(seed: int, limit: int) -> Mapping[str, list[Record]]:
    found = defaultdict(list)
    for record in Orders(seed).records(limit):
        found[record.topic].append(record)
    return found


def test_topics_hold_what_the_scenario_makes(broker: Broker, registry: str, prefix: str) -> None:
    scenario = Orders(seed=11)
    written = produce(scenario, broker.bootstrap, registry, limit=LIMIT, prefix=prefix)
    assert written == {prefix + topic: count for topic, count in counts(LIMIT).items()}

    for topic, records in expected(11, LIMIT).items():
        schema = httpx.get(f"{registry}/subjects/{prefix}{topic}-value/versions/latest").json()
        wanted = Counter((r.key, scenario.encode(r, schema["id"]), r.timestamp_ms) for r in records)
        found = read(broker, prefix + topic)
        assert len(found) == 4
        assert Counter(entry for entries in found.values() for entry in entries) == wanted
        order: dict[bytes, list[bytes]] = {key: [] for key, _, _ in wanted}
        for record in records:
            order[record.key].append(scenario.encode(record, schema["id"]))
        for entries in found.values():
            here: dict[bytes, list[bytes]] = defaultdict(list)
            for key, value, _ in entries:
                here[key].append(value)
            # All records of a key are in this partition, in the order they were made.
            assert all(values == order[key] for key, values in here.items())


def test_two_runs_are_the_same_to_the_byte_and_the_partition(
    broker: Broker, registry: str, prefix: str
) -> None:
    for run in ("a-", "b-"):
        produce(Orders(seed=5), broker.bootstrap, registry, limit=LIMIT, prefix=prefix + run)
    for topic in Orders().schemas:
        assert read(broker, f"{prefix}a-{topic}") == read(broker, f"{prefix}b-{topic}")


def test_the_ledger_has_every_acknowledged_record_once(broker: Broker, registry: str, prefix: str) -> None:
    entries: dict[tuple[str, int, int], dict[str, Any]] = {}

    def enter(topic: str, partition: int, offset: int, value: dict[str, Any]) -> None:
        assert (topic, partition, offset) not in entries
        entries[topic, partition, offset] = value

    scenario = Orders(seed=2)
    written = produce(scenario, broker.bootstrap, registry, limit=LIMIT, prefix=prefix, ledger=enter)
    assert len(entries) == sum(written.values())
    found = {topic: read(broker, prefix + topic) for topic in scenario.schemas}
    for (name, partition, offset), value in entries.items():
        topic = name.removeprefix(prefix)
        stored = found[topic][partition][offset][1]
        assert scenario.encode(Record(topic, b"", value, 0), 0)[5:] == stored[5:]


def test_progress_ends_at_what_was_written(broker: Broker, registry: str, prefix: str) -> None:
    told: list[int] = []
    written = produce(
        Orders(),
        broker.bootstrap,
        registry,
        limit=LIMIT,
        prefix=prefix,
        on_progress=lambda acknowledged: told.append(sum(acknowledged.values())),
    )
    assert told == sorted(told)
    assert told[-1] == sum(written.values())


def test_stopping_counts_what_was_sent(broker: Broker, registry: str, prefix: str) -> None:
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > 6

    written = produce(Orders(), broker.bootstrap, registry, prefix=prefix, stopped=stopped)
    assert 0 < sum(written.values()) < 10_000
    described = Topics(broker.bootstrap).describe_many(written)
    ends = Offsets(broker.bootstrap).stable_ends(described.values())
    assert {topic: sum(offsets.values()) for topic, offsets in ends.items()} == written


def test_the_rate_is_kept(broker: Broker, registry: str, prefix: str) -> None:
    produce(Orders(), broker.bootstrap, registry, limit=1, prefix=prefix)
    started = time.monotonic()
    written = produce(Orders(), broker.bootstrap, registry, limit=20, prefix=prefix, rate=200)
    took = time.monotonic() - started
    # The last records need no wait; a machine under load may be slower, never faster.
    assert took > (sum(written.values()) - 20) / 200


def test_topics_that_would_lose_the_records_are_refused(broker: Broker, registry: str, prefix: str) -> None:
    topics = Topics(broker.bootstrap)
    topics.create(f"{prefix}orders")
    with pytest.raises(InvalidRequest, match=r"retention\.ms=-1"):
        produce(Orders(), broker.bootstrap, registry, limit=10, prefix=prefix)


def test_existing_topics_keep_their_partitions(broker: Broker, registry: str, prefix: str) -> None:
    Topics(broker.bootstrap).create(f"{prefix}orders", partitions=1, config={"retention.ms": "-1"})
    produce(Orders(), broker.bootstrap, registry, limit=50, prefix=prefix)
    found = read(broker, f"{prefix}orders")
    assert [len(records) for records in found.values()] == [50]


def test_created_topics_keep_records_for_ever(broker: Broker, registry: str, prefix: str) -> None:
    produce(Orders(), broker.bootstrap, registry, limit=1, prefix=prefix)
    assert Topics(broker.bootstrap).config(f"{prefix}payments")["retention.ms"] == "-1"


def test_a_record_that_the_broker_does_not_take_raises(broker: Broker, registry: str, prefix: str) -> None:
    config = {"retention.ms": "-1", "max.message.bytes": "80"}
    Topics(broker.bootstrap).create(f"{prefix}orders", config=config)
    with pytest.raises(InvalidRequest, match="too large"):
        produce(Orders(), broker.bootstrap, registry, limit=10, prefix=prefix)


def test_a_subject_with_another_kind_of_data_is_refused(broker: Broker, registry: str, prefix: str) -> None:
    other = {"schema": '{"type": "record", "name": "Other", "fields": [{"name": "a", "type": "int"}]}'}
    httpx.post(f"{registry}/subjects/{prefix}orders-value/versions", json=other).raise_for_status()
    with pytest.raises(InvalidRequest, match=f"{prefix}orders-value"):
        produce(Orders(), broker.bootstrap, registry, limit=10, prefix=prefix)
    assert Topics(broker.bootstrap).describe_many([f"{prefix}orders"]) == {}


def test_a_registry_that_does_not_answer_is_transient(broker: Broker, prefix: str) -> None:
    with pytest.raises(RegistryUnavailable):
        produce(Orders(), broker.bootstrap, f"http://127.0.0.1:{free_port()}", limit=1, prefix=prefix)
    assert Topics(broker.bootstrap).describe_many([f"{prefix}orders"]) == {}
