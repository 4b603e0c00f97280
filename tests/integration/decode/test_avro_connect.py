"""Logical types of Connect and Debezium as expressions: the same numbers as Python makes of them."""

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

import pyarrow
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import conversion, whole_number, zoned_timestamp

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
TIMES = "io.debezium.time."
CONNECT = "org.apache.kafka.connect.data."
# Python's decimals round to 28 digits otherwise.
EXACT = Context(prec=200)


def converted(
    spark: SparkSession, name: str, plain: t.DataType, kind: Any, values: list[Any], **parameters: str
) -> list[tuple[bool, Any]]:
    """Whether each value is exact, and what it becomes."""
    found = conversion(name, plain, parameters)
    assert found is not None
    frame = spark.createDataFrame(pyarrow.table({"v": pyarrow.array(values, kind)})).coalesce(1)
    frame = frame.select(found.is_exact(f.col("v")).alias("exact"), found.read(f.col("v")).alias("read"))
    assert frame.schema["read"].dataType == found.type
    return [(row["exact"], row["read"]) for row in frame.toArrow().to_pylist()]


def test_days(spark: SparkSession) -> None:
    values = [0, -1, -719162, 2932896, None]
    expected = [date(1970, 1, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31), None]
    for name in (f"{TIMES}Date", f"{CONNECT}Date"):
        assert converted(spark, name, t.IntegerType(), pyarrow.int32(), values) == [
            (True, day) for day in expected
        ]
    assert (
        converted(spark, f"{TIMES}Date", t.LongType(), pyarrow.int64(), [2**31, LONG_MAX])
        == [(False, None)] * 2
    )


def test_times(spark: SparkSession) -> None:
    # A time of MySQL's may be negative, and longer than a day.
    millis = [0, 86_399_999, -3_020_399_000, None]
    expected = [(True, None if one is None else one * 1000) for one in millis]
    assert converted(spark, f"{TIMES}Time", t.LongType(), pyarrow.int64(), millis) == expected
    assert converted(spark, f"{CONNECT}Time", t.LongType(), pyarrow.int64(), [LONG_MAX]) == [(False, None)]
    micros = [86_399_999_999, -3_020_399_000_000]
    found = converted(spark, f"{TIMES}MicroTime", t.LongType(), pyarrow.int64(), micros)
    assert found == [(True, one) for one in micros]


