"""Produces topics, runs statements by hand, and reads what came of them."""

import io
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions  # type: ignore[attr-defined]
from pyspark.sql import SparkSession

from headgate.config import Statements as Settings
from headgate.engine.statements import StatementLoop
from headgate.kafka.access import KafkaAccess
from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics
from headgate.model import Topic
from headgate.registry.client import RegisteredSchema, SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.statements.closing import Closed, Closer
from headgate.statements.query import Running, StatementQuery
from headgate.statements.runnable import Job, Output, Runnable
from headgate.store import StatementRecord, Statements
from tests.integration.statements.plans import EVENTS, Plan, Table, Watermark
from tests.support.services import wait_for

EVENT_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "who", "type": "string"},
        {"name": "amount", "type": ["null", "int"], "default": None},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


class Bench:
    """Topics are named after the bench, so that tests do not meet."""

    def __init__(
        self, kafka: str, registry: str, schemas: SchemaSource, spark: SparkSession, folder: Path
    ) -> None:
        self.access = KafkaAccess.at(kafka)
        self.topics = Topics(kafka)
        self.schemas = schemas
        self.spark = spark
        self.folder = folder
        self.name = uuid4().hex[:8]
        self.new_producer()
        self._ids: dict[str, int] = {}
        self._queries: list[StatementQuery] = []

    def new_producer(self) -> None:
        """One that knows topics as they are now."""
        self._producer = Producer({"bootstrap.servers": self.access.bootstrap, "enable.idempotence": True})

    def close(self) -> None:
        for query in self._queries:
            query.stop(5)

    @contextmanager
    def engine(
        self, statements: Statements, make: Callable[[StatementRecord], Job], folder: Path
    ) -> Iterator[None]:
        """The engine's loop over these statements, with its checkpoints in a folder."""
        stop = threading.Event()
        loop = StatementLoop(
            statements,
            self.spark,
            self.access,
            self.schemas,
            make,
            folder.as_uri(),
            Settings(interval=0.1, idle_timeout=600, tasks=2),
        )
        thread = threading.Thread(target=loop.run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    # -- topics

    def topic(self, name: str, partitions: int = 2, config: Mapping[str, str] | None = None) -> str:
        found: Topic = self.topics.create(f"{name}-{self.name}", partitions, config=config)
        return found.name

    def register(self, topic: str, schema: Any, part: str = "value") -> int:
        return self.schemas.register(f"{topic}-{part}", SchemaType.AVRO, json.dumps(schema))

    def events(
        self,
        name: str = "events",
        partitions: int = 2,
        watermark: Watermark | None = None,
        config: Mapping[str, str] | None = None,
    ) -> Table:
        topic = self.topic(name, partitions, config)
        self.register(topic, EVENT_SCHEMA)
        return Table(topic, EVENTS, watermark=watermark)

    def send(
        self, topic: str, rows: Iterable[Mapping[str, Any]], partition: int = 0, schema: Any = None
    ) -> None:
        """Rows in the schema given, or in that of events."""
        schema = schema or EVENT_SCHEMA
        schema_id, parsed = self.register(topic, schema), fastavro.parse_schema(schema)
        for row in rows:
            self.send_raw(topic, framed(schema_id, parsed, row), partition)
        self.flush()

    def framed(self, topic: str, row: Mapping[str, Any]) -> bytes:
        return framed(self.register(topic, EVENT_SCHEMA), fastavro.parse_schema(EVENT_SCHEMA), row)

    def begin(self, topic: str, row: Mapping[str, Any], partition: int) -> Producer:
        """A transaction with this row in it, which nobody has decided yet."""
        schema_id, parsed = self.register(topic, EVENT_SCHEMA), fastavro.parse_schema(EVENT_SCHEMA)
        producer = Producer(
            {
                "bootstrap.servers": self.access.bootstrap,
                "transactional.id": f"{topic}-{uuid4().hex}",
                "transaction.timeout.ms": 600_000,
            }
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, framed(schema_id, parsed, row), partition=partition)
        assert producer.flush(30) == 0
        return producer

    def send_later(self, topic: str, row: Mapping[str, Any], partition: int) -> None:
        """An event that goes out with the next flush."""
        schema_id = self.register(topic, EVENT_SCHEMA) if topic not in self._ids else self._ids[topic]
        self._ids[topic] = schema_id
        self.send_raw(topic, framed(schema_id, fastavro.parse_schema(EVENT_SCHEMA), row), partition)

    def grow(self, topic: str, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.access.bootstrap})
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()
        wait_for("the partition", lambda: len(self.topics.describe(topic).partitions) == partitions)
        self._producer = Producer({"bootstrap.servers": self.access.bootstrap, "enable.idempotence": True})

    def send_raw(
        self, topic: str, value: bytes | None, partition: int = 0, key: bytes | None = None, **more: Any
    ) -> None:
        self._producer.produce(topic, value, key, partition=partition, **more)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    # -- statements

    def query(self, plan: Runnable, output: Output, running: Running | None = None) -> StatementQuery:
        running = running or self.running()
        found = StatementQuery(self.spark, self.access, self.schemas, Job(plan, output), running)
        self._queries.append(found)
        return found

    def running(self, **more: Any) -> Running:
        made = uuid4().hex
        found = Running(made, (self.folder / made).as_uri(), tasks=2, interval_seconds=0.1)
        return replace(found, **more)

    def output(self, plan: Plan, **more: Any) -> Output:
        return Output(
            f"out-{uuid4().hex[:8]}",
            plan.columns,
            **{"key": plan.key, "changelog": plan.changelog, "partitions": 2, **more},
        )

    def until(self, query: StatementQuery, what: str, done: Callable[[], Any], timeout: float = 90.0) -> Any:
        """Watches a query until something is so; it must not end before."""

        def looked() -> Any:
            query.poll()
            if not query.is_active:
                raise AssertionError(f"the query has ended: {query.failure()}")
            return done()

        return wait_for(what, looked, timeout)

    def close_what_has_come(self, query: StatementQuery) -> Closed:
        """As `headgate statement finish` does."""
        closer = Closer(at_once, None)
        closed: Closed = self.until(query, "the closing", lambda: closer.look(query.queries, "now"))
        return closed

    def until_read(self, query: StatementQuery, rows: int) -> None:
        self.until(query, f"{rows} rows to be read", lambda: query.totals.rows_in >= rows)

    def until_failed(self, query: StatementQuery, timeout: float = 90.0) -> Any:
        wait_for("the query to fail", lambda: not query.is_active, timeout)
        return query.failure()

    def records(self, topic: str) -> list[tuple[bytes | None, Any]]:
        """Keys and decoded values of what is committed, in the order of partitions and offsets."""
        places = dict.fromkeys(self.topics.describe(topic).partitions, 0)
        found = list(committed_records(self.access, topic, places, idle_seconds=None))
        found.sort(key=lambda m: (m.partition(), m.offset()))
        return [(_key(message.key()), self.decode(message.value())) for message in found]

    def decode(self, data: Any) -> Any:
        if data is None:
            return None
        schema = self.schemas.schema(int.from_bytes(data[1:5], "big"))
        if schema.type == "JSON":
            return json.loads(data[5:])
        return fastavro.schemaless_reader(io.BytesIO(data[5:]), self.parsed(schema), None)

    def parsed(self, schema: RegisteredSchema) -> Any:
        return fastavro.parse_schema(json.loads(schema.text))

    def values(self, topic: str) -> list[Any]:
        return [value for _, value in self.records(topic)]


def _key(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def framed(schema_id: int, parsed: Any, row: Any) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, parsed, row)
    return b"\x00" + schema_id.to_bytes(4, "big") + body.getvalue()


def event(number: int, who: str = "ann", amount: int | None = 1, seconds: float = 0) -> dict[str, Any]:
    """At so many seconds of a day long gone."""
    return {"id": number, "who": who, "amount": amount, "ts": 1_700_000_000_000 + int(seconds * 1000)}


def at_once(ask: Callable[[], Any]) -> "Future[Any]":
    asked: Future[Any] = Future()
    asked.set_result(ask())
    return asked


def settled(what: Callable[[], int], quiet: float = 3.0) -> int:
    """A number that has not moved for a while."""
    number, since = what(), time.monotonic()
    while time.monotonic() - since < quiet:
        time.sleep(0.2)
        now = what()
        if now != number:
            number, since = now, time.monotonic()
    return number
