"""How a child process begins: its arguments, its log, the runtime it belongs to."""

import argparse
import logging
import signal
import threading
import uuid
from pathlib import Path

from headgate.embedded.privacy import forget_settings, keep_private
from headgate.embedded.runtime import Runtime


def enter(module: str, purpose: str | None) -> tuple[Runtime, str]:
    """The runtime on `--data`, and the name of this instance."""
    parser = argparse.ArgumentParser(prog=module, description=purpose)
    parser.add_argument("--data", type=Path, required=True)
    # Named in run.json; taken here too so that a process list tells which configuration runs.
    parser.add_argument("--config", type=Path)
    parser.add_argument("--instance", default=str(uuid.uuid4()))
    arguments = parser.parse_args()
    keep_private()
    # Libraries speak only of what goes wrong.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("headgate").setLevel(logging.INFO)
    runtime = Runtime.load(arguments.data)
    forget_settings()
    return runtime, arguments.instance


def stop_on_signal() -> threading.Event:
    """Set when the process is asked to end."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
