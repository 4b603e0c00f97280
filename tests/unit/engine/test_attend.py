"""The engine's rounds go on, whatever one of them meets."""

import threading
from collections.abc import Iterator

import pytest

from headgate.backoff import Backoff
from headgate.engine import main as engine


class Failing:
    """Rounds of which some raise; the last one ends the engine."""

    def __init__(self, stop: threading.Event, errors: list[Exception | None]) -> None:
        self._stop = stop
        self._errors = errors
        self.rounds = 0

    def tick(self) -> None:
        error = self._errors[self.rounds]
        self.rounds += 1
        if self.rounds == len(self._errors):
            self._stop.set()
        if error is not None:
            raise error

    def rest(self, seconds: float) -> None:
        assert seconds == 0.5


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BACKOFF", Backoff(0.0, 0.0))


def test_a_round_that_raises_is_followed_by_another() -> None:
    stop = threading.Event()
    loop = Failing(stop, [OverflowError("int too large"), None, RuntimeError("database is locked"), None])
    assert engine.attend(loop, lambda: True, lambda: None, stop, 0.5) == 0
    assert loop.rounds == 4


def test_a_state_that_cannot_be_reached_does_not_end_it() -> None:
    """Whether another engine has taken over is asked again."""
    stop = threading.Event()
    loop = Failing(stop, [None, None])
    answers: Iterator[bool | OSError] = iter([OSError("no connection"), True, OSError("no connection"), True])

    def keep() -> bool:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert engine.attend(loop, keep, lambda: None, stop, 0.5) == 0
    assert loop.rounds == 2


def test_it_steps_down_when_another_engine_has_taken_over() -> None:
    loop = Failing(threading.Event(), [])
    assert engine.attend(loop, lambda: False, lambda: None, threading.Event(), 0.5) == 0
    assert loop.rounds == 0


def test_it_ends_with_the_drivers_jvm() -> None:
    loop = Failing(threading.Event(), [])
    assert engine.attend(loop, lambda: True, lambda: 137, threading.Event(), 0.5) == 1
    assert loop.rounds == 0
