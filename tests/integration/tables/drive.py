"""Drives one table by hand: produce, then a batch at a time."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import fastavro
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from headgate.embedded.runtime import Runtime
from headgate.engine.source import KafkaSource
from headgate.kafka.topics import Topics
from headgate.maintain.verify import Known, Verifier
from headgate.model import Start, TableSpec
from headgate.tables.key_index import KeyIndex
from headgate.tables.lake import Lake
from headgate.tables.materialize import BatchReport, Materializer, TopicView
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg
from tests.support.services import wait_for


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(name, kind) for name, kind in fields]}


def _field(name: str, kind: Any) -> dict[str, Any]:
    optional = isinstance(kind, list) and kind[0] == "null"
    return {"name": name, "type": kind, **({"default": None} if optional else {})}


NUMBER = record(("n", "int"))


def numbers(rows: Iterable[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows)


def values(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(first, first + count)]


def _without_empty(value: Any) -> Any:
    """A list or map that is there and empty, as one that is not: PyIceberg (0.12) copies a list of records
    without saying which of them are NULL. DuckDB tells them apart."""
    if isinstance(value, dict):
        return {name: _without_empty(inner) for name, inner in value.items()} or None
    if isinstance(value, list):
        return [_without_empty(inner) for inner in value] or None
    return value


class Drive:
    """A topic, its schemas, and the materializer of its table."""

    def __init__(
        self,
        runtime: Runtime,
        source: KafkaSource,
        lake: Lake,
        make: Callable[["Drive"], Materializer],
        topic: str,
        index: KeyIndex,
    ) -> None:
        self.index = index
        self.runtime = runtime
        self.source = source
        self.lake = lake
        self.topic = topic
        self.topics = Topics(runtime.kafka)
        self.spec = TableSpec(topic, metadata=(), partition=())
        self.enablement = "first"
        self.engine = "engine-1"
        self.max_rows = 10**6
        #: Whether its table is to be whole when the test ends: not where damage is planted in it.
        self.ends_whole = True
        self._made: Materializer | None = None
        self._make = make
        self._registry = SchemaRegistryClient({"url": runtime.registry})
        self.new_producer()

    def new_producer(self) -> None:
        """One that knows the topic as it is now."""
        self._producer = Producer({"bootstrap.servers": self.runtime.kafka, "enable.idempotence": True})

    def create(self, partitions: int = 2, config: dict[str, str] | None = None) -> None:
        self.topics.create(self.topic, partitions, config=config)

    def register(self, schema: Any, part: str = "value") -> int:
        subject = f"{self.topic}-{part}"
        found: int = self._registry.register_schema(subject, Schema(json.dumps(schema), "AVRO"))
        return found

    def set_compatibility(self, level: str) -> None:
        self._registry.set_compatibility(f"{self.topic}-value", level)

    def produce(self, schema_id: int, schema: Any, values: Iterable[Any], partition: int = 0) -> None:
        parsed = fastavro.parse_schema(schema)
        for value in values:
            body = io.BytesIO()
            fastavro.schemaless_writer(body, parsed, value)
            self.send(b"\x00" + schema_id.to_bytes(4, "big") + body.getvalue(), partition)
        self.flush()

    def send(self, value: bytes | None, partition: int = 0, key: bytes | None = None) -> None:
        self._producer.produce(self.topic, value, key, partition=partition)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def transaction(self, name: str) -> Producer:
        producer = Producer({"bootstrap.servers": self.runtime.kafka, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def materializer(self, start: Start | None = None) -> Materializer:
        if start is not None:
            self.spec = replace(self.spec, start=start)
        self._made = self._make(self)
        return self._made

    def view(self) -> TopicView:
        """As soon as every partition answers: a new one takes a moment."""
        found: TopicView = wait_for("the topic", lambda: self.source.views([self.topic]).get(self.topic))
        return found

    def run_all(self, materializer: Materializer) -> list[BatchReport]:
        """Batches until there is nothing left of what is there now."""
        view = self.view()
        reports = []
        while (report := materializer.run(view)) is not None:
            reports.append(report)
        return reports

    def rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """The table, on which two engines must agree."""
        iceberg = self.runtime.iceberg
        one = list(read_duckdb(iceberg, "local", name or self.topic))
        other = list(read_pyiceberg(iceberg, "local", name or self.topic))
        found, again = (Counter(canonical(_without_empty(row)) for row in rows) for rows in (one, other))
        assert found == again, f"DuckDB alone: {found - again}; PyIceberg alone: {again - found}"
        # By DuckDB's word where only they differ.
        return other if sorted(map(canonical, one)) == sorted(map(canonical, other)) else one

    def check_whole(self, verifier: Verifier) -> None:
        """As `headgate table verify --deep` says, if there is a table; what its index knows included, if that
        is open."""
        one = self._made
        table = None if one is None or not self.ends_whole else self.lake.load(self.topic)
        if one is None or table is None or table.currentSnapshot() is None:
            return
        report = verifier.verify(Known(one.spec, one.places, one.record_plan), deep=True)
        assert not report["damaged"], report["findings"]

    def data_files(self) -> int:
        """Parquet files under the table's folder, live or not."""
        table = self.lake.load(self.topic)
        assert table is not None
        return len(list(Path(unquote(urlsplit(table.location()).path)).rglob("*.parquet")))
