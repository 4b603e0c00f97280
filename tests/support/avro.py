"""Avro schemas and the column types that come of them."""

from typing import Any

from pyspark.sql import types as t


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": k} for n, k in fields], **more}


# Every kind of field that a table takes, and its column.
TYPES: list[tuple[Any, t.DataType]] = [
    ("boolean", t.BooleanType()),
    ("int", t.IntegerType()),
    ("long", t.LongType()),
    ("float", t.FloatType()),
    ("double", t.DoubleType()),
    ("bytes", t.BinaryType()),
    ("string", t.StringType()),
    (["null", "long"], t.LongType()),
    (["long", "null"], t.LongType()),
    ({"type": "int", "logicalType": "date"}, t.DateType()),
    ({"type": "long", "logicalType": "timestamp-millis"}, t.TimestampType()),
    ({"type": "long", "logicalType": "timestamp-micros"}, t.TimestampType()),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, t.TimestampNTZType()),
    ({"type": "string", "logicalType": "uuid"}, t.StringType()),
    ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}, t.DecimalType(38, 9)),
    (
        {"type": "fixed", "name": "F", "size": 5, "logicalType": "decimal", "precision": 10},
        t.DecimalType(10, 0),
    ),
    ({"type": "fixed", "name": "F", "size": 5}, t.BinaryType()),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, t.StringType()),
    ({"type": "array", "items": ["null", "int"]}, t.ArrayType(t.IntegerType())),
    ({"type": "map", "values": "double"}, t.MapType(t.StringType(), t.DoubleType())),
    ({"type": "string", "avro.java.string": "String"}, t.StringType()),
    # Logical types that Avro calls invalid, or does not know, are ignored.
    ({"type": "bytes", "logicalType": "decimal"}, t.BinaryType()),
    ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3}, t.BinaryType()),
    ({"type": "bytes", "logicalType": "decimal", "precision": 0}, t.BinaryType()),
    (
        {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 3},
        t.BinaryType(),
    ),
    (
        {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 2},
        t.DecimalType(2, 0),
    ),
    ({"type": "string", "logicalType": "colour"}, t.StringType()),
    ({"type": "string", "logicalType": "date"}, t.StringType()),
]
