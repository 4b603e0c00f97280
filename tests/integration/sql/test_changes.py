"""Versions, joins that update, rows that are taken back, rolling aggregates: as a stream in any batches,
and at once, they give what a plain computation gives."""

import base64
import os
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from headgate.sql.insert import plan_create
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable
from headgate.sql.tables import AFTER, CAME, OP_CODES
from headgate.statements.runnable import tables_read
from tests.integration.sql.running import Row, Running, final, in_time
from tests.support.changing_cases import CASES
from tests.support.dimension_cases import Case
from tests.support.dimensions import FACTS, Facts, Record, columns, ends, generated, late_rows
from tests.support.queries import NOBODY, at, clock, plain

ROUNDS = 13 if os.environ.get("HEADGATE_SOAK") else 1
# Rows come in so many batches and one more.
CUTS = 3 if os.environ.get("HEADGATE_SOAK") else 2

# A result that has no key.
ONE_ROW = Case(
    "SELECT COUNT(*) AS n, SUM(v) AS s FROM d WHERE id >= 0",
    lambda facts: [
        (len(rows), sum(r["v"] for r in rows) if rows else None)
        for rows in [list(facts.current("d", "id").values())]
    ],
)


def batches(facts: Facts, name: str, chance: random.Random) -> list[list[Row]]:
    records = getattr(facts, name)
    cuts = sorted(chance.sample(range(len(records) + 1), min(CUTS, len(records) + 1)))
    parts = [records[a:b] for a, b in pairwise([0, *cuts, len(records)])]
    return [rows_of(name, part) for part in parts if part]


def rows_of(name: str, records: list[Record]) -> list[Row]:
    return [row(name, columns(name, r), at(r.t), r.deletes, r.op) for r in records]


def row(name: str, values: Row, time: Any, deletes: bool = False, op: str = CAME) -> Row:
    changelog = FACTS.tables[name].changelog
    does = {} if changelog == "append" else {"$op": "d" if deletes else "u"}
    headers = {"op": base64.b64encode(OP_CODES[op]).decode()} if changelog == "retract" else {}
    return {**values, **does, "$headers": headers, "$partition": 0, "$rowtime": time}


def ended(name: str) -> list[list[Row]]:
    return [[row(name, values, at(0))] for values in ends(name)]


def check(running: Running, case: Case, facts: Facts, late: Facts, chance: random.Random) -> None:
    made = case.plan(FACTS)
    names = sorted(set(tables_read(made)))
    parts = {name: batches(facts, name, chance) for name in names}
    after = {name: rows_of(name, getattr(late, name)) for name in names}
    last = {name: ended(name) for name in names}
    given = {name: [*parts[name], *([after[name]] if name in case.late else [])] for name in names}
    wanted = plain(case.rows(facts.with_late(late, case.late)))
    streamed, at_once = running.stream(made, in_time(parts, last, after)), running.batch(made, given)
    assert (running.late > 0) == any(name not in case.late for name in names)
    if case.changes:
        found = [list(final(made, rows).values()) for rows in (at_once, streamed)]
    else:
        found = [at_once, streamed]
    for rows in found:
        assert plain([row for row in rows if NOBODY not in row]) == wanted


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("name", CASES)
def test_streaming_is_batch_is_plain(running: Running, name: str, seed: int) -> None:
    chance = random.Random(f"{name}{seed}")
    facts = generated(chance, chance.randrange(6, 16))
    check(running, CASES[name], facts, late_rows(chance, 2), chance)


