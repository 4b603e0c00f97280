"""Spark's values in JSON's types."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import Row
from pyspark.sql import types as t

from headgate.adhoc.values import value_of

MOMENT = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "plain"),
    [
        # As Spark's client gives it: on the clock of the process.
        (t.TimestampType(), MOMENT.astimezone().replace(tzinfo=None), "2026-01-31 13:00:00+01:00"),
        (t.TimestampNTZType(), datetime(2026, 1, 31, 12), "2026-01-31 12:00:00"),
        (t.DateType(), date(2026, 1, 31), "2026-01-31"),
        (t.DecimalType(9, 2), Decimal("0.10"), "0.10"),
        (t.BinaryType(), bytearray(b"\xff\x00"), "base64:/wA="),
        (t.DoubleType(), float("nan"), "nan"),
        (t.LongType(), 2**60, 2**60),
        (t.ArrayType(t.DecimalType(9, 1)), [Decimal("1.5"), None], ["1.5", None]),
        (t.MapType(t.LongType(), t.StringType()), {1: "a", 2: None}, {"1": "a", "2": None}),
        (
            t.StructType([t.StructField("x", t.DateType()), t.StructField("y", t.LongType())]),
            Row(x=date(2026, 1, 1), y=None),
            {"x": "2026-01-01", "y": None},
        ),
    ],
)
def test_values(kind: t.DataType, value: Any, plain: Any) -> None:
    assert value_of(kind, ZoneInfo("Europe/Vienna"))(value) == plain
