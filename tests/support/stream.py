"""A topic of good and bad records, and the account of it: each is in table or dead letters, once."""

import io
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headgate.embedded.runtime import Runtime
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg, without_metadata

# No registry of a test comes so far.
UNKNOWN_ID = 0x7FFFFFF0
KEEP = {"retention.ms": "-1"}
# Producers send headers of their own, which say nothing of schemas.
TRACE: list[tuple[str, bytes | None]] = [("trace", b"\x00\x01"), ("nothing", None)]


@dataclass(frozen=True)
class Letter:
    """A record that is in no table: where it was, and its bytes."""

    partition: int
    offset: int
    value: bytes | None


class Stream:
    """Avro records of several schemas: version 1 has `n` and `text`, each later one a field more."""

    def __init__(
        self, runtime: Runtime, topic: str, partitions: int = 2, config: dict[str, str] | None = None
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.rows: list[dict[str, Any]] = []
        self.dead: list[Letter] = []
        #: Partition and offset of each row, by its `n`.
        self.at: dict[int, tuple[int, int]] = {}
        self._runtime = runtime
        self._config = {**KEEP, **(config or {})}
        self._topics = Topics(runtime.kafka)
        self._next = 0
        self._versions: dict[int, int] = {}
        self._parsed: dict[int, Any] = {}
        self.registry = SchemaRegistryClient({"url": runtime.registry})
        self.create()

    # -- the topic and its schemas

    def create(self, partitions: int | None = None) -> None:
        self.partitions = partitions or self.partitions
        self._topics.create(self.topic, self.partitions, config=self._config)
        self.new_producer()

    def new_producer(self) -> None:
        """One that knows the topic as it is now."""
        self._producer = Producer(
            {"bootstrap.servers": self._runtime.kafka, "enable.idempotence": True, "log_level": 0}
        )

    def create_again(self, partitions: int | None = None) -> None:
        """Another topic with the same name."""
        self._topics.delete(self.topic)
        self.create(partitions)

    def ends(self) -> dict[int, int]:
        topic = self._topics.describe(self.topic)
        return dict(Offsets(self._runtime.kafka).stable_ends([topic])[self.topic])

    @property
    def subject(self) -> str:
        return f"{self.topic}-value"

    def schema(self, version: int) -> dict[str, Any]:
        more = [{"name": f"v{v}", "type": ["null", "long"], "default": None} for v in range(2, version + 1)]
        return {
            "type": "record",
            # Of this topic alone: the registry gives equal schemas one id.
            "name": "R_" + re.sub("[^A-Za-z0-9]", "_", self.topic),
            "fields": [{"name": "n", "type": "long"}, {"name": "text", "type": "string"}, *more],
        }

    def register(self, version: int) -> int:
        """Its id, as a producer gets it."""
        if version not in self._versions:
            schema = Schema(json.dumps(self.schema(version)), "AVRO")
            self._versions[version] = self.registry.register_schema(self.subject, schema)
        return self._versions[version]

    # -- records

    def new_rows(self, count: int, version: int = 1, text: str = "") -> list[dict[str, Any]]:
        """Not sent yet, and of nobody's account."""
        first, self._next = self._next, self._next + count
        more = {f"v{v}": v for v in range(2, version + 1)}
        return [{"n": n, "text": text or f"text {n}", **more} for n in range(first, first + count)]

    def encode(self, row: dict[str, Any], version: int = 1, schema_id: int | None = None) -> bytes:
        body = io.BytesIO()
        if version not in self._parsed:
            self._parsed[version] = fastavro.parse_schema(self.schema(version))
        fastavro.schemaless_writer(body, self._parsed[version], row)
        number = self.register(version) if schema_id is None else schema_id
        return b"\x00" + number.to_bytes(4, "big") + body.getvalue()

    def send(self, count: int, version: int = 1, text: str = "", partition: int | None = None) -> None:
        for row in self.new_rows(count, version, text):
            at = row["n"] % self.partitions if partition is None else partition
            self._produce(at, self.encode(row, version), row)
        self.flush()

    def send_bad(self, values: Iterable[bytes | None], partition: int | None = None) -> None:
        """Records that no table can hold."""
        for number, value in enumerate(values):
            self._produce(number % self.partitions if partition is None else partition, value, None)
        self.flush()

    def send_mixed(self, records: Iterable[tuple[dict[str, Any] | None, bytes | None]]) -> None:
        """Rows with their bytes, and bad ones with None, in this order."""
        for number, (row, value) in enumerate(records):
            self._produce(number % self.partitions, value, row)
        self.flush()

    def poison(self) -> list[bytes]:
        """One of each kind: nothing, another magic, half a prefix, an unknown schema, cut and broken Avro."""
        prefix = b"\x00" + self.register(1).to_bytes(4, "big")
        whole = self.encode(self.new_rows(1)[0])
        return [
            b"",
            b"\x01" + whole[1:],
            prefix[:3],
            b"\x00" + UNKNOWN_ID.to_bytes(4, "big") + whole[5:],
            whole[:-3],
            prefix + b"\x02\x04\xff\xfe",  # text that is not UTF-8
            whole + b"\x00",
        ]

    def _produce(self, partition: int, value: bytes | None, row: dict[str, Any] | None) -> None:
        def acknowledged(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            if row is None:
                self.dead.append(Letter(partition, int(message.offset() or 0), value))
            else:
                self.rows.append(row)
                self.at[row["n"]] = (partition, int(message.offset() or 0))

        while True:
            try:
                self._producer.produce(
                    self.topic, value, partition=partition, headers=[*TRACE], on_delivery=acknowledged
                )
                return
            except BufferError:
                self._producer.poll(0.1)

    def flush(self) -> None:
        assert self._producer.flush(90) == 0, f"'{self.topic}' does not acknowledge"

    # -- the account

    def check(self, version: int = 1, iceberg: str | None = None) -> None:
        """The table has each row once and exactly, in DuckDB and in PyIceberg; `version` has its columns."""
        blank: dict[str, Any] = {f"v{v}": None for v in range(2, version + 1)}
        expected = Counter(canonical({**blank, **row}) for row in self.rows)
        for reader, found in self._read(self.topic, iceberg):
            rows = Counter(canonical(without_metadata(row)) for row in found)
            lost, extra = expected - rows, rows - expected
            assert not lost, f"{reader}: {lost.total()} of {expected.total()} lost: {list(lost)[:2]}"
            assert not extra, f"{reader}: {extra.total()} too many or changed: {list(extra)[:2]}"

    def check_dead(self, iceberg: str | None = None, replayed: int = 0) -> None:
        """Table and topic of dead letters have each bad record once, with its bytes."""
        expected = Counter(self.dead)
        for reader, found in self._read(f"{self.topic}.dlq", iceberg):
            rows = list(found)
            letters = Counter(Letter(row["partition"], row["offset"], _bytes(row["value"])) for row in rows)
            assert letters == expected, f"{reader}: {_difference(letters, expected)}"
            assert sum(row["replayed_at"] is not None for row in rows) == replayed, reader
        published = Counter(
            Letter(int(headers["headgate.partition"]), int(headers["headgate.offset"]), value)
            for value, headers in committed(self._runtime.kafka, f"{self.topic}.dlq")
        )
        assert published == expected, f"topic: {_difference(published, expected)}"

    def _read(self, table: str, iceberg: str | None) -> Iterator[tuple[str, Iterable[dict[str, Any]]]]:
        where = iceberg or self._runtime.iceberg
        namespace = self._runtime.settings.namespace
        yield "DuckDB", read_duckdb(where, namespace, table)
        yield "PyIceberg", read_pyiceberg(where, namespace, table)


def _difference(found: Counter[Letter], expected: Counter[Letter]) -> str:
    lost, extra = expected - found, found - expected
    return f"{lost.total()} lost {list(lost)[:3]}, {extra.total()} too many {list(extra)[:3]}"


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def committed(kafka: str, topic: str) -> list[tuple[bytes | None, dict[str, bytes]]]:
    """All that a reader of committed records finds: values and headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "account",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    partitions = Topics(kafka).describe(topic).partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[tuple[bytes | None, dict[str, bytes]]] = []
    open_partitions = set(partitions)
    while open_partitions:
        message = consumer.poll(30)
        assert message is not None, f"'{topic}' does not answer"
        problem = message.error()
        if problem is not None:
            assert problem.code() == KafkaError._PARTITION_EOF, problem
            open_partitions.discard(message.partition())
            continue
        value: Any = message.value()
        headers: Any = dict(message.headers() or [])
        found.append((value, headers))
    consumer.close()
    return found


def mixed(stream: Stream, good: int, share: float, chance: random.Random, version: int = 1) -> list[Any]:
    """Rows of a version with a share of poison among them, in random order."""
    records: list[Any] = [(row, stream.encode(row, version)) for row in stream.new_rows(good, version)]
    kinds = stream.poison()
    records += [(None, kinds[number % len(kinds)]) for number in range(round(good * share / (1 - share)))]
    chance.shuffle(records)
    return records
