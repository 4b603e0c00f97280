"""The process that has the parts: it starts them, and lends them to one test run after another.

A run connects and asks for parts by name, a line each; the end of its connection is the end of its lease.
The server that it used is then ended and another one started, on an empty data folder, for the next run.
"""

import fcntl
import hmac
import json
import os
import secrets
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from headgate.config import load_settings
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.process import Identity
from headgate.embedded.run_file import write_json
from tests.support.warm.part import SOURCES, Part, PartFailed, fingerprint_of

SERVICES_FILE = "services.json"
SUPPORT = Path(__file__).parents[1]
LOOK_SECONDS = 2.0
GREETING_SECONDS = 10.0
SOURCE_CHANGED = "its source has changed"


def version() -> str:
    """The fingerprint of this package: a keeper of another version is not spoken to."""
    return fingerprint_of([SUPPORT / "warm", SUPPORT / "services.py", SUPPORT / "spark.py"])


class Keeper:
    """Parts in `folder`, lent to who knows the token."""

    def __init__(self, folder: Path) -> None:
        jars = load_settings(environment={}).jars_folder
        self._folder = folder
        self._token = secrets.token_urlsafe(32)
        self._parts = {name: Part(name, folder, jars) for name in SOURCES}
        self._looked: dict[str, str] = {}
        self._server_used = False
        self._notes: list[str] = []

    def run(self) -> None:
        """Until a signal ends it."""
        try:
            with socket.create_server((LOOPBACK, 0)) as door:
                for name in ("broker", "jvm", "spark", "server"):
                    self._start(name)
                for part in self._parts.values():
                    part.address()
                self._announce(door.getsockname()[1])
                door.settimeout(LOOK_SECONDS)
                while True:
                    self._wait_for_run(door)
        finally:
            (self._folder / SERVICES_FILE).unlink(missing_ok=True)
            for part in reversed(self._parts.values()):
                part.stop()

    def _announce(self, port: int) -> None:
        content = {
            "keeper": Identity.own().to_dict(),
            "version": version(),
            "port": port,
            "token": self._token,
        }
        write_json(self._folder / SERVICES_FILE, content)

    def _wait_for_run(self, door: socket.socket) -> None:
        try:
            connection, _ = door.accept()
        except TimeoutError:
            # One that fails is started again when a run asks for it, which then hears why.
            with suppress(PartFailed):
                self._start_what_changed()
            return
        with connection:
            self._lend(connection)
        if self._server_used:
            with suppress(PartFailed):
                self._replace_server()

    def _replace_server(self) -> None:
        server = self._parts["server"]
        server.stop()
        self._server_used = False
        self._start("server", SOURCE_CHANGED if server.stale else None)

    def _start_what_changed(self) -> None:
        """Nobody waits for these now. A source that is still being written is left for the next look."""
        for name, part in self._parts.items():
            current = part.current()
            if part.stale and self._looked.get(name) == current:
                self._start(name, SOURCE_CHANGED)
            self._looked[name] = current

    def _lend(self, connection: socket.socket) -> None:
        connection.settimeout(GREETING_SECONDS)
        try:
            with connection.makefile("rwb") as stream:
                for line in stream:
                    token, _, name = line.decode(errors="replace").strip().partition(" ")
                    if not hmac.compare_digest(token.encode(), self._token.encode()):
                        return
                    connection.settimeout(None)
                    stream.write(json.dumps(self._answer(name)).encode() + b"\n")
                    stream.flush()
        except OSError:
            # The run is gone, or never said a word.
            return

    def _answer(self, name: str) -> dict[str, Any]:
        """The part's address, once it runs from the source as it is now, and what the run should know."""
        part = self._parts[name]
        try:
            if not part.running:
                self._start(name, "it had ended")
            elif part.stale:
                self._start(name, SOURCE_CHANGED)
            elif not part.answers() and part.was_ready:
                self._start(name, "it did not answer")
            address = part.address()
        except PartFailed as error:
            return {"failure": str(error)}
        self._server_used = self._server_used or name == "server"
        notes, self._notes = self._notes, []
        return {"address": address, "notes": notes}

    def _start(self, name: str, reason: str | None = None) -> None:
        arguments: tuple[str, ...] = ()
        if name == "server":
            arguments = (f"{LOOPBACK}:{self._parts['broker'].address()['port']}",)
        self._parts[name].start(*arguments)
        if reason is not None:
            self._notes.append(f"the {name} was started again: {reason}")
        if name == "broker" and self._parts["server"].running:
            self._start("server")


@contextmanager
def folder_taken(folder: Path) -> Iterator[None]:
    """One keeper has the folder; what an earlier one left in it is removed."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "keeper.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{folder} has a keeper already.")
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
        yield


def main(folder: Path) -> None:
    os.umask(0o077)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with folder_taken(folder):
        Keeper(folder).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
