"""What needs somebody, with its reason, what to do, and what mends it."""

from collections.abc import Mapping
from typing import Any

import pytest

from headgate.access.roles import Grant, Principal, Role
from headgate.access.topics import TopicRights
from headgate.model import OnError, StatementState, TableFormat, TableSpec, TableState
from headgate.server.attention import attention
from headgate.server.standings import CatalogStanding, ExportStanding, Standings
from headgate.store import (
    IntegrationRecord,
    IntegrationState,
    RunRecord,
    RunState,
    StatementRecord,
    TableRecord,
)
from headgate.store.store import TableStatus

NOBODY = TopicRights(Principal("'eve'", (Grant(Role.READER),)), "local")
ADA = TopicRights(Principal("'ada'", (Grant(Role.WRITER, "local", "shop.*"),)), "local")


def table(
    state: TableState,
    reason: str = "",
    topic: str = "shop.orders",
    detail: Mapping[str, Any] | None = None,
    on_error: OnError = OnError.SUSPEND,
) -> TableRecord:
    status = TableStatus(state, reason, 1.0, detail or {}, 2.0)
    return TableRecord(TableSpec(topic, on_error=on_error), "enabled", None, 0.0, status)


def statement(state: StatementState, reason: str = "", writes: str = "shop.orders") -> StatementRecord:
    options = {"tables": {"output": {"topic": writes}, "tables": {}, "views": {}}}
    return StatementRecord(
        "1", "clean", "insert", "INSERT …", options, {}, "running", 0.0, state, reason, 1.0, {}, 2.0
    )


def standings(
    *records: TableRecord | StatementRecord,
    processes: Mapping[str, str] | None = None,
    catalogs: tuple[CatalogStanding, ...] = (),
    exports: tuple[ExportStanding, ...] = (),
    slow: frozenset[str] = frozenset(),
) -> Standings:
    return Standings(
        tuple(one for one in records if isinstance(one, TableRecord)),
        tuple(one for one in records if isinstance(one, StatementRecord)),
        (),
        tuple((processes or {}).items()),
        catalogs,
        exports,
        slow,
    )


def test_nothing_needs_anybody_where_all_goes_well() -> None:
    well = standings(
        table(TableState.RUNNING),
        table(TableState.SYNCING, topic="shop.items"),
        table(TableState.PENDING, "waiting for the engine", topic="shop.new"),
        statement(StatementState.STOPPED),
        processes={"server": "ready", "engine": "ready", "query": "stopped", "export": "starting"},
    )
    assert attention(well, None) == []


@pytest.mark.parametrize(
    ("reason", "label", "body", "confirm"),
    [
        ("by request", "Resume", None, None),
        ("3 records cannot be read. Mend them.", "Resume", None, None),
        (
            "Records 0 to 5 are gone. `headgate table resume shop.orders --accept lost` goes on behind them.",
            "Resume, lost accepted",
            {"accept": "lost"},
            "shop.orders",
        ),
    ],
)
def test_suspended_table_is_resumed(
    reason: str, label: str, body: dict[str, str] | None, confirm: str | None
) -> None:
    (need,) = attention(standings(table(TableState.SUSPENDED, reason)), None)
    assert need["remedy"]
    assert {name: need[name] for name in ("kind", "name", "state", "since", "reason")} == {
        "kind": "table",
        "name": "shop.orders",
        "state": "Suspended",
        "since": 1.0,
        "reason": reason,
    }
    assert need["action"] == {
        "label": label,
        "method": "POST",
        "path": "/api/v1/tables/shop.orders/resume",
        "body": body,
        "confirm": confirm,
    }


def test_action_is_for_who_may_take_it() -> None:
    """Giving records up takes an admin of the table."""
    lost = "gone; `--accept lost` goes on"
    for reason, rights, may in (
        ("by request", ADA, True),
        ("by request", NOBODY, False),
        (lost, ADA, False),
        (lost, None, True),
    ):
        (need,) = attention(standings(table(TableState.SUSPENDED, reason)), rights)
        assert (need["action"] is not None) is may, (reason, rights)
    for rights, may in ((ADA, True), (NOBODY, False), (None, True)):
        (need,) = attention(standings(statement(StatementState.FAILED, "no such column")), rights)
        assert (need["action"] is not None) is may
    (hidden,) = attention(standings(statement(StatementState.FAILED, "x", writes="hr.salaries")), ADA)
    assert hidden["action"] is None


def test_table_that_is_tried_again_can_be_tried_at_once() -> None:
    (need,) = attention(standings(table(TableState.FAILED, "trying again: Kafka does not answer.")), None)
    assert (need["state"], need["action"]["path"]) == ("Failed", "/api/v1/tables/shop.orders/sync")
    (noted,) = attention(standings(table(TableState.DEGRADED, "its Delta log stands still")), None)
    assert noted["action"] is None


