"""`headgate queries` on the server's application: what it prints of the history, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner, Result

from headgate.cli import queries as commands
from headgate.cli.client import Client
from headgate.errors import InvalidRequest, NotFound
from headgate.store import Store
from tests.unit.server.test_query_history import ORDERS, put

Run = Callable[..., Result]
TABLE = {**ORDERS, "files_skipped": 0, "bytes_skipped": 0, "reason": "the table is one file"}


@pytest.fixture
def run(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command that speaks to the application without a network."""

    def connected(_: Path | None) -> Client:
        found = Client("http://127.0.0.1:8080/api/v1")
        monkeypatch.setattr(found, "_http", client)
        monkeypatch.setattr(found, "close", lambda: None)
        return found

    monkeypatch.setattr(commands, "connect", connected)
    return lambda *arguments: CliRunner().invoke(commands.app, list(arguments))


@pytest.fixture
def asked(store: Store) -> None:
    put(store, "slow", "ada", 1.0, rows=10, bytes=4000, files=7, seconds=2.0, tables=[TABLE])
    put(store, "fast", "ada", 2.0, rows=10, bytes=1000, files=1, seconds=0.5)
    put(store, "lost", "bob", 3.0, instance="killed")


def printed(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.output.splitlines()]


def test_the_list_has_a_line_for_each(run: Run, asked: None) -> None:
    head, *lines = printed(run("list"))
    assert head[0] == "QUERY"
    assert [(line[0], line[3], line[4]) for line in lines] == [
        ("lost", "BOB", "failed"),
        ("fast", "ADA", "finished"),
        ("slow", "ADA", "finished"),
    ]
    assert lines[0][5:10] == ["–"] * 5
    assert lines[2][5:10] == ["2.00", "10", "7", "4.0", "kB"]
    assert [one["id"] for one in json.loads(run("list", "--state", "failed", "--json").output)] == ["lost"]
    assert [line[0] for line in printed(run("list", "--limit", "1"))] == ["QUERY", "lost"]


def test_a_query_is_shown_with_its_tables_and_its_text(run: Run, asked: None) -> None:
    lines = printed(run("show", "slow"))
    assert lines[0] == ["slow"]
    text = run("show", "slow").output
    assert "local.orders at 41: 2 files of 2.0 kB read, 0 files of 0 B skipped: the table is one file" in text
    assert lines[-1] == ["SELECT", "1"]
    assert "The query driver ended" in run("show", "lost").output


def test_two_queries_are_compared_figure_by_figure(run: Run, asked: None) -> None:
    lines = {line[0]: line[1:] for line in printed(run("compare", "slow", "fast"))[1:]}
    assert lines["bytes"] == ["4.0", "kB", "1.0", "kB", "-3.0", "kB", "0.25"]
    assert lines["seconds"] == ["2.00", "0.50", "-1.50", "0.25"]
    assert lines["rows"] == ["10", "10", "+0", "1.00"]
    assert lines["files_skipped"] == ["–"] * 4
    found: dict[str, Any] = json.loads(run("compare", "slow", "fast", "--json").output)
    assert found["figures"]["files"]["difference"] == -6


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("show", "none"), NotFound, "no query 'none'"),
        (("compare", "slow", "none"), NotFound, "no query 'none'"),
        (("cancel", "fast"), InvalidRequest, "it is finished"),
        (("cancel", "lost"), InvalidRequest, "it is failed"),
        (("list", "--state", "odd"), InvalidRequest, "no state 'odd'"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, asked: None, arguments: tuple[str, ...], kind: type[Exception], said: str
) -> None:
    result = run(*arguments)
    assert isinstance(result.exception, kind)
    assert said in str(result.exception)
