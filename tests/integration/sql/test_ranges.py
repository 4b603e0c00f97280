"""A condition with the range that it implies keeps the rows that it kept without: zones, clocks that change,
NULL, dates, times with a zone and without."""

import os
import random
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DateType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.sql.athena import to_spark

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
CASES_OF_A_ZONE = 200 if SOAK else 12
# A zone, and a moment near which its clock changes.
CHANGES = {
    "UTC": datetime(2026, 1, 5),
    "+05:30": datetime(2026, 1, 5),
    "Europe/Berlin": datetime(2026, 3, 29, 2),
    "America/New_York": datetime(2026, 11, 1, 2),
    "America/St_Johns": datetime(2005, 10, 30),
    "America/Sao_Paulo": datetime(2018, 11, 4),
    "Australia/Lord_Howe": datetime(2026, 4, 5, 2),
    "Pacific/Apia": datetime(2011, 12, 30),
    "Europe/Amsterdam": datetime(1937, 7, 1),
    "Africa/Cairo": datetime(2026, 4, 24),
}
FEW = ("UTC", "Europe/Berlin", "America/St_Johns", "America/Sao_Paulo", "Pacific/Apia")
FORMS = (
    "date_trunc('{unit}', {c})",
    "date_trunc('{unit}', {c})",
    "date_trunc('{unit}', {c})",
    "date_trunc('{unit}', date({c}))",
    "CAST(date_trunc('{unit}', {c}) AS DATE)",
    "trunc({c}, '{unit}')",
    "CAST({c} AS DATE)",
    "date({c})",
    "to_date({c})",
)
UNITS = ("year", "YYYY", "quarter", "month", "MM", "week", "day", "DD", "hour", "minute", "second")
OPERATORS = ("=", "<=>", "<", "<=", ">", ">=")
COLUMNS = (
    ("at", TimestampType()),
    ("clock", TimestampNTZType()),
    ("day", DateType()),
    ("written", StringType()),
)


def moments(chance: random.Random, zone: str, count: int) -> list[datetime]:
    """Moments by a clock, most of them near a change of it."""
    steps = (
        timedelta(days=400),
        timedelta(days=40),
        timedelta(days=2),
        timedelta(hours=2),
        timedelta(minutes=2),
    )
    found = []
    for _ in range(count):
        moment = CHANGES[zone] + chance.choice(steps) * chance.uniform(-1, 1)
        cut = chance.randrange(5)
        found.append(
            [
                moment,
                moment.replace(microsecond=0),
                moment.replace(minute=0, second=0, microsecond=0),
                moment.replace(hour=0, minute=0, second=0, microsecond=0),
                moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
            ][cut]
        )
    return found


def constant(chance: random.Random, moment: datetime) -> str:
    day, time = f"{moment:%Y-%m-%d}", f"{moment:%Y-%m-%d %H:%M:%S.%f}"
    return chance.choice(
        (
            f"DATE '{day}'",
            f"TIMESTAMP '{time}'",
            f"TIMESTAMP '{day}'",
            f"'{day}'",
            f"date('{day}')",
            f"DATE '{day}' - INTERVAL '{chance.randrange(4)}' DAY",
            f"TIMESTAMP '{time}' + INTERVAL '{chance.randrange(90)}' MINUTE",
            f"TIMESTAMP '{time}' - INTERVAL '{chance.randrange(14)}' MONTH",
            f"DATE '{day}' + {chance.randrange(40)}",
            f"date_sub(DATE '{day}', {chance.randrange(-3, 40)})",
            f"date_trunc('{chance.choice(UNITS)}', TIMESTAMP '{time}')",
            f"trunc('{day}', '{chance.choice(UNITS)}')",
            f"CAST(TIMESTAMP '{time}' AS DATE)",
        )
    )


def condition(chance: random.Random, zone: str) -> str:
    column = chance.choice(("at", "at", "clock", "day", "written"))
    if chance.random() < 0.1:
        year = CHANGES[zone].year + chance.randrange(-1, 2)
        return f"year({column}) {chance.choice(OPERATORS)} {year}"
    cut = chance.choice(FORMS).format(unit=chance.choice(UNITS), c=column)
    first, second = (constant(chance, moment) for moment in moments(chance, zone, 2))
    match chance.randrange(6):
        case 0:
            return f"{cut} BETWEEN {first} AND {second}"
        case 1:
            return f"{cut} IN ({first}, {second})"
        case 2:
            return f"{first} {chance.choice(OPERATORS)} {cut}"
        case 3:
            return f"{cut} >= {first} AND {cut} < {second} OR {cut} = {first}"
    return f"{cut} {chance.choice(OPERATORS)} {first}"


