"""Figures of tables and statements every ten seconds, for the last hour, in memory alone."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.server.overview import freshness
from headgate.server.standings import Standings

SAMPLE_SECONDS = 10.0
KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Rows a second, offsets that are still to be read, seconds that a record has been waiting."""

    rate: float | None
    lag: int | None
    freshness: float | None = None

    def shown(self) -> dict[str, Any]:
        return {"rate": self.rate, "lag": self.lag, "freshness": self.freshness}


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment's figures, by name."""

    at: float
    tables: Mapping[str, Figures]
    statements: Mapping[str, Figures]

    def shown(
        self,
        sees: Callable[[str], bool],
        statements: Callable[[str], bool],
        *,
        with_names: bool = True,
    ) -> dict[str, Any]:
        """`sees`, `statements`: which tables and statements count, and are named."""
        tables = {name: one for name, one in self.tables.items() if sees(name)}
        running = {name: one for name, one in self.statements.items() if statements(name)}
        return {
            "at": self.at,
            "total": _total(tables.values()).shown(),
            "tables": {name: one.shown() for name, one in tables.items()} if with_names else {},
            "statements": {name: one.shown() for name, one in running.items()} if with_names else {},
        }


def _total(figures: Iterable[Figures]) -> Figures:
    """Of a freshness, the worst."""
    known = list(figures)
    rates = [one.rate for one in known if one.rate is not None]
    lags = [one.lag for one in known if one.lag is not None]
    waits = [one.freshness for one in known if one.freshness is not None]
    return Figures(sum(rates) if rates else None, sum(lags) if lags else None, max(waits) if waits else None)


class Sampler:
    """Makes samples of one state after the other; for one thread, while others read."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(KEPT_SECONDS / SAMPLE_SECONDS))
        self._counts: Mapping[str, int] = {}
        self._counted_at = 0.0

    def take(self, standings: Standings, now: float) -> Sample:
        counts: dict[str, int | None] = {
            **{
                f"table {one.spec.topic} {one.created_at}": one.status.detail.get("records_materialized")
                for one in standings.tables
            },
            **{f"statement {one.id}": one.detail.get("rows_in") for one in standings.statements},
        }
        known = {key: count for key, count in counts.items() if count is not None}
        seconds = now - self._counted_at

        def rate(key: str) -> float | None:
            """None without a count before it. One that begins again counts what it has."""
            if key not in known or key not in self._counts or seconds <= 0:
                return None
            more = known[key] - self._counts[key]
            return round((more if more >= 0 else known[key]) / seconds, 3)

        sample = Sample(
            now,
            {
                one.spec.topic: Figures(
                    rate(f"table {one.spec.topic} {one.created_at}"),
                    one.status.detail.get("lag"),
                    freshness(one.status.detail),
                )
                for one in standings.tables
            },
            {
                one.name: Figures(rate(f"statement {one.id}"), one.detail.get("lag"))
                for one in standings.statements
            },
        )
        self._counts, self._counted_at = known, now
        self._samples.append(sample)
        return sample

    def since(self, moment: float) -> list[Sample]:
        """Oldest first."""
        return [one for one in list(self._samples) if one.at >= moment]
