"""Rows pass from step to step as they are, whatever their types and names."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import UnsupportedSchema
from headgate.sql.types import quote
from headgate.statements.codec import codec_of, nullable
from headgate.statements.runnable import Stage
from tests.integration.statements.plans import Plan

INNER = t.StructType(
    [
        t.StructField("a b", t.IntegerType(), False),
        t.StructField("A B", t.StringType()),
        t.StructField("c.`d`", t.ArrayType(t.TimestampNTZType(), False)),
    ]
)
COLUMNS = t.StructType(
    [
        t.StructField("yes/no", t.BooleanType()),
        t.StructField("1", t.ByteType()),
        t.StructField("short", t.ShortType()),
        t.StructField("int", t.IntegerType(), False),
        t.StructField("größe", t.LongType()),
        t.StructField("float", t.FloatType()),
        t.StructField("double", t.DoubleType()),
        t.StructField("", t.StringType()),
        t.StructField("`bytes`", t.BinaryType()),
        t.StructField("the.day", t.DateType()),
        t.StructField("moment", t.TimestampType()),
        t.StructField("$time", t.TimestampNTZType()),
        t.StructField("small", t.DecimalType(5, 2)),
        t.StructField("large", t.DecimalType(38, 10)),
        t.StructField("array", t.ArrayType(INNER)),
        t.StructField("map", t.MapType(t.StringType(), t.DecimalType(20, 3))),
        t.StructField("maps", t.MapType(t.StringType(), INNER, False)),
        t.StructField("row", t.StructType([t.StructField("ünter", INNER), t.StructField("e", INNER, False)])),
        t.StructField("nothing", t.NullType()),
    ]
)
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123457, tzinfo=UTC)
LOCAL = datetime(1969, 12, 31, 23, 59, 59, 999999)
FULL: tuple[Any, ...] = (
    True,
    -128,
    32767,
    -(2**31),
    2**63 - 1,
    1.5,
    -0.1,
    "naïve 🦉\x00",
    b"\x00\xff",
    date(1582, 10, 4),
    MOMENT,
    LOCAL,
    Decimal("-999.99"),
    Decimal("1234567890123456789012345678.0123456789"),
    [(1, "x", [LOCAL]), None, (2, None, None)],
    {"": Decimal("0.001"), "k": None},
    {"m": (3, "y", [])},
    ((4, "z", [datetime(1, 1, 1), LOCAL]), (5, None, None)),
    None,
)
EMPTY = tuple(0 if field.name == "int" else None for field in COLUMNS.fields)


def stage(columns: t.StructType, changelog: str = "append", key: tuple[str, ...] = ()) -> Stage:
    made = Plan(columns, [], lambda: None, changelog="upsert" if changelog == "upsert" else "append")  # type: ignore[arg-type,return-value]
    return Stage("$stage1", made, key)


def test_every_type_comes_back_as_it_was(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    session.conf.set("spark.sql.caseSensitive", "true")
    codec = codec_of(stage(COLUMNS))
    before = session.createDataFrame([FULL, EMPTY], COLUMNS)
    encoded = before.select(codec.encoded(before.columns).alias("value"))
    rows = encoded.select(codec.decoded(f.col("value")).alias("row"))
    after = rows.select(*(codec.column("row", name) for name in COLUMNS.names))
    assert [field.dataType for field in after.schema.fields] == [nullable(k.dataType) for k in COLUMNS.fields]
    assert after.collect() == before.collect()


def test_extremes_of_times_and_numbers(spark: SparkSession) -> None:
    """What Python's own times cannot say."""
    session = spark.newSession()
    texts = {
        "a": "timestamp_micros(9223372036854775807)",
        "b": "timestamp_micros(-62135596800000001)",
        "c": "timestamp_ntz'9999-12-31 23:59:59.999999'",
        "d": "date'0001-01-01'",
        "e": "double('NaN')",
        "f": "float('-Infinity')",
        "g": "-0.0D",
    }
    before = session.range(1).select(*(f.expr(text).alias(name) for name, text in texts.items()))
    codec = codec_of(stage(before.schema))
    rows = before.select(codec.encoded(before.columns).alias("value"))
    after = rows.select(codec.decoded(f.col("value")).alias("row"))
    after = after.select(*(codec.column("row", name) for name in texts))
    said = [f.col(quote(name)).cast("string") for name in texts]
    whole = [f.unix_micros("a"), f.unix_micros("b")]
    assert after.select(*said, *whole).collect() == before.select(*said, *whole).collect()


def test_rowtime_and_op_go_along(spark: SparkSession) -> None:
    columns = t.StructType([t.StructField("id", t.IntegerType())])
    codec = codec_of(stage(columns, "upsert"))
    frame = spark.sql("SELECT 1 AS id, timestamp_micros(-1) AS `$rowtime`, 'd' AS `$op`")
    row = frame.select(codec.encoded(frame.columns).alias("v")).select(codec.decoded(f.col("v")).alias("row"))
    found = row.select(codec.column("row", "$op"), f.unix_micros(codec.rowtime("row")).alias("t")).collect()
    assert [tuple(one) for one in found] == [("d", -1)]


def test_what_cannot_pass_is_refused_with_its_name() -> None:
    columns = t.StructType([t.StructField("my map", t.MapType(t.IntegerType(), t.StringType()))])
    with pytest.raises(UnsupportedSchema, match="'my map' is of type map<int,string>"):
        codec_of(stage(columns))


def test_the_mark_tells_plans_apart() -> None:
    one = t.StructType([t.StructField("a", t.IntegerType())])
    other = t.StructType([t.StructField("a", t.LongType())])
    assert codec_of(stage(one)).mark == codec_of(stage(one)).mark
    assert codec_of(stage(one)).mark != codec_of(stage(other)).mark
    assert codec_of(stage(one)).mark != codec_of(stage(one, "upsert")).mark
