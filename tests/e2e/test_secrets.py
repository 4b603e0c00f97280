"""The token of the query driver is in its file, and nowhere else."""

import stat
from pathlib import Path

import httpx
import psutil
import pytest

from headgate.embedded.process import group_members
from tests.e2e.commands import groups_of, on
from tests.e2e.feed import Feed
from tests.support.stack import Stack

PATHS = [
    "/",
    "/healthz",
    "/metrics",
    "/api/v1/status",
    "/api/v1/tables",
    "/api/v1/tables/secrets.table",
    "/api/v1/topics",
    "/api/v1/topics/secrets.table",
    "/api/v1/events?limit=1000",
    "/api/v1/query",
    "/api/v1/openapi.json",
    "/iceberg/v1/config",
    "/iceberg/v1/namespaces/local/tables/secrets.table",
    "/registry/subjects",
]


@pytest.fixture(scope="module")
def token(stack: Stack) -> str:
    """Read after it was used: for a query that works, and for one that does not."""
    feed = Feed(stack.runtime, "secrets.table")
    feed.send(6)
    stack.run("table", "enable", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 6
    for sql, code in ((f"SELECT count(*) FROM `{feed.topic}`", 0), ("SELECT * FROM `secrets.nowhere`", 1)):
        done = on(stack, "query", sql)
        assert done.returncode == code, done.stderr
    token = (stack.data / "secrets" / "query").read_text()
    assert token.encode() not in done.stdout + done.stderr
    assert len(token) >= 32
    return token


def test_only_the_owner_can_read_it(stack: Stack, token: str) -> None:
    folder = stack.data / "secrets"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_no_log_has_it(stack: Stack, token: str) -> None:
    logs = [*(stack.data / "logs").iterdir(), stack.data.parent / f"{stack.data.name}.log"]
    assert {"broker.log", "server.log", "engine.log", "query.log"} <= {log.name for log in logs}
    assert [log.name for log in logs if holds(log, token)] == []


def test_no_other_file_has_it(stack: Stack, token: str) -> None:
    """Neither in the control state nor in what says where things are."""
    files = [file for file in stack.data.iterdir() if file.is_file()]
    assert {"run.json", "control.db", "catalog.db"} <= {file.name for file in files}
    assert [file.name for file in files if holds(file, token)] == []


@pytest.mark.parametrize("path", PATHS)
def test_no_reply_has_it(stack: Stack, token: str, path: str) -> None:
    answer = httpx.get(stack.runtime.console.rstrip("/") + path, trust_env=False)
    assert answer.status_code == 200, answer.text
    assert token not in answer.text
    assert token not in str(answer.headers)


def test_no_command_line_has_it(stack: Stack, token: str) -> None:
    groups = groups_of(stack.data)
    assert "query" in groups
    pids = [stack.popen.pid, *(pid for group in groups.values() for pid in group_members(group))]
    lines = {pid: " ".join(psutil.Process(pid).cmdline()) for pid in pids}
    assert any("SparkSubmit" in line or "spark" in line for line in lines.values()), lines
    assert [line for line in lines.values() if token in line] == []


def holds(file: Path, token: str) -> bool:
    return token.encode() in file.read_bytes()
