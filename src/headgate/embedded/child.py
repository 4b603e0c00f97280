"""One supervised child: started, watched, ended with its whole group, started again."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from headgate.backoff import Backoff
from headgate.embedded.process import Identity, end_group, group_members, kill_group
from headgate.errors import TerminalError

BACKOFF = Backoff(0.5, 30.0)
HEALTHY_SECONDS = 60.0
MAX_LOG_BYTES = 20 * 1024 * 1024
TAIL_LINES = 15
# What a child that ended by itself may leave in its group: a JVM gets this long to tidy up.
REST_GRACE = 3.0


def always() -> bool:
    return True


@dataclass(frozen=True)
class ChildSpec:
    """What to run and how to tell that it works.

    `command` makes ready what the child needs and returns its argument list; it gets the id of this start.
    `ready` is asked again and again, so it must answer soon. A child starts when all in `after` were ready.
    """

    name: str
    command: Callable[[str], list[str]]
    ready: Callable[[str], bool]
    wanted: Callable[[], bool] = always
    after: Sequence[str] = ()
    # What of this process's environment it gets.
    environment: Callable[[Mapping[str, str]], dict[str, str]] = dict
    deadline: float = 90.0
    grace: float = 20.0


class Phase(Enum):
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    WAITING = "restarting"  # it died, and is started again after a while


def delay_after(deaths: int) -> float:
    """How long to wait before another start, after this many deaths in a row."""
    return BACKOFF.after(deaths)


@dataclass
class Child:
    """The current run of a spec, if there is one. Times are monotonic."""

    spec: ChildSpec
    log: Path
    phase: Phase = Phase.STOPPED
    instance: str = ""
    leader: Identity | None = None
    wanted: bool = True
    was_ready: bool = False
    early_deaths: int = 0  # in a row, before it was ever ready
    deaths: int = 0  # in a row, without a healthy stretch between
    changed_at: float = 0.0
    next_start: float = 0.0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.spec.name

    def start(self) -> None:
        self.instance = str(uuid.uuid4())
        command = self.spec.command(self.instance)
        rotate(self.log)
        with self.log.open("ab") as out:
            # The pipe is the lifeline: the guard reads its end when this process is gone.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.embedded.guard", *command],
                env=self.spec.environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.leader = Identity.of(self._process.pid)
        self._turn(Phase.STARTING)

    def exit_code(self) -> int | None:
        """How it ended; none while it runs."""
        return None if self._process is None else self._process.poll()

    def became_ready(self) -> None:
        self.was_ready = True
        self.early_deaths = 0
        self._turn(Phase.READY)

    def died(self) -> float:
        """End what is left of its group; seconds until the next start."""
        if self.phase is Phase.READY and time.monotonic() - self.changed_at >= HEALTHY_SECONDS:
            self.deaths = 0
        if self._process is not None:
            self._gone(end_group(self._pid, REST_GRACE))
        self.deaths += 1
        self.early_deaths += not self.was_ready
        delay = delay_after(self.deaths)
        self.next_start = time.monotonic() + delay
        self._turn(Phase.WAITING)
        return delay

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """SIGTERM to the command, and after its grace, or in a hurry, SIGKILL to the whole group."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + self.spec.grace
            while self._process.poll() is None and time.monotonic() < deadline and not hurry():
                time.sleep(0.05)
            # The command is gone, or had its time: a JVM of its own may tidy up, in a hurry nobody may.
            rest = REST_GRACE if self._process.poll() is not None and not hurry() else 0.0
            self._gone(end_group(self._pid, rest) if rest else kill_group(self._pid))
        self._turn(Phase.STOPPED)

    def overdue(self) -> bool:
        return self.phase is Phase.STARTING and time.monotonic() - self.changed_at > self.spec.deadline

    @property
    def _pid(self) -> int:
        assert self._process is not None, f"{self.name} was started"
        return self._process.pid

    def _gone(self, ended: bool) -> None:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        if not ended:
            raise TerminalError(
                f"The {self.name} (process group {process.pid}) does not end: "
                f"{group_members(process.pid)} are left."
            )
        process.wait()
        process.stdin.close()
        self._process = self.leader = None

    def _turn(self, phase: Phase) -> None:
        self.phase = phase
        self.changed_at = time.monotonic()


def rotate(log: Path) -> None:
    """A log that has grown large becomes `….log.1`, in place of the one before."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The end of a log."""
    if not log.exists():
        return ""
    with log.open("rb") as out:
        out.seek(max(0, log.stat().st_size - 16_384))
        text = out.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
