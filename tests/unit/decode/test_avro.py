"""Avro schemas as columns: exact, or refused with the path."""

import json
from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.errors import UnsupportedSchema
from tests.support.avro import TYPES, record

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}


def reader(schema: Any, column: str = "value") -> AvroReader:
    return AvroReader(json.dumps(schema), column)


def column(kind: Any) -> t.DataType:
    return reader(record(("c", kind))).type["c"].dataType


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(("kind", "expected"), TYPES)
def test_types(kind: Any, expected: t.DataType) -> None:
    assert column(kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"type": "int", "logicalType": "time-millis"}, t.LongType()),
        ({"type": "long", "logicalType": "time-micros"}, t.LongType()),
        ({"type": "long", "logicalType": "timestamp-nanos"}, t.LongType()),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, t.LongType()),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, t.TimestampNTZType()),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, t.StringType()),
        ({"type": "fixed", "name": "U", "size": 15, "logicalType": "uuid"}, t.BinaryType()),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            struct(months=t.LongType(), days=t.LongType(), millis=t.LongType()),
        ),
        ({"type": "fixed", "name": "D", "size": 11, "logicalType": "duration"}, t.BinaryType()),
        (["int", "long"], t.LongType()),
        (["null", "long", {"type": "int"}], t.LongType()),
        (["float", "null", "double"], t.DoubleType()),
        (["int"], t.IntegerType()),
        (["null", "int", "string"], struct(int=t.IntegerType(), string=t.StringType())),
        (["int", "double"], struct(int=t.IntegerType(), double=t.DoubleType())),
        (
            [{"type": "int", "logicalType": "date"}, {"type": "long", "logicalType": "timestamp-millis"}],
            struct(int=t.DateType(), long=t.TimestampType()),
        ),
        (
            [{"type": "int", "connect.name": "io.debezium.time.Date"}, "long"],
            struct(int=t.DateType(), long=t.LongType()),
        ),
        (
            [
                "null",
                record(("a", "int"), name="One", namespace="x"),
                record(("a", "long"), name="y.Two"),
                {"type": "array", "items": "int"},
                {"type": "map", "values": MONEY},
                {"type": "enum", "name": "z.E", "symbols": ["A"]},
            ],
            struct(
                One=struct(a=t.IntegerType()),
                Two=struct(a=t.LongType()),
                array=t.ArrayType(t.IntegerType()),
                map=t.MapType(t.StringType(), t.DecimalType(10, 2)),
                E=t.StringType(),
            ),
        ),
        ({"type": {"type": "int", "logicalType": "date"}}, t.DateType()),
        ({"type": "long", "spark.sql.catalyst.type": "interval day to second"}, t.LongType()),
    ],
)
def test_types_of_the_reader(kind: Any, expected: t.DataType) -> None:
    assert column(kind) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ({"type": "int", "connect.name": "io.debezium.time.Date"}, t.DateType()),
        ({"type": "int", "connect.name": "io.debezium.time.Time"}, t.LongType()),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTime"}, t.LongType()),
        ({"type": "long", "connect.name": "io.debezium.time.NanoTime"}, t.LongType()),
        ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, t.TimestampNTZType()),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}, t.TimestampNTZType()),
        ({"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"}, t.LongType()),
        ({"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"}, t.TimestampType()),
        ({"type": "string", "connect.name": "io.debezium.time.ZonedTime"}, t.StringType()),
        ({"type": "int", "connect.name": "io.debezium.time.Year"}, t.IntegerType()),
        ({"type": "string", "connect.name": "io.debezium.data.Json"}, t.StringType()),
        ({"type": "bytes", "connect.name": "io.debezium.data.Bits"}, t.BinaryType()),
        ({"type": "int", "connect.name": "org.apache.kafka.connect.data.Date"}, t.DateType()),
        ({"type": "int", "connect.name": "org.apache.kafka.connect.data.Time"}, t.LongType()),
        ({"type": "long", "connect.name": "org.apache.kafka.connect.data.Timestamp"}, t.TimestampType()),
        (
            {
                "type": "bytes",
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "connect.parameters": {"scale": "3"},
                "logicalType": "decimal",
                "precision": 64,
                "scale": 3,
            },
            t.DecimalType(38, 3),
        ),
        (
            {
                "type": "bytes",
                "connect.name": "org.apache.kafka.connect.data.Decimal",
                "connect.parameters": {"scale": "3", "connect.decimal.precision": "9"},
            },
            t.DecimalType(9, 3),
        ),
        ({"type": "bytes", "connect.name": "org.apache.kafka.connect.data.Decimal"}, t.BinaryType()),
        # A name on a type that it does not belong to says nothing.
        ({"type": "string", "connect.name": "io.debezium.time.Date"}, t.StringType()),
        ({"type": "long", "connect.name": "io.debezium.time.ZonedTimestamp"}, t.LongType()),
        (
            record(
                ("scale", "int"),
                ("value", "bytes"),
                name="io.debezium.data.VariableScaleDecimal",
                **{"connect.name": "io.debezium.data.VariableScaleDecimal"},
            ),
            t.DecimalType(38, 18),
        ),
    ],
)
def test_types_of_connect_and_debezium(kind: Any, expected: t.DataType) -> None:
    assert column(kind) == expected


