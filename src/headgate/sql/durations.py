"""Lengths of time: INTERVALs of queries, and durations as options write them (`1 hour`, `1 d`, `90 s`)."""

import re
from dataclasses import dataclass

from sqlglot import exp

from headgate.errors import InvalidRequest

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
_MS = {
    "MILLISECOND": 1,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "WEEK": 7 * DAY,
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_ORDER = ("DAY", "HOUR", "MINUTE", "SECOND")
_WORDS = {
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY),
}
_DURATION = re.compile(r"^\s*(\d+)\s*([A-Za-z]*)\s*$")
_NUMBER = re.compile(r"^\s*([+-]?)\s*(\d+)(?:\.(\d{1,6}))?\s*$")


@dataclass(frozen=True)
class Span:
    """An INTERVAL: so many months, or so many microseconds; never both."""

    months: int = 0
    micros: int = 0


def parse_duration_ms(text: str) -> int:
    """`1 hour`, `1 d`, `1 DAYS`, `500 ms`; a bare number is milliseconds, and `0` is for ever."""
    found = _DURATION.match(text)
    unit = 1 if found and not found[2] else _WORDS.get(found[2].lower()) if found else None
    if found is None or unit is None:
        raise InvalidRequest(
            f"'{text}' is not a duration.", "Write it like '1 hour', '90 s', '1 d' or '500 ms'."
        )
    return int(found[1]) * unit


def format_ms(ms: int) -> str:
    """The shortest way to say it: `5 seconds`, `1 hour`."""
    for name, size in (("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", SECOND)):
        if ms and ms % size == 0:
            return f"{ms // size} {name}{'s' if ms != size else ''}"
    return f"{ms} ms"


def span_of(interval: exp.Interval) -> Span:
    """What an INTERVAL says; InvalidRequest for what is none."""
    value, unit = interval.this, interval.args.get("unit")
    if value is None or not isinstance(value, exp.Literal):
        raise InvalidRequest("INTERVAL takes a number in quotes.", "Write INTERVAL '5' SECOND.")
    text = str(value.this)
    if isinstance(unit, exp.IntervalSpan):
        return _between(text, unit.this.name.upper(), unit.expression.name.upper())
    name = unit.name.upper() if unit is not None else ""
    single = name.removesuffix("S") if name.removesuffix("S") in (*_MS, *_MONTHS) else name
    number = _NUMBER.match(text)
    if number is None or single not in (*_MS, *_MONTHS):
        raise InvalidRequest(
            f"INTERVAL '{text}' {name} is not known.",
            "Units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND and MILLISECOND.",
        )
    sign = -1 if number[1] == "-" else 1
    whole, fraction = int(number[2]), (number[3] or "").ljust(6, "0")
    if single in _MONTHS:
        if int(fraction or 0):
            raise InvalidRequest(f"INTERVAL '{text}' {name}: months are whole.")
        return Span(months=sign * whole * _MONTHS[single])
    micros = whole * 1000 * _MS[single] + int(fraction) * _MS[single] // 1000
    return Span(micros=sign * micros)


def _between(text: str, first: str, last: str) -> Span:
    """`INTERVAL '1 02:03:04.5' DAY TO SECOND`, `INTERVAL '1-6' YEAR TO MONTH`."""
    wrong = InvalidRequest(
        f"INTERVAL '{text}' {first} TO {last} is not known.", "Write INTERVAL '90' MINUTE."
    )
    if (first, last) == ("YEAR", "MONTH"):
        found = re.match(r"^\s*([+-]?)(\d+)-(\d+)\s*$", text)
        if found is None:
            raise wrong
        months = int(found[2]) * 12 + int(found[3])
        return Span(months=-months if found[1] == "-" else months)
    if first not in _ORDER or last not in _ORDER or _ORDER.index(first) >= _ORDER.index(last):
        raise wrong
    units = _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]
    sign = -1 if text.strip().startswith("-") else 1
    parts = re.split(r"[\s:]+", text.strip().lstrip("+-"))
    if len(parts) != len(units):
        raise wrong
    micros = 0
    for part, unit in zip(parts, units, strict=True):
        found = _NUMBER.match(part)
        if found is None or (found[3] and unit != "SECOND"):
            raise wrong
        micros += int(found[2]) * _MS[unit] * 1000 + int((found[3] or "").ljust(6, "0"))
    return Span(micros=sign * micros)


def interval_ms(interval: exp.Interval) -> int | None:
    """Milliseconds of a fixed length; None for months and years, which have none."""
    span = span_of(interval)
    return None if span.months else span.micros // 1000