def rows(chance: random.Random, zone: str) -> list[tuple[Any, ...]]:
    known = ZoneInfo(zone) if "/" in zone else UTC
    found: list[tuple[Any, ...]] = [(None, None, None, None)]
    for moment in moments(chance, zone, 400):
        at = moment.replace(tzinfo=known).astimezone(UTC) + timedelta(hours=chance.choice((0, 0, 1, -1)))
        found.append((at, moment, moment.date(), f"{moment:%Y-%m-%d %H:%M:%S.%f}"))
    return found


def show(session: SparkSession, zone: str, given: list[tuple[Any, ...]]) -> None:
    """The rows as a view of the session, whose zone that is."""
    session.conf.set("spark.sql.session.timeZone", zone)
    frame = session.createDataFrame(given, StructType([StructField(*column) for column in COLUMNS]))
    frame.createOrReplaceTempView("rows")


@pytest.mark.soak
@pytest.mark.parametrize("zone", CHANGES if SOAK else FEW)
def test_a_range_keeps_every_row_that_its_condition_keeps(spark: SparkSession, zone: str) -> None:
    chance = random.Random(zone)
    session = spark.newSession()
    show(session, zone, rows(chance, zone))
    pairs: list[tuple[str, str]] = []
    queries: list[str] = []
    while len(pairs) < CASES_OF_A_ZONE:
        text = condition(chance, zone)
        query = f"SELECT count(*), min(at), max(clock) FROM rows WHERE {text}"
        ranges = to_spark(query, "local", zone).ranges
        pairs += [(text, one) for one in ranges]
        queries += [query] if ranges else []
    counts = [
        f"count_if(({text}) AND NOT coalesce(({implied}), false)) AS lost{place}, "
        f"count_if({text}) AS kept{place}, count_if(NOT coalesce(({implied}), false)) AS skipped{place}"
        for place, (text, implied) in enumerate(pairs)
    ]
    kept = skipped = 0
    for first in range(0, len(counts), 50):
        (row,) = session.sql(f"SELECT {', '.join(counts[first : first + 50])} FROM rows").collect()
        for place in range(first, min(first + 50, len(counts))):
            assert row[f"lost{place}"] == 0, f"{zone}: {pairs[place][0]} loses rows by {pairs[place][1]}"
            kept += row[f"kept{place}"]
            skipped += row[f"skipped{place}"]
    assert kept > 0, "conditions that keep nothing show nothing"
    assert skipped > 0, "ranges that skip nothing show nothing"
    for first in range(0, len(queries), 25):
        asked = [
            f"(SELECT {n} AS n, q.* FROM ({one}) q)" for n, one in enumerate(queries[first : first + 25])
        ]
        together = f"SELECT * FROM ({' UNION ALL '.join(asked)}) ORDER BY n"
        read = to_spark(together, "local", zone)
        assert len(read.ranges) == len(asked)
        assert session.sql(read.text).collect() == session.sql(together).collect()


def test_a_query_gives_the_rows_that_it_gave_without_its_range(spark: SparkSession) -> None:
    session = spark.newSession()
    show(session, "Europe/Berlin", rows(random.Random(1), "Europe/Berlin"))
    text = (
        "SELECT count(*), max(at) FROM rows "
        "WHERE date_trunc('day', at) = DATE '2026-03-29' AND clock IS NOT NULL"
    )
    read = to_spark(text, "local", "Europe/Berlin")
    assert read.ranges
    with_range, without = session.sql(read.text), session.sql(text)
    assert with_range.collect() == without.collect()
    assert with_range.collect()[0][0] > 0
    plan = cast(Any, with_range)._jdf.queryExecution().optimizedPlan().toString()
    assert "typeof" not in plan
    assert "at#" in plan.partition("Filter")[2]
    assert "timestamp_ntz" not in plan.partition("Filter")[2].splitlines()[0]
