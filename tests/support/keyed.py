"""A topic of keyed records, and what a dict replay makes of it: the state that an upsert table must have."""

import io
import json
import random
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

import fastavro
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headgate.embedded.runtime import Runtime
from headgate.kafka.topics import Topics
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg


class Keyed:
    """Avro records of the key {id, region} and the value {id, name, amount}, and tombstones."""

    def __init__(
        self, runtime: Runtime, topic: str, partitions: int = 2, config: dict[str, str] | None = None
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self._acked: list[tuple[int, int, tuple[int, str] | None, dict[str, Any] | None]] = []
        self._runtime = runtime
        # Timestamps are years old here: retention must not look at them.
        Topics(runtime.kafka).create(topic, partitions, config={"retention.ms": "-1", **(config or {})})
        self._producer = Producer({"bootstrap.servers": runtime.kafka, "enable.idempotence": True})
        self._registry = registry = SchemaRegistryClient({"url": runtime.registry})
        name = re.sub("[^A-Za-z0-9]", "_", topic)
        key = {
            "type": "record",
            "name": f"K_{name}",
            "fields": [{"name": "id", "type": "long"}, {"name": "region", "type": "string"}],
        }
        value = {
            "type": "record",
            "name": f"V_{name}",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "name", "type": "string"},
                {"name": "amount", "type": ["null", "long"], "default": None},
            ],
        }
        self._later = {
            **value,
            "fields": [*value["fields"], {"name": "v2", "type": ["null", "long"], "default": None}],
        }
        self._encoders = {}
        for part, schema in (("key", key), ("value", value)):
            number = registry.register_schema(f"{topic}-{part}", Schema(json.dumps(schema), "AVRO"))
            self._encoders[part] = (number, fastavro.parse_schema(schema))

    def encode(self, part: str, record: dict[str, Any]) -> bytes:
        number, schema = self._encoders[part]
        body = io.BytesIO()
        fastavro.schemaless_writer(body, schema, record)
        return b"\x00" + number.to_bytes(4, "big") + body.getvalue()

    def put(self, key: tuple[int, str] | None, value: dict[str, Any] | None, timestamp: int = 0) -> None:
        """`value` None is a tombstone, `key` None a record that belongs to no row."""
        raw = None if key is None else self.encode("key", {"id": key[0], "region": key[1]})
        body = None if value is None else self.encode("value", value)
        partition = 0 if key is None else crc32(repr(key).encode()) % self.partitions

        def acked(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                raise AssertionError(f"a record was not taken: {error}")
            at, offset = message.partition(), message.offset()
            assert at is not None
            assert offset is not None
            self._acked.append((at, offset, key, value))

        while True:
            try:
                self._producer.produce(
                    self.topic, body, raw, partition, on_delivery=acked, timestamp=timestamp
                )
                return
            except BufferError:
                self._producer.poll(0.5)

    def next_schema_id(self) -> int:
        """The id that the next schema of the registry gets."""
        return int(max(number for number, _ in self._encoders.values()) + 1)

    def put_hidden(self, key: tuple[int, str], value: dict[str, Any], schema_id: int) -> None:
        """A record whose schema is not registered yet, and of nobody's account."""
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(self._later), {"v2": None, **value})
        raw = self.encode("key", {"id": key[0], "region": key[1]})
        framed = b"\x00" + schema_id.to_bytes(4, "big") + body.getvalue()
        partition = crc32(repr(key).encode()) % self.partitions
        self._producer.produce(self.topic, framed, raw, partition)

    def reveal(self) -> int:
        """Register that schema; its id."""
        schema = Schema(json.dumps(self._later), "AVRO")
        found: int = self._registry.register_schema(f"{self.topic}-value", schema)
        return found

    def evolve(self) -> None:
        """From now on values have a field more: v2."""
        self._encoders["value"] = (self.reveal(), fastavro.parse_schema(self._later))

    def random(self, count: int, keys: int, seed: int, null_keys: float = 0.0) -> None:
        """Puts, repeats and tombstones over so many keys, with timestamps in no order."""
        chance = random.Random(seed)
        for number in range(count):
            key = (chance.randrange(keys), chance.choice(("eu", "us")))
            value = {"id": key[0], "name": f"name {number}", "amount": chance.choice((None, number))}
            when = 1_700_000_000_000 + chance.randrange(-(10**9), 10**9)
            if chance.random() < null_keys:
                self.put(None, value, when)
            else:
                self.put(key, None if chance.random() < 0.15 else value, when)
        self.flush()

    def flush(self) -> None:
        assert self._producer.flush(60) == 0

    def forget(self, which: Callable[[int, int], bool]) -> None:
        """Records, by partition and offset, that the table is to be without."""
        self._acked = [record for record in self._acked if not which(*record[:2])]

    @property
    def null_keys(self) -> int:
        return sum(key is None for _, _, key, _ in self._acked)

    def state(self) -> list[dict[str, Any]]:
        """The rows, by a replay of what was acknowledged in the order of partition and offset."""
        found: dict[tuple[int, str], dict[str, Any]] = {}
        for partition, offset, key, value in sorted(self._acked, key=lambda record: record[:2]):
            if key is None:
                continue
            found.pop(key, None)
            if value is not None:
                own = {"region": key[1], "_kafka_partition": partition, "_kafka_offset": offset}
                found[key] = {**value, **own}
        return list(found.values())


def check_keyed(keyed: Keyed, iceberg: str) -> None:
    """The table has what the ledger says, in two readers."""
    expected = sorted(map(canonical, keyed.state()))
    for read in (read_duckdb, read_pyiceberg):
        rows = [_known(row) for row in read(iceberg, "local", keyed.topic)]
        assert sorted(map(canonical, rows)) == expected, read.__name__


def _known(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "_kafka_timestamp"}
