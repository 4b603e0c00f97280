"""A Headgate that a demo starts: it waits for it, shows what it says, and ends it."""

import sys
from pathlib import Path

import pytest

from headgate.demo import running
from headgate.errors import TerminalError

UP = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("READY")
print("  console  http://127.0.0.1:1/", flush=True)
signal.sigwait({signal.SIGTERM})
open(sys.argv[-1] + "/ended", "w")
"""


def play(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(running, "COMMAND", (sys.executable, "-c", program))


def test_it_is_there_within_and_ended_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, UP)
    said: list[str] = []
    found = []

    def fail() -> None:
        with running.started(tmp_path, said.append) as process:
            found.append((process, process.poll()))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert said == ["  READY", "    console  http://127.0.0.1:1/"]
    ((process, code),) = found
    assert code is None
    assert process.returncode == 0
    assert (tmp_path / "ended").exists()


def test_one_that_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "raise SystemExit(3)")
    with pytest.raises(TerminalError, match="has ended with 3"), running.started(tmp_path, print):
        pass


def test_an_empty_folder_has_none(tmp_path: Path) -> None:
    assert not running.runs_on(tmp_path)
