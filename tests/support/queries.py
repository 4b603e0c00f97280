"""Queries over two streams of events, and what a plain computation gives for each."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from headgate.sql.tables import Catalog, TableInfo, Watermark

START = datetime(2026, 3, 1, tzinfo=UTC)
DELAY = 5
# Far enough behind all rows that the watermark passes them; two, since it is known one batch later.
ENDS = (100_000, 200_000)
NOBODY, NOTHING = -1, -999


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def clock(seconds: float) -> datetime:
    return at(seconds).replace(tzinfo=None)


def table(name: str) -> TableInfo:
    columns = [
        StructField("k", IntegerType()),
        StructField("v", LongType()),
        StructField("w", StringType()),
        StructField("t", TimestampType()),
    ]
    return TableInfo(name, StructType(columns), watermark=Watermark("t", DELAY * 1000))


TABLES = Catalog({name: table(name) for name in ("a", "b")})


@dataclass(frozen=True)
class Event:
    """A row; `place` is the order in which it came, which is its offset."""

    k: int
    v: int
    w: str
    t: int
    place: int

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.t, self.place % 2, self.place)


@dataclass(frozen=True)
class Kind:
    """A query and what it should give; `changes` for results that change. A row that comes behind the
    watermark counts where nothing waits for event time (`late`), and is left out elsewhere."""

    sql: str
    rows: Callable[[list[Event], list[Event]], list[tuple[Any, ...]]]
    changes: bool = False
    late: bool = False

    def given(self, events: list[Event], late: list[Event]) -> list[Event]:
        """The rows that count."""
        return [*events, *late] if self.late or self.changes else events


def first_rows(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.k, e.v, at(e.t)) for e in (min(g, key=lambda e: e.order) for g in by_key(a).values())]


def last_rows(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.k, e.v) for e in (max(g, key=lambda e: e.order) for g in by_key(a).values())]


def by_key(events: list[Event]) -> dict[int, list[Event]]:
    groups: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        groups[event.k].append(event)
    return groups


def joined(left: bool, right: bool) -> Callable[[list[Event], list[Event]], list[tuple[Any, ...]]]:
    def rows(a: list[Event], b: list[Event]) -> list[tuple[Any, ...]]:
        pairs = [(x, y) for x in a for y in b if x.k == y.k and x.t - 6 <= y.t <= x.t + 2]
        found: list[tuple[Any, ...]] = [(x.k, x.v, y.v) for x, y in pairs]
        if left:
            found += [(x.k, x.v, None) for x in a if not any(p[0] is x for p in pairs)]
        if right:
            found += [(None, None, y.v) for y in b if not any(p[1] is y for p in pairs)]
        return found

    return rows


def windows(size: int, step: int) -> Callable[[list[Event], list[Event]], list[tuple[Any, ...]]]:
    def rows(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
        groups: dict[tuple[int, str], list[Event]] = defaultdict(list)
        for event in a:
            last = event.t // step * step
            for start in range(last - size + step, last + 1, step):
                groups[start, event.w].append(event)
        return [(clock(s), clock(s + size), w, len(g), sum(e.v for e in g)) for (s, w), g in groups.items()]

    return rows


def greatest(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for event in a:
        groups[event.t // 10 * 10, event.k].append(event.v)
    return [(clock(start), clock(start + 10), k, max(values)) for (start, k), values in groups.items()]


def cumulated(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    groups: dict[tuple[int, int, str], list[Event]] = defaultdict(list)
    for event in a:
        start = event.t // 12 * 12
        for end in range(start + 4, start + 13, 4):
            if event.t < end:
                groups[start, end, event.w].append(event)
    return [(clock(s), clock(e), w, len(g), sum(x.v for x in g)) for (s, e, w), g in groups.items()]


def sessions(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for k, group in by_key(a).items():
        open_: list[Event] = []
        for event in sorted(group, key=lambda e: e.t):
            if open_ and event.t - open_[-1].t > 3:
                found.append((clock(open_[0].t), clock(open_[-1].t + 3), k, len(open_)))
                open_ = []
            open_.append(event)
        found.append((clock(open_[0].t), clock(open_[-1].t + 3), k, len(open_)))
    return found


def grouped(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    groups = by_key(a).items()
    return [
        (k, len(g), sum(e.v for e in g), len({e.w for e in g})) for k, g in groups if sum(e.v for e in g) > 5
    ]


def united(a: list[Event], b: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.k, e.v * 2) for e in (*a, *b) if e.v > 2]


def distinct(a: list[Event], _: list[Event]) -> list[tuple[Any, ...]]:
    return list({(e.k, e.w) for e in a})


JOIN = (
    "SELECT a.k, a.v AS x, b.v AS y FROM a {} JOIN b ON a.k = b.k AND b.t BETWEEN a.t - INTERVAL '6' "
    "SECOND AND a.t + INTERVAL '2' SECOND"
)
WINDOW = (
    "SELECT window_start, window_end, w, COUNT(*) AS n, SUM(v) AS s FROM TABLE({}) WHERE k <> -1 GROUP "
    "BY window_start, "
    "window_end, w"
)
KINDS = {
    "keep-first": Kind(
        "SELECT k, v, t FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM a) "
        "WHERE n = 1 AND k <> -1",
        first_rows,
    ),
    "keep-last": Kind(
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t DESC) AS n FROM a "
        "WHERE k <> -1) WHERE n = 1",
        last_rows,
        True,
    ),
    "join": Kind(JOIN.format(""), joined(False, False)),
    "comma-join": Kind(
        "SELECT a.k, a.v AS x, b.v AS y FROM a, b WHERE a.k = b.k AND b.t >= a.t - INTERVAL '6' SECOND "
        "AND b.t <= a.t + "
        "INTERVAL '2' SECOND",
        joined(False, False),
    ),
    "left-join": Kind(JOIN.format("LEFT"), joined(True, False)),
    "right-join": Kind(JOIN.format("RIGHT"), joined(False, True)),
    "full-join": Kind(JOIN.format("FULL OUTER"), joined(True, True)),
    "tumble": Kind(WINDOW.format("TUMBLE(TABLE a, DESCRIPTOR(t), INTERVAL '10' SECOND)"), windows(10, 10)),
    "hop": Kind(
        WINDOW.format("HOP(TABLE a, DESCRIPTOR(t), INTERVAL '5' SECOND, INTERVAL '10' SECOND)"),
        windows(10, 5),
    ),
    "cumulate": Kind(
        WINDOW.format("CUMULATE(TABLE a, DESCRIPTOR(t), INTERVAL '4' SECOND, INTERVAL '12' SECOND)"),
        cumulated,
    ),
    "session": Kind(
        "SELECT SESSION_START(t, INTERVAL '3' SECOND) AS s, SESSION_END(t, INTERVAL '3' SECOND) AS e, "
        "k, COUNT(*) AS n FROM a "
        "WHERE k <> -1 GROUP BY SESSION(t, INTERVAL '3' SECOND), k",
        sessions,
    ),
    "group": Kind(
        "SELECT k, COUNT(*) AS n, SUM(v) AS s, COUNT(DISTINCT w) AS d FROM a WHERE k <> -1 GROUP BY k "
        "HAVING SUM(v) > 5",
        grouped,
        True,
    ),
    "first-rows-joined": Kind(
        "SELECT a.k, a.v AS x, b.v AS y FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) "
        "AS n FROM a) a JOIN b ON "
        "a.k = b.k AND b.t BETWEEN a.t - INTERVAL '6' SECOND AND a.t + INTERVAL '2' SECOND WHERE a.n = 1",
        lambda a, b: joined(False, False)([min(g, key=lambda e: e.order) for g in by_key(a).values()], b),
    ),
    "greatest-of-left-join": Kind(
        "WITH j AS (SELECT a.k AS k, a.v AS v, a.t AS t FROM a LEFT JOIN b ON a.k = b.k AND b.t BETWEEN "
        "a.t - INTERVAL '6' SECOND AND a.t + INTERVAL '2' SECOND) "
        "SELECT window_start, window_end, k, MAX(v) AS v "
        "FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(t), INTERVAL '10' SECOND)) WHERE k <> -1 "
        "GROUP BY window_start, window_end, k",
        greatest,
    ),
    "union": Kind(
        "SELECT k, v * 2 AS v FROM a WHERE v > 2 UNION ALL SELECT k, v * 2 FROM b WHERE v > 2",
        united,
        late=True,
    ),
    "distinct": Kind("SELECT DISTINCT k, w FROM a WHERE k <> -1", distinct, late=True),
}


def is_end(row: tuple[Any, ...]) -> bool:
    """What outer joins show of the rows that only move the watermark."""
    return row[0] == NOBODY or NOTHING in row


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    shown = [tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in rows]
    return sorted(repr(row) for row in shown)
