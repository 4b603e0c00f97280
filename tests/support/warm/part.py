"""One part of the warm services: its process, what it was started from, and where it listens."""

import hashlib
import json
import shutil
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx

import headgate
from headgate.embedded.child import Child, ChildSpec, tail
from headgate.embedded.ports import LOOPBACK

SOURCE = Path(headgate.__file__).parent
START_SECONDS = 120.0
POLL_SECONDS = 0.05
# Files of headgate that say how each part's process is started; the server runs all of them.
SOURCES: dict[str, tuple[str, ...]] = {
    "broker": ("jvm.py", "embedded/broker.py", "embedded/broker-log4j2.properties"),
    "jvm": ("jvm.py",),
    "spark": ("jvm.py", "spark.py", "spark-log4j2.properties"),
    "server": ("",),
}


class PartFailed(Exception):
    """A part did not start."""


def fingerprint_of(paths: Iterable[Path]) -> str:
    """A hash of these files, or of all files in these folders, by name and content."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and file.suffix != ".pyc":
                digest.update(f"{file} {file.stat().st_size}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def fingerprint_of_jars(folder: Path) -> str:
    """A hash of the jars' names, sizes and times: there are too many bytes to read every time."""
    stats = [(jar.name, jar.stat().st_size, jar.stat().st_mtime_ns) for jar in sorted(folder.glob("*.jar"))]
    return hashlib.sha256(json.dumps(stats).encode()).hexdigest()


class Part:
    """Started by `start`, in a process group that ends with this process."""

    def __init__(self, name: str, folder: Path, jars: Path) -> None:
        self.name = name
        self._folder = folder
        self._file = folder / f"{name}.json"
        self._log = folder / f"{name}.log"
        self._jars = jars / ("broker" if name == "broker" else "spark")
        self._child: Child | None = None
        self._started_from = ""
        self._deadline = 0.0
        self.was_ready = False
        self._starts = 0

    def current(self) -> str:
        """The fingerprint of what it would be started from now."""
        return fingerprint_of(SOURCE / name for name in SOURCES[self.name]) + fingerprint_of_jars(self._jars)

    @property
    def stale(self) -> bool:
        """Whether source or jars have changed since it was started."""
        return self.current() != self._started_from

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.exit_code() is None

    def start(self, *arguments: str) -> None:
        """Start it, or end it and start it again; `address` waits for it."""
        self.stop()
        self._file.unlink(missing_ok=True)
        self._starts += 1
        self.was_ready = False
        data = self._folder / f"{self.name}-{self._starts}"
        # That of the run before stays, for whoever wants to look at a failure.
        for number in range(self._starts - 1):
            shutil.rmtree(self._folder / f"{self.name}-{number}", ignore_errors=True)
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(parents=True)
        self._started_from = self.current()
        module = f"tests.support.warm.{self.name}_part"
        command = [sys.executable, "-m", module, str(self._file), str(data), *arguments]
        self._child = Child(ChildSpec(self.name, lambda _: command, lambda _: self.answers()), self._log)
        self._child.start()
        self._deadline = time.monotonic() + START_SECONDS

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None

    def answers(self) -> bool:
        """Whether it has said where it listens, and does."""
        if not self._file.exists():
            return False
        address = json.loads(self._file.read_text())
        try:
            if "health" in address:
                return httpx.get(address["health"], trust_env=False, verify=False).is_success
            with socket.create_connection((LOOPBACK, address["port"]), timeout=2):
                return True
        except (OSError, httpx.TransportError):
            return False

    def address(self) -> dict[str, Any]:
        """Where it listens, once it does."""
        while not self.answers():
            if not self.running or time.monotonic() > self._deadline:
                raise PartFailed(f"The {self.name} did not start; the end of {self._log}:\n{tail(self._log)}")
            time.sleep(POLL_SECONDS)
        self.was_ready = True
        found: dict[str, Any] = json.loads(self._file.read_text())
        return found
