"""The schemas that a statement registers for its columns."""

import json

import fastavro
import pytest
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.errors import UnsupportedSchema
from headgate.sql.types import quote
from headgate.statements.encode import avro_schema, json_schema, record_name

COLUMNS = t.StructType(
    [
        t.StructField("flag", t.BooleanType()),
        t.StructField("n", t.IntegerType(), False),
        t.StructField("big", t.LongType()),
        t.StructField("price", t.DecimalType(12, 2)),
        t.StructField("name", t.StringType()),
        t.StructField("raw", t.BinaryType()),
        t.StructField("day", t.DateType()),
        t.StructField("at", t.TimestampType()),
        t.StructField("wall", t.TimestampNTZType()),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("marks", t.MapType(t.StringType(), t.DoubleType())),
        t.StructField("line", t.StructType([t.StructField("sku", t.StringType(), False)])),
    ]
)


def test_an_avro_schema_is_read_back_as_the_same_columns() -> None:
    text = avro_schema(COLUMNS, "orders_value")
    fastavro.parse_schema(json.loads(text))
    fields = {field["name"]: field for field in json.loads(text)["fields"]}
    assert fields["n"]["type"] == "int"
    assert fields["big"] == {"name": "big", "type": ["null", "long"], "default": None}
    found = AvroReader(text).type
    assert [(field.name, field.dataType.simpleString()) for field in found.fields] == [
        (field.name, field.dataType.simpleString()) for field in COLUMNS.fields
    ]


def test_a_json_schema_says_what_must_be_there() -> None:
    columns = t.StructType([t.StructField("id", t.LongType(), False), t.StructField("at", t.TimestampType())])
    found = json.loads(json_schema(columns, "orders_value"))
    assert found["title"] == "orders_value"
    assert found["required"] == ["id"]
    assert found["properties"]["at"] == {
        "oneOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]
    }


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (t.StructField("a-b", t.LongType()), "'a-b'"),
        (t.StructField("span", t.DayTimeIntervalType()), "'span' is of type interval"),
        (t.StructField("m", t.MapType(t.LongType(), t.LongType())), "'m' is of type map"),
        (
            t.StructField("s", t.StructType([t.StructField("x", t.ArrayType(t.VariantType()))])),
            r"'s\.x\[\]' is of type variant",
        ),
    ],
)
def test_what_avro_cannot_hold_is_refused_by_its_path(column: t.StructField, said: str) -> None:
    with pytest.raises(UnsupportedSchema, match=said):
        avro_schema(t.StructType([column]), "r")


def test_json_refuses_what_it_would_have_to_guess() -> None:
    with pytest.raises(UnsupportedSchema, match="'raw' is of type binary"):
        json_schema(t.StructType([t.StructField("raw", t.BinaryType())]), "r")


def test_names() -> None:
    assert record_name("shop.orders-eu", "value") == "shop_orders_eu_value"
    assert record_name("2026", "key") == "_2026_key"
    assert quote("a`b") == "`a``b`"
