"""Statements by API and as metrics, on the control state."""

import time
from base64 import b64encode
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from headgate.errors import InvalidRequest
from headgate.model import StatementState
from headgate.server.live.samples import Figures, Sample
from headgate.store import Statements, Store

DETAIL = {
    "rows_in": 12,
    "rows_out": 7,
    "late_rows": 2,
    "bad_rows": 0,
    "events_without_row": 0,
    "lag": 3,
    "state_rows": 5,
    "state_bytes": 4096,
    "batch_seconds": 0.5,
    "watermark": "2026-01-31T12:00:00.000+00:00",
    "offsets": {"orders": {"0": 12}},
    "waiting": "5 rows wait for event time to pass 2026-01-31 12:00:05 UTC",
}


@pytest.fixture
def statements(store: Store) -> Statements:
    found = Statements(store.engine)
    made = found.create("clean-orders", "insert", "INSERT INTO clean SELECT id FROM orders", {})
    found.report(made.id, StatementState.RUNNING, "", DETAIL)
    return found


def test_a_statement_is_listed_and_shown(client: TestClient, statements: Statements) -> None:
    (listed,) = client.get("/api/v1/statements").json()
    assert (listed["name"], listed["state"], listed["late_rows"]) == ("clean-orders", "Running", 2)
    assert listed["position"] == {"orders": {"0": 12}}
    assert listed["waiting"] == DETAIL["waiting"]
    assert client.get("/api/v1/status").json()["statements"] == [listed]
    shown = client.get("/api/v1/statements/clean-orders").json()
    assert shown["script"].startswith("INSERT INTO clean")
    assert shown["detail"] == DETAIL
    assert [event["kind"] for event in shown["events"]] == ["Running", "created"]


def test_a_statement_that_does_not_run_waits_for_nothing(client: TestClient, statements: Statements) -> None:
    record = statements.get("clean-orders")
    statements.report(record.id, StatementState.STOPPED, "by request", DETAIL)
    assert client.get("/api/v1/statements/clean-orders").json()["waiting"] is None


def test_what_is_wanted_is_written_down(client: TestClient, statements: Statements) -> None:
    for ask, desired in (("stop", "stopped"), ("start", "running")):
        answer = client.post(f"/api/v1/statements/clean-orders/{ask}")
        assert (answer.status_code, answer.json()["desired"]) == (202, desired)
    assert client.delete("/api/v1/statements/clean-orders").status_code == 202
    assert statements.get("clean-orders").desired == "deleted"
    refused = client.post("/api/v1/statements/clean-orders/start")
    assert (refused.status_code, refused.json()["error"]) == (400, "InvalidRequest")


def test_a_request_to_finish_is_written_down_until_the_engine_answers(
    client: TestClient, statements: Statements
) -> None:
    answer = client.post("/api/v1/statements/clean-orders/finish")
    assert (answer.status_code, answer.json()["desired"]) == (202, "running")
    record = statements.get("clean-orders")
    assert record.options == {"finish": answer.json()["finish"]}
    assert record.detail == DETAIL, "what the engine says is the engine's"
    again = client.post("/api/v1/statements/clean-orders/finish").json()["finish"]
    assert again != answer.json()["finish"]
    statements.want("clean-orders", "stopped")
    refused = client.post("/api/v1/statements/clean-orders/finish")
    assert (refused.status_code, refused.json()["error"]) == (400, "InvalidRequest")
    assert "statement start clean-orders" in refused.json()["remedy"]


def test_one_that_is_not_there(client: TestClient) -> None:
    for answer in (
        client.get("/api/v1/statements/none"),
        client.post("/api/v1/statements/none/stop"),
        client.post("/api/v1/statements/none/finish"),
        client.delete("/api/v1/statements/none"),
    ):
        assert (answer.status_code, answer.json()["error"]) == (404, "NotFound")


