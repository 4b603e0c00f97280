"""How Debezium's events look in each form: schemas as Kafka Connect's converters write them, and bytes.

A row is given as the table has it; `connect_value` makes of it what a connector hands to its converter.
"""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

import fastavro

Row = dict[str, Any]


class Form(StrEnum):
    AVRO = "avro"
    CONNECT_JSON = "connect-json"
    JSON = "json"


class Database(StrEnum):
    POSTGRES = "postgresql"
    MYSQL = "mysql"


@dataclass(frozen=True)
class Column:
    """A column of the source table. `kind` is Connect's type, `name` of the logical one."""

    column: str
    kind: str
    logical: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    key: bool = False
    required: bool = False
    #: How it is declared where the events have no schema.
    declared: str = "string"
    #: Whether an update can leave its value out.
    toasted: bool = False


_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE = "io.debezium.data.VariableScaleDecimal"
_COMMON = (
    Column("id", "int32", key=True, required=True, declared="int"),
    Column("name", "string"),
    Column("due", "int32", "io.debezium.time.Date", declared="int"),
    Column(
        "total", "bytes", _DECIMAL, (("scale", "2"), ("connect.decimal.precision", "12")), declared="binary"
    ),
    Column("kind", "string", "io.debezium.data.Enum", (("allowed", "book,toy"),)),
    Column("changed", "string", "io.debezium.time.ZonedTimestamp", declared="timestamp"),
)
COLUMNS: Mapping[Database, tuple[Column, ...]] = {
    Database.POSTGRES: (
        *_COMMON,
        Column("placed", "int64", "io.debezium.time.MicroTimestamp", required=True, declared="bigint"),
        Column("weight", "struct", _VARIABLE, declared="struct<scale: int, value: binary>"),
        Column("ref", "string", "io.debezium.data.Uuid"),
        Column("data", "string", "io.debezium.data.Json", toasted=True),
        Column("body", "string", toasted=True),
        Column("picture", "bytes", declared="binary", toasted=True),
        Column("tags", "strings", declared="array<string>", toasted=True),
        Column("marks", "numbers", declared="array<int>", toasted=True),
        Column("attributes", "map", declared="map<string, string>", toasted=True),
    ),
    Database.MYSQL: (
        *_COMMON,
        Column("placed", "int64", "io.debezium.time.Timestamp", required=True, declared="bigint"),
        Column("made", "int32", "io.debezium.time.Year", declared="int"),
        Column("data", "string", "io.debezium.data.Json"),
        Column("body", "string"),
        Column("picture", "bytes", declared="binary"),
    ),
}
# (name, Connect's type, optional)
_SOURCE_FIRST = (
    ("version", "string", False),
    ("connector", "string", False),
    ("name", "string", False),
    ("ts_ms", "int64", False),
    ("snapshot", "snapshot", True),
    ("db", "string", False),
    ("sequence", "string", True),
    ("ts_us", "int64", True),
    ("ts_ns", "int64", True),
)
SOURCES: Mapping[Database, tuple[tuple[str, str, bool], ...]] = {
    Database.POSTGRES: (
        *_SOURCE_FIRST,
        ("schema", "string", False),
        ("table", "string", False),
        ("txId", "int64", True),
        ("lsn", "int64", True),
        ("xmin", "int64", True),
    ),
    Database.MYSQL: (
        *_SOURCE_FIRST,
        ("table", "string", True),
        ("server_id", "int64", False),
        ("gtid", "string", True),
        ("file", "string", False),
        ("pos", "int64", False),
        ("row", "int32", False),
        ("thread", "int64", True),
        ("query", "string", True),
    ),
}
_SNAPSHOTS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
_BLOCK = (
    ("id", "string", False),
    ("total_order", "int64", False),
    ("data_collection_order", "int64", False),
)
_ENVELOPE_LAST = (
    ("op", "string", False),
    ("ts_ms", "int64", True),
    ("ts_us", "int64", True),
    ("ts_ns", "int64", True),
)
_AVRO = {"int32": "int", "int64": "long", "string": "string", "bytes": "bytes"}


