"""When exports run, and which time a run is about: cron expressions and calendar bounds in a time zone.

APScheduler's CronTrigger is asked in wall-clock time alone, where no hour is missing or there twice; what a
wall-clock time is as an instant is said here, once, for schedules and bounds alike.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

Period = Literal["day", "week", "month", "schedule"]
DEFAULT_SCHEDULES = {"day": "0 6 * * *", "week": "0 6 * * 1", "month": "0 6 1 * *", "schedule": "0 6 * * *"}
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DAY_ITEM = re.compile(r"(?P<first>[a-z]{3}|[0-7])(?:-(?P<last>[a-z]{3}|[0-7]))?(?:/(?P<step>[1-7]))?")
_SECOND = timedelta(seconds=1)
_TINY = timedelta(microseconds=1)
# How far back the time before is looked for: a schedule may name one day of a leap year.
_WINDOWS = (
    timedelta(hours=1),
    timedelta(days=1),
    timedelta(days=32),
    timedelta(days=370),
    timedelta(days=3000),
)


@dataclass(frozen=True)
class Bounds:
    """The time that a run is about, `end` not in it."""

    start: datetime
    end: datetime


def instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a wall-clock time, in UTC. Of one that comes twice, the first; one that is left out is
    the moment at which the clocks go forward."""
    earlier = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    later = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if later >= earlier:
        return earlier
    before = later.astimezone(zone).utcoffset()
    low, high = later, earlier
    while high - low > _SECOND:
        middle = low + (high - low) / 2
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
    return high.replace(microsecond=0)


def check_schedule(cron: str, zone: str) -> None:
    """Raises ValueError for an expression that names no time."""
    if next_time(cron, ZoneInfo(zone), datetime(2024, 1, 1, tzinfo=UTC)) is None:
        raise ValueError(f"'{cron}' never comes")


def next_time(cron: str, zone: ZoneInfo, after: datetime) -> datetime | None:
    """The next instant of a schedule, in UTC; None where none comes any more."""
    trigger = _trigger(cron)
    wall: datetime | None = after.astimezone(zone).replace(tzinfo=UTC)
    while wall is not None:
        wall = trigger.get_next_fire_time(None, wall + _TINY)
        if wall is not None and (found := instant(wall.replace(tzinfo=None), zone)) > after:
            return found
    return None


def times(cron: str, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants of a schedule behind `after`, up to and with `until`."""
    found = next_time(cron, zone, after)
    while found is not None and found <= until:
        yield found
        found = next_time(cron, zone, found)


def previous_time(cron: str, zone: ZoneInfo, before: datetime) -> datetime | None:
    """The last instant of a schedule before one."""
    for window in _WINDOWS:
        if newest := deque(times(cron, zone, before - window, before - _TINY), maxlen=1):
            return newest[0]
    return None


def bounds(period: Period, cron: str, zone: ZoneInfo, at: datetime) -> Bounds:
    """The last whole day, week (from Monday) or month before `at`; or from the time before to `at`."""
    if period == "schedule":
        end = previous_time(cron, zone, at + _TINY) or at
        return Bounds(previous_time(cron, zone, end) or end, end)
    today = at.astimezone(zone).date()
    # On a day that begins with a change of clocks, midnight may not have been yet.
    if instant(datetime.combine(today, time()), zone) > at:
        today -= timedelta(days=1)
    match period:
        case "day":
            first, last = today - timedelta(days=1), today
        case "week":
            last = today - timedelta(days=today.weekday())
            first = last - timedelta(days=7)
        case "month":
            last = today.replace(day=1)
            first = (last - timedelta(days=1)).replace(day=1)
    return Bounds(midnight(first, zone), midnight(last, zone))


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The beginning of a day, in UTC."""
    return instant(datetime.combine(day, time()), zone)


@lru_cache(maxsize=256)
def _trigger(cron: str) -> Any:
    fields = cron.lower().split()
    if len(fields) != 5:
        raise ValueError(
            f"schedule '{cron}' has {len(fields)} fields; a cron expression has five: '0 6 * * 1'"
        )
    minute, hour, day, month, weekday = fields
    if day != "*" and weekday != "*":
        raise ValueError(
            f"schedule '{cron}' names days of the month and of the week, which cron programs understand "
            "differently; name one of them"
        )
    try:
        return CronTrigger(
            minute=minute, hour=hour, day=day, month=month, day_of_week=_week_days(weekday), timezone=UTC
        )
    except ValueError as error:
        raise ValueError(f"schedule '{cron}' cannot be read: {error}") from error


def _week_days(field: str) -> str:
    """Days by their names: 0 and 7 are Sunday in cron, while APScheduler counts from Monday."""
    if field == "*":
        return field
    names: list[str] = []
    for item in field.split(","):
        found = _DAY_ITEM.fullmatch(item)
        if found is None:
            raise ValueError(f"'{item}' is no day of the week: write 0 to 7, or mon-fri")
        first = _day_number(found["first"])
        last = first if found["last"] is None else _day_number(found["last"])
        step = int(found["step"] or 1)
        span = (last - first) % 7 if found["last"] != "7" else 7 - first
        names += [_DAYS[(first + offset) % 7] for offset in range(0, span + 1, step)]
    return ",".join(dict.fromkeys(names))


def _day_number(text: str) -> int:
    if text.isdecimal():
        return int(text) % 7
    if text not in _DAYS:
        raise ValueError(f"'{text}' is no day of the week: write 0 to 7, or mon-fri")
    return _DAYS.index(text)
