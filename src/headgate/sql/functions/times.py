"""Functions of dates and times."""

from pyspark.sql.types import DataType, DateType, StringType, TimestampType

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Function, Session, check, literal_int, literal_text, simple
from headgate.sql.typed import Typed, call
from headgate.sql.types import (
    BIGINT,
    DATE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    is_number,
    is_time,
    is_whole,
    spark_name,
    text,
)

# Letters of a pattern that mean the same to Java's formatters and to Spark's.
_LETTERS = frozenset("GyMLdDEaHhKkmsSQqVzOXxZ")
_WHY = {
    "Y": "YYYY is the year of the week; write yyyy",
    "u": "u is a year to one and a weekday to another; write yyyy or E",
    "w": "weeks are not in patterns; use EXTRACT(WEEK FROM t)",
    "W": "weeks are not in patterns; use EXTRACT(WEEK FROM t)",
    "e": "write E",
    "c": "write E",
    "n": "write SSSSSS",
    "N": "write SSSSSS",
    "A": "write SSSSSS",
}
DEFAULT = "yyyy-MM-dd HH:mm:ss"
_EXTRACT = {
    "YEAR": "year({0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "day({0})",
    "DOY": "dayofyear({0})",
    "DOW": "dayofweek({0})",
    "ISODOW": "(weekday({0}) + 1)",
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
}
_ADD = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_TRUNC = ("SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR")


def pattern(name: str, place: int, arg: Typed) -> str:
    """A pattern that is understood, checked before anything runs."""
    given = literal_text(name, place, arg)
    quoted = False
    for letter in given:
        if letter == "'":
            quoted = not quoted
        elif not quoted and letter.isalpha() and letter not in _LETTERS:
            why = _WHY.get(letter, "put text in quotes")
            raise InvalidRequest(
                f"{name} does not know '{letter}' in the pattern '{given}'.", f"{why.capitalize()}."
            )
    if quoted:
        raise InvalidRequest(f"A quote is open in the pattern '{given}' of {name}.")
    return given


def wall_clock(moment: str, session: Session) -> str:
    """A TIMESTAMP_LTZ as the clock of the session's zone shows it."""
    return f"CAST({moment} AS timestamp_ntz)"


def parse_wall_clock(value: str, how: str, session: Session) -> str:
    """Text as a TIMESTAMP; NULL if it is none. Spark parses text to moments only, so it is read as if in
    UTC: a zone with summer time would not have every hour."""
    if session.zone == "UTC":
        return f"CAST(try_to_timestamp({value}, {text(how)}) AS timestamp_ntz)"
    moment = f"try_to_timestamp(concat({value}, ' Z'), {text(how + ' X')})"
    return f"convert_timezone(current_timezone(), 'UTC', CAST({moment} AS timestamp_ntz))"


def _to_timestamp(args: list[Typed], session: Session) -> Typed:
    value = check("TO_TIMESTAMP", "s", args[:1])[0]
    if len(args) == 1:
        return call("try_cast({0} AS timestamp_ntz)", TIMESTAMP, [value], True)
    how = pattern("TO_TIMESTAMP", 2, args[1])
    return call("{sql}", TIMESTAMP, [value], True, sql=parse_wall_clock(value.sql, how, session))


def _to_timestamp_ltz(args: list[Typed], session: Session) -> Typed:
    value = args[0]
    if is_number(value.type):
        if len(args) > 2:
            raise InvalidRequest("TO_TIMESTAMP_LTZ takes a number and its precision, 0 or 3.")
        precision = literal_int("TO_TIMESTAMP_LTZ", 2, args[1]) if len(args) > 1 else 3
        if precision not in (0, 3):
            raise InvalidRequest(
                f"TO_TIMESTAMP_LTZ does not know precision {precision}.",
                "0 is for seconds, 3 for milliseconds.",
            )
        if is_whole(value.type):
            template = "timestamp_seconds({0})" if precision == 0 else "timestamp_millis({0})"
        else:
            template = (
                "timestamp_micros(CAST({0} * " + ("1000000" if precision == 0 else "1000") + " AS BIGINT))"
            )
        return call(template, TIMESTAMP_LTZ, [value])
    value = check("TO_TIMESTAMP_LTZ", "s", args[:1])[0]
    if len(args) == 1:
        return call("try_cast({0} AS timestamp)", TIMESTAMP_LTZ, [value], True)
    how = pattern("TO_TIMESTAMP_LTZ", 2, args[1])
    if len(args) == 2:
        return call("try_to_timestamp({0}, {how})", TIMESTAMP_LTZ, [value], True, how=text(how))
    zone = literal_text("TO_TIMESTAMP_LTZ", 3, args[2])
    clock = parse_wall_clock(value.sql, how, session)
    return call(
        "to_utc_timestamp(CAST(convert_timezone('UTC', current_timezone(), {clock}) AS timestamp), {zone})"
        if session.zone != "UTC"
        else "to_utc_timestamp(CAST({clock} AS timestamp), {zone})",
        TIMESTAMP_LTZ,
        [value],
        True,
        clock=clock,
        zone=text(zone),
    )


