"""The same rows come out whether they are read as a stream, in any batches, or all at once; and they are
the rows that a plain computation gives."""

import os
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select
from headgate.sql.tables import Catalog, TableInfo, Watermark
from tests.integration.sql.running import Row, Running, at, clock, final

CASES = 200 if os.environ.get("HEADGATE_SOAK") else 20
DELAY = 5
# Far enough behind all rows that the watermark passes them; two, since it is known one batch later.
ENDS = (100_000, 200_000)
NOBODY, NOTHING = -1, -999


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
    """A query and what it should give; `changes` for results that change."""

    sql: str
    rows: Callable[[list[Event], list[Event]], list[tuple[Any, ...]]]
    changes: bool = False


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
    "union": Kind(
        "SELECT k, v * 2 AS v FROM a WHERE v > 2 UNION ALL SELECT k, v * 2 FROM b WHERE v > 2", united
    ),
    "distinct": Kind("SELECT DISTINCT k, w FROM a WHERE k <> -1", distinct),
}


def planned(kind: Kind, options: Options | None = None) -> Plan:
    statement = parse_statement(kind.sql)
    assert isinstance(statement, Select)
    return plan(statement.query, TABLES, options)


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Rows that come out of order, but none later than the watermark allows."""
    found: list[Event] = []
    base = draw(st.integers(0, 5))
    for place in range(draw(st.integers(1, 14))):
        base += draw(st.integers(0, 4))
        t = base - draw(st.integers(0, DELAY - 1))
        found.append(
            Event(draw(st.integers(0, 3)), draw(st.integers(-2, 9)), draw(st.sampled_from("xyz")), t, place)
        )
    return found


def batches(rows: list[Event], cuts: list[int]) -> list[list[Row]]:
    """The rows cut into batches, and then rows whose times are far behind."""
    edges = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    parts = [rows[a:b] for a, b in pairwise(edges)]
    data = [[{"k": e.k, "v": e.v, "w": e.w, "t": at(e.t)} for e in part] for part in parts if part]
    return [*data, *([{"k": NOBODY, "v": NOTHING, "w": "end", "t": at(end)}] for end in ENDS)]


def is_end(row: tuple[Any, ...]) -> bool:
    """What outer joins show of the rows that only move the watermark."""
    return row[0] == NOBODY or NOTHING in row


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    shown = [tuple(v.replace(tzinfo=None) if hasattr(v, "tzinfo") else v for v in row) for row in rows]
    return sorted(repr(row) for row in shown)


def check(
    running: Running, kind: Kind, a: list[Event], b: list[Event], cuts: list[int], options: Options | None
) -> None:
    made = planned(kind, options)
    data = {"a": batches(a, cuts), "b": batches(b, cuts[::-1])}
    # Rows of the ends that no other row meets: only outer joins show them.
    given = {name: [[r for r in rows if r["k"] != NOBODY] for rows in parts] for name, parts in data.items()}
    wanted = plain(kind.rows(a, b))
    streamed, at_once = running.stream(made, data), running.batch(made, given)
    if kind.changes:
        assert plain(list(final(made, at_once).values())) == wanted
        assert plain(list(final(made, streamed).values())) == wanted
    else:
        assert plain(at_once) == wanted
        assert plain([row for row in streamed if not is_end(row)]) == wanted


@pytest.mark.parametrize("name", KINDS)
def test_out_of_order_and_in_two_batches(running: Running, name: str) -> None:
    rows = [
        (1, 1, "x", 3),
        (2, 2, "y", 1),
        (1, 4, "z", 0),
        (3, 9, "x", 8),
        (1, 5, "x", 9),
        (2, 7, "y", 6),
        (1, 3, "y", 0 + 8),
    ]
    a = [Event(k, v, w, t, place) for place, (k, v, w, t) in enumerate(rows)]
    b = [Event(k, v + 1, w, t + 1, place) for place, (k, v, w, t) in enumerate(rows[:5])]
    check(running, KINDS[name], a, b, [3], None)


@given(
    name=st.sampled_from(sorted(KINDS)),
    a=events(),
    b=events(),
    cuts=st.lists(st.integers(0, 20), max_size=2),
    ttl=st.sampled_from([None, 3_600_000]),
)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_rows_in_any_batches(
    running: Running, name: str, a: list[Event], b: list[Event], cuts: list[int], ttl: int | None
) -> None:
    check(running, KINDS[name], a, b, cuts, Options(state_ttl_ms=ttl))


def test_a_key_that_came_out_does_not_come_out_again(running: Running) -> None:
    """Its later rows come batches later, when the first has long gone."""
    a = [Event(1, 1, "x", 0, 0), Event(2, 2, "x", 50, 1), Event(1, 3, "x", 60, 2), Event(3, 4, "x", 120, 3)]
    check(running, KINDS["keep-first"], a, [], [1, 2, 3], None)


def test_the_first_by_a_time_without_a_watermark_comes_out_once(running: Running) -> None:
    """Rows wait for the time of their records: of those that have come by then, the least is first."""
    statement = parse_statement(
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM c) WHERE n = 1"
    )
    assert isinstance(statement, Select)
    made = plan(statement.query, Catalog({"c": TableInfo("c", table("c").columns)}))

    def row(k: int, v: int, t: int, came: int) -> Row:
        return {"k": k, "v": v, "w": "", "t": at(t), "$rowtime": at(came)}

    data = [
        [row(1, 10, 500, 1), row(1, 11, 400, 2), row(2, 20, -9_000, 3)],
        [row(3, 30, 0, 100)],
        # Less than what came out, and too late for that.
        [row(1, 12, 0, 101), row(2, 21, -9_999, 102), row(4, 40, 7, 103)],
        [row(NOBODY, 0, 0, 1_000)],
        [row(NOBODY, 0, 0, 2_000)],
    ]
    rows = running.stream(made, {"c": data})
    assert sorted(row for row in rows if row[0] != NOBODY) == [(1, 11), (2, 20), (3, 30), (4, 40)]


def test_regular_joins_meet_however_far_apart(running: Running) -> None:
    kind = Kind(
        "SELECT a.k, a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k",
        lambda a, b: [(x.k, x.v, y.v) for x in a for y in b if x.k == y.k],
    )
    a = [Event(1, 1, "x", 0, 0), Event(2, 2, "x", 50, 1), Event(1, 3, "x", 60, 2)]
    b = [Event(1, 7, "x", 5_000, 0), Event(3, 8, "x", 5_001, 1)]
    check(running, kind, a, b, [1], None)
