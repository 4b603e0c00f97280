"""Ranges that a condition implies: `date_trunc('day', t) = DATE '2026-01-05'` holds only within that day.

A reader of Iceberg skips files by ranges of columns, and by nothing else. So a range is put beside the
condition that implies it, joined by AND: the condition itself stays as it was written, and a range that is
too wide costs files, never an answer. See docs/adr/0022.
"""

import re
from calendar import monthrange
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import sqlglot
from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError

from headgate.sql.clauses import scan_clauses

# Spark's names of units, and the unit's length as Spark writes it.
_STEPS = {
    "YEAR": "INTERVAL '1' YEAR",
    "QUARTER": "INTERVAL '3' MONTH",
    "MONTH": "INTERVAL '1' MONTH",
    "WEEK": "INTERVAL '7' DAY",
    "DAY": "INTERVAL '1' DAY",
    "HOUR": "INTERVAL '1' HOUR",
    "MINUTE": "INTERVAL '1' MINUTE",
    "SECOND": "INTERVAL '1' SECOND",
}
_SHORT = {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY", "WEEK(MONDAY)": "WEEK"}
# What `trunc` knows: anything else gives NULL.
_DATE_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK")
# Units of whole days: what is cut to one of them is the same, cut to a day before or behind that.
_DAY_UNITS = (*_DATE_UNITS, "DAY")
_MICROSECOND = "INTERVAL '0.000001' SECOND"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?")
_FIXED = re.compile(r"(UTC|GMT|UT|Z|Etc/UTC)?([+-]\d{1,2}(:\d{2})?)?")
_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_INTERVALS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK")
_MONTHS = {"MONTH": 1, "YEAR": 12}
# Within so long of a bound, a change of the clock may matter to it.
_NEAR_HOURS = 96
_MOST_VALUES = 100


@dataclass(frozen=True)
class _Moment:
    """A constant: as SQL, and about when it is by the clock of the session's zone."""

    sql: str
    clock: datetime


@dataclass(frozen=True)
class _Truncated:
    """A column cut to a unit. `is_date`: the function makes a date of it first."""

    column: str
    unit: str
    is_date: bool


def add_ranges(text: str, zone: str) -> tuple[str, tuple[str, ...]]:
    """Spark SQL with the ranges that its conditions imply, and those ranges."""
    clock = _Clock.of(zone)
    if clock is None:
        return text, ()
    tokens = Dialect.get_or_raise("spark").tokenize(text)
    edits: list[tuple[int, str]] = []
    ranges = []
    for first, last in scan_clauses(tokens).conditions:
        condition = text[tokens[first].start : tokens[last].end + 1]
        implied = _implied(_parsed(condition), clock)
        if implied is not None:
            ranges.append(implied)
            edits += [(tokens[first].start, "("), (tokens[last].end + 1, f") AND ({implied})")]
    for place, added in sorted(edits, reverse=True):
        text = text[:place] + added + text[place:]
    return text, tuple(ranges)


def _parsed(condition: str) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(condition, dialect="spark")
    except SqlglotError:
        # Spark knows more than is read here: such a condition stays without a range.
        return None


@dataclass(frozen=True)
class _Clock:
    """The session's zone."""

    zone: tzinfo

    @classmethod
    def of(cls, zone: str) -> "_Clock | None":
        """None for a zone that is not known here: what its clock does cannot be told."""
        if _FIXED.fullmatch(zone):
            return cls(UTC)
        try:
            return cls(ZoneInfo(zone))
        except (KeyError, OSError, ValueError):
            return None

    def now(self) -> datetime:
        return datetime.now(self.zone).replace(tzinfo=None)

    def shift(self, near: datetime) -> timedelta:
        """By how much the clock is changed near a moment."""
        if self.zone is UTC:
            return timedelta()
        hours = range(-_NEAR_HOURS, _NEAR_HOURS + 1)
        moments = ((near + timedelta(hours=hour)).replace(tzinfo=UTC) for hour in hours)
        offsets = [moment.astimezone(self.zone).utcoffset() or timedelta() for moment in moments]
        return max(offsets) - min(offsets)


def _implied(node: exp.Expr | None, clock: _Clock) -> str | None:
    """A range that is true wherever `node` is."""
    match node:
        case exp.Paren():
            return _implied(node.this, clock)
        case exp.And():
            parts = [_implied(part, clock) for part in (node.left, node.right)]
            known = [part for part in parts if part is not None]
            return " AND ".join(known) if known else None
        case exp.Or():
            one, other = _implied(node.left, clock), _implied(node.right, clock)
            return None if one is None or other is None else f"(({one}) OR ({other}))"
        case exp.EQ() | exp.NullSafeEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(type(node), node.left, node.right, clock)
        case exp.Between() if not node.args.get("symmetric"):
            ends = [
                _comparison(kind, node.this, node.args[end], clock)
                for kind, end in ((exp.GTE, "low"), (exp.LTE, "high"))
            ]
            known = [part for part in ends if part is not None]
            return " AND ".join(known) if known else None
        case exp.In(expressions=values) if values and len(values) <= _MOST_VALUES:
            days = [_comparison(exp.EQ, node.this, value, clock) for value in values]
            return None if None in days else "(" + " OR ".join(f"({day})" for day in days) + ")"
    return None


def _comparison(kind: type[exp.Expr], left: exp.Expr, right: exp.Expr, clock: _Clock) -> str | None:
    for side, other, compared in ((left, right, kind), (right, left, _MIRRORED.get(kind, kind))):
        year = _year_of(side)
        cut = year or _truncated(side)
        if cut is None:
            continue
        moment = _first_of_year(other) if year is not None else _constant(other, clock, cut.is_date)
        # Near the first and the last year, the end of a unit may be no time at all.
        if moment is None or not 2 < moment.clock.year < 9998:
            return None
        return _range(cut, compared, moment, clock)
    return None


def _truncated(node: exp.Expr) -> _Truncated | None:
    """A call that cuts a column to a unit, whatever it is called."""
    match node:
        case exp.Paren():
            return _truncated(node.this)
        case exp.TimestampTrunc(this=exp.Column() as column) if node.args.get("zone") is None:
            unit = _unit(node)
            return None if unit not in _STEPS else _Truncated(_name(column), unit, False)
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            inner, unit = _truncated(node.this), _unit(node)
            if inner is None or inner.unit != "DAY" or unit not in _DAY_UNITS:
                return None
            return _Truncated(inner.column, unit, False)
        case exp.DateTrunc(this=exp.Column() as column):
            unit = _unit(node)
            return None if unit not in _DATE_UNITS else _Truncated(_name(column), unit, True)
        case exp.Cast(this=exp.Column() as column, to=exp.DataType(this=exp.DType.DATE)):
            return _Truncated(_name(column), "DAY", True)
        case exp.TsOrDsToDate(this=exp.Column() as column) if node.args.get("format") is None:
            return _Truncated(_name(column), "DAY", True)
        case exp.Cast(to=exp.DataType(this=exp.DType.DATE)) | exp.TsOrDsToDate() if not node.args.get(
            "format"
        ):
            inner = _truncated(node.this)
            return None if inner is None or inner.unit not in _DAY_UNITS else replace(inner, is_date=True)
    return None


def _unit(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    text = unit.name.upper() if unit is not None and not isinstance(unit, exp.Column) else ""
    text = "WEEK(MONDAY)" if isinstance(unit, exp.WeekStart) else text
    return _SHORT.get(text, text)


def _year_of(node: exp.Expr) -> _Truncated | None:
    match node:
        case (
            exp.Year(this=exp.TsOrDsToDate(this=exp.Column() as column))
            | exp.Year(this=exp.Column() as column)
        ):
            return _Truncated(_name(column), "YEAR", True)
        case exp.Extract(this=exp.Var() as unit, expression=exp.Column() as column) if (
            unit.name.upper() == "YEAR"
        ):
            return _Truncated(_name(column), "YEAR", True)
    return None


def _first_of_year(node: exp.Expr) -> _Moment | None:
    if not isinstance(node, exp.Literal) or node.is_string or not re.fullmatch(r"\d{4}", node.name):
        return None
    year = int(node.name)
    return _Moment(f"DATE '{year:04}-01-01'", datetime(year, 1, 1)) if 1 < year < 9999 else None


def _name(column: exp.Column) -> str:
    return ".".join("`" + part.name.replace("`", "``") + "`" for part in column.parts)


def _constant(node: exp.Expr, clock: _Clock, is_date: bool) -> _Moment | None:
    """A literal, or the clock's date or time; cut to a unit, and INTERVALs or days from it.

    `is_date`: what is compared with it is a date, and text is read as one.
    """
    match node:
        case exp.Paren():
            return _constant(node.this, clock, is_date)
        case exp.Literal(is_string=True):
            return _literal(node.name, "DATE" if is_date else "TIMESTAMP")
        case exp.Cast(this=exp.Literal(is_string=True) as text, to=exp.DataType() as to):
            name = {exp.DType.DATE: "DATE", exp.DType.TIMESTAMPTZ: "TIMESTAMP"}.get(to.this)
            return None if name is None else _literal(text.name, name)
        case exp.TsOrDsToDate(this=exp.Literal(is_string=True) as text) if node.args.get("format") is None:
            return _literal(text.name, "DATE")
        case exp.Cast(to=exp.DataType(this=exp.DType.DATE)) | exp.TsOrDsToDate() if not node.args.get(
            "format"
        ):
            return _cut_constant(node.this, clock, True, "DAY", "CAST({} AS DATE)")
        case exp.TimestampTrunc() if node.args.get("zone") is None and (unit := _unit(node)) in _STEPS:
            return _cut_constant(node.this, clock, False, unit, f"date_trunc('{unit}', {{}})")
        case exp.DateTrunc() if (unit := _unit(node)) in _DATE_UNITS:
            return _cut_constant(node.this, clock, True, unit, f"trunc({{}}, '{unit}')")
        case exp.CurrentDate() if node.this is None:
            return _Moment("current_date()", clock.now())
        case exp.CurrentTimestamp() if node.this is None:
            return _Moment("current_timestamp()", clock.now())
        case exp.Anonymous() if node.name.lower() == "now" and not node.expressions:
            return _Moment("current_timestamp()", clock.now())
        case exp.Add() | exp.Sub():
            return _moved(node, clock, is_date)
        case exp.TsOrDsAdd() if _unit(node) == "DAY":
            base, days = _constant(node.this, clock, True), _whole(node.expression)
            return None if base is None or days is None else _later(base, days, "date_add({}, {})")
    return None


def _cut_constant(node: exp.Expr, clock: _Clock, is_date: bool, unit: str, form: str) -> _Moment | None:
    """A constant that a function cuts to a unit."""
    base = _constant(node, clock, is_date)
    return None if base is None else _Moment(form.format(base.sql), _cut(base.clock, unit))


def _later(base: _Moment, days: int, form: str) -> _Moment | None:
    try:
        return _Moment(form.format(base.sql, days), base.clock + timedelta(days=days))
    except OverflowError:
        return None


def _whole(node: exp.Expr) -> int | None:
    """A whole number, as `date_sub(d, 7)` is read: by 7 times -1."""
    match node:
        case exp.Paren():
            return _whole(node.this)
        case exp.Literal(is_string=False) if re.fullmatch(r"\d{1,6}", node.name):
            return int(node.name)
        case exp.Neg():
            negated = _whole(node.this)
            return None if negated is None else -negated
        case exp.Mul():
            left, right = _whole(node.left), _whole(node.right)
            return None if left is None or right is None else left * right
    return None


def _moved(node: exp.Binary, clock: _Clock, is_date: bool) -> _Moment | None:
    """A constant, and days or an INTERVAL from it."""
    if isinstance(node.left, exp.Literal):
        return None
    base, sign = _constant(node.left, clock, is_date), "-" if isinstance(node, exp.Sub) else "+"
    if base is None:
        return None
    if (days := _whole(node.right)) is not None:
        # Spark takes days from a date alone, and refuses the condition otherwise.
        return _later(base, -days if sign == "-" else days, f"({{}} {sign} {days})")
    interval = _interval(node.right)
    if interval is None:
        return None
    size, unit = interval
    count = -size if sign == "-" else size
    try:
        if unit in _MONTHS:
            moved = _months_later(base.clock, count * _MONTHS[unit])
        else:
            moved = base.clock + timedelta(**{unit.lower() + "s": count})
    except OverflowError:
        return None
    return _Moment(f"({base.sql} {sign} INTERVAL '{size}' {unit})", moved)


def _interval(node: exp.Expr) -> tuple[int, str] | None:
    """Its size and unit; weeks are days."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal) or node.unit is None:
        return None
    size, unit = node.this.name, node.unit.name.upper().removesuffix("S")
    if not re.fullmatch(r"\d{1,6}", size) or unit not in (*_INTERVALS, *_MONTHS):
        return None
    return (int(size) * 7, "DAY") if unit == "WEEK" else (int(size), unit)


def _months_later(clock: datetime, months: int) -> datetime:
    """On the same day of its month, or the last one that there is."""
    year, month = divmod(clock.year * 12 + clock.month - 1 + months, 12)
    if not 1 < year < 9999:
        raise OverflowError
    return clock.replace(year=year, month=month + 1, day=min(clock.day, monthrange(year, month + 1)[1]))


def _literal(text: str, name: str) -> _Moment | None:
    """Only what is written in full: Spark reads more, and some of it in zones of its own."""
    if not _DATE.fullmatch(text) and (name == "DATE" or not _TIMESTAMP.fullmatch(text)):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return _Moment(f"{name} '{text}'", moment) if 1 < moment.year < 9999 else None


def _range(cut: _Truncated, kind: type[exp.Expr], moment: _Moment, clock: _Clock) -> str:
    """For each type that a column of times may have; Spark drops those that it has not, before it plans."""
    constant, step = f"CAST({moment.sql} AS TIMESTAMP)", _STEPS[cut.unit]
    after = f"date_trunc('{cut.unit}', {constant}) + {step}"
    low = high = None
    if kind in (exp.EQ, exp.NullSafeEQ, exp.GTE):
        low = constant
    elif kind is exp.GT:
        low = after
    if kind in (exp.EQ, exp.NullSafeEQ, exp.LTE):
        high = after
    elif kind is exp.LT:
        high = f"date_trunc('{cut.unit}', {constant} - {_MICROSECOND}) + {step}"
    begin, end = moment.clock, moment.clock
    if kind is exp.GT or high is not None:
        end = _after(moment.clock, cut.unit)
    near = [begin, _cut(begin, cut.unit), end]
    # Twice, since a day that is left out is no day to Spark either when it goes a day back.
    slack = 2 * max(clock.shift(moment) for moment in near)
    return _of_types(cut.column, _shifted(low, "-", slack), _shifted(high, "+", slack))


def _shifted(bound: str | None, sign: str, slack: timedelta) -> str | None:
    seconds = int(slack.total_seconds())
    return bound if bound is None or not seconds else f"{bound} {sign} INTERVAL '{seconds}' SECOND"


def _of_types(column: str, low: str | None, high: str | None) -> str:
    """`typeof` is known when Spark plans: what is left there is a range of one type."""
    forms = []
    for name, cast, below in (
        ("timestamp", "{}", "<"),
        ("timestamp_ntz", "CAST({} AS TIMESTAMP_NTZ)", "<"),
        ("date", "CAST({} AS DATE)", "<="),
    ):
        ends = [f"{column} >= {cast.format(low)}"] if low is not None else []
        ends += [f"{column} {below} {cast.format(high)}"] if high is not None else []
        forms.append(f"(typeof({column}) <> '{name}' OR ({' AND '.join(ends)}))")
    return " AND ".join(forms)


def _cut(clock: datetime, unit: str) -> datetime:
    day = clock.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "YEAR":
            return day.replace(month=1, day=1)
        case "QUARTER":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "MONTH":
            return day.replace(day=1)
        case "WEEK":
            return day - timedelta(days=day.weekday())
    return day


def _after(clock: datetime, unit: str) -> datetime:
    """About when the unit ends that a moment is in."""
    days = {"YEAR": 366, "QUARTER": 92, "MONTH": 31, "WEEK": 7}.get(unit, 1)
    later = _cut(clock, unit) + timedelta(days=days)
    return _cut(later, unit) if days > 7 else later
