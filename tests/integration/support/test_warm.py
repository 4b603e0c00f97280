"""The services that `make services` keeps, with a copy of the source that the test may change."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

import headgate
from headgate.embedded.process import Identity
from tests.support.services import wait_for
from tests.support.warm.lease import read_services, take


class Checkout:
    """A folder with a copy of `src/headgate`, where the services are kept."""

    def __init__(self, folder: Path) -> None:
        package = Path(headgate.__file__).parent
        self.source = folder / "src" / "headgate"
        shutil.copytree(package, self.source, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / ".jars").symlink_to(package.parents[1] / ".jars")
        self.services = folder / "services"
        self._environment = {**os.environ, "PYTHONPATH": str(folder / "src")}

    def make(self, command: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "tests.support.warm", command, str(self.services)],
            env=self._environment,
            check=True,
        )

    @contextmanager
    def run(self) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
        """A test run that has the services while the block lasts, and what it found."""
        with subprocess.Popen(
            [sys.executable, "-m", "tests.integration.support.run", str(self.services)],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield process, json.loads(process.stdout.readline())
                process.stdin.close()
                process.wait(timeout=60)
            finally:
                process.kill()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path)
    try:
        yield checkout
    finally:
        checkout.make("stop")


def test_services_outlive_runs_that_find_them_as_new(checkout: Checkout) -> None:
    checkout.make("start")
    kept = read_services(checkout.services)
    assert kept is not None
    assert stat.S_IMODE((checkout.services / "services.json").stat().st_mode) == 0o600

    with checkout.run() as (process, first):
        assert (first["topics"], first["tables"], first["views"], first["notes"]) == ([], [], [], [])
        notes: list[str] = []
        with take(checkout.services, notes.append) as second:
            assert second is None
        assert notes == ["another run has the services: this one starts its own"]
        # The run is killed, and the next one comes with another source.
        with (checkout.source / "__init__.py").open("a") as file:
            file.write("# Changed.\n")
        process.send_signal(signal.SIGKILL)
        process.wait()

    with checkout.run() as (process, again):
        empty = ("topics", "tables", "namespaces", "views")
        assert {key: again[key] for key in empty} == {key: first[key] for key in empty}
        assert again["notes"] == ["the server was started again: its source has changed"]
        assert again["server"] != first["server"]
        assert (again["jvm"], again["application"] != first["application"]) == (first["jvm"], True)
    assert process.returncode == 0

    with take(checkout.services, notes.append) as lease:
        assert lease is not None
        for gateway in processes(kept.keeper.pid, "tests.support.warm.jvm_part"):
            gateway.kill()
        wait_for("the JVM to be gone", lambda: not processes(kept.keeper.pid, "tests.support.warm.jvm_part"))
        with lease.jvm() as jvm:
            assert jvm.java.java.lang.Integer.parseInt("7") == 7
    assert notes[1:] == ["the jvm was started again: it had ended"]

    everything = [Identity.of(process.pid) for process in processes(kept.keeper.pid)]
    assert len(everything) > 8
    checkout.make("stop")
    assert [process for process in (kept.keeper, *everything) if process is None or process.alive] == []
    assert not (checkout.services / "services.json").exists()


def processes(keeper: int, word: str = "") -> list[psutil.Process]:
    """The processes below the keeper that have a word in their command line."""
    found = []
    for process in psutil.Process(keeper).children(recursive=True):
        try:
            if word in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found
