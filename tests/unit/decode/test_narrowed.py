"""Which fields are wider than columns that stay as they are, at any depth."""

import pytest

from headgate.decode.json_plain import parse_columns
from headgate.decode.project import is_castable, is_narrowed


@pytest.mark.parametrize(
    ("found", "columns", "expected"),
    [
        ("a bigint", "a int", True),
        ("a double", "a float", True),
        ("a decimal(12,2)", "a decimal(9,2)", True),
        ("s struct<x: bigint>", "s struct<x: int>", True),
        ("l array<struct<x: bigint>>", "l array<struct<x: int>>", True),
        ("m map<string, double>", "m map<string, float>", True),
        ("a int", "a int", False),
        ("a int", "a bigint", False),
        ("a bigint", "b int", False),
        ("l array<struct<x: int, y: bigint>>", "l array<struct<x: int>>", False),
        ("a decimal(12,4)", "a decimal(9,2)", False),
    ],
)
def test_a_field_that_is_wider_than_its_column_is_narrowed(found: str, columns: str, expected: bool) -> None:
    assert is_narrowed(parse_columns(found), parse_columns(columns), {}) is expected


def test_a_renamed_field_is_narrowed_by_its_column() -> None:
    found, columns = parse_columns("l array<struct<y: bigint>>"), parse_columns("l array<struct<x: int>>")
    assert is_narrowed(found, columns, {"l[].y": "x"})
    assert not is_narrowed(found, columns, {})


@pytest.mark.parametrize(
    ("found", "columns", "expected"),
    [
        ("a bigint", "a int", True),
        ("a int", "a bigint", True),
        ("a string, b int", "b int", True),
        ("s struct<x: string>", "s struct<x: int>", False),
        ("a int", "a double", False),
        ("a array<int>", "a int", False),
    ],
)
def test_what_is_neither_wider_nor_narrower_is_not_cast(found: str, columns: str, expected: bool) -> None:
    assert is_castable(parse_columns(found), parse_columns(columns)) is expected
