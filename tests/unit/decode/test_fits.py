"""Which records a table can hold as they are."""

import pytest
from pyspark.sql import types as t

from headgate.decode.project import case_conflict, fits, widens


def struct(**fields: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("found", "wanted", "expected"),
    [
        (t.IntegerType(), t.LongType(), True),
        (t.LongType(), t.IntegerType(), False),
        (t.FloatType(), t.DoubleType(), True),
        (t.DoubleType(), t.FloatType(), False),
        (t.DecimalType(10, 2), t.DecimalType(12, 2), True),
        (t.DecimalType(10, 2), t.DecimalType(12, 4), False),
        (t.DecimalType(12, 2), t.DecimalType(10, 2), False),
        (t.IntegerType(), t.DoubleType(), False),
        (t.LongType(), t.DoubleType(), False),
        (t.IntegerType(), t.StringType(), False),
    ],
)
def test_widening_is_exact_or_not_at_all(found: t.DataType, wanted: t.DataType, expected: bool) -> None:
    assert widens(found, wanted) is expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (struct(a=t.IntegerType()), True),
        (struct(), True),
        (struct(b=t.IntegerType()), False),
        (struct(a=t.StringType()), False),
        (struct(a=t.IntegerType(), n=struct(x=t.LongType())), True),
        (struct(n=struct(y=t.LongType())), False),
        (struct(l=t.ArrayType(struct(z=t.IntegerType()))), True),
        (struct(l=t.ArrayType(struct(other=t.IntegerType()))), False),
        (struct(m=t.MapType(t.StringType(), t.FloatType())), True),
        (struct(m=t.MapType(t.StringType(), t.LongType())), False),
    ],
)
def test_fits(found: t.StructType, expected: bool) -> None:
    table = struct(
        a=t.LongType(),
        n=struct(x=t.LongType()),
        l=t.ArrayType(struct(z=t.LongType())),
        m=t.MapType(t.StringType(), t.DoubleType()),
    )
    assert fits(found, table) is expected


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (struct(a=t.IntegerType()), None),
        (struct(z=t.IntegerType()), None),
        (struct(A=t.IntegerType()), "A"),
        (struct(n=struct(X=t.IntegerType())), "n.X"),
        (struct(l=t.ArrayType(struct(Z=t.IntegerType()))), "l.Z"),
    ],
)
def test_names_that_differ_only_by_case(found: t.StructType, path: str | None) -> None:
    table = struct(a=t.IntegerType(), n=struct(x=t.IntegerType()), l=t.ArrayType(struct(z=t.IntegerType())))
    assert case_conflict(found, table) == path
