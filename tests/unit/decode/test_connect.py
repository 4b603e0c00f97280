"""Which columns Connect's and Debezium's logical types become."""

import pytest
from pyspark.sql import types as t

from headgate.decode.connect import conversion, decimal_type, is_envelope

ROW = t.StructType([t.StructField("id", t.IntegerType())])


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"scale": "2"}, t.DecimalType(38, 2)),
        ({"scale": "2", "connect.decimal.precision": "10"}, t.DecimalType(10, 2)),
        ({"scale": "2", "connect.decimal.precision": "64"}, t.DecimalType(38, 2)),
        ({"scale": "0", "connect.decimal.precision": "1"}, t.DecimalType(1, 0)),
        ({"scale": "11", "connect.decimal.precision": "10"}, None),
        ({"scale": "39"}, None),
        ({"scale": "-1"}, None),
        ({"scale": "many"}, None),
        ({}, None),
    ],
)
def test_decimals(parameters: dict[str, str], expected: t.DecimalType | None) -> None:
    assert decimal_type(parameters) == expected


@pytest.mark.parametrize(
    ("name", "plain", "expected"),
    [
        ("io.debezium.time.Date", t.IntegerType(), t.DateType()),
        ("io.debezium.time.Date", t.LongType(), t.DateType()),
        ("io.debezium.time.Date", t.StringType(), None),
        ("io.debezium.time.Timestamp", t.LongType(), t.TimestampNTZType()),
        ("org.apache.kafka.connect.data.Timestamp", t.LongType(), t.TimestampType()),
        ("org.apache.kafka.connect.data.Decimal", t.BinaryType(), t.DecimalType(38, 4)),
        ("org.apache.kafka.connect.data.Decimal", t.StringType(), None),
        ("io.debezium.time.ZonedTimestamp", t.StringType(), t.TimestampType()),
        (
            "io.debezium.data.VariableScaleDecimal",
            struct(scale=t.LongType(), value=t.BinaryType()),
            t.DecimalType(38, 18),
        ),
        ("io.debezium.data.VariableScaleDecimal", struct(scale=t.LongType()), None),
        ("io.debezium.data.Json", t.StringType(), None),
        ("io.debezium.time.NanoTimestamp", t.LongType(), None),
    ],
)
def test_types(name: str, plain: t.DataType, expected: t.DataType | None) -> None:
    found = conversion(name, plain, {"scale": "4"})
    assert (None if found is None else found.type) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (struct(before=ROW, after=ROW, source=ROW, op=t.StringType(), ts_ms=t.LongType()), True),
        (struct(op=t.StringType(), source=ROW, after=ROW, before=ROW), True),
        (struct(before=ROW, after=ROW, op=t.StringType()), False),
        (struct(before=t.StringType(), after=ROW, source=ROW, op=t.StringType()), False),
        (struct(before=ROW, after=ROW, source=ROW, op=t.IntegerType()), False),
        (ROW, False),
    ],
)
def test_envelopes(kind: t.StructType, expected: bool) -> None:
    assert is_envelope(kind) is expected
