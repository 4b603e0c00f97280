"""Committed records of a topic: what it means that nothing comes."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from headgate.errors import HeadgateError, KafkaUnavailable, StatementFailed
from headgate.kafka import records
from headgate.kafka.records import committed_records
from headgate.statements.topics import TopicReader


class Message:
    """A record of partition 0, or with `code` what the client says of it."""

    def __init__(self, offset: int, code: int | None = None) -> None:
        self._offset, self._code = offset, code

    def error(self) -> KafkaError | None:
        return None if self._code is None else KafkaError(self._code)

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset


END = KafkaError._PARTITION_EOF


class Cluster:
    """A link to brokers that give these messages, and then nothing more."""

    access = "kafka:9092"
    refusal = None

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = list(messages)

    def consumer(self, _: Any) -> "Cluster":
        return self

    def assign(self, _: Any) -> None:
        pass

    def close(self) -> None:
        pass

    def poll(self, _: float) -> Message | None:
        return self._messages.pop(0) if self._messages else None

    def silence(self, _: str, otherwise: str) -> KafkaUnavailable:
        return KafkaUnavailable(otherwise)


def plug_in(monkeypatch: pytest.MonkeyPatch, messages: Sequence[Message]) -> None:
    """A partition that ends at offset 3."""
    monkeypatch.setattr(records, "Link", lambda _: Cluster(messages))
    monkeypatch.setattr(records, "TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr(records, "_ends", lambda *_: {0: 3})


def read(monkeypatch: pytest.MonkeyPatch, *messages: Message, whole: bool) -> list[int | None]:
    plug_in(monkeypatch, messages)
    found = committed_records("kafka:9092", "orders", {0: 0}, idle_seconds=None, whole=whole)
    return [message.offset() for message in found]


def test_a_topic_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    every = (Message(0), Message(1), Message(3, END))
    for whole in (True, False):
        assert read(monkeypatch, *every, whole=whole) == [0, 1]


@pytest.mark.parametrize("told", [(), (Message(0),), (Message(2, END),)], ids=["nothing", "some", "open"])
def test_who_must_know_that_nothing_is_left_is_told_when_nobody_says_so(
    monkeypatch: pytest.MonkeyPatch, told: Sequence[Message]
) -> None:
    """A broker that does not answer says as little as a topic that has no more records."""
    assert read(monkeypatch, *told, whole=False) == [m.offset() for m in told if m.error() is None]
    with pytest.raises(KafkaUnavailable, match="'orders'"):
        read(monkeypatch, *told, whole=True)


@pytest.mark.parametrize(
    ("told", "expected"),
    [((), KafkaUnavailable), ((Message(3, END),), StatementFailed), ((Message(2),), StatementFailed)],
    ids=["nothing", "end", "another"],
)
def test_a_record_that_kafka_does_not_give_is_not_taken_for_gone(
    monkeypatch: pytest.MonkeyPatch, told: Sequence[Message], expected: type[HeadgateError]
) -> None:
    """A statement fails for good where the record is gone, and is tried again where nobody says so."""
    plug_in(monkeypatch, told)
    reader: Any = TopicReader.__new__(TopicReader)
    reader.table, reader._access = SimpleNamespace(name="orders"), "kafka:9092"
    with pytest.raises(expected):
        reader.learn(0, 1, None)
