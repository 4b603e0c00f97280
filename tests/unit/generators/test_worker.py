"""The worker of managed generators: what is wanted runs, and what fails is tried again or said."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.backoff import Backoff
from headgate.datagen import GeneratorSpec
from headgate.errors import InvalidRequest, KafkaUnavailable
from headgate.generators import worker
from headgate.generators.run import _leave_out, _Meter
from headgate.generators.worker import Worker
from headgate.kafka.access import KafkaAccess
from headgate.kafka.registry import RegistryAccess
from headgate.store import Generators, GeneratorState, Store
from tests.support.services import wait_for

SPEC = GeneratorSpec("orders").to_dict()
Progress = Callable[[int, float], None]


class Script:
    """Acts the part of the runs: what each attempt of a generator does, in turn."""

    def __init__(self) -> None:
        self.attempts: list[Callable[[int, Progress, Callable[[], bool]], bool]] = []
        self.known: list[int] = []

    def go(self, known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
        self.known.append(known)
        return self.attempts.pop(0)(known, progress, stopped)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script()
    monkeypatch.setattr(worker, "Run", lambda *_: script)
    monkeypatch.setattr(worker, "BACKOFF", Backoff(0.01, 0.01))
    monkeypatch.setattr(worker, "LOOK_SECONDS", 0.01)
    return script


@pytest.fixture
def generators(tmp_path: Path) -> Iterator[Generators]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Generators(store.engine)
    store.close()


@pytest.fixture
def running(generators: Generators, script: Script) -> Iterator[threading.Event]:
    end = threading.Event()
    made = Worker(generators, KafkaAccess("127.0.0.1:1"), RegistryAccess("http://127.0.0.1:1"))
    thread = threading.Thread(target=made.run, args=(end,))
    thread.start()
    yield end
    end.set()
    thread.join()


def until_stopped(known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
    progress(known + 10, 5.0)
    wait_for("the stop", stopped)
    progress(known + 20, 5.0)
    return False


def state(generators: Generators) -> tuple[GeneratorState, int]:
    record = generators.get("orders")
    return record.state, record.records


def test_one_that_is_stopped_goes_on_where_it_was(
    generators: Generators, script: Script, running: threading.Event
) -> None:
    script.attempts = [until_stopped, until_stopped]
    generators.start("orders", SPEC)
    wait_for("it to run", lambda: state(generators) == (GeneratorState.RUNNING, 10))
    generators.stop("orders")
    wait_for("it to stop", lambda: state(generators) == (GeneratorState.STOPPED, 20))
    generators.start("orders", SPEC)
    wait_for("it to go on", lambda: state(generators) == (GeneratorState.RUNNING, 30))
    assert script.known == [0, 20]


def test_the_end_of_the_worker_leaves_it_wanted(
    generators: Generators, script: Script, running: threading.Event
) -> None:
    script.attempts = [until_stopped]
    generators.start("orders", SPEC)
    wait_for("it to run", lambda: state(generators)[0] is GeneratorState.RUNNING)
    running.set()
    wait_for("it to stop", lambda: state(generators) == (GeneratorState.STOPPED, 20))
    assert generators.get("orders").is_wanted


def test_what_passes_is_tried_again_and_said_meanwhile(
    generators: Generators, script: Script, running: threading.Event
) -> None:
    waiting = threading.Event()

    def fail(known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
        progress(7, 1.0)
        raise KafkaUnavailable("nobody answers")

    def look(known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
        assert generators.get("orders").reason == "nobody answers"
        assert generators.get("orders").state is GeneratorState.WAITING
        waiting.set()
        return True

    script.attempts = [fail, look]
    generators.start("orders", SPEC)
    wait_for("it to end", lambda: state(generators) == (GeneratorState.COMPLETED, 7))
    assert waiting.is_set()
    assert script.known == [0, 7]


def test_what_does_not_pass_ends_it_with_the_reason(
    generators: Generators, script: Script, running: threading.Event
) -> None:
    def refuse(known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
        raise InvalidRequest("The topic is too small.")

    def break_down(known: int, progress: Progress, stopped: Callable[[], bool]) -> bool:
        raise ZeroDivisionError("by nobody")

    for attempt, reason in ((refuse, "too small"), (break_down, "ZeroDivisionError: by nobody")):
        script.attempts = [attempt]
        generators.start("orders", SPEC)
        wait_for("it to fail", lambda: state(generators)[0] is GeneratorState.FAILED)
        assert reason in generators.get("orders").reason


def test_records_that_are_written_are_left_out() -> None:
    records = GeneratorSpec("sales").made().records(30)
    expected = list(GeneratorSpec("sales").made().records(30))
    assert _leave_out(records, 12, lambda: False)
    assert list(records) == expected[12:]
    assert _leave_out(iter(expected), 1_000, lambda: False)
    assert not _leave_out(iter(expected), 5, lambda: True)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    now = [0.0]
    meter = _Meter(1_000, clock=lambda: now[0])
    assert meter.rate(1_000) == 0.0
    for second in range(1, 21):
        now[0] = float(second)
        rate = meter.rate(1_000 + 100 * min(second, 10))
    assert rate == 0.0
    now[0] = 21.0
    assert meter.rate(2_600) == pytest.approx(100.0, rel=0.3)
