"""Change events as Debezium's Postgres connector writes them, of rows that a scenario makes."""

from collections.abc import Iterable, Iterator
from typing import Any

from headgate.datagen.orders_schemas import avro_field, avro_record, optional
from headgate.datagen.scenario import TOMBSTONE, Record, Schema

Row = dict[str, Any]

CONNECTOR_VERSION = "3.0.0.Final"
FIRST_LSN = 24_000_000
FIRST_TRANSACTION = 700
# A log's places are multiples of eight bytes.
LSN_STEP = 184
OPERATIONS = ("r", "c", "u", "d")


def envelope_schema(database: str, table: str, row: Schema) -> Schema:
    """The schema of a table's change events; `row` is the schema of its rows."""
    namespace = f"{database}.public.{table}"
    value = {
        "type": "record",
        "name": "Value",
        "doc": row["doc"],
        "fields": row["fields"],
        "connect.name": f"{namespace}.Value",
    }
    fields = [
        avro_field("before", optional(value)),
        avro_field("after", optional("Value")),
        avro_field("source", _SOURCE),
        avro_field("transaction", optional(_TRANSACTION)),
        avro_field("op", "string", "c: created, u: updated, d: deleted, r: read by the snapshot."),
        avro_field("ts_ms", optional("long")),
        avro_field("ts_us", optional("long")),
        avro_field("ts_ns", optional("long")),
    ]
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": namespace,
        "fields": fields,
        "connect.version": 2,
        "connect.name": f"{namespace}.Envelope",
    }


def key_schema(database: str, table: str, row: Schema, key: str) -> Schema:
    """The schema of a table's keys: the one column `key`."""
    namespace = f"{database}.public.{table}"
    kind = next(field["type"] for field in row["fields"] if field["name"] == key)
    fields = [avro_field(key, kind)]
    return {
        "type": "record",
        "name": "Key",
        "namespace": namespace,
        "fields": fields,
        "connect.name": f"{namespace}.Key",
    }


def count_changes(records: Iterable[Record], topics: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many events of each operation, and tombstones, there are in the topics."""
    found = {topic: dict.fromkeys((*OPERATIONS, "tombstones"), 0) for topic in topics}
    for record in records:
        if record.topic in found:
            found[record.topic][record.value["op"] if record.value else "tombstones"] += 1
    return found


class ChangeLog:
    """The log of a made-up database. Each change has a place in it, later than those before."""

    def __init__(self, database: str) -> None:
        self._database = database
        self._lsn = FIRST_LSN
        self._transaction = FIRST_TRANSACTION

    def read(self, row: Record, last: bool) -> Record:
        """The event of a row that the snapshot has read. Snapshots have one place in the log."""
        return self._event(row, "r", None, row.value, "last" if last else "true")

    def changed(self, row: Record, before: Row | None) -> Iterator[Record]:
        """The event of a created or updated row; one without a value was deleted: a tombstone follows."""
        self._lsn += LSN_STEP
        self._transaction += 1
        if not row.value:
            yield self._event(row, "d", before, None, "false")
            yield row._replace(value=TOMBSTONE)
            return
        yield self._event(row, "c" if before is None else "u", before, row.value, "false")

    def _event(self, row: Record, op: str, before: Row | None, after: Row | None, snapshot: str) -> Record:
        at = row.timestamp_ms
        source = {
            "version": CONNECTOR_VERSION,
            "connector": "postgresql",
            "name": self._database,
            "ts_ms": at,
            "snapshot": snapshot,
            "db": self._database,
            "sequence": f'["{self._lsn - LSN_STEP}","{self._lsn}"]',
            "ts_us": at * 1000,
            "ts_ns": at * 1_000_000,
            "schema": "public",
            "table": row.topic,
            "txId": self._transaction,
            "lsn": self._lsn,
            "xmin": None,
        }
        event = {
            "before": before,
            "after": after,
            "source": source,
            "transaction": None,
            "op": op,
            "ts_ms": at,
            "ts_us": at * 1000,
            "ts_ns": at * 1_000_000,
        }
        return Record(row.topic, row.key, event, at)


_SOURCE = avro_record(
    "Source",
    avro_field("version", "string"),
    avro_field("connector", "string"),
    avro_field("name", "string"),
    avro_field("ts_ms", "long"),
    avro_field("snapshot", optional("string")),
    avro_field("db", "string"),
    avro_field("sequence", optional("string")),
    avro_field("ts_us", optional("long")),
    avro_field("ts_ns", optional("long")),
    avro_field("schema", "string"),
    avro_field("table", "string"),
    avro_field("txId", optional("long")),
    avro_field("lsn", optional("long")),
    avro_field("xmin", optional("long")),
    doc="Where a change comes from, and its place in the log.",
    namespace="io.debezium.connector.postgresql",
) | {"connect.name": "io.debezium.connector.postgresql.Source"}

_TRANSACTION = avro_record(
    "block",
    avro_field("id", "string"),
    avro_field("total_order", "long"),
    avro_field("data_collection_order", "long"),
    doc="Not filled.",
    namespace="event",
) | {"connect.name": "event.block"}