def test_named_types_used_again_in_their_namespaces() -> None:
    address = record(
        ("city", "string"), ("kind", {"type": "enum", "name": "Kind", "symbols": ["A"]}), name="Address"
    )
    schema = record(
        ("home", address),
        ("work", ["null", "Address"]),
        ("other", "shop.Address"),
        ("kind", {"type": "Kind"}),
        namespace="shop",
    )
    found = reader(schema).type
    assert found["home"].dataType == struct(city=t.StringType(), kind=t.StringType())
    assert found["home"].dataType == found["work"].dataType == found["other"].dataType
    assert found["kind"].dataType == t.StringType()


def test_every_column_is_optional_at_every_depth() -> None:
    def all_optional(kind: t.DataType) -> bool:
        match kind:
            case t.StructType():
                return all(field.nullable and all_optional(field.dataType) for field in kind.fields)
            case t.ArrayType():
                return kind.containsNull and all_optional(kind.elementType)
            case t.MapType():
                return kind.valueContainsNull and all_optional(kind.valueType)
        return True

    inner = record(("x", "int"), name="I")
    assert all_optional(
        reader(
            record(
                ("a", "int"), ("b", {"type": "array", "items": inner}), ("c", {"type": "map", "values": "I"})
            )
        ).type
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("null", "'c' has a type that is always null"),
        (["null"], "'c' has a type that is always null"),
        ({"type": "bytes", "logicalType": "big-decimal"}, "'c' has the logical type big-decimal"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 0}, "39 digits"),
        (
            {"type": "array", "items": record(("x", {"type": "map", "values": "null"}), name="I")},
            r"'c\[\]\.x\{\}' has",
        ),
        ({"type": "fixed", "name": "F", "size": 0}, "'c' has a fixed of no bytes"),
        (record(name="Empty"), "'c' has a record without fields"),
        ("Nowhere", "undefined type Nowhere"),
        (record(("next", ["null", "Node"]), name="Node"), "'c.next' has the recursive type Node"),
        (
            record(("kids", {"type": "array", "items": "n.Node"}), name="Node", namespace="n"),
            r"'c.kids\[\]' has the recursive type n.Node",
        ),
        (record(("id", "int"), ("ID", "int"), name="Case"), "'c.ID' has a name that differs only by case"),
        (
            [record(("x", "int"), name="a.E"), record(("x", "int"), name="b.E")],
            "'c' has a union of two types that are both named 'E'",
        ),
        ([record(("x", "int"), name="String"), "string"], "both named 'string'"),
    ],
)
def test_refused_with_the_path(kind: Any, words: str) -> None:
    with pytest.raises(UnsupportedSchema, match=words):
        column(kind)


@pytest.mark.parametrize("name", ["_row_id", "_file", "_POS"])
def test_names_that_iceberg_keeps(name: str) -> None:
    with pytest.raises(UnsupportedSchema, match=f"'{name}' has a name that Iceberg keeps"):
        reader(record((name, "int")))
    assert column(record((name, "int"), name="Inner")) == struct(**{name: t.IntegerType()})


