"""The data folder: who has it, which ports it had, and which processes a run that was killed left behind."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from headgate.embedded.privacy import make_private
from headgate.embedded.process import Identity, end_group, is_group_of
from headgate.embedded.run_file import RUN_FILE, write_json
from headgate.errors import DataFolderInUse, TerminalError

LOCK_FILE = "headgate.lock"
PIDS_FILE = "pids.json"
PORTS_FILE = "ports.json"
LEFTOVER_GRACE = 5.0


class DataFolder:
    """A data folder that this process has to itself."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def taken(cls, path: Path) -> Iterator["DataFolder"]:
        """Held until the block ends, or this process does; what an earlier run left behind is ended first."""
        make_private(path)
        with (path / LOCK_FILE).open("a+") as lock:
            _lock(lock, path)
            folder = cls(path)
            folder._end_leftovers()
            try:
                yield folder
            finally:
                (path / RUN_FILE).unlink(missing_ok=True)

    def remembered_ports(self) -> dict[str, int]:
        return {name: int(port) for name, port in self._read(PORTS_FILE).items()}

    def remember_ports(self, ports: Mapping[str, int]) -> None:
        write_json(self.path / PORTS_FILE, dict(ports))

    def remember_groups(self, leaders: Mapping[str, Identity]) -> None:
        """Which groups run now, for the run after one that is killed."""
        write_json(self.path / PIDS_FILE, {name: leader.to_dict() for name, leader in leaders.items()})

    def _end_leftovers(self) -> None:
        (self.path / RUN_FILE).unlink(missing_ok=True)
        for name, raw in self._read(PIDS_FILE).items():
            leader = Identity.from_dict(raw)
            if is_group_of(leader.pid, leader) and not end_group(leader.pid, LEFTOVER_GRACE):
                raise TerminalError(
                    f"The {name} of an earlier run (process group {leader.pid}) does not end.",
                    f"End it: `kill -KILL -{leader.pid}`.",
                )
        self.remember_groups({})

    def _read(self, name: str) -> dict[str, Any]:
        file = self.path / name
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found


def _lock(lock: IO[str], path: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        raise DataFolderInUse(
            f"The data folder {path} is in use by `headgate up` with pid {lock.read().strip()}.",
            "Stop it with `headgate down`, or name another folder with --data.",
        ) from error
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
