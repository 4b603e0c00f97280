"""A scenario's records become bytes, and go to Kafka with the broker's word for each."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.datagen.formats import (
    Encode,
    EncodeKey,
    Format,
    key_encoder,
    registered_schema,
    value_encoder,
    wire_prefix,
)
from headgate.datagen.registration import register
from headgate.datagen.scenario import Record, Scenario
from headgate.errors import KafkaUnavailable
from headgate.kafka.client import Link, Where
from headgate.kafka.registry import RegistryAccess

Ledger = Callable[[str, int, int, dict[str, Any]], None]
Delivered = Callable[[KafkaError | None, Message], None]
# A topic's name, what stands before a value, what encodes values and keys, and what is told of deliveries.
_Lane = tuple[str, bytes, Encode, EncodeKey | None, Delivered]

DELIVERY_SECONDS = 60.0
PROGRESS_SECONDS = 0.1

PRODUCER_CONFIG: dict[str, str | int | float | bool] = {
    # Retries neither lose a record, nor double it, nor change the order within a partition.
    "enable.idempotence": True,
    "acks": "all",
    "delivery.timeout.ms": int(DELIVERY_SECONDS * 1000),
    # As Kafka's Java clients choose a partition for a key; librdkafka's own default is another.
    "partitioner": "murmur2_random",
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 200_000,
}


class Encoding:
    """How records become bytes. Schemas are registered now, later ones when their first record comes."""

    def __init__(
        self,
        scenario: Scenario,
        written_as: Format,
        names: Mapping[str, str],
        registry: RegistryAccess | str,
    ) -> None:
        self._scenario = scenario
        self._written_as = written_as
        self._names = names
        self._registry = registry
        self._first = self._made(0)

    def of(self, version: int) -> dict[str, tuple[bytes, Encode, EncodeKey | None]]:
        return self._made(version) if version else self._first

    def _made(self, version: int) -> dict[str, tuple[bytes, Encode, EncodeKey | None]]:
        """By topic what stands before a value, what encodes a value, and a key if keys have a schema."""
        written_as, key_schemas = self._written_as, self._scenario.key_schemas
        schemas = self._scenario.schemas
        if version:
            # JSON knows fields by their names alone.
            schemas = self._scenario.later_schemas(renames=written_as is not Format.JSON)
        values = {f"{self._names[topic]}-value": schema for topic, schema in schemas.items()}
        keys = {f"{self._names[topic]}-key": schema for topic, schema in key_schemas.items()}
        wanted = {
            subject: registered_schema(written_as, schema) for subject, schema in (values | keys).items()
        }
        ids = register(self._registry, wanted)
        return {
            topic: (
                wire_prefix(written_as, ids[f"{name}-value"]),
                value_encoder(written_as, schemas[topic]),
                key_encoder(written_as, key_schemas[topic], ids[f"{name}-key"])
                if topic in key_schemas
                else None,
            )
            for topic, name in self._names.items()
        }


class Writer:
    """The producer, and what it was told of its records."""

    def __init__(
        self,
        kafka: Where,
        names: Mapping[str, str],
        encoding: Encoding,
        ledger: Ledger | None,
        config: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        """`config` is what this one's producer is told beyond that of all."""
        self.sent = 0
        self.acknowledged = dict.fromkeys(names.values(), 0)
        self._link = Link(kafka)
        self._ledger = ledger
        self._failed: KafkaError | None = None
        self.producer = self._link.producer({**PRODUCER_CONFIG, **(config or {})})
        self._names, self._encoding = names, encoding
        self._lanes: dict[int, dict[str, _Lane]] = {}
        self._lanes_of(0)

    def write(self, records: Iterable[Record]) -> int:
        """How many were handed over. Everything here runs once per record: it is kept short."""
        sent, send, ledger = 0, self.producer.produce, self._ledger
        known, lanes = 0, self._lanes[0]
        for topic, key, value, timestamp, version in records:
            if version != known:
                known, lanes = version, self._lanes_of(version)
            name, header, encode, encode_key, delivered = lanes[topic]
            told = delivered if ledger is None else partial(self._enter, delivered, value)
            encoded = header + encode(value) if value else None
            if encode_key is not None:
                key = encode_key(key)
            while True:
                try:
                    send(name, encoded, key, on_delivery=told, timestamp=timestamp)
                    break
                except BufferError:
                    # As many records are under way as may be.
                    self.poll(PROGRESS_SECONDS)
                except KafkaException as error:
                    raise self._link.failure(error, f"write to topic '{name}'") from error
            sent += 1
        self.sent += sent
        return sent

    def poll(self, seconds: float) -> None:
        """Take acknowledgements in; the first failure is raised."""
        self.producer.poll(seconds)
        if self._failed is not None:
            # Nobody will hear of what else is under way, and it must not be sent after the failure.
            self.producer.purge()
            raise self._link.failure(self._failed, "take a record")

    def finish(self, report: Callable[[], None] = lambda: None) -> None:
        """Until every record is acknowledged."""
        deadline = time.monotonic() + DELIVERY_SECONDS + 10
        while self.producer.flush(PROGRESS_SECONDS):
            self.poll(0)
            report()
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"Kafka at {self._link.access} does not acknowledge what it was sent.")
        self.poll(0)

    def _lanes_of(self, version: int) -> dict[str, _Lane]:
        """What is done with records of a version of the schemas, by topic."""
        if version not in self._lanes:
            self._lanes[version] = {
                topic: (self._names[topic], *encoders, self._counter(self._names[topic]))
                for topic, encoders in self._encoding.of(version).items()
            }
        return self._lanes[version]

    def _counter(self, name: str) -> Delivered:
        acknowledged = self.acknowledged

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged[name] += 1
            elif self._failed is None:
                self._failed = error

        return delivered

    def _enter(
        self, delivered: Delivered, value: dict[str, Any], error: KafkaError | None, message: Message
    ) -> None:
        delivered(error, message)
        if error is None and self._ledger is not None:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            self._ledger(str(topic), int(partition or 0), int(offset or 0), value)
