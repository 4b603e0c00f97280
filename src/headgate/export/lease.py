"""The right of one process to go on with a run, kept while it does."""

import threading
from collections.abc import Mapping
from typing import Any, Self

from sqlalchemy.exc import OperationalError

from headgate.errors import TransientError
from headgate.store import Exports, RunRecord, RunState

LEASE_SECONDS = 60.0


class LeaseLost(Exception):
    """Another process has the run, or it was removed: this one leaves it as it is."""


class Lease:
    """Kept by a thread as long as the block lasts. What the run comes to is written down by it alone."""

    def __init__(
        self,
        exports: Exports,
        run: RunRecord,
        owner: str,
        stop: threading.Event,
        seconds: float = LEASE_SECONDS,
    ) -> None:
        self._exports = exports
        self._run = run
        self._owner = owner
        self._stop = stop
        self._seconds = seconds
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease {run.id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def check(self) -> None:
        if self._lost.is_set():
            raise LeaseLost
        if self._stop.is_set():
            raise TransientError("Headgate is being stopped.")

    def note(self, state: RunState, detail: Mapping[str, Any], reason: str = "") -> None:
        if not self._exports.note(self._run.id, self._owner, state, detail, reason):
            raise LeaseLost

    def leave(self, detail: Mapping[str, Any], wait: float) -> None:
        if not self._exports.leave(self._run.id, self._owner, detail, wait):
            raise LeaseLost

    def retry(self, reason: str, wait: float) -> None:
        if not self._exports.retry(self._run.id, self._owner, reason, wait):
            raise LeaseLost

    def end(self, state: RunState, reason: str, detail: Mapping[str, Any], wait: float = 0.0) -> None:
        if not self._exports.end(self._run.id, self._owner, state, reason, detail, wait):
            raise LeaseLost

    def release(self) -> None:
        self._exports.release(self._run.id, self._owner)

    def _keep(self) -> None:
        while not self._ended.wait(self._seconds / 4):
            try:
                if not self._exports.keep(self._run.id, self._owner, self._seconds):
                    self._lost.set()
                    return
            except OperationalError:
                # The control state is busy: what is left of the lease is enough for another try.
                continue
