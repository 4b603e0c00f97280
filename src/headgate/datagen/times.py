"""Times of a scenario, in milliseconds since 1970."""

from datetime import UTC, datetime

START_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def iso_text(at_ms: int) -> str:
    """As many systems write times: text."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03}Z"
