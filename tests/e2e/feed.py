"""A topic of a test's own, and what the broker acknowledged in it: partition, offset, time and value."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headgate.embedded.runtime import Runtime
from headgate.kafka.topics import Topics
from tests.support.ledger import Ledger

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
# 2026-01-01T00:00:00Z; each record comes a second after the one before.
BEGIN_MS = 1_767_225_600_000
STEP_MS = 1_000


@dataclass(frozen=True)
class Sent:
    """A record that was acknowledged; one that is no row has no value."""

    partition: int
    offset: int
    timestamp_ms: int
    value: dict[str, Any] | None


class Feed:
    """Writes Avro records as any producer does: Confluent's client, serializer and registry."""

    def __init__(self, runtime: Runtime, topic: str, partitions: int = 3, schema: bool = True) -> None:
        self.topic = topic
        self.subject = f"{topic}-value"
        self.sent: list[Sent] = []
        self._partitions = partitions
        self._iceberg = runtime.iceberg
        self._next = 0
        # Records have times of their own choice: retention must not take them for old.
        Topics(runtime.kafka).create(topic, partitions, config={"retention.ms": "-1"})
        self._registry = runtime.registry
        client = SchemaRegistryClient({"url": runtime.registry})
        self._serialize = AvroSerializer(client, json.dumps(SCHEMA))
        self._context = SerializationContext(topic, MessageField.VALUE)
        self._producer = Producer(
            {"bootstrap.servers": runtime.kafka, "enable.idempotence": True, "log_level": 0}
        )
        if schema:
            self._encode({"id": 0, "text": None, "at": 0})

    def send(self, count: int) -> None:
        """So many records, over all partitions in turn, a second apart."""
        self.send_texts([f"reading {self._next + i}" for i in range(count)])

    def send_texts(self, texts: Sequence[str | None]) -> None:
        for text in texts:
            at = BEGIN_MS + self._next * STEP_MS
            value = {"id": self._next, "text": text, "at": at}
            self._produce(self._next % self._partitions, self._encode(value), at, value)
            self._next += 1
        self._flush()

    def send_bytes(self, partition: int, content: bytes | None) -> int:
        """Something that is no row; its offset."""
        self._produce(partition, content, BEGIN_MS + self._next * STEP_MS, None)
        self._flush()
        return self.sent[-1].offset

    def send_late(self, partition: int) -> None:
        """A record that is older than those before it."""
        value = {"id": 1_000_000 + self._next, "text": "late", "at": BEGIN_MS}
        self._produce(partition, self._encode(value), BEGIN_MS, value)
        self._flush()

    def rows(self) -> list[Sent]:
        return [sent for sent in self.sent if sent.value is not None]

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition."""
        return {p: sum(sent.partition == p for sent in self.sent) for p in range(self._partitions)}

    def check(self, wanted: Callable[[Sent], bool] = lambda _: True) -> int:
        """The table holds exactly the wanted rows, in DuckDB and in PyIceberg; how many there are."""
        return self.check_rows(filter(wanted, self.rows()))

    def check_rows(self, rows: Iterable[Sent]) -> int:
        ledger = Ledger({self.topic: SCHEMA})
        for sent in rows:
            assert sent.value is not None
            ledger(self.topic, sent.partition, sent.offset, sent.value)
        ledger.check(self.topic, self._iceberg)
        return ledger.count(self.topic)

    def _encode(self, value: dict[str, Any]) -> bytes:
        encoded: bytes | None = self._serialize(value, self._context)
        assert encoded is not None
        return encoded

    def schema_id(self) -> int:
        """As a client that knows nothing yet finds it."""
        with SchemaRegistryClient({"url": self._registry}) as client:
            found: int | None = client.get_latest_version(self.subject).schema_id
        assert found is not None
        return found

    def _produce(self, partition: int, content: bytes | None, at: int, value: dict[str, Any] | None) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            self.sent.append(Sent(partition, int(message.offset() or 0), at, value))

        self._producer.produce(self.topic, content, partition=partition, timestamp=at, on_delivery=delivered)

    def _flush(self) -> None:
        assert self._producer.flush(30) == 0, f"'{self.topic}' does not acknowledge"
