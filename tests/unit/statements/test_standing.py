"""What a new statement needs to become what a stopped one was: offsets, and an event time for each step."""

import pytest
from pyspark.sql import types as t

from headgate.errors import StatementFailed
from headgate.statements.runnable import Stage
from headgate.statements.standing import Standing, StepStanding
from headgate.statements.takeover import Rebuild
from tests.integration.statements.plans import EVENTS, Plan, Table, Watermark, staged

A, B = (Table(name, EVENTS, watermark=Watermark("ts")) for name in "ab")
OFFSETS = {"a": {0: 7}, "b": {0: 9, 1: 2}}


def plan(*tables: Table) -> Plan:
    return Plan(t.StructType(), tables, lambda *rows: rows[0])


def standing(*steps: tuple[set[str], int]) -> Standing:
    found = [StepStanding(frozenset(topics), time_ms) for topics, time_ms in steps]
    return Standing("old", OFFSETS, found, {"x": "y"})


def two(first: Plan, *more: Table) -> Plan:
    return staged(Stage("$stage1", first, ()), last=plan(Table("$stage1", EVENTS), *more))


def test_each_step_has_the_event_time_of_those_topics() -> None:
    same = standing(({"a"}, 100), ({"b"}, 60)).rebuild(two(plan(A), B))
    assert same == Rebuild(OFFSETS, 60, {"x": "y"}, (100,))
    assert same.of_step(0, {}) == Rebuild(OFFSETS, 100, {"x": "y"})
    between = {"$stage": {0: 3}}
    assert same.of_step(1, between) == Rebuild({**OFFSETS, **between}, 60, {"x": "y"})
    assert Rebuild.from_dict(same.to_dict()) == same
    # Without event time nothing waits; from one query to several all of it was one moment.
    assert standing(({"a", "b"}, 100)).rebuild(two(plan(A), B)) == Rebuild(OFFSETS, 100, {"x": "y"}, (100,))
    untimed = Table("b", EVENTS)
    assert standing(({"a", "b"}, 100)).rebuild(two(plan(A), untimed)).watermark_ms == 0


def test_two_event_times_are_not_one() -> None:
    for other in (60, 0):
        with pytest.raises(StatementFailed, match="different event times"):
            standing(({"a"}, 100), ({"b"}, other)).rebuild(plan(A, B))
    assert standing(({"a"}, 100), ({"b"}, 100)).rebuild(plan(A, B)).watermark_ms == 100


def test_a_topic_that_was_not_read_has_no_state() -> None:
    with pytest.raises(StatementFailed, match="has not read topic 'c'"):
        standing(({"a"}, 100)).rebuild(plan(A, Table("c", EVENTS)))
