"""Processes as the system sees them: who a pid is, who is in a group, and the end of a whole group."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

POLL_SECONDS = 0.02
_PROC = Path("/proc")


@dataclass(frozen=True)
class Identity:
    """A pid with the time its process started: pids are used again, the two together are not."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """Who has this pid now; none if nobody, or only a zombie."""
        seen = _look(pid)
        return None if seen is None or seen.zombie else cls(pid, seen.started)

    @classmethod
    def own(cls) -> Self:
        found = cls.of(os.getpid())
        assert found is not None, "this process runs"
        return found

    @property
    def alive(self) -> bool:
        return Identity.of(self.pid) == self

    def to_dict(self) -> dict[str, Any]:
        return {"pid": self.pid, "started": self.started}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> Self:
        return cls(int(raw["pid"]), str(raw["started"]))


@dataclass(frozen=True)
class _Seen:
    pid: int
    group: int
    session: int
    zombie: bool
    started: str


def group_members(group: int) -> list[int]:
    """The pids in a process group, zombies left out: a pid 1 that never reaps would keep them for ever."""
    return [seen.pid for seen in _look_around() if seen.group == group and not seen.zombie]


def is_group_of(group: int, leader: Identity) -> bool:
    """Whether a group found now is the one that `leader` led.

    The system gives no new process the number of a group that has members. So with the leader gone, members
    in a session of that same number are its own; with a stranger at that pid, they are the stranger's.
    """
    now = Identity.of(group)
    if now is not None:
        return now == leader
    members = [seen for seen in _look_around() if seen.group == group and not seen.zombie]
    return bool(members) and all(seen.session == group for seen in members)


def signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to all of a group; a group that is gone already is fine."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
    except PermissionError:
        # macOS answers so for a group of zombies only. One that lives and is not ours must be told of.
        if group_members(group):
            raise


def kill_group(group: int, timeout: float = 10.0) -> bool:
    """SIGKILL to all of a group, again until no one is left: a member may fork between two looks."""
    deadline = time.monotonic() + timeout
    while group_members(group):
        if time.monotonic() > deadline:
            return False
        signal_group(group, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return True


def end_group(group: int, grace: float) -> bool:
    """SIGTERM, `grace` seconds, SIGKILL. Whether the group is gone."""
    signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        if not group_members(group):
            return True
        time.sleep(POLL_SECONDS)
    return kill_group(group)


def _look(pid: int) -> _Seen | None:
    if sys.platform == "linux":
        return _from_proc(pid)
    return next((seen for seen in _from_ps("-p", str(pid))), None)


def _look_around() -> list[_Seen]:
    if sys.platform == "linux":
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
        return [seen for seen in map(_from_proc, pids) if seen is not None]
    return _from_ps("-ax")


def _from_proc(pid: int) -> _Seen | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The program's name stands in parentheses and may hold spaces and parentheses of its own.
    fields = text.rpartition(")")[2].split()
    return _Seen(
        pid,
        group=int(fields[2]),
        session=int(fields[3]),
        zombie=fields[0] in "ZX",
        started=f"{_boot_id()}:{fields[19]}",
    )


def _boot_id() -> str:
    """Start times count from the boot, so two boots must not be mixed up."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _from_ps(*which: str) -> list[_Seen]:
    done = subprocess.run(
        ["/bin/ps", *which, "-o", "pid=,pgid=,sess=,stat=,lstart="],
        capture_output=True,
        text=True,
        check=False,
    )
    found = []
    for line in done.stdout.splitlines():
        pid, group, _, state, started = line.split(maxsplit=4)
        session = _session(int(pid))
        found.append(_Seen(int(pid), int(group), session, state.startswith("Z"), started.strip()))
    return found


def _session(pid: int) -> int:
    # ps prints an address for the session on some systems.
    try:
        return os.getsid(pid)
    except OSError:
        return -1
