"""Columns of Arrow as texts: nothing rounded, times in the export's zone with their offset."""

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

# Arrow knows changes of clocks up to here; Python's rules go on.
_UNKNOWN_FROM = datetime(2037, 1, 1, tzinfo=UTC)
# With more digits behind the point, Arrow writes small numbers with an exponent.
_PLAIN_SCALE = 6


def texts_of(array: pa.Array, zone: ZoneInfo) -> pa.Array:
    """The values as texts; NULL stays NULL."""
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_timestamp(kind):
        return _times(array, zone)
    if pa.types.is_decimal(kind) and kind.scale > _PLAIN_SCALE:
        return _each(array, lambda value: format(value, "f"))
    if pa.types.is_floating(kind):
        return _each(array, repr)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _each(array, lambda value: b64encode(value).decode())
    if pa.types.is_list(kind):
        return _each(array, lambda value: json_text(value, zone))
    return array.cast(pa.string())


def _times(array: pa.Array, zone: ZoneInfo) -> pa.Array:
    """ISO 8601. Of what has a zone, the offset is what the clock of the zone shows beyond UTC."""
    utc = array.cast(pa.timestamp("us", array.type.tz))
    if array.type.tz is None:
        return _iso(utc)
    newest = pc.max(utc).as_py()
    if newest is not None and newest >= _UNKNOWN_FROM:
        return _each(utc, lambda value: _moment(value, zone))
    local = pc.local_timestamp(utc.cast(pa.timestamp("us", str(zone))))
    beyond = pc.subtract(local.cast(pa.int64()), utc.cast(pa.int64())).dictionary_encode()
    offsets = pa.array([_offset(number) for number in beyond.dictionary.to_pylist()], pa.string())
    return pc.binary_join_element_wise(_iso(local), offsets.take(beyond.indices), "")


def _iso(local: pa.Array) -> pa.Array:
    return pc.binary_replace_slice(local.cast(pa.string()), start=10, stop=11, replacement="T")


def _offset(microseconds: int) -> str:
    """`+02:00`; zones of long ago have seconds, too."""
    minutes, seconds = divmod(abs(microseconds) // 1_000_000, 60)
    sign = "-" if microseconds < 0 else "+"
    text = f"{sign}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{seconds:02}" if seconds else text


def _moment(value: datetime, zone: ZoneInfo) -> str:
    return value.astimezone(zone).isoformat(timespec="microseconds")


def _each(array: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    return pa.array([None if value is None else write(value) for value in array.to_pylist()], pa.string())


def json_text(value: Any, zone: ZoneInfo) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=lambda one: _plain(one, zone))


def _plain(value: Any, zone: ZoneInfo) -> str:
    """What JSON has no type for, as a text: a decimal keeps all its digits."""
    match value:
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(timespec="microseconds") if value.tzinfo is None else _moment(value, zone)
        case date():
            return value.isoformat()
        case bytes():
            return b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no place in JSON")
