"""What was acknowledged, and whether a table holds exactly that: no row lost, none doubled, values exact."""

import threading
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import count
from typing import Any

import duckdb

from scripts.readers import attach, duckdb_with, pyiceberg_on

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_numbers = count()


class Ledger:
    """Acknowledged records of Avro topics, as rows that a table must have."""

    def __init__(self, schemas: dict[str, Any]) -> None:
        self._schemas = schemas
        self._rows: dict[str, Counter[str]] = {}
        self._lock = threading.Lock()

    def __call__(self, topic: str, partition: int, offset: int, value: dict[str, Any]) -> None:
        """The broker has acknowledged this record."""
        row = canonical(to_native(value, self._schema_of(topic)))
        with self._lock:
            self._rows.setdefault(topic, Counter())[row] += 1

    def count(self, topic: str) -> int:
        with self._lock:
            return self._rows.get(topic, Counter()).total()

    def check(self, topic: str, iceberg: str, namespace: str = "local") -> None:
        """The table equals the ledger, in DuckDB and in PyIceberg."""
        expected = self._rows.get(topic, Counter())
        for reader, rows in (
            ("DuckDB", read_duckdb(iceberg, namespace, topic)),
            ("PyIceberg", read_pyiceberg(iceberg, namespace, topic)),
        ):
            found = Counter(canonical(without_metadata(row)) for row in rows)
            lost, extra = expected - found, found - expected
            assert not lost, f"{reader}: {lost.total()} of {expected.total()} rows lost: {list(lost)[:2]}"
            assert not extra, f"{reader}: {extra.total()} rows too many or changed: {list(extra)[:2]}"

    def _schema_of(self, topic: str) -> Any:
        return next(schema for name, schema in self._schemas.items() if topic.endswith(name))


def without_metadata(row: dict[str, Any]) -> dict[str, Any]:
    """What the record's producer said; Kafka's own word on it is left out."""
    return {name: value for name, value in row.items() if not name.startswith("_kafka_")}


@cache
def one_duckdb() -> duckdb.DuckDBPyConnection:
    """One for all reads: to load its extensions takes longer than to read a table. It remembers no file."""
    connection = duckdb_with("avro", "httpfs", "iceberg", "delta")
    connection.execute("SET enable_external_file_cache = false")
    return connection


def read_duckdb(iceberg: str, namespace: str, topic: str) -> Iterable[dict[str, Any]]:
    # Attached anew each time: it knows nothing of the catalog but what it is told now.
    name = f"lake{next(_numbers)}"
    with one_duckdb().cursor() as connection:
        attach(connection, iceberg, name)
        try:
            table = connection.execute(f'SELECT * FROM {name}."{namespace}"."{topic}"').to_arrow_table()
        finally:
            connection.execute(f"DETACH {name}")
            connection.execute(f"DROP SECRET IF EXISTS {name}_secret")
    return rows_of(table)


def read_pyiceberg(iceberg: str, namespace: str, topic: str) -> Iterable[dict[str, Any]]:
    return rows_of(pyiceberg_on(iceberg).load_table((namespace, topic)).scan().to_arrow())


def rows_of(table: Any) -> Iterable[dict[str, Any]]:
    for batch in table.to_batches():
        yield from batch.to_pylist()


def to_native(value: Any, schema: Any) -> Any:
    """A value as Avro holds it, as the value that a reader of the table gives back."""
    match schema:
        case list():
            branch = next(branch for branch in schema if branch != "null")
            return None if value is None else to_native(value, branch)
        case {"logicalType": "timestamp-millis"}:
            return EPOCH + timedelta(milliseconds=value)
        case {"logicalType": "timestamp-micros"}:
            return EPOCH + timedelta(microseconds=value)
        case {"logicalType": "date"}:
            return date(1970, 1, 1) + timedelta(days=value)
        case {"type": "record", "fields": fields}:
            return {field["name"]: to_native(value[field["name"]], field["type"]) for field in fields}
        case {"type": "array", "items": items}:
            return [to_native(item, items) for item in value]
        case {"type": "map", "values": values}:
            # As Arrow gives a map: pairs. Their order means nothing.
            return sorted((key, to_native(item, values)) for key, item in value.items())
        case "float":
            # What four bytes keep of it, which is what was produced.
            import struct

            return struct.unpack("<f", struct.pack("<f", value))[0]
    return value


def canonical(value: Any) -> str:
    """One text for one value, whichever engine gave it."""
    match value:
        case dict():
            return "{" + ",".join(f"{key}={canonical(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            if value and all(isinstance(item, tuple) for item in value):
                value = sorted(value)
            return "[" + ",".join(canonical(item) for item in value) + "]"
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case Decimal():
            return str(value)
    return repr(value)