def declared_columns(database: Database) -> str:
    """The row's columns where events have no schema: numbers stay what they arrive as."""
    return ", ".join(f"{c.column} {c.declared}" for c in COLUMNS[database])


def connect_value(column: Column, value: Any) -> Any:
    """What the connector makes of a value that is in the table."""
    match column.logical:
        case _ if value is None:
            return None
        case "io.debezium.time.Date":
            return (value - date(1970, 1, 1)).days
        case "io.debezium.time.MicroTimestamp":
            return _micros(value)
        case "io.debezium.time.Timestamp":
            return _micros(value) // 1000
        case "io.debezium.time.ZonedTimestamp":
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case "org.apache.kafka.connect.data.Decimal":
            return _whole(int(value.scaleb(2)))
        case "io.debezium.data.VariableScaleDecimal":
            digits = value.normalize().as_tuple()
            scale = -int(digits.exponent)
            return {"scale": scale, "value": _whole(int(value.scaleb(scale)))}
    return value


def declared_value(column: Column, value: Any) -> Any:
    """What a table of the declared columns has of it."""
    return value if column.declared == "timestamp" else connect_value(column, value)


def _micros(value: datetime) -> int:
    since = value - datetime(1970, 1, 1)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _whole(number: int) -> bytes:
    """As Java's BigInteger gives its bytes: as few as hold it, with a sign."""
    size = ((number if number >= 0 else ~number).bit_length() + 8) // 8
    return number.to_bytes(size, "big", signed=True)


# Avro


@cache
def avro_value_schema(database: Database, prefix: str) -> dict[str, Any]:
    row = [_avro_field(c.column, _avro_type(c), not c.required, c.key) for c in COLUMNS[database]]
    value = {"type": "record", "name": "Value", "fields": row, "connect.name": f"{prefix}.Value"}
    source_name = f"io.debezium.connector.{database}.Source"
    source = _avro_record(source_name, SOURCES[database])
    block = _avro_record("event.block", _BLOCK) | {"connect.version": 1}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": prefix,
        "fields": [
            _avro_field("before", value, True),
            _avro_field("after", "Value", True),
            _avro_field("source", source, False),
            _avro_field("transaction", block, True),
            *(_avro_field(name, _AVRO[kind], optional) for name, kind, optional in _ENVELOPE_LAST),
        ],
        "connect.version": 2,
        "connect.name": f"{prefix}.Envelope",
    }


@cache
def avro_key_schema(database: Database, prefix: str) -> dict[str, Any]:
    fields = [_avro_field(c.column, _avro_type(c), False, True) for c in COLUMNS[database] if c.key]
    return {
        "type": "record",
        "name": "Key",
        "namespace": prefix,
        "fields": fields,
        "connect.name": f"{prefix}.Key",
    }


def _avro_record(full_name: str, fields: Sequence[tuple[str, str, bool]]) -> dict[str, Any]:
    namespace, _, name = full_name.rpartition(".")
    found = [
        _AVRO_SNAPSHOT if kind == "snapshot" else _avro_field(field, _AVRO[kind], optional)
        for field, kind, optional in fields
    ]
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": found,
        "connect.name": full_name,
    }


_AVRO_SNAPSHOT = {
    "name": "snapshot",
    "type": [
        {
            "type": "string",
            "connect.version": 1,
            "connect.parameters": {"allowed": _SNAPSHOTS},
            "connect.default": "false",
            "connect.name": "io.debezium.data.Enum",
        },
        "null",
    ],
    "default": "false",
}


def _avro_field(name: str, kind: Any, optional: bool, key: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None}
    # A serial column has a default in the database.
    return (
        {"name": name, "type": {"type": kind, "connect.default": 0}, "default": 0}
        if key
        else {"name": name, "type": kind}
    )


