"""Rows become the bytes of records: Avro or JSON by a registered schema, in Spark's own expressions."""

import json
import re
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.avro.functions import to_avro

from headgate.errors import UnsupportedSchema
from headgate.sql.types import quote

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = {
    t.BooleanType: "boolean",
    t.ByteType: "int",
    t.ShortType: "int",
    t.IntegerType: "int",
    t.LongType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.StringType: "string",
    t.BinaryType: "bytes",
}
_LOGICAL = {
    t.DateType: {"type": "int", "logicalType": "date"},
    t.TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    t.TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_JSON: dict[type[t.DataType], dict[str, Any]] = {
    t.BooleanType: {"type": "boolean"},
    t.ByteType: {"type": "integer", "connect.type": "int8"},
    t.ShortType: {"type": "integer", "connect.type": "int16"},
    t.IntegerType: {"type": "integer", "connect.type": "int32"},
    t.LongType: {"type": "integer", "connect.type": "int64"},
    t.FloatType: {"type": "number", "connect.type": "float32"},
    t.DoubleType: {"type": "number", "connect.type": "float64"},
    t.StringType: {"type": "string"},
    t.DateType: {"type": "string", "format": "date"},
    t.TimestampType: {"type": "string", "format": "date-time"},
}
# As RFC 3339 has it, to the microsecond.
_JSON_OPTIONS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "dateFormat": "yyyy-MM-dd"}


def avro_schema(columns: t.StructType, name: str) -> str:
    """The schema of these columns. A column that can be NULL is NULL where a record does not say."""
    return json.dumps(_record(columns, name, ""))


def json_schema(columns: t.StructType, name: str) -> str:
    return json.dumps(
        {"$schema": "http://json-schema.org/draft-07/schema#", "title": name, **_object(columns, "")}
    )


def encoded_avro(columns: t.StructType, schema_id: int, schema: str) -> Column:
    """The message of a row, with the id of its schema before it."""
    return f.concat(f.lit(_prefix(schema_id)), to_avro(_struct(columns), schema))


def encoded_json(columns: t.StructType, schema_id: int) -> Column:
    text = f.to_json(_struct(columns), _JSON_OPTIONS)
    return f.concat(f.lit(_prefix(schema_id)), text.cast("binary"))


def record_name(topic: str, part: str) -> str:
    """A name that Avro takes, always the same for a topic."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    return f"{'_' if found[:1].isdigit() else ''}{found}_{part}"


def _prefix(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def _struct(columns: t.StructType) -> Column:
    return f.struct(*(f.col(quote(name)).alias(name) for name in columns.names))


def _record(columns: t.StructType, name: str, path: str) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for field in columns.fields:
        here = f"{path}{field.name}"
        if _NAME.fullmatch(field.name) is None:
            raise UnsupportedSchema(
                f"Column '{here}' cannot be a field of an Avro record: its name is none.",
                "Name it with letters, digits and underscores: `… AS name`.",
            )
        kind = _avro(field.dataType, f"{name}_{field.name}", here)
        optional = {"type": ["null", kind], "default": None}
        fields.append({"name": field.name, **(optional if field.nullable else {"type": kind})})
    return {"type": "record", "name": name, "fields": fields}


def _avro(kind: t.DataType, name: str, path: str) -> Any:
    for plain, avro in (*_PLAIN.items(), *_LOGICAL.items()):
        if isinstance(kind, plain):
            return avro
    match kind:
        case t.DecimalType():
            return {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": kind.precision,
                "scale": kind.scale,
            }
        case t.ArrayType():
            items = _avro(kind.elementType, f"{name}_item", f"{path}[]")
            return {"type": "array", "items": ["null", items] if kind.containsNull else items}
        case t.MapType(keyType=t.StringType()):
            values = _avro(kind.valueType, f"{name}_value", f"{path}{{}}")
            return {"type": "map", "values": ["null", values] if kind.valueContainsNull else values}
        case t.StructType():
            return _record(kind, name, f"{path}.")
    raise _no_type(kind, path, "Avro")


def _object(columns: t.StructType, path: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in columns.fields:
        kind = _json(field.dataType, f"{path}{field.name}")
        properties[field.name] = {"oneOf": [{"type": "null"}, kind]} if field.nullable else kind
    required = [field.name for field in columns.fields if not field.nullable]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _json(kind: t.DataType, path: str) -> dict[str, Any]:
    for plain, found in _JSON.items():
        if isinstance(kind, plain):
            return found
    match kind:
        case t.ArrayType():
            return {"type": "array", "items": _json(kind.elementType, f"{path}[]")}
        case t.MapType(keyType=t.StringType()):
            return {"type": "object", "additionalProperties": _json(kind.valueType, f"{path}{{}}")}
        case t.StructType():
            return _object(kind, f"{path}.")
    raise _no_type(kind, path, "JSON Schema")


def _no_type(kind: t.DataType, path: str, format_name: str) -> UnsupportedSchema:
    return UnsupportedSchema(
        f"Column '{path}' is of type {kind.simpleString()}, which no {format_name} schema of ours can hold.",
        "Cast it to another type.",
    )