@pytest.mark.parametrize("schema", ["{", "nothing", '{"type": "record", "name": "R"}', '{"fields": []}', "3"])
def test_what_is_no_schema_is_refused(schema: str) -> None:
    with pytest.raises(UnsupportedSchema):
        AvroReader(schema)


def test_a_schema_without_end_is_refused() -> None:
    """Each type has the one before it twice: twenty lines make a million columns."""
    kind: Any = record(("a", "int"), ("b", "int"), name="R0")
    for level in range(1, 20):
        kind = record(("a", kind), ("b", f"R{level - 1}"), name=f"R{level}")
    with pytest.raises(UnsupportedSchema, match="10,000"):
        reader(kind)


def test_a_schema_too_deep_is_refused() -> None:
    kind: Any = "int"
    for _ in range(200):
        kind = {"type": "array", "items": kind}
    with pytest.raises(UnsupportedSchema, match="inside each other"):
        reader(kind)


@pytest.mark.parametrize(
    ("schema", "expected", "name"),
    [
        ("string", struct(v=t.StringType()), None),
        (["null", "string"], struct(v=t.StringType()), None),
        (["int", "long"], struct(v=t.LongType()), None),
        ({"type": "array", "items": "int"}, struct(v=t.ArrayType(t.IntegerType())), None),
        ({"type": "map", "values": "int"}, struct(v=t.MapType(t.StringType(), t.IntegerType())), None),
        ({"type": "enum", "name": "n.E", "symbols": ["A"]}, struct(v=t.StringType()), "n.E"),
        ({"type": "fixed", "name": "F", "size": 2, "namespace": "n"}, struct(v=t.BinaryType()), "n.F"),
        (record(("a", "int"), name="n.R"), struct(a=t.IntegerType()), "n.R"),
        (["null", record(("a", "int"), name="n.R")], struct(a=t.IntegerType()), "n.R"),
        (
            [record(("a", "int"), name="n.R"), record(("b", "int"), name="S")],
            struct(R=struct(a=t.IntegerType()), S=struct(b=t.IntegerType())),
            None,
        ),
        (["string", "int"], struct(string=t.StringType(), int=t.IntegerType()), None),
    ],
)
def test_messages_of_every_kind(schema: Any, expected: t.StructType, name: str | None) -> None:
    found = reader(schema, "v")
    assert (found.type, found.record_name) == (expected, name)


def test_a_primitive_schema_without_quotes() -> None:
    assert AvroReader("string").type == struct(value=t.StringType())


def test_refusals_at_the_top() -> None:
    with pytest.raises(UnsupportedSchema, match="The message has a record without fields"):
        reader(record())
    with pytest.raises(UnsupportedSchema, match="The message has a type that is always null"):
        reader("null")
    with pytest.raises(UnsupportedSchema, match="'_file' has a name that Iceberg keeps"):
        reader([record(("a", "int"), name="_file"), "string"])


def test_former_names_at_every_depth() -> None:
    def named(name: str, kind: Any, *aliases: str) -> dict[str, Any]:
        return {"name": name, "type": kind, "aliases": list(aliases)}

    line = {"type": "record", "name": "Line", "fields": [named("sku", "string", "item", "code")]}
    paid = {
        "type": "record",
        "name": "p.Paid",
        "fields": [named("at", "long", "when")],
        "aliases": ["q.Payed"],
    }
    schema = {
        "type": "record",
        "name": "Order",
        "aliases": ["Purchase"],
        "fields": [
            named("id", "long", "order_id"),
            {"name": "plain", "type": "int"},
            {"name": "first", "type": line},
            {"name": "lines", "type": {"type": "array", "items": "Line"}},
            {"name": "by_day", "type": ["null", {"type": "map", "values": "Line"}]},
            {"name": "event", "type": [paid, "string"]},
        ],
    }
    assert dict(reader(schema).former_names) == {
        "id": ("order_id",),
        "first.sku": ("item", "code"),
        "lines.element.sku": ("item", "code"),
        "by_day.value.sku": ("item", "code"),
        "event.Paid": ("Payed",),
        "event.Paid.at": ("when",),
    }
