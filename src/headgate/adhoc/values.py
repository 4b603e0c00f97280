"""Spark's rows in JSON's types: nothing rounded, moments in the session's zone."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from headgate.kafka.readable import exact

Value = Callable[[Any], Any]


def plain_rows(rows: DataFrame, zone: str) -> Iterator[dict[str, Any]]:
    """The rows in plain values. A part of them is in memory at a time."""
    readers = {field.name: value_of(field.dataType, ZoneInfo(zone)) for field in rows.schema.fields}
    for row in rows.toLocalIterator():
        yield {name: None if row[name] is None else read(row[name]) for name, read in readers.items()}


def value_of(kind: t.DataType, zone: ZoneInfo) -> Value:
    """What turns a value that is there into a plain one."""
    match kind:
        case t.TimestampType():
            # Spark's client gives the moment on this process's clock, without saying so.
            return lambda value: str(value.astimezone(zone))
        case t.TimestampNTZType():
            return str
        case t.ArrayType():
            return _all(value_of(kind.elementType, zone))
        case t.MapType():
            return _pairs(value_of(kind.keyType, zone), value_of(kind.valueType, zone))
        case t.StructType():
            return _fields({field.name: value_of(field.dataType, zone) for field in kind.fields})
        case t.BinaryType():
            return lambda value: exact(bytes(value))
        case t.VariantType():
            return str
    return exact


def _all(read: Value) -> Value:
    return lambda values: [None if value is None else read(value) for value in values]


def _pairs(key: Value, value: Value) -> Value:
    return lambda found: {
        str(key(k)): None if item is None else value(item) for k, item in dict(found).items()
    }


def _fields(readers: Mapping[str, Value]) -> Value:
    return lambda row: {
        name: None if item is None else read(item)
        for (name, read), item in zip(readers.items(), row, strict=True)
    }
