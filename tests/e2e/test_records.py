"""Topics without a schema, and records that are none: the table waits or stops, and says why."""

import pytest

from headgate.model import TableState
from tests.e2e.commands import refused, wait_for_state
from tests.e2e.feed import Feed
from tests.support.services import wait_for
from tests.support.stack import Stack

GOOD = 24


def test_a_topic_without_a_schema_waits_for_one(stack: Stack) -> None:
    feed = Feed(stack.runtime, "records.no-schema", schema=False)
    stack.run("table", "enable", feed.topic)
    shown = wait_for_reason(stack, feed.topic)
    assert shown == (
        f"waiting for a schema: register one for subject '{feed.subject}', produce a record that names one, "
        "or enable the table with a --value-format that needs none"
    )
    said = refused(stack, "table", "sync", feed.topic, "--timeout", "1s", meanwhile=(feed.topic,))
    assert "Pending" in said
    assert "waiting for a schema" in said

    feed.send(GOOD)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == GOOD
    assert wait_for_state(stack, feed.topic, TableState.RUNNING)["rows"] == GOOD


def wait_for_reason(stack: Stack, topic: str) -> str:
    def reason() -> str:
        status = stack.store.table(topic).status
        waits = status.state is TableState.PENDING and "engine" not in status.reason
        return status.reason if waits else ""

    return str(wait_for(f"'{topic}' to say what it waits for", reason, 60))


POISON = {
    "text": b"not in wire format",
    "short": b"\x00\x00",
    "null": None,
    "unknown-schema": b"\x00\x7f\xff\xff\xff\x02",
    "cut-off": b"",  # a good record without its end
}
REASONS = {
    "text": "does not begin with a schema id",
    "short": "does not begin with a schema id",
    "null": "has no value",
    "unknown-schema": "the registry does not have (schema 2147483647)",
    "cut-off": "does not decode",
}


@pytest.fixture(scope="module")
def feeds(stack: Stack) -> dict[str, Feed]:
    """Tables with good rows, then one bad record, then good rows again."""
    feeds = {name: Feed(stack.runtime, f"records.{name}") for name in POISON}
    for feed in feeds.values():
        feed.send(GOOD)
        stack.run("table", "enable", feed.topic)
    for name, feed in feeds.items():
        stack.run("table", "sync", feed.topic, "--timeout", "120s")
        poison = POISON[name]
        if name == "cut-off":
            poison = b"\x00" + feed.schema_id().to_bytes(4, "big") + b"\x02"
        assert feed.send_bytes(1, poison) == GOOD // 3
        feed.send(GOOD)
    return feeds


@pytest.mark.parametrize("name", POISON)
def test_a_bad_record_suspends_its_table(stack: Stack, feeds: dict[str, Feed], name: str) -> None:
    feed = feeds[name]
    said = refused(stack, "table", "sync", feed.topic, "--timeout", "120s", meanwhile=(feed.topic,))
    assert f"Table '{feed.topic}' is" in said
    shown = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    assert f"partition 1, offset {GOOD // 3} " in shown["reason"]
    assert REASONS[name] in shown["reason"]
    assert shown["position"]["offsets"] == {str(p): GOOD // 3 for p in range(3)}
    assert feed.check(lambda sent: sent.offset < GOOD // 3) == GOOD


def test_resuming_changes_nothing_about_a_bad_record(stack: Stack, feeds: dict[str, Feed]) -> None:
    feed = feeds["text"]
    before = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    stack.run("table", "resume", feed.topic)
    after = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    assert after["reason"] == before["reason"]
    assert after["position"] == before["position"]
    assert feed.check(lambda sent: sent.offset < GOOD // 3) == GOOD


def test_the_events_do_not_blame_the_owner(stack: Stack, feeds: dict[str, Feed]) -> None:
    """Nobody asked for it to be suspended."""
    feed = feeds["null"]
    shown = wait_for_state(stack, feed.topic, TableState.SUSPENDED)
    told = [(event["kind"].lower(), event["message"]) for event in shown["events"]]
    assert ("suspended", shown["reason"]) in told
    assert ("suspended", "by request") not in told
