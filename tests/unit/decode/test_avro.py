"""Avro schemas as table types: exact, or refused with the path."""

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.avro import null_record, table_type
from headgate.errors import UnsupportedSchema


def record(*fields: tuple[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": k} for n, k in fields], **more}


def column(kind: Any) -> t.DataType:
    return table_type(json.dumps(record(("c", kind))))["c"].dataType


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
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
    ],
)
def test_types(kind: Any, expected: t.DataType) -> None:
    assert column(kind) == expected


def test_nested_records_and_named_types_used_twice() -> None:
    address = record(("city", "string"), name="Address")
    schema = record(("home", address), ("work", ["null", "Address"]), namespace="shop")
    found = table_type(json.dumps(schema))
    assert (
        found["home"].dataType
        == found["work"].dataType
        == t.StructType([t.StructField("city", t.StringType())])
    )


def test_every_column_is_optional() -> None:
    assert table_type(json.dumps(record(("a", "int"))))["a"].nullable


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (["int", "string"], "'c' has a union of 2 types"),
        ("null", "'c' has a type that is always null"),
        ({"type": "int", "logicalType": "time-millis"}, "'c' has the logical type time-millis of int"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "timestamp-nanos"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0}, "39 digits"),
        ({"type": "array", "items": record(("x", ["int", "string"]), name="I")}, r"'c\[\]\.x'"),
        ({"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}, "duration"),
        ("Nowhere", "undefined type Nowhere"),
        (record(("next", ["null", "Node"]), name="Node"), "'c.next' has the recursive type Node"),
        (record(("id", "int"), ("ID", "int"), name="Case"), "'c.ID' has a name that differs only by case"),
    ],
)
def test_refused_with_the_path(kind: Any, words: str) -> None:
    with pytest.raises(UnsupportedSchema, match=words):
        column(kind)


@pytest.mark.parametrize(
    "schema", ['"string"', '["null", "string"]', '{"type": "record", "name": "R", "fields": []}']
)
def test_a_topic_of_plain_values_is_no_table(schema: str) -> None:
    with pytest.raises(UnsupportedSchema, match="not a record with fields"):
        table_type(schema)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([("a", ["null", "int"])], b"\x00"),
        ([("a", ["int", "null"]), ("b", ["null", "int"])], b"\x02\x00"),
        ([("a", ["null", "int"]), ("b", "int")], None),
    ],
)
def test_the_bytes_of_an_all_null_record(fields: list[tuple[str, Any]], expected: bytes | None) -> None:
    assert null_record(json.dumps(record(*fields))) == expected