def test_what_waits_for_long_is_told() -> None:
    pending = (
        table(TableState.PENDING, "waiting for a schema"),
        statement(StatementState.PENDING, "waiting"),
    )
    assert attention(standings(*pending), None) == []
    slow = frozenset({"table shop.orders", "statement clean"})
    told = attention(standings(*pending, slow=slow), None)
    assert [(one["kind"], one["state"], one["action"]) for one in told] == [
        ("statement", "Pending", None),
        ("table", "Pending", None),
    ]


@pytest.mark.parametrize(("state", "may"), [(TableState.RUNNING, True), (TableState.SUSPENDED, False)])
def test_dead_letters_can_be_replayed_while_the_table_takes_rows(state: TableState, may: bool) -> None:
    kept = table(state, "by request", detail={"dead_letters_count": 1200}, on_error=OnError.LOG)
    (need,) = (one for one in attention(standings(kept), None) if one["state"] == "Dead letters")
    assert need["reason"].startswith("1,200 records")
    assert (need["action"] is not None) is may
    left_out = table(TableState.RUNNING, detail={"dead_letters_count": 1200}, on_error=OnError.SKIP)
    assert attention(standings(left_out), None) == []


def test_statement_that_failed_is_started_unless_it_is_tried_again() -> None:
    (need,) = attention(standings(statement(StatementState.FAILED, "column x is gone")), None)
    assert need["action"]["path"] == "/api/v1/statements/clean/start"
    (tried,) = attention(standings(statement(StatementState.FAILED, "trying again: …")), None)
    assert tried["action"] is None


@pytest.mark.parametrize(
    ("name", "state", "is_told"),
    [
        ("engine", "silent", True),
        ("engine", "starting", True),
        ("broker", "stopped", True),
        ("query", "stopped", False),
        ("query", "restarting", True),
        ("connect", "silent", True),
    ],
)
def test_process_that_is_needed_and_not_there(name: str, state: str, is_told: bool) -> None:
    told = attention(standings(processes={name: state}), NOBODY)
    assert [(one["kind"], one["name"], one["state"]) for one in told] == (
        [("process", name, state)] if is_told else []
    )


def test_catalog_whose_tables_are_not_published() -> None:
    def catalog(state: IntegrationState, reason: str, **tables: int) -> CatalogStanding:
        record = IntegrationRecord(
            "glue/eu", "glue", TableFormat.ICEBERG, {}, "present", "", 0.0, state, reason, 1.0, 2.0
        )
        return CatalogStanding(record, tables)

    (away,) = attention(standings(catalogs=(catalog(IntegrationState.FAILED, "no answer"),)), None)
    assert (away["reason"], away["action"]["path"]) == ("no answer", "/api/v1/catalogs/glue%2Feu/retry")
    some = catalog(IntegrationState.CONNECTED, "", Failed=2, Synced=3)
    (partly,) = attention(standings(catalogs=(some,)), NOBODY)
    assert (partly["reason"], partly["action"]) == ("2 tables are not published.", None)
    assert attention(standings(catalogs=(catalog(IntegrationState.CONNECTED, "", Synced=3),)), None) == []


@pytest.mark.parametrize(("state", "is_told"), [(RunState.FAILED, True), (RunState.DONE, False)])
def test_export_whose_last_run_failed(state: RunState, is_told: bool) -> None:
    run = RunRecord("1", "daily", "", 0, 0, 0, {}, state, "no mail", 3, 0, None, 0, {}, 0, 1, 2.0)
    told = attention(standings(exports=(ExportStanding("daily", False, {}, run),)), None)
    assert [(one["reason"], one["action"]["path"]) for one in told] == (
        [("no mail", "/api/v1/exports/daily/run")] if is_told else []
    )


def test_export_of_whose_file_not_all_know() -> None:
    run = RunRecord("1", "daily", "", 0, 0, 0, {}, RunState.WRITTEN, "no mail", 3, 0, None, 0, {}, 0, 1, None)
    (told,) = attention(standings(exports=(ExportStanding("daily", False, {}, None, run),)), None)
    assert (told["state"], told["reason"], told["since"], told["action"]) == ("Written", "no mail", 1, None)


def test_worst_comes_first() -> None:
    told = attention(
        standings(
            table(TableState.DEGRADED, "x", "a"),
            table(TableState.SUSPENDED, "by request", "b"),
            table(TableState.FAILED, "trying again: x", "c"),
            processes={"engine": "silent"},
        ),
        None,
    )
    assert [one["name"] for one in told] == ["engine", "c", "b", "a"]
