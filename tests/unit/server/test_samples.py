"""Figures of the last hour."""

from dataclasses import replace
from typing import Any

from headgate.model import StatementState, TableSpec, TableState
from headgate.server.live.samples import KEPT_SECONDS, SAMPLE_SECONDS, Sampler
from headgate.server.standings import Standings
from headgate.store import StatementRecord, TableRecord
from headgate.store.store import TableStatus

NOTHING = Standings((), (), (), (), (), (), frozenset())


def table(topic: str, records: int | None, created_at: float = 0.0, **detail: Any) -> TableRecord:
    more = {} if records is None else {"records_materialized": records}
    status = TableStatus(TableState.RUNNING, "", 0.0, {**more, **detail}, 0.0)
    return TableRecord(TableSpec(topic), "enabled", None, created_at, status)


def statement(rows: int) -> StatementRecord:
    detail = {"rows_in": rows, "lag": 4}
    return StatementRecord(
        "1", "clean", "insert", "", {}, {}, "running", 0.0, StatementState.RUNNING, "", 0.0, detail, 0.0
    )


def of(*tables: TableRecord, statements: tuple[StatementRecord, ...] = ()) -> Standings:
    return replace(NOTHING, tables=tables, statements=statements)


def test_rate_is_what_came_since_the_sample_before() -> None:
    sampler = Sampler()
    first = sampler.take(of(table("a", 100), statements=(statement(7),)), 1000.0)
    assert (first.tables["a"].rate, first.statements["clean"].rate) == (None, None)
    second = sampler.take(of(table("a", 350, lag=3), statements=(statement(27),)), 1010.0)
    assert (second.tables["a"].rate, second.tables["a"].lag) == (25.0, 3)
    assert (second.statements["clean"].rate, second.statements["clean"].lag) == (2.0, 4)


def test_table_that_was_made_again_begins_again() -> None:
    sampler = Sampler()
    sampler.take(of(table("a", 1000, 1.0)), 1000.0)
    assert sampler.take(of(table("a", 20, 2.0)), 1010.0).tables["a"].rate is None
    assert sampler.take(of(table("a", 10, 2.0)), 1020.0).tables["a"].rate == 1.0
    assert sampler.take(of(table("a", None, 2.0)), 1030.0).tables["a"].rate is None


def test_total_is_of_what_its_reader_sees_and_the_worst_freshness() -> None:
    sampler = Sampler()
    for seconds, records in ((1000.0, 0), (1010.0, 100)):
        taken = sampler.take(
            of(
                table("a", records, lag=3, behind_since=None),
                table("b", records * 2, lag=4, behind_since=0.0),
                table("hr", records * 9, lag=100),
                table("new", None),
            ),
            seconds,
        )
    seen = taken.shown(lambda name: name != "hr", lambda _: True)
    assert (seen["at"], seen["total"]["rate"], seen["total"]["lag"]) == (1010.0, 30.0, 7)
    assert seen["total"]["freshness"] > 1_000_000
    assert set(seen["tables"]) == {"a", "b", "new"}
    assert seen["tables"]["new"] == {"rate": None, "lag": None, "freshness": None}
    assert taken.shown(lambda _: False, lambda _: False)["total"] == {
        "rate": None,
        "lag": None,
        "freshness": None,
    }
    assert taken.shown(lambda _: True, lambda _: True, with_names=False)["tables"] == {}


def test_samples_are_kept_for_an_hour() -> None:
    sampler = Sampler()
    most = int(KEPT_SECONDS / SAMPLE_SECONDS)
    for number in range(most + 5):
        sampler.take(of(table("a", number)), number * SAMPLE_SECONDS)
    found = [one.at for one in sampler.since(0.0)]
    assert (len(found), found[0], found[-1]) == (most, 5 * SAMPLE_SECONDS, (most + 4) * SAMPLE_SECONDS)
    assert len(sampler.since(found[-3])) == 3
