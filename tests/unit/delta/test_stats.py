"""Bounds of files: exact, or wider, or left out; never narrower."""

import json
import struct
from decimal import Decimal
from typing import Any

import pytest

from headgate.delta.schema import Leaf
from headgate.delta.stats import file_stats


def stats(
    kind: str, low: bytes, high: bytes, *, nulls: int = 0, nans: int | None = None, vector: bool = False
) -> dict[str, Any]:
    def by_id(value: Any) -> dict[str, Any]:
        return {"keys": [1], "values": [value]}

    file: dict[str, Any] = {
        "record-count": 9,
        "lower-bounds": by_id(low.hex()),
        "upper-bounds": by_id(high.hex()),
        "null-value-counts": by_id(nulls),
    }
    if nans is not None:
        file["nan-value-counts"] = by_id(nans)
    text = file_stats(file, {1: Leaf(("s", "c"), kind)}, vector)
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


def number(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little", signed=True)


def test_numbers() -> None:
    found = stats("long", number(-5), number(2**62), nulls=3)
    assert found == {
        "numRecords": 9,
        "minValues": {"s": {"c": -5}},
        "maxValues": {"s": {"c": 2**62}},
        "nullCount": {"s": {"c": 3}},
        "tightBounds": True,
    }
    # A bound from the time when the column was narrower.
    assert stats("long", number(-5, 4), number(7, 4))["minValues"] == {"s": {"c": -5}}


def test_a_vector_makes_bounds_wide() -> None:
    assert stats("int", number(1, 4), number(2, 4), vector=True)["tightBounds"] is False


def test_decimals_keep_all_digits() -> None:
    low, high = -(10**37) - 1, 10**37 + 3
    found = stats(
        "decimal(38, 9)", low.to_bytes(16, "big", signed=True), high.to_bytes(16, "big", signed=True)
    )
    assert found["minValues"]["s"]["c"] == Decimal(f"-1{'0' * 28}.{'0' * 8}1")
    assert found["maxValues"]["s"]["c"] == Decimal(f"1{'0' * 28}.{'0' * 8}3")


def test_texts_that_were_cut_are_wide() -> None:
    assert stats("string", b"a", b"b")["tightBounds"] is True
    found = stats("string", b"a" * 16, "ü".encode())
    assert found["minValues"] == {"s": {"c": "a" * 16}}
    assert found["tightBounds"] is False


def test_not_a_number_is_greater_than_all() -> None:
    low, high = struct.pack("<d", 1.0), struct.pack("<d", 2.0)
    assert stats("double", low, high, nans=0)["maxValues"] == {"s": {"c": Decimal("2.0")}}
    assert stats("double", low, high, nans=1)["maxValues"] == {}
    assert stats("double", low, high, nans=1)["minValues"] == {"s": {"c": Decimal("1.0")}}
    unknown = stats("double", low, high)
    assert (unknown["minValues"], unknown["maxValues"]) == ({}, {})
    endless = stats("float", struct.pack("<f", float("-inf")), struct.pack("<f", float("inf")), nans=0)
    assert (endless["minValues"], endless["maxValues"]) == ({}, {})


@pytest.mark.parametrize(("kind", "zone"), [("timestamptz", "Z"), ("timestamp", "")])
def test_moments_are_rounded_away(kind: str, zone: str) -> None:
    moment = 1_767_225_600_123_456  # 2026-01-01T00:00:00.123456
    found = stats(kind, number(moment), number(moment))
    assert found["minValues"]["s"]["c"] == f"2026-01-01T00:00:00.123{zone}"
    assert found["maxValues"]["s"]["c"] == f"2026-01-01T00:00:00.124{zone}"
    assert found["tightBounds"] is False
    before = stats(kind, number(-1_500), number(-1_500))
    assert before["minValues"]["s"]["c"] == f"1969-12-31T23:59:59.998{zone}"
    assert before["maxValues"]["s"]["c"] == f"1969-12-31T23:59:59.999{zone}"


def test_what_cannot_be_written_is_left_out() -> None:
    for kind, low in (
        ("timestamptz", number(2**62)),
        ("date", number(10**7, 4)),
        ("date", number(-(10**7), 4)),
    ):
        found = stats(kind, low, low)
        assert (found["minValues"], found["maxValues"]) == ({}, {})
    for kind in ("binary", "boolean", "uuid", "fixed[4]"):
        assert stats(kind, b"\x00", b"\x01")["minValues"] == {}
    assert stats("string", b"\xff", b"\xff")["minValues"] == {}
    assert stats("date", number(20_454, 4), number(20_454, 4))["minValues"] == {"s": {"c": "2026-01-01"}}
