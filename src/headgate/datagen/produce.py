"""A scenario's records into Kafka, each exactly once, with the broker's word for it."""

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
from headgate.datagen.pace import Pace, Timeline
from headgate.datagen.registration import register
from headgate.datagen.scenario import Record, Scenario
from headgate.errors import AlreadyExists, InvalidRequest, KafkaUnavailable
from headgate.kafka.client import Link, Where
from headgate.kafka.registry import RegistryAccess
from headgate.kafka.topics import ANY_TIME, Topics

Ledger = Callable[[str, int, int, dict[str, Any]], None]
Progress = Callable[[Mapping[str, int]], None]
Delivered = Callable[[KafkaError | None, Message], None]
# A topic's name, what stands before a value, what encodes values and keys, and what is told of deliveries.
_Lane = tuple[str, bytes, Encode, EncodeKey | None, Delivered]

PARTITIONS = 4
DELIVERY_SECONDS = 60.0
PROGRESS_SECONDS = 0.1

# Records carry the scenario's time, not today's: retention would delete them as old, and a long run gets
# ahead of the clock.
TOPIC_CONFIG = ANY_TIME

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


def produce(
    scenario: Scenario,
    kafka: Where,
    registry: RegistryAccess | str,
    *,
    limit: int | None = None,
    prefix: str = "",
    rate: float | None = None,
    speed: float | None = None,
    written_as: Format = Format.AVRO,
    ledger: Ledger | None = None,
    on_progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """How many records of each topic were acknowledged, by the topic's full name.

    `rate` is records per second over all topics; `speed` how many times as fast as the clock the times of the
    records go on. `ledger` is told topic, partition, offset and value of each
    acknowledged record. When `stopped` says so, what was sent is still awaited. Any record that the broker
    does not take raises.
    """
    if written_as is Format.PROTOBUF and scenario.key_schemas:
        raise InvalidRequest("Debezium writes no Protobuf.", "Choose --format avro or json with --cdc.")
    pace = Pace(rate)
    names = {topic: prefix + topic for topic in scenario.schemas}
    encoding = _Encoding(scenario, written_as, names, registry)
    prepare_topics(Topics(kafka), list(names.values()))
    writer = _Writer(kafka, names, encoding, ledger)
    report = _reporter(on_progress, writer.acknowledged)
    timeline = Timeline(scenario.records(limit), speed)
    while not (stopped() or timeline.ended):
        writer.write(timeline.take(pace.records_at_a_time))
        writer.poll(0)
        report()
        while not stopped() and (wait := max(pace.wait(writer.sent), timeline.wait())) > 0:
            writer.poll(min(wait, PROGRESS_SECONDS))
            report()
    writer.finish(report)
    if on_progress is not None:
        on_progress(writer.acknowledged)
    return dict(writer.acknowledged)


def prepare_topics(topics: Topics, names: list[str]) -> None:
    """Creates those that are missing. One that would lose the records soon is refused."""
    existing = topics.describe_many(names)
    for name in names:
        try:
            if name not in existing:
                topics.create(name, PARTITIONS, config=TOPIC_CONFIG)
                continue
        except AlreadyExists:
            # Somebody else was faster; then it is as they made it.
            pass
        _check_retention(name, topics.config(name))


def _check_retention(name: str, config: Mapping[str, str]) -> None:
    if "delete" in config["cleanup.policy"] and config["retention.ms"] != "-1":
        raise InvalidRequest(
            f"Topic '{name}' deletes records older than {config['retention.ms']} ms, and generated records "
            "carry times in the past.",
            "Delete the topic, set retention.ms=-1 on it, or choose other topics with --prefix.",
        )


def _reporter(on_progress: Progress | None, acknowledged: Mapping[str, int]) -> Callable[[], None]:
    """Tells the progress, though not more often than anybody can see."""
    if on_progress is None:
        return lambda: None
    told = 0.0

    def report() -> None:
        nonlocal told
        if time.monotonic() - told >= PROGRESS_SECONDS:
            told = time.monotonic()
            on_progress(acknowledged)

    return report


class _Encoding:
    """How records become bytes. The schemas of a version are registered when its first record comes."""

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

    def of(self, version: int) -> dict[str, tuple[bytes, Encode, EncodeKey | None]]:
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


class _Writer:
    """The producer, and what it was told of its records."""

    def __init__(
        self,
        kafka: Where,
        names: Mapping[str, str],
        encoding: "_Encoding",
        ledger: Ledger | None,
    ) -> None:
        self.sent = 0
        self.acknowledged = dict.fromkeys(names.values(), 0)
        self._link = Link(kafka)
        self._ledger = ledger
        self._failed: KafkaError | None = None
        self._producer = self._link.producer(PRODUCER_CONFIG)
        self._names, self._encoding = names, encoding
        self._lanes = {0: self._lanes_of(0)}

    def write(self, records: Iterable[Record]) -> int:
        """How many were handed over. Everything here runs once per record: it is kept short."""
        sent, lanes, send = 0, self._lanes, self._producer.produce
        for topic, key, value, timestamp, version in records:
            if version not in lanes:
                lanes[version] = self._lanes_of(version)
            name, header, encode, encode_key, delivered = lanes[version][topic]
            told = delivered if self._ledger is None else partial(self._enter, delivered, value)
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
        self._producer.poll(seconds)
        if self._failed is not None:
            # Nobody will hear of what else is under way, and it must not be sent after the failure.
            self._producer.purge()
            raise self._link.failure(self._failed, "take a record")

    def finish(self, report: Callable[[], None]) -> None:
        """Until every record is acknowledged."""
        deadline = time.monotonic() + DELIVERY_SECONDS + 10
        while self._producer.flush(PROGRESS_SECONDS):
            self.poll(0)
            report()
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"Kafka at {self._link.access} does not acknowledge what it was sent.")
        self.poll(0)

    def _lanes_of(self, version: int) -> dict[str, _Lane]:
        """What is done with records of a version of the schemas, by topic."""
        return {
            topic: (self._names[topic], *encoders, self._counter(self._names[topic]))
            for topic, encoders in self._encoding.of(version).items()
        }

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
