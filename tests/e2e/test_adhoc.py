"""SELECT as a user types it: it runs until it is stopped, ends by itself, or is killed; nothing stays."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.kafka.topics import Topics
from tests.e2e.commands import QUERYING, on, refused
from tests.e2e.feed import Feed
from tests.support.services import wait_for
from tests.support.stack import HEADGATE, Stack

TOPIC = "live.readings"


@pytest.fixture(scope="module")
def feed(stack: Stack) -> Feed:
    found = Feed(stack.runtime, TOPIC)
    found.send(30)
    # The driver is there from now on.
    on(stack, "query", "SELECT 1")
    return found


@contextmanager
def typed(stack: Stack, tmp_path: Path, *arguments: str) -> Iterator[tuple[Any, Path]]:
    """A `headgate sql` that runs on, and the file that it prints to."""
    file = tmp_path / "printed"
    with file.open("wb") as out:
        command = [HEADGATE, "sql", *arguments, "--data", str(stack.data)]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        try:
            yield process, file
        finally:
            process.kill()
            process.communicate()


def queries(stack: Stack) -> list[dict[str, Any]]:
    """Those that run."""
    running = f"{stack.runtime.api}/queries?state=running"
    found: list[dict[str, Any]] = httpx.get(running, trust_env=False).json()
    return found


def nothing_left(stack: Stack) -> bool:
    folder = stack.data / "statements" / "adhoc"
    return not queries(stack) and not (folder.exists() and list(folder.iterdir()))


def lines(file: Path) -> list[dict[str, Any]]:
    """The whole lines that are there."""
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]


def test_a_count_until_ctrl_c(stack: Stack, feed: Feed, tmp_path: Path) -> None:
    sql = f"SELECT COUNT(*) AS n FROM `{TOPIC}`"
    topics = {topic.name for topic in Topics(stack.runtime.kafka).list()}
    with typed(stack, tmp_path, "-e", sql) as (process, file):
        wait_for("the count", lambda: file.read_text().endswith(f"+ {len(feed.sent)}\n"), 120)
        before = len(feed.sent)
        feed.send(10)
        replaced = f"- {before}\n+ {len(feed.sent)}\n"
        wait_for("it to grow", lambda: file.read_text().endswith(replaced), 60)
        assert [query["kind"] for query in queries(stack)] == ["live"]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, process.stderr.read()
    wait_for("nothing to be left", lambda: nothing_left(stack), 30)
    assert {topic.name for topic in Topics(stack.runtime.kafka).list()} == topics
    subjects = httpx.get(f"{stack.runtime.registry}/subjects", trust_env=False).json()
    assert {name.rpartition("-")[0] for name in subjects} <= topics


def test_a_client_that_is_killed(stack: Stack, feed: Feed, tmp_path: Path) -> None:
    with typed(stack, tmp_path, "-e", f"SELECT id FROM `{TOPIC}`", "--json") as (process, file):
        wait_for("rows", lambda: len(lines(file)) >= len(feed.sent), 120)
        assert {line["op"] for line in lines(file)} == {"insert"}
        (stack.data / "statements" / "adhoc" / queries(stack)[0]["id"]).stat()
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    wait_for("nothing to be left", lambda: nothing_left(stack), 30)


def test_a_limit_and_a_snapshot(stack: Stack, feed: Feed) -> None:
    done = stack.run("sql", "-e", f"SELECT id FROM `{TOPIC}` LIMIT 3", "--json")
    *rows, end = [json.loads(line) for line in done.stdout.splitlines()]
    assert (len(rows), end["op"], end["state"]) == (3, "end", "Completed")

    script = f"SET 'sql.snapshot.mode' = 'now'; SELECT COUNT(*) AS n FROM `{TOPIC}`"
    first, *rows, end = [
        json.loads(line) for line in stack.run("sql", "-e", script, "--json").stdout.splitlines()
    ]
    assert first["kind"] == "set"
    assert [line["row"] for line in rows] == [{"n": len(feed.sent)}]
    assert (end["state"], end["rows"]) == ("Completed", 1)
    done = stack.run("sql", "-e", script)
    assert done.stdout.splitlines() == ["sql.snapshot.mode is now", "n", str(len(feed.sent))]
    assert done.stderr.splitlines()[-1].endswith(": Completed")


def test_the_lake_beside_topics(stack: Stack, feed: Feed) -> None:
    stack.run("table", "enable", TOPIC)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    sql = f"SELECT COUNT(*) AS n, MAX(id) AS last FROM lake.local.`{TOPIC}`"
    row, end = [json.loads(line) for line in stack.run("sql", "-e", sql, "--json").stdout.splitlines()]
    assert row["row"]["n"] == len(feed.sent)
    asked = json.loads(on(stack, "query", f"SELECT id FROM `{TOPIC}`", "--output", "json").stdout)
    scanned = stack.run("sql", "-e", f"SELECT id FROM lake.local.`{TOPIC}` ORDER BY id", "--json")
    end = json.loads(scanned.stdout.splitlines()[-1])
    assert (end["files"], end["bytes"]) == (asked["files"], asked["bytes"])
    assert end["bytes"] > 0
    said = refused(
        stack, "sql", "-e", f"SELECT a.id FROM lake.local.`{TOPIC}` a JOIN `{TOPIC}` b ON a.id = b.id"
    )
    assert "not read together" in said


def test_by_api_and_by_its_end(stack: Stack, feed: Feed) -> None:
    api = stack.runtime.api
    with httpx.Client(trust_env=False, timeout=60) as http:
        made = http.post(f"{api}/queries", json={"sql": f"SELECT id, text FROM `{TOPIC}`"})
        assert made.status_code == 201, made.text
        about = made.json()
        assert [column["name"] for column in about["columns"]] == ["id", "text"]
        assert (about["kind"], about["key"]) == ("live", None)
        with http.stream("GET", f"{api}/queries/{about['id']}/rows") as answer:
            found = answer.iter_lines()
            assert json.loads(next(found))["op"] == "insert"
            assert httpx.delete(f"{api}/queries/{about['id']}", trust_env=False).status_code == 204
            last = [json.loads(line) for line in found][-1]
        assert (last["op"], last["state"]) == ("end", "Stopped")
        wait_for("nothing to be left", lambda: nothing_left(stack), 30)
        gone = http.get(f"{api}/queries/{about['id']}/rows")
        assert (gone.status_code, gone.json()["error"]) == (404, "NotFound")
        assert http.delete(f"{api}/queries/..%2Fqueries").status_code == 404


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT nothing FROM `live.readings`", "nothing"),
        ("SELECT id FROM `live.nowhere`", "live.nowhere"),
        ("SELECT id FROM `live.readings`; SHOW TABLES", "comes last"),
        ("SET 'sql.snapshot.mode' = 'later'; SHOW TABLES", "cannot be 'later'"),
        (
            "SET 'sql.snapshot.mode' = 'now'; CREATE TABLE x AS SELECT id, NOW() AS n FROM `live.readings`",
            "something else each time",
        ),
        ("SELECT id FROM lake.local.`live.nowhere`", "live.nowhere"),
    ],
)
def test_what_cannot_be_asked(stack: Stack, feed: Feed, sql: str, said: str) -> None:
    assert said in refused(stack, "sql", "-e", sql, meanwhile=QUERYING)
