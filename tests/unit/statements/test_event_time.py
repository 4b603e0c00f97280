"""When the watermark of a running query moves: by what batches have shown, never by how long they take."""

import json
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from headgate.statements.clock import SourceClock
from headgate.statements.event_time import EventTime

IDLE = 10.0
HOUR = 3_600_000


class Some:
    """A value of Scala's Option."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def isDefined(self) -> bool:  # noqa: N802 - Scala's name
        return self._value is not None

    def get(self) -> Any:
        return self._value


@dataclass
class Row:
    """An observed row of a batch."""

    values: dict[str, Any]

    def json(self) -> str:
        return json.dumps(self.values)


@dataclass
class Tracker:
    """Spark's watermark of a query."""

    at: int = 0

    def currentWatermark(self) -> int:  # noqa: N802
        return self.at

    def setWatermark(self, time_ms: int) -> None:  # noqa: N802
        assert time_ms > self.at
        self.at = time_ms


@dataclass
class Running:
    """A query as event time sees it, and the execution behind it."""

    tracker: Tracker = field(default_factory=Tracker)
    active: bool = False
    observed: dict[str, dict[str, Any]] = field(default_factory=dict)
    begins_meanwhile: bool = False
    #: When the last trigger began, by the wall clock; -1 before it has.
    triggered_ms: int = 0

    @property
    def status(self) -> dict[str, bool]:
        return {"isTriggerActive": self.active}

    @property
    def _jsq(self) -> "Running":
        return self

    def streamingQuery(self) -> "Running":  # noqa: N802
        return self

    def lastExecution(self) -> "Running":  # noqa: N802
        return self

    def offsetSeqMetadata(self) -> "Running":  # noqa: N802
        return self

    def batchWatermarkMs(self) -> int:  # noqa: N802
        return self.tracker.at

    def observedMetrics(self) -> "Running":  # noqa: N802
        return self

    def get(self, scan: str) -> Some:
        return Some(Row(self.observed[scan]) if scan in self.observed else None)

    def watermarkTracker(self) -> Tracker:  # noqa: N802
        return self.tracker

    def watermarkPropagator(self) -> "Running":  # noqa: N802
        return self

    def purge(self, _: int) -> None:
        """Spark forgets by which watermark it has planned."""

    def getLatestExecutionContext(self) -> "Running":  # noqa: N802
        return self

    def currentTriggerStartTimestamp(self) -> int:  # noqa: N802
        return self.triggered_ms

    def awaitProgressLock(self) -> "Running":  # noqa: N802
        return self

    def lock(self) -> None:
        self.active = self.active or self.begins_meanwhile

    def unlock(self) -> None: ...


