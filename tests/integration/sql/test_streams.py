"""The same rows come out whether they are read as a stream, in any batches, or all at once; and they are
the rows that a plain computation gives."""

import os
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from headgate.sql.insert import plan_insert
from headgate.sql.planner import Options, Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.stateful import JoinRows, KeepFirst
from headgate.sql.statements import InsertInto, Select
from headgate.sql.tables import Catalog, TableInfo
from headgate.statements.runnable import tables_read
from tests.integration.sql.running import Row, Running, final, in_time
from tests.support.queries import (
    DELAY,
    ENDS,
    KINDS,
    NOBODY,
    NOTHING,
    TABLES,
    Event,
    Kind,
    at,
    is_end,
    plain,
    table,
)

CASES = 200 if os.environ.get("HEADGATE_SOAK") else 10


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


@st.composite
def late_events(draw: st.DrawFn) -> list[tuple[int, int, str, int]]:
    """Rows that come when event time has long passed them."""
    row = st.tuples(st.integers(0, 3), st.integers(-2, 9), st.sampled_from("xyz"), st.integers(0, 40))
    return draw(st.lists(row, max_size=3))


def batches(rows: list[Event], cuts: list[int]) -> list[list[Row]]:
    """The rows cut into batches."""
    edges = [0, *sorted({cut % (len(rows) + 1) for cut in cuts}), len(rows)]
    parts = [rows[a:b] for a, b in pairwise(edges)]
    return [[row_of(e) for e in part] for part in parts if part]


def row_of(e: Event) -> Row:
    return {"k": e.k, "v": e.v, "w": e.w, "t": at(e.t)}


def check(
    running: Running,
    kind: Kind,
    a: list[Event],
    b: list[Event],
    cuts: list[int],
    options: Options | None,
    late: tuple[list[Event], list[Event]] = ([], []),
) -> None:
    made = planned(kind, options)
    parts = {"a": batches(a, cuts), "b": batches(b, cuts[::-1])}
    # Rows of the ends that no other row meets: only outer joins show them.
    ends = [[{"k": NOBODY, "v": NOTHING, "w": "end", "t": at(end)}] for end in ENDS]
    after = {"a": [row_of(e) for e in late[0]], "b": [row_of(e) for e in late[1]]}
    data = in_time(parts, dict.fromkeys(parts, ends), after)
    counts = kind.late or kind.changes
    given = {name: [*parts[name], *([after[name]] if counts else [])] for name in parts}
    wanted = plain(kind.rows(kind.given(a, late[0]), kind.given(b, late[1])))
    streamed, at_once = running.stream(made, data), running.batch(made, given)
    read = [rows for name, rows in after.items() if name in tables_read(made) and rows]
    assert (running.late > 0) == (bool(read) and not counts)
    steps = {type(step) for step in made.root.walk()}
    if JoinRows in steps and KeepFirst not in steps:
        # An aggregation counts what it has gathered of a group; a join counts rows.
        assert running.late == sum(map(len, read))
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
    late=st.tuples(late_events(), late_events()),
)
@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_rows_in_any_batches(
    running: Running,
    name: str,
    a: list[Event],
    b: list[Event],
    cuts: list[int],
    ttl: int | None,
    late: tuple[list[tuple[int, int, str, int]], list[tuple[int, int, str, int]]],
) -> None:
    # Behind the rows of the ends, which have their places too.
    late_a, late_b = (
        [Event(*row, place) for place, row in enumerate(rows, len(before) + len(ENDS))]
        for before, rows in ((a, late[0]), (b, late[1]))
    )
    check(running, KINDS[name], a, b, cuts, Options(state_ttl_ms=ttl), (late_a, late_b))


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


@pytest.mark.parametrize("ttl", [None, 1_000_000])
def test_the_first_of_its_partition_comes_out_with_its_own_batch(running: Running, ttl: int | None) -> None:
    """No record follows that would move event time, and none is waited for: the least offset it is."""
    statement = parse_statement(
        "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM c) WHERE n = 1"
    )
    assert isinstance(statement, Select)
    tables = Catalog({"c": TableInfo("c", table("c").columns)}, record_keys={"c": ("k",)})

    def row(k: int, v: int, t: int, came: int) -> Row:
        return {"k": k, "v": v, "w": "", "t": at(t), "$rowtime": at(came), "$partition": k % 2}

    data = [
        [row(1, 10, 500, 1), row(1, 11, 400, 2), row(2, 20, -9_000, 300)],
        # Late by the other partition, and by the time of nobody.
        [row(1, 12, 0, 3), row(3, 30, 0, 4), row(2, 21, -9_999, 301)],
        [row(4, 40, 7, 5)],
    ]
    made = plan(statement.query, tables, Options(state_ttl_ms=ttl))
    assert sorted(running.stream(made, {"c": data})) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    assert running.late == 0
    # Of a whole topic it is the least by its order.
    whole = plan(statement.query, tables, Options(state_ttl_ms=ttl, bounded=True))
    assert sorted(running.batch(whole, {"c": data})) == [(1, 12), (2, 21), (3, 30), (4, 40)]


def test_a_first_row_that_may_be_replaced_is_the_least_in_the_end(running: Running) -> None:
    statement = parse_statement(
        "INSERT INTO d SELECT k, v FROM "
        "(SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM c) WHERE n = 1"
    )
    assert isinstance(statement, InsertInto)
    columns = StructType([field for field in table("c").columns.fields if field.name in ("k", "v")])
    target = TableInfo("d", columns, ("k",), "upsert")
    made = plan_insert(statement, target, Catalog({"c": TableInfo("c", table("c").columns)}))

    def row(k: int, v: int, t: int) -> Row:
        return {"k": k, "v": v, "w": "", "t": at(t)}

    data = [[row(1, 10, 500), row(2, 20, 7)], [row(1, 11, 400), row(2, 21, 8)], [row(3, 30, 0)]]
    rows = running.stream(made, {"c": data})
    assert final(made, rows) == {(1,): (1, 11), (2,): (2, 20), (3,): (3, 30)}


def test_regular_joins_meet_however_far_apart(running: Running) -> None:
    kind = Kind(
        "SELECT a.k, a.v AS x, b.v AS y FROM a JOIN b ON a.k = b.k",
        lambda a, b: [(x.k, x.v, y.v) for x in a for y in b if x.k == y.k],
    )
    a = [Event(1, 1, "x", 0, 0), Event(2, 2, "x", 50, 1), Event(1, 3, "x", 60, 2)]
    b = [Event(1, 7, "x", 5_000, 0), Event(3, 8, "x", 5_001, 1)]
    check(running, kind, a, b, [1], None)
