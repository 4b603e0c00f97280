"""Starts the children in order, keeps them running, and ends them all."""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from sqlalchemy.exc import DBAPIError

from headgate.embedded.child import Child, ChildSpec, Phase, tail
from headgate.embedded.folder import DataFolder
from headgate.errors import HeadgateError, TerminalError
from headgate.store import Store

TICK_SECONDS = 0.1
LOOK_SECONDS = 0.5
BEAT_SECONDS = 2.0
EARLY_DEATHS = 5


class Supervisor:
    """Children in the order in which they start; they end in the opposite one.

    `say` gets a line for each thing that happens. Everything runs in the calling thread, which is the main
    one when `signals` is used.
    """

    def __init__(
        self, specs: Sequence[ChildSpec], store: Store, folder: DataFolder, say: Callable[[str], None]
    ) -> None:
        logs = folder.path / "logs"
        self.children = {spec.name: Child(spec, logs / f"{spec.name}.log") for spec in specs}
        self._store = store
        self._folder = folder
        self._say = say
        self._stops_asked = 0
        self._started = False
        self._looked_at = self._beat_at = float("-inf")
        self._store_answers = self._disk_answers = True

    # -- what `headgate up` calls

    def start(self) -> bool:
        """Until all that is wanted is ready: True. False if a stop was asked meanwhile."""
        while not self._stops_asked:
            self._tick()
            self._check_start()
            if all(child.phase is Phase.READY for child in self.children.values() if child.wanted):
                self._started = True
                return True
            time.sleep(TICK_SECONDS)
        return False

    def watch(self) -> None:
        """Until a stop is asked: start again what dies, and start and stop what is wanted no more.

        A disk that is full for a while ends nothing: what runs goes on, and what does not is tried again.
        """
        while not self._stops_asked:
            try:
                self._tick()
            except OSError as error:
                self._disk_trouble(error)
            else:
                self._disk_answers = True
            time.sleep(TICK_SECONDS if self._disk_answers else LOOK_SECONDS)

    def stop(self) -> None:
        """End all, the last started first, whatever happens with one of them."""
        problems = []
        for child in reversed(self.children.values()):
            if child.phase is Phase.STOPPED:
                continue
            self._say(f"stopping {child.name}")
            try:
                self._end(child)
            except HeadgateError as error:
                problems.append(str(error))
        if problems:
            raise TerminalError(" ".join(problems))

    def ask_to_stop(self) -> None:
        """Asked twice, it no longer waits for anybody."""
        self._stops_asked += 1

    @property
    def stop_asked(self) -> bool:
        return self._stops_asked > 0

    @contextmanager
    def signals(self) -> Iterator[None]:
        """SIGTERM, Ctrl-C and the end of the terminal ask to stop."""
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, self._on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # -- one round

    def _tick(self) -> None:
        for child in self.children.values():
            code = child.exit_code()
            if code is not None:
                self._on_death(child, f"ended with code {code}")
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        try:
            self._look()
        except DBAPIError as error:
            # A database that is away for a while must not take down what it does not even serve.
            self._store_trouble(error)
        else:
            self._store_answers = True
        self._looked_at = time.monotonic()

    def _look(self) -> None:
        """Bring each child a step nearer to what is wanted of it."""
        for child in self.children.values():
            child.wanted = child.spec.wanted()
            match child.phase:
                case Phase.STOPPED if child.wanted and self._may_start(child):
                    self._start(child)
                case Phase.WAITING if not child.wanted:
                    child.stop()
                case Phase.WAITING if time.monotonic() >= child.next_start:
                    self._start(child)
                case Phase.STARTING | Phase.READY if not child.wanted:
                    self._say(f"stopping {child.name}, it is no longer wanted")
                    self._end(child)
                case Phase.STARTING if child.spec.ready(child.instance):
                    self._on_ready(child)
                case Phase.STARTING if self._started and child.overdue():
                    child.stop(lambda: self._stops_asked > 0)
                    self._on_death(child, f"was not ready within {child.spec.deadline:.0f} s")
        if time.monotonic() - self._beat_at >= BEAT_SECONDS:
            self._beat()

    def _may_start(self, child: Child) -> bool:
        return all(self.children[name].was_ready for name in child.spec.after if name in self.children)

    def _check_start(self) -> None:
        """A start that leads nowhere ends with the reason."""
        for child in self.children.values():
            if child.early_deaths >= EARLY_DEATHS:
                raise _start_failed(child, f"ended {child.early_deaths} times before it was ready")
            if child.overdue():
                raise _start_failed(child, f"was not ready within {child.spec.deadline:.0f} s")

    # -- what happens to a child

    def _start(self, child: Child) -> None:
        self._say(f"starting {child.name}")
        child.start()
        self._remember()
        self._report(child, Phase.STARTING.value)

    def _on_ready(self, child: Child) -> None:
        self._say(f"{child.name} is ready after {time.monotonic() - child.changed_at:.1f} s")
        child.became_ready()

    def _on_death(self, child: Child, how: str) -> None:
        delay = child.died()
        self._remember()
        self._say(f"{child.name} {how}; it is started again in {delay:.1f} s (see {child.log})")
        self._report(child, Phase.WAITING.value)
        self._record(lambda: self._store.log(child.name, "restarted", f"{how}; next start in {delay:.1f} s"))

    def _end(self, child: Child) -> None:
        child.stop(hurry=lambda: self._stops_asked > 1)
        self._remember()
        self._report(child, Phase.STOPPED.value)

    def _beat(self) -> None:
        """The broker and Spark Connect cannot speak for themselves."""
        self._beat_at = time.monotonic()
        for name in ("broker", "connect"):
            child = self.children.get(name)
            if child is not None and child.phase is Phase.READY:
                self._report(child, Phase.READY.value)

    # -- what is kept

    def _remember(self) -> None:
        leaders = {c.name: c.leader for c in self.children.values() if c.leader is not None}
        self._folder.remember_groups(leaders)

    def _report(self, child: Child, state: str) -> None:
        pid = 0 if child.leader is None else child.leader.pid
        self._record(lambda: self._store.beat(child.name, child.instance, pid, state))

    def _record(self, write: Callable[[], None]) -> None:
        try:
            write()
        except DBAPIError as error:
            self._store_trouble(error)

    def _store_trouble(self, error: DBAPIError) -> None:
        if self._store_answers:
            self._say(f"the control state does not answer, trying on: {error.orig}")
        self._store_answers = False

    def _disk_trouble(self, error: OSError) -> None:
        if self._disk_answers:
            self._say(f"trying on: {error}")
        self._disk_answers = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.ask_to_stop()


def _start_failed(child: Child, how: str) -> TerminalError:
    said = tail(child.log)
    return TerminalError(f"The {child.name} {how}.", f"The end of {child.log}:\n{said}" if said else "")
