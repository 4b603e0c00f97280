"""`headgate query`: rows in each form, what was read for them, time travel, metadata, errors."""

import csv
import io
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from headgate.store.queries import DRIVER_GONE
from scripts.readers import pyiceberg_on
from tests.e2e.commands import QUERYING, headgate, on, refused
from tests.e2e.feed import Feed
from tests.support.services import wait_for
from tests.support.stack import HEADGATE, Stack

TOPIC = "query.dots-and-lines"
TEXTS = [
    "plain",
    "comma, and more",
    'a "quoted" word',
    "two\nlines",
    "carriage\r\nreturn",
    " spaces ",
    "Sète – 東京",
    "'single'",
    "",
    None,
]


@pytest.fixture(scope="module")
def feed(stack: Stack) -> Feed:
    """A table of two batches; the first is all of TEXTS."""
    feed = Feed(stack.runtime, TOPIC)
    stack.run("table", "enable", TOPIC)
    feed.send_texts(TEXTS)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    feed.send(20)
    stack.run("table", "sync", TOPIC, "--timeout", "120s")
    assert feed.check() == len(TEXTS) + 20
    return feed


@contextmanager
def typed(stack: Stack, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that goes on, gone with the block."""
    command = [HEADGATE, *arguments, "--data", str(stack.data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def query(stack: Stack, sql: str) -> dict[str, Any]:
    done = on(stack, "query", sql, "--output", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(stack: Stack, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = query(stack, sql)["rows"]
    return found


def test_csv_keeps_every_character(stack: Stack, feed: Feed) -> None:
    sql = f"SELECT id, text, at FROM `{TOPIC}` WHERE id < {len(TEXTS)} ORDER BY id"
    done = on(stack, "query", sql, "--output", "csv")
    assert done.returncode == 0, done.stderr
    head, *lines = csv.reader(io.StringIO(done.stdout.decode(), newline=""))
    assert head == ["id", "text", "at"]
    assert [line[:2] for line in lines] == [[str(i), text or ""] for i, text in enumerate(TEXTS)]
    assert all(re.match(r"2026-01-01.00:00:0\d", line[2]) for line in lines)


def test_a_table_for_people(stack: Stack, feed: Feed) -> None:
    sql = f"SELECT id, text FROM `{TOPIC}` WHERE id < {len(TEXTS)} ORDER BY id"
    done = on(stack, "query", sql)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].split() == ["id", "text"]
    assert len(lines) == len(TEXTS) + 1, "a value cannot break its line"
    assert lines[4] == r"3   two\nlines"
    assert lines[7] == "6   Sète – 東京"
    told = next(line for line in done.stderr.decode().splitlines() if " rows in " in line)
    size = r"\d+ files of \d+(\.\d)? k?B"
    query_id = r" \(query [0-9a-f]{32}\)"
    assert re.fullmatch(rf"{len(TEXTS)} rows in \d+\.\d\d s, {size} read, {size} skipped{query_id}", told)


def test_json_tells_what_was_read(stack: Stack, feed: Feed) -> None:
    found = query(stack, f"SELECT id, text FROM `{TOPIC}` ORDER BY id")
    assert [row["text"] for row in found["rows"][: len(TEXTS)]] == TEXTS
    assert len(found["rows"]) == len(feed.sent)
    assert 0 < found["seconds"] < 120
    table = pyiceberg_on(stack.runtime.iceberg).load_table(("local", TOPIC))
    files = [task.file for task in table.scan().plan_files()]
    assert found["files"] == len(files)
    assert found["bytes"] == sum(file.file_size_in_bytes for file in files)

    nothing = query(stack, f"SELECT id FROM `{TOPIC}` WHERE id < 0")
    assert (nothing["rows"], nothing["files"], nothing["bytes"]) == ([], 0, 0), "files that cannot match"


def test_queries_are_remembered_with_what_they_cost(stack: Stack, feed: Feed) -> None:
    whole = query(stack, f"SELECT id, text FROM `{TOPIC}`")
    part = query(stack, f"SELECT id FROM `{TOPIC}` WHERE id < 0")
    said = refused(stack, "query", f"SELECT CAST(text AS INT) FROM `{TOPIC}`", meanwhile=QUERYING)
    assert "plain" in said
    failed, second, first = stack.json("queries", "list", "--limit", "3")
    assert (first["id"], second["id"]) == (whole["query"], part["query"])
    assert [one["state"] for one in (first, second, failed)] == ["finished", "finished", "failed"]
    assert (first["rows"], first["files"], first["bytes"]) == (len(feed.sent), whole["files"], whole["bytes"])
    assert (second["files"], second["files_skipped"]) == (0, whole["files"])
    assert second["bytes_skipped"] == whole["bytes"]
    shown = stack.json("table", "show", TOPIC)["detail"]["snapshot_id"]
    assert [(one["table"], one["snapshot_id"]) for one in first["tables"]] == [(f"local.{TOPIC}", shown)]
    assert first["tables"][0]["reason"] == "no condition on its columns"
    # A value of a row is in what the user was told, not in what is kept.
    assert (failed["error"], "plain" in json.dumps(failed)) == ("InvalidRequest: CAST_INVALID_INPUT", False)

    compared = stack.json("queries", "compare", first["id"], second["id"])
    assert compared["figures"]["bytes"]["difference"] == -whole["bytes"]
    assert (compared["same_sql"], compared["same_snapshots"]) == (False, True)
    told = stack.run("queries", "compare", first["id"], second["id"]).stdout
    assert told.splitlines()[0].split() == ["A", "B", "B", "-", "A", "B", "/", "A"]
    assert first["id"] in stack.run("queries", "show", first["id"]).stdout
    assert first["id"] in stack.run("queries", "list").stdout
    assert "is finished" in refused(stack, "queries", "cancel", first["id"])


def test_rows_go_into_files_of_each_kind(stack: Stack, feed: Feed, tmp_path: Path) -> None:
    sql = f"SELECT id, text FROM `{TOPIC}` ORDER BY id"
    wanted = [(row["id"], row["text"]) for row in rows(stack, sql)]
    for name in ("rows.parquet", "rows.jsonl", "rows.csv"):
        done = on(stack, "query", sql, "--to", str(tmp_path / name))
        assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert [
        tuple(row.values()) for row in parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    ] == wanted
    lines = (tmp_path / "rows.jsonl").read_text().split("\n")[:-1]
    assert [tuple(json.loads(line).values()) for line in lines] == wanted
    with (tmp_path / "rows.csv").open(newline="") as file:
        found = list(csv.reader(file))[1:]
    assert found == [[str(n), text or ""] for n, text in wanted]


def test_a_query_is_cancelled_while_it_runs(stack: Stack, feed: Feed) -> None:
    sql = "SELECT count(*) AS n FROM range(100000000000) WHERE id % 7 = rand()"
    with typed(stack, "query", sql) as asked:
        wait_for("it to run", lambda: stack.json("queries", "list", "--state", "running"), 60)
        (running,) = stack.json("queries", "list", "--state", "running")
        assert running["sql"] == sql
        assert stack.json("queries", "cancel", running["id"])["state"] == "cancelled"
        assert asked.wait(60) == 1, "rows that are not all there are no result"
    assert stack.json("queries", "show", running["id"])["ended_at"] is not None
    assert stack.json("queries", "list", "--state", "running") == []


def test_a_driver_that_is_killed_leaves_no_query_running(stack: Stack, feed: Feed) -> None:
    with typed(stack, "query", "SELECT count(*) FROM range(100000000000) WHERE id % 7 = rand()") as asked:
        wait_for("it to run", lambda: stack.json("queries", "list", "--state", "running"), 60)
        (running,) = stack.json("queries", "list", "--state", "running")
        pid = stack.store.process("query").pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        assert asked.wait(60) != 0
    lost = f"query {running['id']} to be told as failed"
    wait_for(lost, lambda: stack.json("queries", "show", running["id"])["state"] == "failed", 60)
    assert query(stack, "SELECT 1 AS a")["rows"] == [{"a": 1}], "another driver has started"
    shown = stack.json("queries", "show", running["id"])
    assert (shown["state"], shown["error"]) == ("failed", DRIVER_GONE)


def test_time_travel_and_metadata_tables(stack: Stack, feed: Feed) -> None:
    """Three snapshots: where the table began, and two batches."""
    known = rows(
        stack,
        "SELECT snapshot_id, committed_at, summary['total-records'] AS records "
        f"FROM local.`{TOPIC}`.snapshots ORDER BY committed_at",
    )
    assert [row["records"] for row in known] == ["0", str(len(TEXTS)), str(len(feed.sent))]
    shown = stack.json("table", "show", TOPIC)["detail"]
    assert shown["snapshot_id"] == str(known[2]["snapshot_id"])

    older = known[1]["snapshot_id"]
    then = rows(stack, f"SELECT id, text FROM `{TOPIC}` VERSION AS OF {older} ORDER BY id")
    assert [(row["id"], row["text"]) for row in then] == list(enumerate(TEXTS))
    counted = rows(
        stack, f"SELECT count(*) AS n FROM local.`{TOPIC}` VERSION AS OF {known[0]['snapshot_id']}"
    )
    assert counted == [{"n": 0}]


def test_metadata_without_spark_is_what_spark_says(stack: Stack, feed: Feed) -> None:
    """History, snapshots, files and partitions: by the API, and by the metadata tables."""
    history = stack.json("table", "history", TOPIC)["snapshots"]
    known = rows(
        stack,
        "SELECT CAST(snapshot_id AS STRING) AS id, operation, made_current_at "
        f'FROM "local"."{TOPIC}$snapshots" '
        "ORDER BY made_current_at DESC",
    )
    assert [(one["snapshot_id"], one["operation"]) for one in history] == [
        (one["id"], one["operation"]) for one in known
    ]
    assert [one["rows_added"] for one in history] == [20, len(TEXTS), 0]
    assert [one["action"] for one in history[:2]] == ["batch", "batch"]
    assert sum(history[0]["to"].values()) == len(feed.sent)
    assert history[0]["from"] == history[1]["to"]
    assert all(one["seconds"] > 0 for one in history[:2])
    assert history[0]["before"]["rows"] == len(TEXTS)
    shown = stack.json("table", "show", TOPIC)
    assert shown["records_materialized"] == len(feed.sent)
    assert shown["files_created"] == shown["files"] == sum(one["files_added"] for one in history)

    files = stack.json("table", "metadata", TOPIC, "files")
    assert sorted((one["file_path"], one["record_count"]) for one in files) == sorted(
        (one["file_path"], one["record_count"])
        for one in rows(stack, f"SELECT file_path, record_count FROM `{TOPIC}$files`")
    )
    partitions = stack.json("table", "metadata", TOPIC, "partitions")
    counted = rows(
        stack, f"SELECT count(*) AS n, sum(record_count) AS r, sum(total_size) AS s FROM `{TOPIC}$partitions`"
    )
    assert counted == [
        {
            "n": len(partitions),
            "r": sum(one["record_count"] for one in partitions),
            "s": sum(one["total_size"] for one in partitions),
        }
    ]
    assert [one["name"] for one in stack.json("table", "metadata", TOPIC, "refs")] == ["main"]


def test_two_columns_of_one_name(stack: Stack) -> None:
    """As a join of two tables gives them."""
    done = on(stack, "query", "SELECT 1 AS a, 'two' AS a", "--output", "csv")
    assert done.returncode == 0, done.stderr
    assert list(csv.reader(io.StringIO(done.stdout.decode()))) == [["a", "a"], ["1", "two"]]
    done = on(stack, "query", "SELECT 1 AS a, 'two' AS a")
    assert done.returncode == 0, done.stderr
    assert [line.split() for line in done.stdout.decode().splitlines()] == [["a", "a"], ["1", "two"]]


def test_values_that_json_has_no_type_for(stack: Stack) -> None:
    """Maps as objects, decimals to the digit, bytes as text that can be turned back; no Python in it."""
    columns = [
        "map('k', 1) AS pairs",
        "named_struct('x', CAST(1.10 AS DECIMAL(9, 2)), 'y', DATE '2026-01-31') AS record",
        "array(CAST(0.10 AS DECIMAL(9, 2))) AS list",
        "X'ff00' AS raw",
    ]
    (row,) = rows(stack, f"SELECT {', '.join(columns)}")
    assert row["pairs"] == {"k": 1}
    assert row["record"] == {"x": "1.10", "y": "2026-01-31"}
    assert row["list"] == ["0.10"]
    assert row["raw"] == "base64:/wA="

    done = on(stack, "query", f"SELECT {', '.join(columns)}", "--output", "csv")
    _, cells = csv.reader(io.StringIO(done.stdout.decode()))
    assert [json.loads(cell) for cell in cells[:3]] == [row["pairs"], row["record"], row["list"]]
    assert cells[3] == row["raw"]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELEC 1", "SELEC"),
        ("SELECT * FROM `query.nowhere`", "query.nowhere"),
        ("SELECT nothing FROM (SELECT 1 AS a)", "nothing"),
        ("SELECT CAST('x' AS INT)", "'x'"),
        ("", "SQL"),
    ],
)
def test_an_error_is_one_line(stack: Stack, sql: str, named: str) -> None:
    said = refused(stack, "query", sql, meanwhile=QUERYING)
    assert named in said
    assert "JVM" not in said


def test_an_unknown_output_is_refused(stack: Stack) -> None:
    done = on(stack, "query", "SELECT 1", "--output", "xml")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"'xml'" in done.stderr


def test_a_reader_asks_from_elsewhere(stack: Stack, feed: Feed, tmp_path: Path) -> None:
    """By the address and a credential alone, as on another machine; and sees what it may."""
    made = stack.json("credentials", "create", "query.reader", "--role", "reader", "--table", TOPIC)
    elsewhere = {
        "HEADGATE_URL": stack.runtime.console.rstrip("/"),
        "HEADGATE_CLIENT_ID": made["client_id"],
        "HEADGATE_CLIENT_SECRET": made["client_secret"],
    }

    def asked(sql: str) -> Any:
        done = headgate("query", sql, "--output", "json", cwd=tmp_path, **elsewhere)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["rows"]

    assert asked(f"SELECT count(*) AS n FROM `{TOPIC}`") == [{"n": len(feed.sent)}]
    assert {row["tableName"] for row in asked("SHOW TABLES")} == {TOPIC}
    done = headgate("query", "SELECT reflect('java.lang.System', 'nanoTime')", cwd=tmp_path, **elsewhere)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"reflect" in done.stderr


def test_a_query_that_is_asked_again_is_soon_answered(stack: Stack, feed: Feed) -> None:
    """The driver keeps the session: what is left is the query."""
    times = [query(stack, f"SELECT count(*) AS n FROM `{TOPIC}`")["seconds"] for _ in range(3)]
    assert min(times) < 2, times
