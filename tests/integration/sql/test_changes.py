"""Versions, joins that update, rows that are taken back, rolling aggregates: as a stream in any batches,
and at once, they give what a plain computation gives."""

import os
import random
from itertools import pairwise
from typing import Any

import pytest

from headgate.sql.planner import Plan, plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select
from headgate.statements.runnable import tables_read
from tests.integration.sql.running import Row, Running, final
from tests.support.dimensions import CASES, FACTS, Case, Facts, columns, ends, generated
from tests.support.queries import NOBODY, at, plain

ROUNDS = 13 if os.environ.get("HEADGATE_SOAK") else 1


def planned(case: Case) -> Plan:
    statement = parse_statement(case.sql)
    assert isinstance(statement, Select)
    return plan(statement.query, FACTS)


def batches(facts: Facts, name: str, chance: random.Random) -> list[list[Row]]:
    records = getattr(facts, name)
    cuts = sorted(chance.sample(range(len(records) + 1), min(3, len(records) + 1)))
    parts = [records[a:b] for a, b in pairwise([0, *cuts, len(records)])]
    upsert = FACTS.tables[name].changelog == "upsert"

    def row(values: Row, deletes: bool, time: Any) -> Row:
        op = {"$op": "d" if deletes else "u"} if upsert else {}
        return {**values, **op, "$partition": 0, "$rowtime": time}

    data = [[row(columns(name, r), r.deletes, at(r.t)) for r in part] for part in parts if part]
    return [*data, *([row(values, False, at(0))] for values in ends(name))]


def check(running: Running, case: Case, facts: Facts, chance: random.Random) -> None:
    made = planned(case)
    names = set(tables_read(made))
    data = {name: batches(facts, name, chance) for name in sorted(names)}
    given = {
        name: [[r for r in rows if NOBODY not in r.values()] for rows in parts]
        for name, parts in data.items()
    }
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
