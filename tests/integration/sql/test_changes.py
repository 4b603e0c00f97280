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
from headgate.sql.planner import Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import CreateTable, Select
from headgate.sql.tables import AFTER, CAME, OP_CODES
from headgate.statements.runnable import tables_read
from tests.integration.sql.running import Row, Running, final
from tests.support.dimensions import CASES, FACTS, Case, Facts, columns, ends, generated
from tests.support.queries import NOBODY, at, plain

ROUNDS = 13 if os.environ.get("HEADGATE_SOAK") else 1

# A result that has no key.
ONE_ROW = Case(
    "SELECT COUNT(*) AS n, SUM(v) AS s FROM d WHERE id >= 0",
    lambda facts: [
        (len(rows), sum(r["v"] for r in rows) if rows else None)
        for rows in [list(facts.current("d", "id").values())]
    ],
)


def planned(case: Case) -> Plan:
    statement = parse_statement(case.sql)
    assert isinstance(statement, Select)
    return plan(statement.query, FACTS)


def batches(facts: Facts, name: str, chance: random.Random) -> list[list[Row]]:
    records = getattr(facts, name)
    cuts = sorted(chance.sample(range(len(records) + 1), min(3, len(records) + 1)))
    parts = [records[a:b] for a, b in pairwise([0, *cuts, len(records)])]
    changelog = FACTS.tables[name].changelog

    def row(values: Row, time: Any, deletes: bool = False, op: str = CAME) -> Row:
        does = {} if changelog == "append" else {"$op": "d" if deletes else "u"}
        headers = {"op": base64.b64encode(OP_CODES[op]).decode()} if changelog == "retract" else {}
        return {**values, **does, "$headers": headers, "$partition": 0, "$rowtime": time}

    data = [[row(columns(name, r), at(r.t), r.deletes, r.op) for r in part] for part in parts if part]
    return [*data, *([row(values, at(0))] for values in ends(name))]


def given_to(made: Plan, facts: Facts, chance: random.Random) -> dict[str, list[list[Row]]]:
    return {name: batches(facts, name, chance) for name in sorted(tables_read(made))}


def without_ends(data: dict[str, list[list[Row]]]) -> dict[str, list[list[Row]]]:
    return {
        name: [[r for r in rows if NOBODY not in r.values()] for rows in parts]
        for name, parts in data.items()
    }


def check(running: Running, case: Case, facts: Facts, chance: random.Random) -> None:
    made = planned(case)
    data = given_to(made, facts, chance)
    given = without_ends(data)
    wanted = plain(case.rows(facts))
    streamed, at_once = running.stream(made, data), running.batch(made, given)
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
    check(running, CASES[name], generated(chance, chance.randrange(6, 16)), chance)


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
    data = given_to(made, facts, chance)
    wanted, rest = plain(case.rows(facts)), without_ends(data)
    at_once = running.batch(made, rest)
    assert {op for *_, op in at_once} <= {CAME}
    assert plain([tuple(row) for *row, _ in at_once]) == wanted
    left: Counter[tuple[Any, ...]] = Counter()
    for *row, op in running.stream(made, data):
        left[tuple(row)] += 1 if op in (CAME, AFTER) else -1
    assert min(left.values()) >= 0
    assert plain([row for row in left.elements() if NOBODY not in row]) == wanted
