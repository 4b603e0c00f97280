"""`table enable --from`: exactly the records from there on, and for ever the same ones."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headgate.model import TableState
from tests.e2e.commands import enabled_topics, refused, wait_for_state
from tests.e2e.feed import BEGIN_MS, STEP_MS, Feed, Sent
from tests.support.services import wait_for
from tests.support.stack import Stack

BEFORE, AFTER = 60, 24
PARTITIONS = 3


def moment(second: float, zone: timezone = UTC) -> datetime:
    begin = datetime.fromtimestamp(BEGIN_MS / 1000, UTC)
    return (begin + timedelta(seconds=second)).astimezone(zone)


@dataclass(frozen=True)
class Case:
    """A value of `--from`, and the first offset that it means for each partition."""

    value: str
    first: Callable[[list[Sent]], dict[int, int]]


def at_offsets(*offsets: int) -> Callable[[list[Sent]], dict[int, int]]:
    return lambda _: dict(enumerate(offsets))


def since(second: float) -> Callable[[list[Sent]], dict[int, int]]:
    """The first record of each partition that is as new; what came after it counts, however old it says."""

    def first(sent: list[Sent]) -> dict[int, int]:
        new = [s for s in sent if s.timestamp_ms >= BEGIN_MS + second * STEP_MS]
        found = {p: [s.offset for s in new if s.partition == p] for p in range(PARTITIONS)}
        return {p: min(offsets, default=BEFORE) for p, offsets in found.items()}

    return first


EACH = BEFORE // PARTITIONS
CASES = {
    "default": Case("", at_offsets(0, 0, 0)),
    "earliest": Case("earliest", at_offsets(0, 0, 0)),
    "latest": Case("latest", at_offsets(EACH, EACH, EACH + 1)),
    "the-time-of-a-record": Case(moment(30).isoformat().replace("+00:00", "Z"), since(30)),
    "a-time-between-without-zone": Case(moment(30.5).replace(tzinfo=None).isoformat(), since(30.5)),
    "a-time-in-another-zone": Case(moment(41, timezone(timedelta(hours=-7))).isoformat(), since(41)),
    "a-time-after-all": Case(moment(BEFORE).isoformat(), since(BEFORE)),
    "offsets": Case("0:7,2:19", at_offsets(7, 0, 19)),
    "offsets-at-the-end": Case(f"0:{EACH},1:{EACH},2:{EACH + 1}", at_offsets(EACH, EACH, EACH + 1)),
}


@pytest.fixture(scope="module")
def feeds(stack: Stack) -> dict[str, Feed]:
    """All of them enabled with records on either side of that moment, and caught up."""
    feeds = {name: Feed(stack.runtime, f"starts.{name}", PARTITIONS) for name in CASES}
    for name, case in CASES.items():
        feed = feeds[name]
        feed.send(BEFORE)
        feed.send_late(2)
        start = ["--from", case.value] if case.value else []
        stack.run("table", "enable", feed.topic, *start)
        feed.send(AFTER)
    for feed in feeds.values():
        stack.run("table", "sync", feed.topic, "--timeout", "120s")
    return feeds


@pytest.mark.parametrize("name", CASES)
def test_exactly_the_records_from_there_on(stack: Stack, feeds: dict[str, Feed], name: str) -> None:
    feed = feeds[name]
    first = CASES[name].first(feed.rows())
    found = feed.check(lambda sent: sent.offset >= first[sent.partition])
    assert AFTER <= found <= BEFORE + 1 + AFTER
    table = wait_for_state(stack, feed.topic, TableState.RUNNING)
    assert (table["rows"], table["lag"]) == (found, 0)
    assert table["position"]["offsets"] == {str(p): end for p, end in feed.ends().items()}


@contextmanager
def stopped_engine(stack: Stack) -> Iterator[int]:
    """The engine does nothing while the block lasts; its process group."""
    pid = stack.store.process("engine").pid
    assert pid is not None
    group = os.getpgid(pid)
    os.killpg(group, signal.SIGSTOP)
    try:
        yield group
    finally:
        os.killpg(group, signal.SIGCONT)


def test_latest_means_the_moment_of_enabling(stack: Stack) -> None:
    """Not the moment at which the engine gets round to it."""
    feed = Feed(stack.runtime, "starts.pinned")
    feed.send(30)
    with stopped_engine(stack):
        stack.run("table", "enable", feed.topic, "--from", "latest")
        feed.send(12)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check(lambda sent: sent.offset >= 10) == 12


def test_latest_of_a_topic_without_a_schema(stack: Stack) -> None:
    """The schema comes with the first record, after the table was asked for: the record belongs to it."""
    feed = Feed(stack.runtime, "starts.no-schema", schema=False)
    stack.run("table", "enable", feed.topic, "--from", "latest")
    feed.send(12)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check() == 12


def test_latest_means_the_same_after_the_engine_was_killed(stack: Stack) -> None:
    feed = Feed(stack.runtime, "starts.killed")
    feed.send(30)
    before = stack.store.process("engine")
    with stopped_engine(stack) as group:
        stack.run("table", "enable", feed.topic, "--from", "latest")
        feed.send(12)
        os.killpg(group, signal.SIGKILL)
    wait_for("another engine", lambda: stack.store.process("engine").instance != before.instance)
    feed.send(9)
    stack.run("table", "sync", feed.topic, "--timeout", "120s")
    assert feed.check(lambda sent: sent.offset >= 10) == 21


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("yesterday", "'yesterday'"),
        ("", "''"),
        ("LATEST", "'LATEST'"),
        ("2026-13-01T00:00:00Z", "'2026-13-01T00:00:00Z'"),
        ("1969-12-31T23:59:59Z", "'1969-12-31T23:59:59Z'"),
        ("0:1,", "'0:1,'"),
        ("0:-1", "'0:-1'"),
        ("0:1,0:2", "'0:1,0:2'"),
        ("3:0", "partition 3"),
        ("0:5", "Offset 5"),
    ],
)
def test_a_start_that_makes_no_sense_is_refused(stack: Stack, refusing: Feed, value: str, named: str) -> None:
    said = refused(stack, "table", "enable", refusing.topic, "--from", value)
    assert named in said
    assert refusing.topic not in enabled_topics(stack)


@pytest.fixture(scope="module")
def refusing(stack: Stack) -> Feed:
    """Four records in each of three partitions."""
    feed = Feed(stack.runtime, "starts.refused")
    feed.send(12)
    return feed
