"""A Headgate for a demo: the one that runs on the folder, or one that is started and ended with the demo."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.embedded.run_file import supervisor_of
from headgate.errors import NotRunning, TerminalError

COMMAND = (sys.executable, "-c", "from headgate.cli.main import run; run()")
STOP_SECONDS = 120.0
# The system chooses the ports: a demo must not fail because something listens on 8080.
PORTS = {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}


def runs_on(folder: Path) -> bool:
    try:
        supervisor_of(folder)
    except NotRunning:
        return False
    return True


@contextmanager
def started(folder: Path, say: Callable[[str], None]) -> Iterator["subprocess.Popen[str]"]:
    """`headgate up` on this folder while the block lasts, ended whatever happens in it."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--data", str(folder)],
        env={**PORTS, **os.environ},
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C is for the demo, which then ends it in good order.
        start_new_session=True,
    )
    drain: threading.Thread | None = None
    try:
        _wait_until_ready(process, say)
        drain = threading.Thread(target=_drain, args=(process, say), daemon=True)
        drain.start()
        with _ended_by_signals():
            yield process
    finally:
        _stop(process)
        if drain is not None:
            drain.join(STOP_SECONDS)
        if process.stdout is not None:
            process.stdout.close()


def _wait_until_ready(process: "subprocess.Popen[str]", say: Callable[[str], None]) -> None:
    for line in process.stdout or ():
        say(f"  {line.rstrip()}")
        if line.split()[:1] == ["console"]:
            return
    raise TerminalError(f"`headgate up` has ended with {process.wait()}.", "It has said why above.")


def _drain(process: "subprocess.Popen[str]", say: Callable[[str], None]) -> None:
    """A pipe that nobody reads would stop the other side one day."""
    for line in process.stdout or ():
        say(f"  {line.rstrip()}")


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within, who ends this process or its terminal ends what it has started, too."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    process.wait(timeout=STOP_SECONDS)
