"""What Iceberg knows of a file's columns, as Delta's statistics: by these, readers skip files.

A bound that is too narrow makes a reader lose rows without a word. So each is exact or wider, and left out
where it cannot be said in Delta's way.
"""

import json
import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from headgate.delta.schema import Leaf

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Years that every reader can write and read in four digits.
_YEARS = range(1, 9999)
_DIGITS = Context(prec=40)
# Iceberg cuts texts there; a shorter one is whole.
_CUT = 16


def file_stats(file: Mapping[str, Any], leaves: Mapping[int, Leaf], has_vector: bool) -> str:
    """The text of `stats`, from a data file as Iceberg writes it in JSON."""
    records = file["record-count"]
    lower, upper = _by_id(file.get("lower-bounds")), _by_id(file.get("upper-bounds"))
    nulls, nans = _by_id(file.get("null-value-counts")), _by_id(file.get("nan-value-counts"))
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    empty: dict[str, Any] = {}
    tight = not has_vector
    for field_id, leaf in leaves.items():
        if field_id in nulls:
            _put(empty, leaf.path, nulls[field_id])
        kind = leaf.type.replace(" ", "")
        if kind in ("float", "double") and field_id not in nans:
            continue  # NaN is greater than all, and no bound tells of it
        if field_id in lower:
            value, exact = _bound(bytes.fromhex(lower[field_id]), kind, greatest=False)
            tight &= exact
            if value is not None:
                _put(least, leaf.path, value)
        if field_id in upper and not nans.get(field_id):
            value, exact = _bound(bytes.fromhex(upper[field_id]), kind, greatest=True)
            tight &= exact
            if value is not None:
                _put(greatest, leaf.path, value)
    found = {
        "numRecords": records,
        "minValues": least,
        "maxValues": greatest,
        "nullCount": empty,
        "tightBounds": tight,
    }
    return _text(found)


def _by_id(said: Mapping[str, Any] | None) -> dict[int, Any]:
    return {} if said is None else dict(zip(said["keys"], said["values"], strict=True))


def _put(into: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        into = into.setdefault(step, {})
    into[path[-1]] = value


def _text(value: Any) -> str:
    """As JSON, decimals with all of their digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(inner)}" for key, inner in value.items()) + "}"
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, allow_nan=False)


def _bound(raw: bytes, kind: str, greatest: bool) -> tuple[Any, bool]:
    """The bound as JSON says it, None when it cannot, and whether it is a value of the file."""
    match kind:
        case "int" | "long" | "time":
            return int.from_bytes(raw, "little", signed=True), True
        case "float" | "double":
            value = struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0]
            return (value, True) if math.isfinite(value) else (None, True)
        case "date":
            day = date(1970, 1, 1).toordinal() + int.from_bytes(raw, "little", signed=True)
            known = date(1, 1, 1).toordinal() <= day < date(9999, 1, 1).toordinal()
            return (date.fromordinal(day).isoformat(), True) if known else (None, True)
        case "timestamp" | "timestamptz":
            return _moment(int.from_bytes(raw, "little", signed=True), kind == "timestamptz", greatest)
        case "string":
            text = raw.decode("utf-8", errors="replace")
            return (text, len(text) < _CUT) if text.encode("utf-8") == raw else (None, True)
    if kind.startswith("decimal("):
        scale = int(kind.removesuffix(")").partition(",")[2])
        value = Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-scale, _DIGITS)
        return value, True
    return None, True


def _moment(micros: int, zoned: bool, greatest: bool) -> tuple[str | None, bool]:
    """Milliseconds are what every reader takes: the greatest is rounded up, the least down."""
    millis, rest = divmod(micros, 1000)
    if rest and greatest:
        millis += 1
    try:
        moment = _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return None, True
    if moment.year not in _YEARS:
        return None, True
    text = f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}{'Z' if zoned else ''}"
    return text, not rest