def _to_date(args: list[Typed], _: Session) -> Typed:
    value = check("TO_DATE", "s", args[:1])[0]
    if len(args) == 1:
        return call("try_cast({0} AS date)", DATE, [value], True)
    how = pattern("TO_DATE", 2, args[1])
    return call("CAST(try_to_timestamp({0}, {how}) AS date)", DATE, [value], True, how=text(how))


def _date_format(args: list[Typed], session: Session) -> Typed:
    value, how = args[0], pattern("DATE_FORMAT", 2, args[1])
    if isinstance(value.type, StringType):
        value = _to_timestamp([value], session)
    value = check("DATE_FORMAT", "t", [value])[0]
    return call("date_format({0}, {how})", STRING, [value], how=text(how))


def _extract(args: list[Typed], _: Session) -> Typed:
    unit = str(args[0].literal)
    value = check("EXTRACT", "t", args[1:])[0]
    if unit == "EPOCH":
        return call("unix_seconds(CAST({0} AS timestamp))", BIGINT, [value])
    if unit not in _EXTRACT:
        raise InvalidRequest(f"EXTRACT does not know {unit}.", f"It knows {', '.join(_EXTRACT)} and EPOCH.")
    return call(f"CAST({_EXTRACT[unit]} AS BIGINT)", BIGINT, [value])


def _part(name: str, unit: str, what: str) -> Function:
    return simple(name, f"{name}(t)", what, "t", BIGINT, f"CAST({_EXTRACT[unit]} AS BIGINT)")


def _timestampadd(args: list[Typed], _: Session) -> Typed:
    unit = _unit("TIMESTAMPADD", args[0])
    count, value = check("TIMESTAMPADD", "it", args[1:])
    kind: DataType = value.type
    if isinstance(kind, DateType) and unit in ("HOUR", "MINUTE", "SECOND"):
        kind = TIMESTAMP
        value = value.cast(TIMESTAMP)
    months = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}.get(unit)
    if months is not None:
        return call(f"({{1}} + make_ym_interval(0, {{0}} * {months}))", kind, [count, value])
    if unit == "WEEK":
        return call(
            "({1} + make_dt_interval({0} * 7))" if is_time(kind) else "date_add({1}, {0} * 7)",
            kind,
            [count, value],
        )
    if unit == "DAY":
        return call(
            "({1} + make_dt_interval({0}))" if is_time(kind) else "date_add({1}, {0})", kind, [count, value]
        )
    place = {"HOUR": "0, {0}", "MINUTE": "0, 0, {0}", "SECOND": "0, 0, 0, {0}"}[unit]
    return call(f"({{1}} + make_dt_interval({place}))", kind, [count, value])


def _timestampdiff(args: list[Typed], _: Session) -> Typed:
    unit = _unit("TIMESTAMPDIFF", args[0])
    start, end = check("TIMESTAMPDIFF", "tt", args[1:])
    if isinstance(start.type, TimestampType) != isinstance(end.type, TimestampType):
        start, end = start.cast(TIMESTAMP_LTZ), end.cast(TIMESTAMP_LTZ)
    return call(f"CAST(timestampdiff({unit}, {{0}}, {{1}}) AS INT)", INT, [start, end])


def _unit(name: str, arg: Typed) -> str:
    unit = str(arg.literal).upper()
    unit = unit.removeprefix("SQL_TSI_")
    if unit not in _ADD:
        raise InvalidRequest(f"{name} does not know the unit {unit}.", f"It knows {', '.join(_ADD)}.")
    return unit


def to_unit(name: str, value: Typed, unit: str) -> Typed:
    """`FLOOR(t TO HOUR)` and `CEIL(t TO HOUR)`."""
    value = check(name, "t", [value])[0]
    if unit not in _TRUNC:
        raise InvalidRequest(f"{name} does not know the unit {unit}.", f"It knows {', '.join(_TRUNC)}.")
    kind = spark_name(value.type)
    down = f"CAST(date_trunc('{unit}', {value.sql}) AS {kind})"
    if name == "FLOOR":
        return call("{sql}", value.type, [value], sql=down)
    step = {"QUARTER": "INTERVAL '3' MONTH"}.get(unit, f"INTERVAL '1' {unit}")
    up = f"CASE WHEN {down} = {value.sql} THEN {value.sql} ELSE {down} + {step} END"
    return call("{sql}", value.type, [value], sql=up)


def _unix_timestamp(args: list[Typed], _: Session) -> Typed:
    if not args:
        return Typed("unix_timestamp()", BIGINT, False)
    value = check("UNIX_TIMESTAMP", "s", args[:1])[0]
    how = pattern("UNIX_TIMESTAMP", 2, args[1]) if len(args) > 1 else DEFAULT
    return call("unix_seconds(try_to_timestamp({0}, {how}))", BIGINT, [value], True, how=text(how))


def _from_unixtime(args: list[Typed], _: Session) -> Typed:
    value = check("FROM_UNIXTIME", "i", args[:1])[0]
    how = pattern("FROM_UNIXTIME", 2, args[1]) if len(args) > 1 else DEFAULT
    return call("from_unixtime({0}, {how})", STRING, [value], how=text(how))


