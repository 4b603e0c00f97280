"""Topics on a real broker."""

import re
import time
from collections.abc import Callable
from uuid import uuid4

import pytest

from headgate.embedded.broker import Broker
from headgate.embedded.ports import free_port
from headgate.errors import AlreadyExists, InvalidRequest, KafkaUnavailable, NotFound
from headgate.kafka import Topics


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker.bootstrap)


@pytest.fixture
def name() -> str:
    return f"topics-{uuid4().hex[:12]}"


def test_a_created_topic_is_described_as_asked(topics: Topics, name: str) -> None:
    created = topics.create(name, partitions=3, config={"retention.ms": "86400000"})
    assert created.name == name
    assert created.partitions == (0, 1, 2)
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", created.id)
    assert not created.internal
    assert topics.describe(name) == created
    assert topics.config(name)["retention.ms"] == "86400000"
    assert topics.config(name)["cleanup.policy"] == "delete"
    assert topics.config_overrides(name) == {"retention.ms": "86400000"}


def test_four_partitions_unless_asked_otherwise(topics: Topics, name: str) -> None:
    assert topics.create(name).partitions == (0, 1, 2, 3)


def test_a_topic_created_again_has_another_id(topics: Topics, name: str) -> None:
    first = topics.create(name)
    topics.delete(name)
    assert topics.describe_many([name]) == {}
    second = topics.create(name)
    assert second.name == first.name
    assert second.id != first.id


def test_a_topic_that_is_there_is_not_created(topics: Topics, name: str) -> None:
    topics.create(name)
    with pytest.raises(AlreadyExists, match=name):
        topics.create(name)


@pytest.mark.parametrize("missing", ["no-such-topic", "not a name at all", ""])
def test_a_missing_topic_is_not_found(topics: Topics, missing: str) -> None:
    with pytest.raises(NotFound, match="headgate topic list"):
        topics.describe(missing)
    with pytest.raises(NotFound):
        topics.delete(missing)


def test_a_missing_topic_has_no_configuration(topics: Topics) -> None:
    with pytest.raises(NotFound, match="no-such-topic"):
        topics.config("no-such-topic")


def test_bad_requests_are_refused_in_the_brokers_words(topics: Topics, name: str) -> None:
    with pytest.raises(InvalidRequest, match="ASCII alphanumerics"):
        topics.create("white space")
    with pytest.raises(InvalidRequest, match=r"retention\.ms"):
        topics.create(name, config={"retention.ms": "long"})
    with pytest.raises(InvalidRequest, match="Unknown topic config"):
        topics.create(name, config={"colour": "blue"})
    with pytest.raises(InvalidRequest, match="replication factor"):
        topics.create(name, replication=3)
    with pytest.raises(InvalidRequest, match="partitions"):
        topics.create(name, partitions=0)
    assert topics.describe_many([name]) == {}


def test_the_list_is_sorted_and_without_internal_topics(topics: Topics, name: str) -> None:
    for suffix in ("b", "a"):
        topics.create(f"{name}-{suffix}", partitions=1)
    listed = topics.list()
    assert [t.name for t in listed if t.name.startswith(name)] == [f"{name}-a", f"{name}-b"]
    assert [t.name for t in listed] == sorted(t.name for t in listed)
    assert not any(t.internal for t in listed)
    assert {t.name for t in listed} <= {t.name for t in topics.list(include_internal=True)}


def test_the_cluster_id_is_the_same_for_every_client(topics: Topics, broker: Broker) -> None:
    assert topics.cluster_id() == Topics(broker.bootstrap).cluster_id() != ""


def test_nobody_listening_is_transient_and_silent(capfd: pytest.CaptureFixture[str]) -> None:
    nowhere = Topics(f"127.0.0.1:{free_port()}", timeout=0.5)
    started = time.monotonic()
    calls: list[Callable[[], object]] = [nowhere.list, nowhere.cluster_id]
    calls += [lambda: nowhere.describe("a"), lambda: nowhere.create("a")]
    for call in calls:
        with pytest.raises(KafkaUnavailable, match=r"127\.0\.0\.1"):
            call()
    assert time.monotonic() - started < 10
    assert capfd.readouterr().err == ""