def _avro_type(column: Column) -> Any:
    match column.kind:
        case "strings":
            return {"type": "array", "items": ["null", "string"]}
        case "numbers":
            return {"type": "array", "items": ["null", "int"]}
        case "map":
            return {"type": "map", "values": ["null", "string"]}
    if column.logical is None:
        return _AVRO[column.kind]
    named = {"connect.version": 1, "connect.name": column.logical}
    parameters = dict(column.parameters)
    if column.logical == _VARIABLE:
        fields = [_avro_field("scale", "int", False), _avro_field("value", "bytes", False)]
        return {
            "type": "record",
            "name": "VariableScaleDecimal",
            "namespace": "io.debezium.data",
            "fields": fields,
            "connect.doc": "Variable scaled decimal",
            **named,
        }
    more: dict[str, Any] = {"connect.parameters": parameters} if parameters else {}
    if column.logical == _DECIMAL:
        more |= {"scale": 2, "precision": 12, "logicalType": "decimal"}
    return {"type": _AVRO[column.kind], **named, **more}


def avro_bytes(schema: Mapping[str, Any], value: Any) -> bytes:
    """The message without the framing that names its schema."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _parsed(json.dumps(schema)), value)
    return out.getvalue()


@cache
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema), named_schemas={})


# Connect's JSON


@cache
def connect_value_schema(database: Database, prefix: str) -> dict[str, Any]:
    row = [_connect_column(c) for c in COLUMNS[database]]
    value = {"type": "struct", "fields": row, "optional": True, "name": f"{prefix}.Value"}
    source_name = f"io.debezium.connector.{database}.Source"
    block = {
        "type": "struct",
        "fields": _connect_fields(_BLOCK),
        "optional": True,
        "name": "event.block",
        "version": 1,
    }
    source = {
        "type": "struct",
        "fields": _connect_fields(SOURCES[database]),
        "optional": False,
        "name": source_name,
    }
    return {
        "type": "struct",
        "fields": [
            value | {"field": "before"},
            value | {"field": "after"},
            source | {"field": "source"},
            block | {"field": "transaction"},
            *_connect_fields(_ENVELOPE_LAST),
        ],
        "optional": False,
        "name": f"{prefix}.Envelope",
        "version": 2,
    }


@cache
def connect_key_schema(database: Database, prefix: str) -> dict[str, Any]:
    fields = [_connect_column(c) for c in COLUMNS[database] if c.key]
    return {"type": "struct", "fields": fields, "optional": False, "name": f"{prefix}.Key"}


def _connect_fields(fields: Sequence[tuple[str, str, bool]]) -> list[dict[str, Any]]:
    return [
        {
            "type": "string",
            "optional": True,
            "name": "io.debezium.data.Enum",
            "version": 1,
            "parameters": {"allowed": _SNAPSHOTS},
            "default": "false",
            "field": name,
        }
        if kind == "snapshot"
        else {"type": kind, "optional": optional, "field": name}
        for name, kind, optional in fields
    ]


def _connect_column(column: Column) -> dict[str, Any]:
    found: dict[str, Any]
    match column.kind:
        case "strings" | "numbers":
            item = "string" if column.kind == "strings" else "int32"
            found = {"type": "array", "items": {"type": item, "optional": True}}
        case "map":
            texts = {"type": "string", "optional": True}
            found = {"type": "map", "keys": {"type": "string", "optional": False}, "values": texts}
        case "struct":
            parts = _connect_fields((("scale", "int32", False), ("value", "bytes", False)))
            found = {"type": "struct", "fields": parts, "doc": "Variable scaled decimal"}
        case kind:
            found = {"type": kind}
    found["optional"] = not column.required
    if column.logical is not None:
        found |= {"name": column.logical, "version": 1}
    if column.parameters:
        found["parameters"] = dict(column.parameters)
    if column.key:
        found["default"] = 0
    return found | {"field": column.column}


def json_bytes(value: Any, schema: Mapping[str, Any] | None) -> bytes:
    """As JsonConverter writes it, with the schema if there is one to write."""
    payload = _json_value(value)
    whole = payload if schema is None else {"schema": schema, "payload": payload}
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _json_value(value: Any) -> Any:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case dict():
            return {name: _json_value(inner) for name, inner in value.items()}
        case list():
            return [_json_value(inner) for inner in value]
        case Decimal() | datetime():
            raise TypeError(f"{value} is no value of Connect's")
    return value