class Stream:
    """A statement over one topic of two partitions, and a clock that the test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("headgate.statements.event_time.time.monotonic", lambda: self.now)
        monkeypatch.setattr("headgate.statements.event_time.time.time", lambda: 1000 + self.now)
        self.query = Running()
        self.batches = 0
        self._ended_at = 0.0
        self.time = EventTime()
        source = SourceClock(0, IDLE)
        source.know((0, 1), 0.0)
        self.time.watch("scan", source)

    def batch(
        self, times: dict[int, int], seconds: float, behind: dict[int, int] | None = None, looks: int = 3
    ) -> int:
        """A batch of so many seconds, looked at meanwhile; what waited when it began is told after it."""
        self.query.active = True
        self.query.triggered_ms = round((1000 + self.now) * 1000)
        for _ in range(looks):
            self.now += seconds / looks
            self.look()
        self.query.observed = {"scan": {str(partition): time for partition, time in times.items()}}
        self.batches += 1
        self.time.batch_ran(cast(StreamingQuery, self.query), self.batches)
        self.query.active = False
        self._ended_at = self.now
        if behind is not None:
            self.hear(behind)
        return self.query.tracker.at

    def hear(self, behind: dict[int, int], of: int = 0) -> None:
        """Of the last batch, or of one so many before it."""
        self.time.heard("scan", behind, self.batches - of)

    def look(self) -> int:
        if not self.query.active and self.now > self._ended_at:
            # Since the last batch Spark has looked for records, and there were none.
            self.query.triggered_ms = round((1000 + self.now) * 1000)
        self.time.look(cast(StreamingQuery, self.query))
        return self.query.tracker.at


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    return Stream(monkeypatch)


def test_a_batch_longer_than_the_idle_timeout_makes_no_partition_idle(stream: Stream) -> None:
    assert stream.batch({0: 10 * HOUR, 1: 0}, 1, behind={0: 900, 1: 900}) == 0
    assert stream.batch({0: 11 * HOUR, 1: 1000}, 5 * IDLE, behind={0: 800, 1: 800}) == 1000


def test_a_partition_with_a_backlog_that_has_no_turn_in_a_long_batch_is_not_idle(stream: Stream) -> None:
    stream.batch({0: 10 * HOUR, 1: 1000}, 1, behind={0: 900, 1: 900})
    for _ in range(3):
        assert stream.batch({0: 11 * HOUR}, 5 * IDLE, behind={0: 900, 1: 900}) == 1000


def test_what_waits_is_not_known_until_a_batch_has_told(stream: Stream) -> None:
    stream.batch({0: 10 * HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    # Records of the other partition may have come before this one began: nobody has said so yet.
    stream.batch({0: 11 * HOUR}, 1)
    stream.now += 5 * IDLE
    assert stream.look() == 1000
    stream.hear({0: 0, 1: 0}, of=1)
    assert stream.look() == 1000, "an earlier batch does not say it"
    stream.hear({0: 0, 1: 7})
    stream.now += 5 * IDLE
    assert stream.look() == 1000
    stream.hear({0: 0, 1: 0})
    stream.now += 5 * IDLE
    stream.batch({0: 12 * HOUR}, 1, behind={0: 0, 1: 0})
    assert stream.look() == 1000, "the first record after a pause of both"
    stream.now += IDLE
    stream.batch({0: 12 * HOUR}, 1, behind={0: 0, 1: 0})
    assert stream.look() == 12 * HOUR


def test_a_partition_that_is_silent_while_another_speaks_does_not_count(stream: Stream) -> None:
    assert stream.batch({0: HOUR, 1: 1000}, 1, behind={0: 0, 1: 0}) == 1000
    stream.now += IDLE / 2
    assert stream.look() == 1000
    stream.batch({0: 2 * HOUR}, 0.1, behind={0: 0, 1: 0})
    stream.now += IDLE / 2
    assert stream.look() == 1000, "for so long nobody has spoken"
    stream.batch({0: 3 * HOUR}, 0.1, behind={0: 0, 1: 0})
    assert stream.look() == 3 * HOUR


def test_what_has_come_is_closed_between_two_batches(stream: Stream) -> None:
    stream.batch({0: HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    assert stream.time.seen == HOUR
    stream.time.close(2 * HOUR)
    stream.query.active = True
    assert stream.look() == 1000, "a batch runs"
    stream.query.active = False
    assert stream.look() == 2 * HOUR
    assert stream.batch({0: HOUR + 1, 1: HOUR + 1}, 1) == 2 * HOUR, "it never goes back"


def test_another_run_takes_up_what_was_seen(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.batch({0: HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    again = Stream(monkeypatch)
    again.time.recall(json.loads(json.dumps(stream.time.to_dict())))
    assert again.batch({1: 2 * HOUR}, 1) == HOUR


def test_a_silent_partition_does_not_hold_batches_that_follow_each_other_without_a_pause(
    stream: Stream,
) -> None:
    stream.batch({0: HOUR, 1: 1000}, 1, behind={0: 500, 1: 0})
    reached = [stream.batch({0: (2 + n) * HOUR}, 2, behind={0: 500, 1: 0}) for n in range(8)]
    assert reached[0] == 1000
    assert reached[-1] == 9 * HOUR


def test_no_look_counts_while_a_batch_runs(stream: Stream) -> None:
    """Also one that begins between the first glance and the lock in which Spark plans batches."""
    stream.batch({0: 10 * HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    stream.now += 5 * IDLE
    stream.time.close(11 * HOUR)
    stream.query.begins_meanwhile = True
    assert stream.look() == 1000


def test_silence_is_asked_as_of_the_start_of_a_batch(stream: Stream) -> None:
    stream.batch({0: 10 * HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    # One of them has nothing in a batch that takes long; it was heard just before.
    assert stream.batch({0: 11 * HOUR}, 5 * IDLE, behind={0: 0, 1: 0}) == 1000


def test_a_record_that_came_while_a_batch_ran_ends_a_silence(stream: Stream) -> None:
    """What a batch tells of records that wait is as of its start: for so long, no longer, is it silence."""
    stream.batch({0: 10 * HOUR, 1: 1000}, 1, behind={0: 0, 1: 0})
    stream.batch({0: 11 * HOUR}, 0.6 * IDLE, behind={0: 0, 1: 0})
    stream.batch({0: 12 * HOUR}, 0.6 * IDLE, behind={0: 0, 1: 0})
    assert stream.look() == 1000, "there was none of it for 0.6 of the idle timeout when the last one began"
    stream.query.triggered_ms = -1
    assert stream.look() == 1000, "a trigger is about to look for records"
    stream.now += 0.1
    assert stream.look() == 12 * HOUR, "a trigger has found none"
