"""The statement commands against a real server; the test says what the engine would."""

import json
import threading
import time
import uuid
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.main import app
from headgate.errors import InvalidRequest, NotFound, StatementFailed
from headgate.model import StatementState
from headgate.store import StatementRecord, Statements
from tests.integration.server.conftest import Served


@pytest.fixture
def statements(served: Served) -> Statements:
    return Statements(served.store.engine)


@pytest.fixture
def made(statements: Statements) -> StatementRecord:
    found = statements.create(f"clean-{uuid.uuid4().hex[:8]}", "insert", "INSERT INTO clean SELECT 1", {})
    statements.report(found.id, StatementState.RUNNING, "", {"rows_in": 5, "rows_out": 4, "late_rows": 1})
    return statements.get(found.name)


def headgate(served: Served, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["statement", *arguments, "--data", str(served.data)])


def follow(
    statements: Statements, name: str, desired: str, act: Callable[[StatementRecord], None]
) -> threading.Thread:
    """The engine's part: once something is wanted, it is so."""

    def run() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            record = statements.get(name)
            if record.desired == desired:
                act(record)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_list_and_show(served: Served, made: StatementRecord) -> None:
    text = headgate(served, "list")
    assert [made.name, "Running", "5", "4", "1"] in [line.split() for line in text.stdout.splitlines()]
    shown = json.loads(headgate(served, "show", made.name, "--json").stdout)
    assert (shown["state"], shown["detail"]["late_rows"]) == ("Running", 1)
    assert "INSERT INTO clean SELECT 1" in headgate(served, "show", made.name).stdout
    listed = json.loads(headgate(served, "list", "--json").stdout)
    assert made.name in [one["name"] for one in listed]


def test_stop_waits_until_it_is_stopped(
    served: Served, statements: Statements, made: StatementRecord
) -> None:
    def stopped(record: StatementRecord) -> None:
        statements.report(record.id, StatementState.STOPPED, "by request", record.detail)

    engine = follow(statements, made.name, "stopped", stopped)
    done = headgate(served, "stop", made.name)
    engine.join()
    assert done.exit_code == 0, done.output
    assert f"{made.name} is stopped" in done.stdout


def test_start_says_why_it_failed(served: Served, statements: Statements, made: StatementRecord) -> None:
    statements.end(made.id, StatementState.FAILED, "at first", {})

    def failed(record: StatementRecord) -> None:
        statements.end(record.id, StatementState.FAILED, "a bad record at 1:7", record.detail)

    engine = follow(statements, made.name, "running", failed)
    done = headgate(served, "start", made.name)
    engine.join()
    assert isinstance(done.exception, StatementFailed)
    assert "a bad record at 1:7" in str(done.exception)


def test_delete_waits_until_it_is_gone(served: Served, statements: Statements, made: StatementRecord) -> None:
    engine = follow(statements, made.name, "deleted", lambda record: statements.remove(record.id))
    done = headgate(served, "delete", made.name)
    engine.join()
    assert done.exit_code == 0, done.output
    for command in ("show", "stop", "start", "delete"):
        assert isinstance(headgate(served, command, made.name).exception, NotFound)


def test_what_is_asked_without_waiting(served: Served, statements: Statements, made: StatementRecord) -> None:
    assert headgate(served, "stop", made.name, "--no-wait").exit_code == 0
    assert statements.get(made.name).desired == "stopped"
    assert headgate(served, "delete", made.name, "--no-wait").exit_code == 0
    assert isinstance(headgate(served, "start", made.name, "--no-wait").exception, InvalidRequest)
