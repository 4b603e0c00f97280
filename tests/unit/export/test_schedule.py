"""Times of schedules and bounds of periods, changes of clocks included."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.export.schedule import Bounds, bounds, check_schedule, instant, next_time, previous_time, times

# Clocks that change at night and at midnight, by an hour and by half of one, and one that left out a day.
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/Santiago",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Pacific/Apia",
)
MOMENTS = st.datetimes(datetime(2005, 1, 1), datetime(2030, 12, 31)).map(lambda at: at.replace(tzinfo=UTC))
ZONE = st.sampled_from(ZONES).map(ZoneInfo)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("wall", "zone", "expected"),
    [
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00"),  # left out: when clocks go forward
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30"),  # there twice: the first
        ("2026-09-06T00:00", "America/Santiago", "2026-09-06T04:00"),  # midnight is left out
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45"),
        ("2011-12-30T00:00", "Pacific/Apia", "2011-12-30T10:00"),  # a whole day is left out
    ],
)
def test_a_wall_clock_time_is_one_instant(wall: str, zone: str, expected: str) -> None:
    assert instant(datetime.fromisoformat(wall), ZoneInfo(zone)) == utc(expected)


@settings(max_examples=200, deadline=None)
@given(st.datetimes(datetime(2005, 1, 1), datetime(2030, 12, 31)), st.integers(0, 200_000), ZONE)
def test_instants_follow_each_other_as_wall_clock_times_do(at: datetime, later: int, zone: ZoneInfo) -> None:
    assert instant(at, zone) <= instant(at + timedelta(seconds=later), zone)


@settings(max_examples=150, deadline=None)
@given(MOMENTS, ZONE, st.sampled_from(["day", "week", "month"]))
def test_periods_follow_each_other_without_gap_or_overlap(at: datetime, zone: ZoneInfo, period: str) -> None:
    found = bounds(period, "0 6 * * *", zone, at)  # type: ignore[arg-type]
    assert found.start < found.end <= at
    before = bounds(period, "0 6 * * *", zone, found.end - timedelta(microseconds=1))  # type: ignore[arg-type]
    again = bounds(period, "0 6 * * *", zone, found.end)  # type: ignore[arg-type]
    assert (before.end, again) == (found.start, found)
    longest = {"day": 50, "week": 8 * 24, "month": 32 * 24}[period]
    assert at - found.end <= timedelta(hours=longest)


def test_a_week_is_from_monday_to_monday_of_the_zone() -> None:
    zone = ZoneInfo("Europe/Berlin")
    found = bounds("week", "0 6 * * 1", zone, utc("2026-03-30T04:00"))
    # 167 hours: the clocks went forward in it.
    assert found == Bounds(utc("2026-03-22T23:00"), utc("2026-03-29T22:00"))
    assert found.end - found.start == timedelta(hours=167)


def test_a_period_of_the_schedule_begins_where_the_one_before_ended() -> None:
    zone = ZoneInfo("Europe/Berlin")
    first = bounds("schedule", "30 2 * * *", zone, utc("2026-03-29T01:00"))
    second = bounds("schedule", "30 2 * * *", zone, utc("2026-03-30T00:30"))
    assert (first.end, second) == (second.start, Bounds(utc("2026-03-29T01:00"), utc("2026-03-30T00:30")))


def test_a_daily_time_comes_once_on_the_days_when_clocks_change() -> None:
    zone = ZoneInfo("Europe/Berlin")
    for day in ("2026-03-28T12:00", "2026-10-24T12:00"):
        found = list(times("30 2 * * *", zone, utc(day), utc(day) + timedelta(days=2)))
        assert [one.astimezone(zone).date().isoformat()[-2:] for one in found] == (
            ["29", "30"] if "03-28" in day else ["25", "26"]
        )


CRONS = st.sampled_from(
    ["30 2 * * *", "*/20 * * * *", "0 0 * * *", "0 0 1 * *", "15 1-3 * * mon-fri", "0 6 * * 0"]
)


@settings(max_examples=150, deadline=None)
@given(MOMENTS, ZONE, CRONS)
def test_times_of_a_schedule_increase_and_none_is_skipped(at: datetime, zone: ZoneInfo, cron: str) -> None:
    first = next_time(cron, zone, at)
    assert first is not None
    assert first > at
    # Asked from anywhere before it, it is the same.
    middle = at + (first - at) / 2
    assert next_time(cron, zone, middle) == first
    found = list(times(cron, zone, at, first + timedelta(days=3)))
    assert all(one < other for one, other in pairwise(found))
    assert previous_time(cron, zone, first + timedelta(microseconds=1)) == first


@settings(max_examples=100, deadline=None)
@given(MOMENTS, ZONE)
def test_each_day_has_its_time_once(at: datetime, zone: ZoneInfo) -> None:
    found = [one.astimezone(zone).date() for one in times("30 2 * * *", zone, at, at + timedelta(days=6))]
    assert len(set(found)) == len(found)
    days = [day for day in found if day.isoformat() not in ("2011-12-30", "2011-12-31")]
    gaps = [(later - day).days for day, later in pairwise(days)]
    assert all(gap == 1 for gap in gaps) or zone.key == "Pacific/Apia"


@pytest.mark.parametrize(
    ("cron", "days"),
    [
        ("0 6 * * 0", {6}),
        ("0 6 * * 7", {6}),
        ("0 6 * * 1", {0}),
        ("0 6 * * 1-5", {0, 1, 2, 3, 4}),
        ("0 6 * * 5-7", {4, 5, 6}),
        ("0 6 * * sat,sun", {5, 6}),
        ("0 6 * * fri-mon", {4, 5, 6, 0}),
        ("0 6 * * 0-6/3", {6, 2, 5}),
    ],
)
def test_days_of_the_week_are_those_of_cron(cron: str, days: set[int]) -> None:
    found = times(cron, ZoneInfo("UTC"), utc("2026-11-01T00:00"), utc("2026-11-15T00:00"))
    assert {one.weekday() for one in found} == days


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("0 6 * *", "has 4 fields"),
        ("0 25 * * *", "cannot be read"),
        ("0 6 1 * mon", "days of the month and of the week"),
        ("0 6 * * 8", "is no day of the week"),
        ("0 6 30 2 *", "never comes"),
    ],
)
def test_an_expression_that_cannot_be_is_refused(cron: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_schedule(cron, "UTC")