def test_metrics_of_statements(client: TestClient, statements: Statements) -> None:
    text = client.get("/metrics").text
    assert 'headgate_statement_state{state="Running",statement="clean-orders"} 1.0' in text
    assert 'headgate_statement_late_rows_total{statement="clean-orders"} 2.0' in text
    assert 'headgate_statement_lag_offsets{statement="clean-orders"} 3.0' in text
    assert 'headgate_statement_watermark_seconds{statement="clean-orders"} 1.7698608e+09' in text


def test_a_statement_that_runs_or_has_not_begun_is_not_reset(
    client: TestClient, statements: Statements
) -> None:
    ask = {"from": "earliest", "dry_run": True}
    for step in ("runs", "has not begun"):
        refused = client.post("/api/v1/statements/clean-orders/reset", json=ask)
        assert (refused.status_code, refused.json()["error"]) == (400, "InvalidRequest")
        assert ("Stop it first" if step == "runs" else "has not begun") in refused.text
        statements.want("clean-orders", "stopped")
        statements.report(statements.get("clean-orders").id, StatementState.STOPPED, "", DETAIL)


def test_while_it_is_reset_a_statement_is_neither_started_nor_stopped(statements: Statements) -> None:
    record = statements.want("clean-orders", "stopped")
    statements.report(record.id, StatementState.STOPPED, "", DETAIL)
    statements.settle(record.id, {"tasks": 2})
    asked = statements.reset("clean-orders", {"from": "earliest", "starts": {}})
    assert (asked.desired, asked.state, asked.settled["tasks"]) == ("reset", StatementState.PENDING, 2)
    for desired in ("running", "stopped"):
        with pytest.raises(InvalidRequest, match="being reset"):
            statements.want("clean-orders", desired)
    statements.was_reset(record.id, {"tasks": 3}, "reset")
    found = statements.get("clean-orders")
    assert (found.desired, found.state, found.settled) == ("stopped", StatementState.STOPPED, {"tasks": 3})
    statements.reset("clean-orders", {"from": "earliest", "starts": {}})
    statements.end(record.id, StatementState.FAILED, "why", {})
    assert statements.get("clean-orders").desired == "stopped"
    statements.reset("clean-orders", {"from": "earliest", "starts": {}})
    statements.want("clean-orders", "deleted")
    statements.was_reset(record.id, {}, "reset")
    assert statements.get("clean-orders").desired == "deleted"


def test_statement_shows_nothing_of_one_that_had_its_name(client: TestClient, statements: Statements) -> None:
    """Whoever may see the new one need not have seen the other."""
    statements.note("clean-orders", "closed", "of another")
    statements.note("other", "closed", "of none")
    app = cast(FastAPI, client.app)
    samples = app.state.live._sampler._samples
    samples.append(Sample(time.time() - 60, {}, {"clean-orders": Figures(4711.0, 3)}))
    statements.remove(statements.get("clean-orders").id)
    statements.create("clean-orders", "insert", "INSERT INTO clean SELECT id FROM orders", {})
    samples.append(Sample(time.time() + 60, {}, {"clean-orders": Figures(1.0, 3)}))

    def kinds(path: str, headers: dict[str, str]) -> list[str]:
        found: Any = client.get(path, headers=headers).json()
        return [one["kind"] for one in (found["events"] if isinstance(found, dict) else found)]

    made, key = Credentials(statements._engine).create("ada", [Grant.parse("reader")])
    reader = {"Authorization": f"Basic {b64encode(f'{made.client_id}:{key}'.encode()).decode()}"}
    for headers in ({}, reader):
        assert kinds("/api/v1/statements/clean-orders", headers) == ["created"]
    assert kinds("/api/v1/events?subject=statement clean-orders", reader) == ["created"]
    assert kinds("/api/v1/events", reader) == ["created"]
    everything = kinds("/api/v1/events?subject=statement clean-orders", {})
    assert everything == ["created", "deleted", "closed", "Running", "created"], "an admin sees what was"
    shown = client.get("/api/v1/samples?statement=clean-orders", headers=reader).json()
    assert 4711.0 not in [one["statements"].get("clean-orders", {}).get("rate") for one in shown]
    assert shown[-1]["statements"]["clean-orders"]["rate"] == 1.0
