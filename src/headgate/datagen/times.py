"""Times of a scenario, in milliseconds since 1970."""

import time
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from headgate.errors import InvalidRequest

#: As a start: when it is asked for.
NOW = "now"
START_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def parse_start(text: str) -> int:
    """When a story begins: `now`, or a time in ISO 8601 with its zone."""
    if text == NOW:
        return int(time.time() * 1000)
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        start = None
    if start is None or start.tzinfo is None:
        raise InvalidRequest(
            f"'{text}' is no time to start at.", "Write 2026-11-12T00:00:00Z, zone included, or now."
        )
    return round(start.timestamp() * 1000)


def iso_text(at_ms: int) -> str:
    """As many systems write times: text."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"


@lru_cache(maxsize=1 << 12)
def date_text(days: int) -> str:
    """A day since 1970 as a text of JSON."""
    return f'"{date(1970, 1, 1) + timedelta(days=days)}"'


def instant_text(at_us: int) -> str:
    """Microseconds since 1970 as a text of JSON."""
    return f'"{_second(at_us // 1_000_000)}.{at_us % 1_000_000:06}Z"'


@lru_cache(maxsize=1 << 12)
def _second(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%S}"