def test_timestamps(spark: SparkSession) -> None:
    days = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_000), datetime(9999, 12, 31, 23, 59)]
    micros = [(day - datetime(1970, 1, 1)) // timedelta(microseconds=1) for day in days]
    millis = [one // 1000 for one in micros]
    long, kind = t.LongType(), pyarrow.int64()
    local = [(True, day) for day in [*days, None]]
    assert converted(spark, f"{TIMES}Timestamp", long, kind, [*millis, None]) == local
    assert converted(spark, f"{TIMES}MicroTimestamp", long, kind, [*micros, None]) == local
    zoned = [(True, day.replace(tzinfo=UTC)) for day in days]
    assert converted(spark, f"{CONNECT}Timestamp", long, kind, millis) == zoned
    for name in (f"{TIMES}Timestamp", f"{CONNECT}Timestamp"):
        assert converted(spark, name, long, kind, [LONG_MAX, LONG_MIN]) == [(False, None)] * 2


def test_local_timestamps_do_not_know_the_session_s_zone(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = converted(spark, f"{TIMES}Timestamp", t.LongType(), pyarrow.int64(), [0])
    finally:
        assert before is not None
        spark.conf.set("spark.sql.session.timeZone", before)
    assert found == [(True, datetime(1970, 1, 1))]


def test_zoned_timestamps(spark: SparkSession) -> None:
    good = {
        "1970-01-01T00:00:00Z": datetime(1970, 1, 1, tzinfo=UTC),
        "0001-01-02T00:00:00Z": datetime(1, 1, 2, tzinfo=UTC),
        "9999-12-31T23:59:59.999999Z": datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        "2024-02-29T10:15:30.5+02:00": datetime(2024, 2, 29, 8, 15, 30, 500_000, UTC),
        "2024-02-29T10:15:30.123456000-05:30": datetime(2024, 2, 29, 15, 45, 30, 123_456, UTC),
        "2024-02-29T10:15:30+00:00:30": datetime(2024, 2, 29, 10, 15, tzinfo=UTC),
    }
    bad = [
        "2024-02-29T10:15:30.1234567Z",
        "2024-02-29T10:15:30.000000001Z",
        "2023-02-29T10:15:30Z",
        "2024-02-29T24:00:00Z",
        "2024-02-29T10:15:30",
        "2024-02-29 10:15:30Z",
        "2024-02-29T10:15:30Z ",
        "2024-02-29T10:15:30+25:00",
        "2024-02-29",
        "+292278994-08-16T23:00:00Z",
        "infinity",
        "",
    ]
    found = converted(spark, f"{TIMES}ZonedTimestamp", t.StringType(), pyarrow.string(), [*good, None, *bad])
    assert found == [*((True, one) for one in good.values()), (True, None), *((False, None) for _ in bad)]
    assert spark.range(1).select(zoned_timestamp(f.lit("+12345-01-01T00:00:00Z")).isNotNull()).head() == (
        True,
    )


def numbers() -> list[int]:
    chance = random.Random(4)
    edges = [
        0,
        1,
        -1,
        127,
        128,
        -128,
        -129,
        2**31,
        2**32,
        2**63,
        2**64,
        -(2**64),
        2**96,
        10**38 - 1,
        1 - 10**38,
    ]
    limits = [10 ** chance.randrange(1, 39) for _ in range(100)]
    return edges + [chance.randrange(-limit + 1, limit) for limit in limits]


def as_bytes(number: int, more: int = 0) -> bytes:
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1 + more, "big", signed=True)


def test_whole_numbers_of_bytes(spark: SparkSession) -> None:
    good = [as_bytes(number, more) for number in numbers() for more in (0, 1, 20)]
    bad = [
        b"",
        as_bytes(10**38),
        as_bytes(-(10**38)),
        as_bytes(2**127),
        as_bytes(2**200),
        as_bytes(-(2**300)),
    ]
    frame = spark.createDataFrame(pyarrow.table({"v": pyarrow.array([*good, *bad, None], pyarrow.binary())}))
    found = frame.coalesce(1).select(whole_number(f.col("v")).alias("n")).toArrow().to_pylist()
    expected = [number for number in numbers() for _ in range(3)]
    assert [row["n"] for row in found] == [*expected, *(None for _ in bad), None]


def test_decimals(spark: SparkSession) -> None:
    kind, binary = t.BinaryType(), pyarrow.binary()
    values = [as_bytes(12345), as_bytes(-1), as_bytes(10**10), b"", None]
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    found = converted(spark, f"{CONNECT}Decimal", kind, binary, values, **parameters)
    assert found == [
        (True, Decimal("123.45")),
        (True, Decimal("-0.01")),
        (False, None),
        (False, None),
        (True, None),
    ]
    whole = converted(spark, f"{CONNECT}Decimal", kind, binary, [as_bytes(n) for n in numbers()], scale="38")
    assert whole == [(True, Decimal(n).scaleb(-38, EXACT)) for n in numbers()]


def test_variable_scale_decimals(spark: SparkSession) -> None:
    chance = random.Random(5)
    cases = [(number, chance.randrange(-30, 60)) for number in numbers() for _ in range(4)]
    cases += [(number * 10**20, 38) for number in (1, -7, 10**17)]
    cases += [
        (0, 2**31 - 1),
        (0, -(2**31)),
        (1, 2**31 - 1),
        (1, -(2**31)),
        (1, 18),
        (1, 19),
        (10, 19),
        (1, -19),
        (1, -20),
    ]
    plain = t.StructType([t.StructField("scale", t.IntegerType()), t.StructField("value", t.BinaryType())])
    kind = pyarrow.struct({"scale": pyarrow.int32(), "value": pyarrow.binary()})
    values = [{"scale": scale, "value": as_bytes(number)} for number, scale in cases]
    found = converted(spark, "io.debezium.data.VariableScaleDecimal", plain, kind, [*values, None])
    assert found == [*(expected(number, scale) for number, scale in cases), (True, None)]
    assert sum(exact for exact, _ in found) > 50


def expected(number: int, scale: int) -> tuple[bool, Decimal | None]:
    if number == 0:
        return True, Decimal(0)
    if abs(scale) > 100:
        return False, None
    numerator, shift = number, 18 - scale
    if shift < 0 and numerator % 10**-shift:
        return False, None
    unscaled = numerator * 10**shift if shift >= 0 else numerator // 10**-shift
    return (True, Decimal(unscaled).scaleb(-18, EXACT)) if abs(unscaled) < 10**38 else (False, None)
