"""Declared columns, and Connect's own schemas."""

from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.json_plain import ConnectJsonReader, JsonReader, JsonTextReader, parse_columns
from headgate.errors import InvalidRequest, UnsupportedSchema


def test_all_types() -> None:
    found = parse_columns(
        "a boolean, b int, c INTEGER, d bigint, e long, f float, g double, h string, i binary, j date,"
        "k timestamp, l timestamp_ntz, m decimal(12,2), n NUMERIC( 5 ), o array<map<string,decimal(38,38)>>,"
        "p variant, q struct<x: int, `y z` struct<w:array<array<string>>>>, `r``s.t` string, ähm string"
    )
    assert found == t.StructType(
        [
            t.StructField("a", t.BooleanType()),
            t.StructField("b", t.IntegerType()),
            t.StructField("c", t.IntegerType()),
            t.StructField("d", t.LongType()),
            t.StructField("e", t.LongType()),
            t.StructField("f", t.FloatType()),
            t.StructField("g", t.DoubleType()),
            t.StructField("h", t.StringType()),
            t.StructField("i", t.BinaryType()),
            t.StructField("j", t.DateType()),
            t.StructField("k", t.TimestampType()),
            t.StructField("l", t.TimestampNTZType()),
            t.StructField("m", t.DecimalType(12, 2)),
            t.StructField("n", t.DecimalType(5, 0)),
            t.StructField("o", t.ArrayType(t.MapType(t.StringType(), t.DecimalType(38, 38)))),
            t.StructField("p", t.VariantType()),
            t.StructField(
                "q",
                t.StructType(
                    [
                        t.StructField("x", t.IntegerType()),
                        t.StructField(
                            "y z",
                            t.StructType([t.StructField("w", t.ArrayType(t.ArrayType(t.StringType())))]),
                        ),
                    ]
                ),
            ),
            t.StructField("r`s.t", t.StringType()),
            t.StructField("ähm", t.StringType()),
        ]
    )
    assert JsonReader(found).type == found


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("", "a column name is missing"),
        ("  ", "a column name is missing"),
        ("id", "a type is missing"),
        ("id bigint,", "a column name is missing"),
        ("id bigint price int", "'price' is not expected"),
        ("id bigint not null", "'not' is not expected"),
        ("id: bigint", "no type ':'"),
        ("id number", "no type 'number'"),
        ("id smallint", "no type 'smallint'"),
        ("a.b int", "'a.b' is no column name"),
        ("`` int", "no column name"),
        ("`a int", "does not go on"),
        ("id 'x'", "does not go on"),
        ("id int; drop table x", "does not go on"),
        ("p decimal", "'(' is"),
        ("p decimal(39,2)", "no decimal(39,2)"),
        ("p decimal(2,3)", "no decimal(2,3)"),
        ("p decimal(0)", "no decimal(0,0)"),
        ("p decimal(x)", "'x' is no number"),
        ("a array<int", "'>' is"),
        ("a array int", "'<' is"),
        ("a array<int>>", "'>' is not expected"),
        ("m map<int,string>", "keys of a map"),
        ("m map<string>", "',' is"),
        ("s struct<>", "'>' is no column name"),
        ("s struct<a int", "'>' is"),
        ("a int, A string", "'A' is there twice"),
        ("s struct<a int, a int>", "'a' is there twice"),
        ("a " + "array<" * 100 + "int" + ">" * 100, "nested too deeply"),
    ],
)
def test_nonsense(ddl: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_columns(ddl)
    assert said in caught.value.message
    assert "id bigint" in caught.value.remedy


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (t.ByteType(), "a"),
        (t.ArrayType(t.CalendarIntervalType()), "a[]"),
        (t.MapType(t.IntegerType(), t.StringType()), "a"),
        (t.StructType([t.StructField("b", t.NullType())]), "a.b"),
    ],
)
def test_columns_that_no_table_has(kind: t.DataType, path: str) -> None:
    with pytest.raises(UnsupportedSchema, match=f"'{path.replace('[', '.').replace(']', '.')}'"):
        JsonReader(t.StructType([t.StructField("a", kind)]))


def test_reserved_and_equal_names_are_refused() -> None:
    with pytest.raises(UnsupportedSchema, match="'_pos' has a name that Iceberg keeps"):
        JsonReader(parse_columns("_pos int"))
    twice = t.StructType([t.StructField("a", t.StringType()), t.StructField("A", t.StringType())])
    with pytest.raises(UnsupportedSchema, match="'A' has a name that differs only by case from 'a'"):
        JsonReader(twice)


def test_single_columns() -> None:
    assert JsonTextReader("doc", "variant").type.simpleString() == "struct<doc:variant>"
    assert JsonTextReader("doc").type.simpleString() == "struct<doc:string>"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "struct<value:string>"),
        ({"type": "struct", "fields": [{"type": "int8", "field": "a"}]}, "struct<a:int>"),
        ({"type": "array", "items": {"type": "float"}}, "struct<value:array<float>>"),
        (
            {"type": "map", "keys": {"type": "string"}, "values": {"type": "bytes"}},
            "struct<value:map<string,binary>>",
        ),
        (
            {"type": "map", "keys": {"type": "int32"}, "values": {"type": "bytes"}},
            "struct<value:array<string>>",
        ),
        ({"type": "struct", "fields": []}, "struct<value:string>"),
        ('{"type":"int64","name":"io.debezium.time.Timestamp","version":1}', "struct<value:timestamp_ntz>"),
    ],
)
def test_connect_types(schema: Any, expected: str) -> None:
    assert ConnectJsonReader(schema).type.simpleString() == expected


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "not JSON"),
        ("null", "none of Kafka Connect's"),
        ({"fields": []}, "none of Kafka Connect's"),
        ({"type": "record"}, "The message has the type record"),
        ({"type": "array"}, "without 'items'"),
        ({"type": "struct", "fields": [{"type": "string"}]}, "a field without a name"),
        (
            {"type": "struct", "fields": [{"field": "a", "type": "array", "items": {"type": "x"}}]},
            r"'a\[\]' has the type x",
        ),
    ],
)
def test_connect_schemas_that_are_none(schema: Any, said: str) -> None:
    with pytest.raises(UnsupportedSchema, match=said):
        ConnectJsonReader(schema)
