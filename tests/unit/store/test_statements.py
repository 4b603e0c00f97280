"""Statements in the control state."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.model import StatementState
from headgate.store import Statements, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield store
    store.close()


@pytest.fixture
def statements(store: Store) -> Statements:
    return Statements(store.engine)


def test_a_statement_is_pending_until_the_engine_takes_it_up(statements: Statements, store: Store) -> None:
    made = statements.create("clean", "insert", "INSERT …", {"idle": 5})
    assert (made.state, made.desired, made.options) == (StatementState.PENDING, "running", {"idle": 5})
    statements.report(made.id, StatementState.RUNNING, "", {"rows_in": 3})
    found = statements.get("clean")
    assert (found.state, found.detail) == (StatementState.RUNNING, {"rows_in": 3})
    assert [one.name for one in statements.all()] == ["clean"]
    assert [event["kind"] for event in store.events("statement clean")] == ["Running", "created"]


def test_names_are_unique_and_sound(statements: Statements) -> None:
    first = statements.create("clean", "insert", "", {})
    with pytest.raises(AlreadyExists, match="clean"):
        statements.create("clean", "insert", "", {})
    for name in ("", "a b", "../x", "-x", "x" * 101):
        with pytest.raises(InvalidRequest, match="cannot be the name"):
            statements.create(name, "insert", "", {})
    statements.remove(first.id)
    assert statements.create("clean", "insert", "", {}).id != first.id


def test_stopped_is_not_forgotten(statements: Statements) -> None:
    made = statements.create("clean", "insert", "", {})
    assert statements.want("clean", "stopped").desired == "stopped"
    statements.report(made.id, StatementState.STOPPED, "by request", {"rows_in": 3})
    again = statements.want("clean", "running")
    assert (again.state, again.detail) == (StatementState.PENDING, {"rows_in": 3})


def test_one_that_has_ended_is_not_taken_up_again_by_itself(statements: Statements) -> None:
    made = statements.create("clean", "insert", "", {})
    statements.end(made.id, StatementState.FAILED, "a bad record", {})
    failed = statements.get("clean")
    assert (failed.state, failed.desired, failed.reason) == (StatementState.FAILED, "stopped", "a bad record")
    assert statements.want("clean", "running").desired == "running"
    statements.end(made.id, StatementState.COMPLETED, "", {})
    with pytest.raises(InvalidRequest, match="completed"):
        statements.want("clean", "running")


def test_what_is_deleted_stays_so(statements: Statements) -> None:
    made = statements.create("clean", "insert", "", {})
    statements.want("clean", "deleted")
    with pytest.raises(InvalidRequest, match="being deleted"):
        statements.want("clean", "running")
    statements.end(made.id, StatementState.FAILED, "meanwhile", {})
    assert statements.get("clean").desired == "deleted"
    statements.remove(made.id)
    statements.report(made.id, StatementState.RUNNING, "", {})
    with pytest.raises(NotFound, match="clean"):
        statements.get("clean")


def test_what_the_engine_settled_stays(statements: Statements) -> None:
    made = statements.create("clean", "insert", "", {})
    statements.settle(made.id, {"tasks": 4})
    statements.want("clean", "stopped")
    assert statements.get("clean").settled == {"tasks": 4}


def test_what_is_decided_once_stays(statements: Statements) -> None:
    made = statements.create("clean", "insert", "", {})
    statements.settle(made.id, {"tasks": 2})
    assert statements.settle_once(made.id, "result", {"name": "a"}) == {"name": "a"}
    assert statements.settle_once(made.id, "result", {"name": "b"}) == {"name": "a"}
    assert statements.get("clean").settled == {"tasks": 2, "result": {"name": "a"}}
    statements.remove(made.id)
    with pytest.raises(NotFound):
        statements.settle_once(made.id, "result", {"name": "c"})


def test_a_statement_that_ends_by_itself_is_neither_closed_nor_reset(statements: Statements) -> None:
    made = statements.create("report", "insert", "", {"ends": {}})
    with pytest.raises(InvalidRequest, match="closes all that came by itself"):
        statements.finish("report")
    statements.end(made.id, StatementState.FAILED, "no more", {})
    with pytest.raises(InvalidRequest, match="ends where its topics ended"):
        statements.reset("report", {"from": "earliest", "starts": {}})
