"""What waits for event time is closed step by step, after what was there has been read."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pytest

from headgate.errors import KafkaUnavailable
from headgate.statements.closing import Closed, Closer, Ends


@dataclass
class Step:
    """A query of a statement: what it has read, and up to where its event time may go."""

    end: int = 10
    read: int = 10
    waits_for: int | None = 5000
    silent: float | None = 100.0
    watermark_ms: int = 0
    asked: list[int] = field(default_factory=list)

    def ends(self) -> Ends:
        return {"orders": {0: self.end}}

    def has_read(self, ends: Ends) -> bool:
        return self.read >= ends["orders"][0]

    def silent_seconds(self) -> float | None:
        return self.silent

    def due(self) -> int | None:
        return self.waits_for

    def close(self) -> int | None:
        if self.waits_for is not None:
            self.asked.append(self.waits_for)
        return self.waits_for

    def has_passed(self, watermark_ms: int) -> bool:
        return self.watermark_ms >= watermark_ms

    def to_date(self) -> Callable[[], None] | None:
        return None


def at_once(ask: Callable[[], Any]) -> "Future[Any]":
    asked: Future[Any] = Future()
    try:
        asked.set_result(ask())
    except KafkaUnavailable as error:
        asked.set_exception(error)
    return asked


def test_a_request_waits_for_what_was_there_and_not_for_what_comes_after_it() -> None:
    step, closer = Step(read=3), Closer(at_once, None)
    assert closer.look([step], "one") is None
    step.end = 1000
    assert closer.look([step], "one") is None
    assert step.asked == [], "not all of it is read"
    step.read = 10
    assert closer.look([step], "one") is None
    assert step.asked == [5000]
    step.watermark_ms = 5000
    assert closer.look([step], "one") == Closed("one", 5000)
    assert closer.look([step], None) is None, "nobody asks any more"


def test_a_step_is_closed_after_those_before_it() -> None:
    first, second = Step(waits_for=5000), Step(read=9, waits_for=7000)
    closer = Closer(at_once, None)
    closer.look([first, second], "one")
    assert (first.asked, second.asked) == ([5000], [])
    first.watermark_ms = 5000
    # What the first has written by then is what the second has to read.
    second.end = 12
    closer.look([first, second], "one")
    second.read = 11
    assert closer.look([first, second], "one") is None
    assert second.asked == []
    second.read = second.watermark_ms = 12
    assert closer.look([first, second], "one") is None
    second.watermark_ms = 7000
    assert closer.look([first, second], "one") == Closed("one", 7000)


def test_what_waits_for_nothing_is_closed_when_it_is_read() -> None:
    step, closer = Step(waits_for=None, silent=None), Closer(at_once, None)
    assert closer.look([step], "one") == Closed("one", None)


def test_a_silence_closes_what_waits_once() -> None:
    step, closer = Step(silent=9.9), Closer(at_once, 10.0)
    assert closer.look([step], None) is None
    assert step.asked == []
    step.silent = 10.0
    assert closer.look([step], None) is None
    assert step.asked == [5000]
    step.watermark_ms = 5000
    assert closer.look([step], None) == Closed(None, 5000)
    assert closer.look([step], None) is None
    assert step.asked == [5000], "nothing has come since"


def test_a_record_that_comes_meanwhile_has_its_own_silence() -> None:
    step, closer = Step(silent=10.0, read=9), Closer(at_once, 10.0)
    closer.look([step], None)
    step.read, step.silent = 10, 0.5
    assert closer.look([step], None) is None
    assert step.asked == []


def test_without_the_setting_no_silence_closes_anything() -> None:
    step, closer = Step(silent=1e9), Closer(at_once, None)
    assert closer.look([step], None) is None
    assert step.asked == []


def test_the_wall_clock_is_looked_at_where_that_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    looked: list[float] = []
    monkeypatch.setattr("headgate.statements.closing.time.monotonic", lambda: now)
    step, closer = Step(), Closer(at_once, None)
    closer.look([step], None)
    assert looked == []
    step.to_date = lambda: lambda: looked.append(now)  # type: ignore[method-assign]
    for _ in range(3):
        closer.look([step], None)
    assert looked == [100.0], "once in a second"
    now = 101.0
    closer.look([step], None)
    assert looked == [100.0, 101.0]


def test_ends_that_cannot_be_asked_for_are_asked_for_again() -> None:
    step, closer = Step(), Closer(at_once, None)

    def away() -> Ends:
        raise KafkaUnavailable("no broker answers")

    found, step.ends = step.ends, away  # type: ignore[method-assign]
    with pytest.raises(KafkaUnavailable):
        closer.look([step], "one")
    step.ends = found  # type: ignore[method-assign]
    step.watermark_ms = 5000
    assert closer.look([step], "one") == Closed("one", 5000)
