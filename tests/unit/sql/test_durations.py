"""Lengths of time."""

import pytest
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.durations import Span, format_ms, interval_ms, parse_duration_ms, span_of
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1 hour", HOUR),
        ("1 d", DAY),
        ("1 DAYS", DAY),
        ("90s", 90_000),
        ("500 ms", 500),
        ("250", 250),
        ("2 min", 2 * MINUTE),
        ("3 weeks", 21 * DAY),
        ("0", 0),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "one hour", "1 fortnight", "-1 s", "1.5 h", "1 h 5 m"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not a duration"):
        parse_duration_ms(text)


def interval(text: str) -> exp.Interval:
    statement = parse_statement(f"SELECT {text} FROM t")
    assert isinstance(statement, Select)
    found = statement.query.tree.find(exp.Interval)
    assert isinstance(found, exp.Interval)
    return found


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("INTERVAL '5' SECOND", 5_000),
        ("INTERVAL '1.5' SECOND", 1_500),
        ("INTERVAL '96' HOUR", 96 * HOUR),
        ("INTERVAL '96' HOURS", 96 * HOUR),
        ("INTERVAL '7' DAY", 7 * DAY),
        ("INTERVAL '2' WEEK", 14 * DAY),
        ("INTERVAL '250' MILLISECOND", 250),
        ("INTERVAL '90' MINUTES", 90 * MINUTE),
        ("INTERVAL '-1' DAY", -DAY),
        ("INTERVAL '1 02:03' DAY TO MINUTE", DAY + 2 * HOUR + 3 * MINUTE),
        ("INTERVAL '01:30.5' MINUTE TO SECOND", 90_500),
        ("INTERVAL '3' MONTH", None),
    ],
)
def test_intervals(text: str, ms: int | None) -> None:
    assert interval_ms(interval(text)) == ms


def test_months() -> None:
    assert span_of(interval("INTERVAL '2' YEAR")) == Span(months=24)
    assert span_of(interval("INTERVAL '1' QUARTER")) == Span(months=3)
    assert span_of(interval("INTERVAL '1-6' YEAR TO MONTH")) == Span(months=18)


def test_what_is_no_interval() -> None:
    with pytest.raises(InvalidRequest, match="is not known"):
        span_of(interval("INTERVAL 'x' SECOND"))


@pytest.mark.parametrize(
    ("ms", "text"), [(5_000, "5 seconds"), (HOUR, "1 hour"), (1, "1 ms"), (7 * DAY, "7 days")]
)
def test_in_words(ms: int, text: str) -> None:
    assert format_ms(ms) == text
