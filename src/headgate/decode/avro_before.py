"""The decoder that the lane has used so far; it goes when the lane takes `AvroReader`."""

import json
from collections.abc import Mapping
from functools import reduce
from math import floor, log10
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import types as t
from pyspark.sql.avro.functions import from_avro

from headgate.errors import UnsupportedSchema

_PRIMITIVES: Mapping[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "int": t.IntegerType(),
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "bytes": t.BinaryType(),
    "string": t.StringType(),
}
_LOGICAL: Mapping[tuple[str, str], t.DataType] = {
    ("int", "date"): t.DateType(),
    ("long", "timestamp-millis"): t.TimestampType(),
    ("long", "timestamp-micros"): t.TimestampType(),
    ("long", "local-timestamp-millis"): t.TimestampNTZType(),
    ("long", "local-timestamp-micros"): t.TimestampNTZType(),
    ("string", "uuid"): t.StringType(),
}
# Logical types that have a meaning of their own, which no column of ours has yet.
_UNSUPPORTED = {
    ("int", "time-millis"),
    ("long", "time-micros"),
    ("long", "timestamp-nanos"),
    ("long", "local-timestamp-nanos"),
    ("bytes", "big-decimal"),
    ("fixed", "duration"),
    ("fixed", "uuid"),
}
# Names that Iceberg keeps for columns of its own.
_RESERVED = {
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
}


def table_type(schema: str) -> t.StructType:
    """The columns of a table for records of this schema. Every column is optional: a field that a later
    schema drops turns NULL."""
    parsed = json.loads(schema)
    if not (isinstance(parsed, dict) and parsed.get("type") == "record" and parsed["fields"]):
        raise UnsupportedSchema(
            "The value's schema is not a record with fields.", "Only topics of records can be tables now."
        )
    return _Reader().record(parsed, path="", namespace="")


def decode(body: Column, schema: str) -> Column:
    """The record in `body`, by its writer's own schema. See `is_whole` for what did not decode."""
    # Dates are taken as they are written, whatever the session says of old calendars.
    return from_avro(body, schema, {"mode": "PERMISSIVE", "datetimeRebaseMode": "CORRECTED"})


def is_whole(record: Column, body_is_null_record: Column, schema: str) -> Column:
    """Whether `decode` succeeded: for bytes that do not fit, Spark gives a record of nulls, not a null.

    A field that cannot be null tells. Where all can, only the very bytes of an all-null record give one.
    """
    fields = _fields(schema)
    required = next((field["name"] for field in fields if _null_index(field["type"]) is None), None)
    if required is not None:
        return record[required].isNotNull()
    anything = reduce(or_, (record[field["name"]].isNotNull() for field in fields))
    return anything | (record.isNotNull() & body_is_null_record)


def null_record(schema: str) -> bytes | None:
    """The encoding of a record whose fields are all null; None if some field cannot be."""
    indexes = [_null_index(field["type"]) for field in _fields(schema)]
    known = [index for index in indexes if index is not None]
    # Branch numbers are zigzag varints: even, and one byte each, since there are two branches at most.
    return bytes(2 * index for index in known) if len(known) == len(indexes) else None


def _fields(schema: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(schema)["fields"]
    return found


def _null_index(kind: Any) -> int | None:
    return kind.index("null") if isinstance(kind, list) and "null" in kind else None


class _Reader:
    """Walks one schema, with the named types met so far."""

    def __init__(self) -> None:
        self._named: dict[str, t.DataType] = {}
        self._open: list[str] = []

    def type_of(self, schema: Any, path: str, namespace: str = "") -> t.DataType:
        if isinstance(schema, list):
            return self._union(schema, path, namespace)
        if isinstance(schema, str):
            return self._by_name(schema, path, namespace)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.type_of(kind, path, namespace)
        match kind:
            case "record" | "error":
                return self.record(schema, path, namespace)
            case "enum":
                return self._define(schema, namespace, t.StringType())
            case "fixed":
                found = _logical(schema, kind, path) or t.BinaryType()
                return self._define(schema, namespace, found)
            case "array":
                return t.ArrayType(self.type_of(schema["items"], f"{path}[]", namespace))
            case "map":
                return t.MapType(t.StringType(), self.type_of(schema["values"], f"{path}{{}}", namespace))
            case _:
                return self._primitive(schema, kind, path, namespace)

    def _primitive(self, schema: Mapping[str, Any], kind: str, path: str, namespace: str) -> t.DataType:
        plain = self._by_name(kind, path, namespace)
        return _logical(schema, kind, path) or plain

    def _by_name(self, name: str, path: str, namespace: str) -> t.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        if name == "null":
            raise _refused(path, "a type that is always null")
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        if full in self._open:
            raise _refused(path, f"the recursive type {full}")
        if full not in self._named:
            raise _refused(path, f"the undefined type {full}")
        return self._named[full]

    def record(self, schema: Mapping[str, Any], path: str, namespace: str) -> t.StructType:
        full, inner = _full_name(schema, namespace)
        if not schema["fields"]:
            raise _refused(path, "a record without fields")
        self._open.append(full)
        fields = []
        seen: dict[str, str] = {}
        for field in schema["fields"]:
            name = field["name"]
            where = f"{path}.{name}".lstrip(".")
            if name.lower() in seen:
                raise _refused(where, f"a name that differs only by case from '{seen[name.lower()]}'")
            if not path and name.lower() in _RESERVED:
                raise _refused(where, "a name that Iceberg keeps for itself")
            seen[name.lower()] = name
            fields.append(t.StructField(name, self.type_of(field["type"], where, inner)))
        self._open.pop()
        found = t.StructType(fields)
        self._named[full] = found
        return found

    def _union(self, branches: list[Any], path: str, namespace: str) -> t.DataType:
        real = [branch for branch in branches if branch != "null"]
        if len(real) != 1:
            raise _refused(path, f"a union of {len(real)} types other than null")
        return self.type_of(real[0], path, namespace)

    def _define(self, schema: Mapping[str, Any], namespace: str, found: t.DataType) -> t.DataType:
        self._named[_full_name(schema, namespace)[0]] = found
        return found


def _logical(schema: Mapping[str, Any], kind: str, path: str) -> t.DataType | None:
    """What the logical type makes of it. Unknown and invalid ones say nothing, as Avro wants."""
    logical = schema.get("logicalType")
    if not isinstance(logical, str):
        return None
    if (kind, logical) in _UNSUPPORTED:
        raise _refused(path, f"the logical type {logical} of {kind}")
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(schema, path)
    return _LOGICAL.get((kind, logical))


def _full_name(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The full name of a named type, and the namespace that holds inside it."""
    name = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = schema.get("namespace", namespace)
    return (f"{inner}.{name}" if inner else name), inner


def _decimal(schema: Mapping[str, Any], path: str) -> t.DecimalType | None:
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision > 0:
        return None
    if "size" in schema and precision > floor(log10(2) * (8 * schema["size"] - 1)):
        return None
    if precision > 38:
        raise _refused(path, f"a decimal of {precision} digits, more than 38,")
    return t.DecimalType(precision, scale)


def _refused(path: str, what: str) -> UnsupportedSchema:
    return UnsupportedSchema(
        f"Field '{path}' has {what} which no table column holds exactly.",
        "Leave the field out or give it a type of docs/reference/types.md.",
    )
