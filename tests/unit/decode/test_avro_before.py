"""The decoder that the lane still uses: it goes with `avro_before.py`."""

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.avro import null_record, table_type
from headgate.errors import UnsupportedSchema
from tests.support.avro import TYPES, record


def column(kind: Any) -> t.DataType:
    return table_type(json.dumps(record(("c", kind))))["c"].dataType


@pytest.mark.parametrize(("kind", "expected"), TYPES)
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
        (record(name="Empty"), "'c' has a record without fields"),
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


@pytest.mark.parametrize("name", ["_row_id", "_file", "_POS"])
def test_names_that_iceberg_keeps(name: str) -> None:
    with pytest.raises(UnsupportedSchema, match=f"'{name}' has a name that Iceberg keeps"):
        table_type(json.dumps(record((name, "int"))))