def _convert_tz(args: list[Typed], session: Session) -> Typed:
    given = check("CONVERT_TZ", "sss", args)
    source, target = literal_text("CONVERT_TZ", 2, args[1]), literal_text("CONVERT_TZ", 3, args[2])
    clock = parse_wall_clock(given[0].sql, DEFAULT, session)
    return call(
        "date_format(convert_timezone({source}, {target}, {clock}), 'yyyy-MM-dd HH:mm:ss')",
        STRING,
        given[:1],
        True,
        source=text(source),
        target=text(target),
        clock=clock,
    )


TIMES = (
    Function(
        "TO_TIMESTAMP",
        "TO_TIMESTAMP(s[, pattern])",
        "Text as a TIMESTAMP; by default `2026-01-31 12:00:00` with or without a fraction. NULL if it "
        "is none.",
        _to_timestamp,
        1,
        2,
    ),
    Function(
        "TO_TIMESTAMP_LTZ",
        "TO_TIMESTAMP_LTZ(n[, 0 | 3]), TO_TIMESTAMP_LTZ(s[, pattern[, zone]])",
        "Seconds (0) or milliseconds (3, the default) since 1970 as a TIMESTAMP_LTZ; or text, in a zone "
        "or the session's. "
        "NULL if the text is none.",
        _to_timestamp_ltz,
        1,
        3,
    ),
    Function(
        "TO_DATE",
        "TO_DATE(s[, pattern])",
        "Text as a DATE; by default `2026-01-31`. NULL if it is none.",
        _to_date,
        1,
        2,
    ),
    Function(
        "DATE_FORMAT",
        "DATE_FORMAT(t, pattern)",
        "As text, in Java's patterns (`yyyy-MM-dd'T'HH:mm:ss.SSS`); a TIMESTAMP_LTZ in the session's zone.",
        _date_format,
        2,
        2,
    ),
    Function(
        "EXTRACT",
        "EXTRACT(unit FROM t)",
        "YEAR, QUARTER, MONTH, WEEK (of ISO 8601), DAY, DOY, DOW (1 is Sunday), "
        "ISODOW (1 is Monday), HOUR, MINUTE, SECOND or EPOCH, as a whole BIGINT.",
        _extract,
        2,
        2,
    ),
    _part("YEAR", "YEAR", "The year."),
    _part("QUARTER", "QUARTER", "1 to 4."),
    _part("MONTH", "MONTH", "1 to 12."),
    _part("WEEK", "WEEK", "The week of ISO 8601."),
    _part("DAYOFYEAR", "DOY", "1 to 366."),
    _part("DAYOFMONTH", "DAY", "1 to 31."),
    _part("DAYOFWEEK", "DOW", "1 (Sunday) to 7."),
    _part("HOUR", "HOUR", "0 to 23."),
    _part("MINUTE", "MINUTE", "0 to 59."),
    _part("SECOND", "SECOND", "0 to 59."),
    Function("TIMESTAMPADD", "TIMESTAMPADD(unit, n, t)", "`n` units later.", _timestampadd, 3, 3),
    Function(
        "TIMESTAMPDIFF",
        "TIMESTAMPDIFF(unit, a, b)",
        "Whole units from `a` to `b`; negative if `b` is earlier.",
        _timestampdiff,
        3,
        3,
    ),
    Function(
        "UNIX_TIMESTAMP",
        "UNIX_TIMESTAMP([s[, pattern]])",
        "Seconds since 1970, of now or of text; NULL if it is no time.",
        _unix_timestamp,
        0,
        2,
    ),
    Function(
        "FROM_UNIXTIME",
        "FROM_UNIXTIME(n[, pattern])",
        "Seconds since 1970 as text in the session's zone.",
        _from_unixtime,
        1,
        2,
    ),
    Function(
        "CONVERT_TZ",
        "CONVERT_TZ(s, from, to)",
        "`2026-01-31 12:00:00` of one zone as text of another.",
        _convert_tz,
        3,
        3,
    ),
    simple(
        "CURRENT_TIMESTAMP",
        "CURRENT_TIMESTAMP",
        "Now, a TIMESTAMP_LTZ; the same for all rows of a batch.",
        "",
        TIMESTAMP_LTZ,
        "current_timestamp()",
        nullable=False,
    ),
    simple(
        "NOW",
        "NOW()",
        "The same as CURRENT_TIMESTAMP.",
        "",
        TIMESTAMP_LTZ,
        "current_timestamp()",
        nullable=False,
    ),
    simple(
        "LOCALTIMESTAMP",
        "LOCALTIMESTAMP",
        "Now as the session's clock shows it, a TIMESTAMP.",
        "",
        TIMESTAMP,
        "localtimestamp()",
        nullable=False,
    ),
    simple(
        "CURRENT_DATE",
        "CURRENT_DATE",
        "Today in the session's zone.",
        "",
        DATE,
        "current_date()",
        nullable=False,
    ),
)