OF_AN_AGE = (
    "SELECT f.id, c.n FROM f AS f {} JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k AND "
    "c.u >= f.t - INTERVAL '300' SECOND"
)
SPENT = (
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '300' SECOND PRECEDING AND "
    "CURRENT ROW) AS s FROM f"
)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (OF_AN_AGE.format(""), [(1, "c9"), (2, "c39")]),
        (OF_AN_AGE.format("LEFT"), [(1, "c9"), (2, "c39"), (3, None)]),
        (SPENT, [(1, 5), (2, 11), (3, 7)]),
        (
            "SELECT x.id, x.n, h.n AS m FROM ("
            + OF_AN_AGE.format("").replace("c.n ", "c.n, f.t, f.h ")
            + ") AS x JOIN h FOR SYSTEM_TIME AS OF x.t AS h ON h.h = x.h AND h.u >= x.t - INTERVAL '200' "
            "SECOND",
            [(1, "c9", "h"), (2, "c39", "h")],
        ),
    ],
    ids=["inner", "left", "rolling", "chain"],
)
def test_rows_do_not_wait_for_the_bound_and_what_is_past_it_is_freed(
    running: Running, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    """Fifty seconds of rows, then one a minute later: what waits for event time comes out, though the bound
    is minutes longer. Then rows that are hours later: of the versions, none is left."""

    def fact(id_: int, k: int, v: int, t: int) -> Row:
        return {"id": id_, "k": k, "h": 0, "v": v, "t": at(t)}

    def version(n: int) -> Row:
        return {"k": 1, "n": f"c{n}", "u": clock(n), "$op": "u"}

    def ends(*times: int) -> dict[str, list[list[Row]]]:
        return {
            "f": [[fact(NOBODY, NOBODY, 0, t)] for t in times],
            "c": [[{"k": NOBODY, "n": "", "u": clock(t), "$op": "u"}] for t in times],
            "h": [[{"h": NOBODY, "n": "", "u": at(t), "$op": "u"}] for t in times],
        }

    begun = {
        "f": [[fact(1, 1, 5, 9), fact(2, 1, 6, 39), fact(3, 2, 7, 40)]],
        "c": [[version(n) for n in range(50)]],
        "h": [[{"h": 0, "n": "h", "u": at(3), "$op": "u"}]],
    }
    made = Case(sql, lambda _: []).plan(FACTS)
    names = tables_read(made)
    soon = {name: begun[name] + ends(100, 110)[name] for name in names}
    assert plain([row for row in running.stream(made, soon) if row[0] != NOBODY]) == plain(rows)
    much = max(sum(kept) for kept in running.kept)
    later = {name: soon[name] + ends(50_000, 60_000)[name] for name in names}
    assert plain([row for row in running.stream(made, later) if row[0] != NOBODY]) == plain(rows)
    # A row of the end for each side of a join and each operator may be left, and no more.
    assert sum(running.kept[-1]) <= 3 * len(names) * len(running.kept[-1]) < much, running.kept


@pytest.mark.parametrize(
    ("bound", "last"),
    [("", "late"), (" AND c.u >= f.t - INTERVAL '150' SECOND", None)],
    ids=["any", "of an age"],
)
def test_version_that_comes_late_serves_what_has_not_passed_yet(
    running: Running, bound: str, last: str | None
) -> None:
    """It begins before one that has come: facts that are passed keep what they had, later ones have it."""

    def fact(id_: int, t: int) -> Row:
        return {"id": id_, "k": 1 if id_ < 9 else NOBODY, "h": 0, "v": 0, "t": at(t)}

    def version(k: int, n: str, t: int) -> Row:
        return {"k": k, "n": n, "u": clock(t), "$op": "u", "$partition": 0}

    made = Case(
        f"SELECT f.id, c.n FROM f AS f LEFT JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k{bound}",
        lambda _: [],
    ).plan(FACTS)
    facts = [[fact(1, 20)], [fact(9, 100)], [fact(9, 110)], [fact(2, 115)], [fact(3, 300)], *ended("f")]
    versions = [
        [version(1, "first", 10)],
        [version(NOBODY, "", 100)],
        [version(NOBODY, "", 110)],
        # The watermark is at 105 by now, and fact 1 has come out.
        [version(1, "late", 15), version(2, "late", 15)],
        [version(NOBODY, "", 300)],
        *ended("c"),
    ]
    rows = running.stream(made, {"f": facts, "c": versions})
    assert running.late == 0
    assert sorted(row for row in rows if 0 < row[0] < 9) == [(1, "first"), (2, "late"), (3, last)]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("f CROSS JOIN UNNEST(ARRAY[f.k, f.h]) AS e(x)", 2),
        ("TABLE(HOP(TABLE f, DESCRIPTOR(t), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) AS f", 4),
    ],
    ids=["unnest", "hop"],
)
def test_rows_of_one_record_have_a_version_each(running: Running, source: str, count: int) -> None:
    made = Case(
        f"SELECT f.id, c.n FROM {source} JOIN c FOR SYSTEM_TIME AS OF f.t AS c ON c.k = f.k", lambda _: []
    ).plan(FACTS)
    facts = [[{"id": 1, "k": 1, "h": 1, "v": 0, "t": at(20)}]]
    rows = running.batch(made, {"f": facts, "c": [[{"k": 1, "n": "c", "u": clock(10), "$op": "u"}]]})
    assert rows == [(1, "c")] * count


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize(
    ("name", "key"), [("groups-joined", False), ("filtered-changes", True), ("one-row", False)]
)
def test_what_is_written_out_and_taken_back_is_plain(
    running: Running, name: str, key: bool, seed: int
) -> None:
    """A retract table: what came and was not taken back is what there is."""
    case, chance = {**CASES, "one-row": ONE_ROW}[name], random.Random(f"{name}{seed}")
    told = f"(PRIMARY KEY ({', '.join(case.key)}) NOT ENFORCED) " if key else ""
    statement = parse_statement(f"CREATE TABLE o {told}WITH ('changelog.mode' = 'retract') AS {case.sql}")
    assert isinstance(statement, CreateTable)
    _, made = plan_create(statement, FACTS)
    assert made is not None
    assert (made.changelog, made.key) == ("retract", ())
    facts = generated(chance, chance.randrange(6, 16))
    data = {name: batches(facts, name, chance) for name in sorted(tables_read(made))}
    wanted = plain(case.rows(facts))
    at_once = running.batch(made, data)
    assert {op for *_, op in at_once} <= {CAME}
    assert plain([tuple(values) for *values, _ in at_once]) == wanted
    left: Counter[tuple[Any, ...]] = Counter()
    for *values, op in running.stream(made, {name: [*data[name], *ended(name)] for name in data}):
        left[tuple(values)] += 1 if op in (CAME, AFTER) else -1
    assert min(left.values()) >= 0
    assert plain([values for values in left.elements() if NOBODY not in values]) == wanted
