"""A table's life: suspended and resumed, disabled and enabled again, purged and begun afresh."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from headgate.model import TableState
from scripts.readers import pyiceberg_on
from tests.e2e.commands import enabled_topics, refused, wait_for_state
from tests.e2e.feed import Feed
from tests.support.services import wait_for
from tests.support.stack import Stack


@pytest.fixture
def feed(stack: Stack, request: pytest.FixtureRequest) -> Feed:
    """A table of the test's own, caught up with thirty records."""
    name = request.node.name.removeprefix("test_").replace("_", "-")
    feed = Feed(stack.runtime, f"life.{name}")
    feed.send(30)
    stack.run("table", "enable", feed.topic, "--freshness", "1s")
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    return feed


@pytest.fixture(scope="module")
def other(stack: Stack) -> Feed:
    """A table that runs on: when it has new records, the engine had the time to write those of others too."""
    feed = Feed(stack.runtime, "life.other")
    stack.run("table", "enable", feed.topic, "--freshness", "1s")
    return feed


def let_time_pass(stack: Stack, other: Feed) -> None:
    """Long enough for records to get into a table that runs, without being asked for."""
    other.send(3)
    wanted = len(other.sent)

    def there() -> bool:
        return bool(stack.store.table(other.topic).status.detail.get("rows") == wanted)

    wait_for(f"'{other.topic}' to be fresh", there, 60)
    assert other.check() == wanted


def snapshots(stack: Stack, topic: str) -> list[int]:
    table = pyiceberg_on(stack.runtime.iceberg).load_table(("local", topic))
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def files_of(location: str) -> list[Path]:
    folder = Path(unquote(urlsplit(location).path))
    return [path for path in folder.rglob("*") if path.is_file()]


def test_suspend_and_resume(stack: Stack, feed: Feed, other: Feed) -> None:
    stack.run("table", "suspend", feed.topic)
    before = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    assert before["reason"] == "by request"
    feed.send(20)
    written = snapshots(stack, feed.topic)
    let_time_pass(stack, other)

    assert snapshots(stack, feed.topic) == written
    assert feed.check(lambda sent: sent.offset < 10) == 30
    after = stack.json("table", "show", feed.topic)
    assert (after["state"], after["position"]) == ("Suspended", before["position"])
    said = refused(stack, "table", "sync", feed.topic)
    assert f"'{feed.topic}' is suspended" in said
    assert f"headgate table resume {feed.topic}" in said

    stack.run("table", "resume", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 50
    assert wait_for_state(stack, feed.topic, TableState.RUNNING)["rows"] == 50


def test_disable_keeps_the_rows_and_enable_goes_on(stack: Stack, feed: Feed, other: Feed) -> None:
    assert stack.run("table", "disable", feed.topic).stdout == f"{feed.topic} is disabled\n"
    assert feed.topic not in {table["topic"] for table in stack.json("table", "list")}
    assert "There is no table" in refused(stack, "table", "show", feed.topic)
    feed.send(20)
    let_time_pass(stack, other)
    assert feed.check(lambda sent: sent.offset < 10) == 30

    stack.run("table", "enable", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 50
    feed.send(1)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 51


def test_a_table_with_history_cannot_start_elsewhere(stack: Stack, feed: Feed) -> None:
    stack.run("table", "disable", feed.topic)
    feed.send(20)
    stack.run("table", "enable", feed.topic, "--from", "latest")

    shown = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    assert f"Table '{feed.topic}' has history" in shown["reason"]
    assert "latest" in shown["reason"]
    assert "enable it again without --from, or disable it with --purge" in shown["reason"]
    assert feed.check(lambda sent: sent.offset < 10) == 30
    said = refused(stack, "table", "sync", feed.topic, meanwhile=(feed.topic,))
    assert f"'{feed.topic}' is suspended" in said

    # Asking again changes nothing; what the reason says does.
    stack.run("table", "resume", feed.topic)
    wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    stack.run("table", "disable", feed.topic)
    stack.run("table", "enable", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 50


def test_purge_removes_all_and_enable_begins_afresh(stack: Stack, feed: Feed) -> None:
    location = stack.json("table", "show", feed.topic)["detail"]["location"]
    assert any(path.suffix == ".parquet" for path in files_of(location))
    assert any(path.name.endswith(".metadata.json") for path in files_of(location))

    said = refused(stack, "table", "disable", feed.topic, "--purge")
    assert "--yes" in said
    assert feed.topic in said
    assert feed.topic in enabled_topics(stack)
    assert feed.check() == 30

    stack.run("table", "disable", feed.topic, "--purge", "--yes")
    assert feed.topic not in enabled_topics(stack)
    assert not pyiceberg_on(stack.runtime.iceberg).table_exists(("local", feed.topic))
    assert files_of(location) == []

    stack.run("table", "enable", feed.topic)
    feed.send(5)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 35


def test_purge_takes_only_what_is_its_own(stack: Stack, feed: Feed) -> None:
    """A topic whose name begins like another's."""
    longer = Feed(stack.runtime, f"{feed.topic}.longer")
    longer.send(6)
    stack.run("table", "enable", longer.topic)
    stack.run("table", "sync", longer.topic, "--timeout", "120s")
    stack.run("table", "disable", feed.topic, "--purge", "--yes")
    assert longer.check() == 6


def test_enabling_what_is_enabled_is_refused(stack: Stack, other: Feed) -> None:
    said = refused(stack, "table", "enable", other.topic, "--from", "latest")
    assert f"'{other.topic}' is a table already" in said
    assert stack.json("table", "show", other.topic)["from"] == "earliest"


def test_a_topic_created_anew_is_not_taken_for_the_old_one(stack: Stack, feed: Feed) -> None:
    stack.run("topic", "delete", feed.topic, "--yes")
    gone = wait_for_state(stack, feed.topic, TableState.DEGRADED)
    assert "does not exist" in gone["reason"]
    again = Feed(stack.runtime, feed.topic)
    again.send(45)

    shown = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    assert "deleted and created again" in shown["reason"]
    assert "--purge" in shown["reason"]
    assert feed.check() == 30

    stack.run("table", "disable", feed.topic, "--purge", "--yes")
    stack.run("table", "enable", feed.topic)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert again.check() == 45
