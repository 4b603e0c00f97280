"""`--formats iceberg,delta`, as a user types it."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headgate.model import TableState
from scripts.readers import pyiceberg_on
from tests.e2e.commands import refused, shown, wait_for_state
from tests.e2e.feed import Feed
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.ledger import canonical, read_pyiceberg
from tests.support.services import wait_for
from tests.support.stack import Stack

TOPIC = "e2e.two-formats"
READERS = (read_delta_duckdb, read_delta_rs)


def folder_of(stack: Stack, topic: str) -> str:
    return "/" + str(shown(stack, topic)["detail"]["location"]).removeprefix("file:").lstrip("/")


def sync(stack: Stack, feed: Feed, count: int) -> None:
    feed.send(count)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")


def check(stack: Stack, feed: Feed) -> int:
    """The same rows in both formats, and those that were sent; how many."""
    count = feed.check()
    expected = counted(read_pyiceberg(stack.runtime.iceberg, "local", feed.topic))
    for read in READERS:
        assert counted(read(folder_of(stack, feed.topic))) == expected, read.__name__
    assert expected.total() == count
    return count


def counted(rows: Any) -> Counter[str]:
    return Counter(map(canonical, rows))


def test_a_table_of_two_formats(stack: Stack) -> None:
    feed = Feed(stack.runtime, TOPIC, partitions=2)
    stack.run("table", "enable", TOPIC, "--formats", "iceberg,delta")
    sync(stack, feed, 4)
    sync(stack, feed, 4)
    assert check(stack, feed) == 8
    delta = shown(stack, TOPIC)["detail"]["delta"]
    assert delta["snapshot_id"] == shown(stack, TOPIC)["detail"]["snapshot_id"]

    stack.run("table", "compact", TOPIC)
    stack.run("table", "expire", TOPIC, "--older-than", "0s", "--keep-last", "1")
    sync(stack, feed, 4)
    assert check(stack, feed) == 12

    # A rename writes files anew, if that is wanted.
    assert "--rewrite" in refused(stack, "table", "alter", TOPIC, "--rename", "text=label")
    stack.run("table", "alter", TOPIC, "--rename", "text=label", "--rewrite")
    sync(stack, feed, 4)
    wait_for("the new name", lambda: has_column(stack, "label"), 120)
    stack.verify(TOPIC)

    # Another's commit in the log stops the mirror, and the mirror alone.
    version = stack.json("table", "mirror", TOPIC)["version"]
    log = Path(folder_of(stack, TOPIC)) / "_delta_log"
    foreign = json.dumps({"commitInfo": {"engineInfo": "Other/1"}})
    (log / f"{version + 1:020d}.json").write_text(foreign + "\n")
    sync(stack, feed, 4)
    found = wait_for_state(stack, TOPIC, TableState.DEGRADED)
    assert "Other/1" in found["reason"]
    assert "--rebuild" in found["reason"]
    said = refused(stack, "table", "mirror", TOPIC, meanwhile=(f"{TOPIC}: ",))
    assert "Other/1" in said
    assert "numbered from 0" in stack.run("table", "mirror", TOPIC, "--rebuild").stdout
    wait_for_state(stack, TOPIC, TableState.RUNNING)
    stack.run("table", "alter", TOPIC, "--formats", "iceberg")
    wait_for("the log to be removed", lambda: not list(log.iterdir()), 120)
    stack.run("table", "disable", TOPIC, "--purge", "--yes")


def has_column(stack: Stack, name: str) -> bool:
    rows = list(read_delta_rs(folder_of(stack, TOPIC)))
    return name in rows[0] and any(row[name] is not None for row in rows)


def test_delta_alone_is_not_shown_as_iceberg(stack: Stack) -> None:
    feed = Feed(stack.runtime, "e2e.delta-alone", partitions=1)
    stack.run("table", "enable", feed.topic, "--formats", "delta")
    sync(stack, feed, 4)
    catalog = pyiceberg_on(stack.runtime.iceberg)
    assert not catalog.table_exists(("local", feed.topic))
    assert ("local", feed.topic) not in catalog.list_tables("local")
    for read in READERS:
        assert len(list(read(folder_of(stack, feed.topic)))) == 4
    asked = stack.run("query", f"SELECT count(*) AS n FROM `{feed.topic}`", "--output", "csv")
    assert asked.stdout.split() == ["n", "4"]
    stack.run("table", "alter", feed.topic, "--formats", "iceberg,delta")
    wait_for("the Iceberg side", lambda: catalog.table_exists(("local", feed.topic)), 120)
    sync(stack, feed, 4)
    assert check(stack, feed) == 8
    folder = Path(folder_of(stack, feed.topic))
    stack.run("table", "disable", feed.topic, "--purge", "--yes")
    assert not [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("formats", ["hudi", "iceberg,", ""])
def test_formats_that_there_are_not(stack: Stack, formats: str) -> None:
    Feed(stack.runtime, f"e2e.formats-{len(formats)}", partitions=1)
    said = refused(stack, "table", "enable", f"e2e.formats-{len(formats)}", "--formats", formats)
    assert "Supported now: iceberg, delta." in said
