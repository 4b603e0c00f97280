"""A scenario's records into Kafka, each exactly once, with the broker's word for it."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.datagen.avro import compile_key, compile_schema, wire_header
from headgate.datagen.registration import register
from headgate.datagen.scenario import Record, Scenario
from headgate.errors import AlreadyExists, InvalidRequest, KafkaUnavailable
from headgate.kafka.client import Link, Where
from headgate.kafka.registry import RegistryAccess
from headgate.kafka.topics import ANY_TIME, Topics

Ledger = Callable[[str, int, int, dict[str, Any]], None]
Progress = Callable[[Mapping[str, int]], None]
Delivered = Callable[[KafkaError | None, Message], None]

PARTITIONS = 4
DELIVERY_SECONDS = 60.0
PROGRESS_SECONDS = 0.1
# Written between two looks at the clock and at acknowledgements; fewer at a low rate.
RECORDS_AT_A_TIME = 500
SECONDS_AT_A_TIME = 0.05

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
    ledger: Ledger | None = None,
    on_progress: Progress | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """How many records of each topic were acknowledged, by the topic's full name.

    `rate` is records per second over all topics. `ledger` is told topic, partition, offset and value of each
    acknowledged record. When `stopped` says so, what was sent is still awaited. Any record that the broker
    does not take raises.
    """
    pace = Pace(rate)
    names = {topic: prefix + topic for topic in scenario.schemas}
    subjects = {f"{names[topic]}-value": schema for topic, schema in scenario.schemas.items()}
    subjects |= {f"{names[topic]}-key": schema for topic, schema in scenario.key_schemas.items()}
    ids = register(registry, subjects)
    prepare_topics(Topics(kafka), list(names.values()))
    writer = _Writer(kafka, names, ids, scenario, ledger)
    report = _reporter(on_progress, writer.acknowledged)
    records = scenario.records(limit)
    while not stopped() and writer.write(islice(records, pace.records_at_a_time)):
        writer.poll(0)
        report()
        while not stopped() and (wait := pace.wait(writer.sent)) > 0:
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


class Pace:
    """Holds a writer to its rate, counted from when it began."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        if rate is not None and rate <= 0:
            raise InvalidRequest(f"{rate} records per second is no rate.", "Choose one above 0.")
        self._rate = rate
        self._clock = clock
        self._began = clock()

    @property
    def records_at_a_time(self) -> int:
        if self._rate is None:
            return RECORDS_AT_A_TIME
        return max(1, min(RECORDS_AT_A_TIME, int(self._rate * SECONDS_AT_A_TIME)))

    def wait(self, sent: int) -> float:
        """Seconds until the next record is due."""
        return 0.0 if self._rate is None else self._began + sent / self._rate - self._clock()


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


class _Writer:
    """The producer, and what it was told of its records."""

    def __init__(
        self,
        kafka: Where,
        names: Mapping[str, str],
        ids: Mapping[str, int],
        scenario: Scenario,
        ledger: Ledger | None,
    ) -> None:
        self.sent = 0
        self.acknowledged = dict.fromkeys(names.values(), 0)
        self._link = Link(kafka)
        self._ledger = ledger
        self._failed: KafkaError | None = None
        self._producer = self._link.producer(PRODUCER_CONFIG)
        self._lanes = {
            topic: (
                name,
                wire_header(ids[f"{name}-value"]),
                compile_schema(scenario.schemas[topic]),
                self._counter(name),
            )
            for topic, name in names.items()
        }
        self._keys = {
            topic: compile_key(schema, ids[f"{names[topic]}-key"])
            for topic, schema in scenario.key_schemas.items()
        }

    def write(self, records: Iterable[Record]) -> int:
        """How many were handed over. Everything here runs once per record: it is kept short."""
        sent, lanes, keys, send = 0, self._lanes, self._keys, self._producer.produce
        for topic, key, value, timestamp in records:
            name, header, encode, delivered = lanes[topic]
            told = delivered if self._ledger is None else partial(self._enter, delivered, value)
            encoded = header + encode(value) if value else None
            if topic in keys:
                key = keys[topic](key)
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
