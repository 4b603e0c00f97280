"""Joins and groups over bags, as a stream and at once, give what SQLite gives."""

import os
import random
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.sql.planner import Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select
from headgate.sql.tables import CAME, GONE
from headgate.statements.runnable import tables_read
from tests.integration.sql.running import Row, Running, final
from tests.support.bags import BAGS, Bag, generated

SOAK = bool(os.environ.get("HEADGATE_SOAK"))
# A stream costs seconds, one batch tenths of them.
STREAMED, AT_ONCE = (200, 200) if SOAK else (1, 8)


def planned(sql: str) -> Plan:
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return plan(statement.query, BAGS)


def net(made: Plan, rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows that there are in the end, and how often."""
    if made.changelog == "append":
        return Counter(rows)
    if made.changelog == "upsert":
        return Counter(final(made, rows).values())
    found: Counter[tuple[Any, ...]] = Counter()
    for *values, op in rows:
        assert op in (CAME, GONE)
        found[tuple(values)] += 1 if op == CAME else -1
    assert min(found.values(), default=0) >= 0
    return +found


def any_bag(chance: random.Random) -> Bag:
    """One that is not refused: of a bag of rows that change, some need a key that tells them apart."""
    for _ in range(100):
        bag = generated(chance)
        with suppress(InvalidRequest):
            planned(bag.sql)
            return bag
    raise AssertionError("a hundred generated queries were refused")


def batches(rows: list[Row], chance: random.Random) -> list[list[Row]]:
    cut = chance.randrange(len(rows) + 1)
    parts = [rows[a:b] for a, b in pairwise([0, cut, len(rows)])]
    return [part for part in parts if part] or [[]]


def check(running: Running, bag: Bag, chance: random.Random, streamed: bool) -> None:
    made = planned(bag.sql)
    data = {name: batches(bag.rows[name], chance) for name in tables_read(made)}
    rows = running.stream(made, data) if streamed else running.batch(made, data)
    assert net(made, rows) == Counter(bag.answer()), bag


def bag_of(sql: str, a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> Bag:
    rows = {name: [dict(zip("kgv", row, strict=True)) for row in rows] for name, rows in (("a", a), ("b", b))}
    return Bag(sql, rows)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "at once"])
def test_left_join_counts_every_row_and_null_equals_nothing(running: Running, streamed: bool) -> None:
    a = [(1, 0, 0)] * 5 + [(None, 0, 0)] * 3 + [(2, 0, 0)] * 2
    b = [(1, 1, 0), (1, 1, 0), (None, 9, 0)]
    sql = "SELECT b.g, COUNT(*) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY b.g"
    bag = bag_of(sql, a, b)
    assert sorted(bag.answer(), key=str) == [(1, 10), (None, 5)]
    check(running, bag, random.Random("left join"), streamed)


def test_left_join_that_nothing_gathers_is_a_bag_too(running: Running) -> None:
    """Rows without a match come out, and are retracted when a match comes."""
    a, b = [(1, 5, 0), (1, 5, 0), (None, 6, 0)], [(1, 7, 0), (1, 7, 0), (None, 8, 0)]
    bag = bag_of("SELECT a.g, b.g AS h FROM a LEFT JOIN b ON a.k = b.k", a, b)
    check(running, bag, random.Random("a bag"), True)


@pytest.mark.parametrize("how", ["", "LEFT"])
def test_null_of_groups_equals_nothing(running: Running, how: str) -> None:
    """Both sides have one row for each key, and one of the keys is NULL."""
    one, other = (f"(SELECT k, COUNT(*) AS n FROM {name} GROUP BY k) AS {name}" for name in "ab")
    sql = f"SELECT a.k, a.n, b.n AS m FROM {one} {how} JOIN {other} ON b.k = a.k"
    bag = bag_of(sql, [(1, 0, 0), (None, 0, 0), (None, 0, 0)], [(1, 0, 0), (None, 0, 0)])
    assert ((None, 2, None) in bag.answer()) == (how == "LEFT")
    check(running, bag, random.Random("groups"), False)


MANY_OF_A_RECORD = [
    (
        "SELECT x.v, COUNT(*) AS n, COUNT(u.g) AS m FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) "
        "AS x LEFT JOIN u ON u.id = x.k GROUP BY x.v",
        [(1, 6, 2), (2, 1, 0)],
    ),
    (
        "SELECT e.x, COUNT(*) AS n, COUNT(u.g) AS m FROM a CROSS JOIN UNNEST(ARRAY[a.k, a.g, a.k]) AS e(x) "
        "LEFT JOIN u ON u.id = e.x GROUP BY e.x",
        [(1, 4, 4), (2, 2, 0)],
    ),
]


@pytest.mark.parametrize(("sql", "rows"), MANY_OF_A_RECORD, ids=["union", "unnest"])
def test_rows_of_one_coordinate_are_told_apart(
    running: Running, sql: str, rows: list[tuple[int, ...]]
) -> None:
    """A record of each of two tables, and the elements of one record."""
    data: dict[str, list[list[Row]]] = {
        "a": [[{"k": 1, "g": 2, "v": 1}, {"k": 1, "g": 2, "v": 1}]],
        "b": [[{"k": 3, "g": 2, "v": 1}, {"k": 3, "g": 2, "v": 2}, *({"k": 4, "g": 2, "v": 1},) * 3]],
        "u": [[{"id": 1, "k": 1, "g": 5, "v": 1, "$op": "u", "$partition": 0}]],
    }
    made = planned(sql)
    found = running.batch(made, {name: data[name] for name in tables_read(made)})
    assert net(made, found) == Counter(rows)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(STREAMED))
def test_any_bags_as_a_stream(running: Running, seed: int) -> None:
    chance = random.Random(f"stream of bags {seed}")
    check(running, any_bag(chance), chance, True)


@pytest.mark.soak
def test_any_bags_at_once(running: Running) -> None:
    for seed in range(AT_ONCE):
        chance = random.Random(f"bags {seed}")
        check(running, any_bag(chance), chance, False)
