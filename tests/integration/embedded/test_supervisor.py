"""The supervisor with real children: they have children of their own, die, and do not mind SIGTERM."""

import errno
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy.exc import InternalError

from headgate.backoff import Backoff
from headgate.embedded.child import ChildSpec, Phase
from headgate.embedded.process import Identity, group_members
from headgate.embedded.supervisor import Supervisor
from headgate.errors import TerminalError
from headgate.store import Store
from tests.integration.embedded.conftest import Supervise, wait_until

Spec = Callable[..., ChildSpec]


def pid_in(data: Path, name: str) -> int:
    return int((data / name).read_text())


def group_of(supervisor: Supervisor, name: str) -> int:
    leader = supervisor.children[name].leader
    assert leader is not None
    return leader.pid


@contextmanager
def watching(supervisor: Supervisor) -> Iterator[None]:
    thread = threading.Thread(target=supervisor.watch)
    thread.start()
    try:
        yield
    finally:
        supervisor.ask_to_stop()
        thread.join()


def test_children_start_in_order_and_stop_in_the_opposite_one(
    supervise: Supervise, spec: Spec, data: Path, said: list[str]
) -> None:
    supervisor = supervise(spec("first"), spec("second", after=("first",)))

    assert supervisor.start()

    groups = [group_of(supervisor, name) for name in ("first", "second")]
    assert said.index("starting second") > next(i for i, text in enumerate(said) if "first is ready" in text)
    # The guard, the program, and the program's own child.
    assert [len(group_members(group)) for group in groups] == [3, 3]
    assert all(os.getsid(group) == group for group in groups)

    supervisor.stop()

    assert [group_members(group) for group in groups] == [[], []]
    assert (data / "ended").read_text().split() == ["second", "first"]


def test_a_child_that_dies_is_started_again_once_its_group_is_gone(
    supervise: Supervise, spec: Spec, data: Path, store: Store, said: list[str]
) -> None:
    supervisor = supervise(spec("engine"))
    supervisor.start()
    child = supervisor.children["engine"]
    before = child.instance
    sleeper = Identity.of(pid_in(data, "engine.sleeper"))
    assert sleeper is not None

    with watching(supervisor):
        os.kill(pid_in(data, "engine.pid"), signal.SIGKILL)
        wait_until(lambda: child.instance != before and child.phase is Phase.READY)

    assert not sleeper.alive, "what the dead one had started lived on"
    events = store.events("engine")
    assert [event["kind"] for event in events] == ["restarted"]
    assert f"ended with code {128 + signal.SIGKILL}" in events[0]["message"]
    assert store.process("engine").instance == child.instance


def test_a_disk_that_is_full_for_a_while_ends_nothing(
    supervise: Supervise, spec: Spec, data: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = supervise(spec("broker"), spec("engine"))
    supervisor.start()
    broker, engine = (supervisor.children[name] for name in ("broker", "engine"))
    runs_on, before = broker.instance, engine.instance
    remember, tries = supervisor._folder.remember_groups, []

    def full(leaders: Mapping[str, Identity]) -> None:
        tries.append(leaders)
        if len(tries) <= 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        remember(leaders)

    monkeypatch.setattr(supervisor._folder, "remember_groups", full)
    with watching(supervisor):
        os.kill(pid_in(data, "engine.pid"), signal.SIGKILL)
        wait_until(lambda: engine.instance != before and engine.phase is Phase.READY)
        assert len(tries) >= 2
    assert (broker.instance, broker.phase) == (runs_on, Phase.READY)
    assert any("No space left on device" in text for text in said)


def test_a_database_that_takes_no_writes_for_a_while_ends_nothing(
    supervise: Supervise,
    spec: Spec,
    data: Path,
    store: Store,
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    supervisor = supervise(spec("engine"))
    supervisor.start()
    engine = supervisor.children["engine"]
    before = engine.instance

    def read_only(*_: object) -> None:
        raise InternalError("UPDATE processes", {}, Exception("a read-only transaction"))

    monkeypatch.setattr(store, "beat", read_only)
    with watching(supervisor):
        os.kill(pid_in(data, "engine.pid"), signal.SIGKILL)
        wait_until(lambda: engine.instance != before and engine.phase is Phase.READY)
    assert any("a read-only transaction" in text for text in said)


def test_each_death_in_a_row_is_waited_for_longer(supervise: Supervise, spec: Spec, data: Path) -> None:
    supervisor = supervise(spec("engine"))
    supervisor.start()
    child = supervisor.children["engine"]
    waits = []

    with watching(supervisor):
        for deaths in (1, 2):
            before = child.instance
            os.kill(pid_in(data, "engine.pid"), signal.SIGKILL)
            wait_until(lambda deaths=deaths: child.deaths == deaths)  # type: ignore[misc]
            died = time.monotonic()
            wait_until(lambda before=before: child.instance != before)  # type: ignore[misc]
            waits.append(time.monotonic() - died)
            wait_until(lambda: child.phase is Phase.READY)

    assert waits[0] >= 0.4
    assert waits[1] >= 0.9


def test_a_child_that_does_not_mind_sigterm_is_killed_after_its_grace(
    supervise: Supervise, spec: Spec
) -> None:
    supervisor = supervise(spec("engine", "stubborn", grace=0.3))
    supervisor.start()
    group = group_of(supervisor, "engine")

    supervisor.stop()

    assert group_members(group) == []


def test_asked_twice_it_waits_for_nobody(supervise: Supervise, spec: Spec) -> None:
    supervisor = supervise(spec("engine", "stubborn", grace=600))
    supervisor.start()
    group = group_of(supervisor, "engine")
    supervisor.ask_to_stop()
    supervisor.ask_to_stop()

    supervisor.stop()

    assert group_members(group) == []


def test_a_start_that_leads_nowhere_names_the_child_and_shows_its_log(
    supervise: Supervise, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.embedded.child.BACKOFF", Backoff(0.01, 30.0))
    supervisor = supervise(spec("first"), spec("engine", "mortal"))

    with pytest.raises(TerminalError, match=r"The engine ended 5 times before it was ready") as failure:
        supervisor.start()

    assert "engine cannot live" in failure.value.remedy


def test_a_child_that_is_never_ready_fails_the_start(supervise: Supervise, spec: Spec) -> None:
    supervisor = supervise(spec("engine", "silent", deadline=1.0))

    with pytest.raises(TerminalError, match="The engine was not ready within 1 s"):
        supervisor.start()


def test_a_child_starts_when_it_is_wanted_and_stops_when_it_is_not(
    supervise: Supervise, spec: Spec, store: Store
) -> None:
    supervisor = supervise(spec("first"), spec("query", wanted=lambda: store.process("query").wanted))
    supervisor.start()
    query = supervisor.children["query"]
    assert query.phase is Phase.STOPPED

    with watching(supervisor):
        store.want("query")
        wait_until(lambda: query.phase is Phase.READY)
        group = group_of(supervisor, "query")
        store.want("query", False)
        wait_until(lambda: query.phase is Phase.STOPPED)

    assert group_members(group) == []
    assert store.process("query").state == "stopped"


def test_a_stop_that_is_asked_while_it_starts_ends_the_start(supervise: Supervise, spec: Spec) -> None:
    supervisor = supervise(spec("engine", "silent"))
    threading.Timer(0.3, supervisor.ask_to_stop).start()

    assert not supervisor.start()
