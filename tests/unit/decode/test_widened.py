"""Which columns become wider for a schema, at any depth."""

from pyspark.sql import types as t

from headgate.decode.json_plain import parse_columns
from headgate.decode.project import widened


def parsed(text: str) -> t.StructType:
    return parse_columns(text)


def test_wider_columns_are_named_with_both_types() -> None:
    columns = parsed(
        "a int, b float, c decimal(9,2), s struct<x: int>, l array<int>, m map<string,float>, d int"
    )
    found = parsed(
        "a bigint, b double, c decimal(12,2), s struct<x: bigint>, l array<bigint>, m map<string,double>, "
        "d int, new bigint"
    )
    assert list(widened(found, columns)) == [
        "a: int to bigint",
        "b: float to double",
        "c: decimal(9,2) to decimal(12,2)",
        "s.x: int to bigint",
        "l[]: int to bigint",
        "m{}: float to double",
    ]


def test_narrower_and_equal_fields_widen_nothing() -> None:
    columns = parsed("a bigint, b double, c decimal(12,2), s struct<x: bigint>")
    assert list(widened(parsed("a int, b float, c decimal(9,2), s struct<x: int>"), columns)) == []
    assert list(widened(columns, columns)) == []
