"""How a child says that it lives: a beat in the control state every couple of seconds."""

import logging
import os
import threading
from collections.abc import Mapping
from typing import Any, Self

from sqlalchemy.exc import DBAPIError

from headgate.store import Store

BEAT_SECONDS = 2.0

log = logging.getLogger(__name__)


class Heartbeat:
    """Beats from a thread of its own while the block lasts: `starting`, and `ready` once that was said."""

    def __init__(self, store: Store, name: str, instance: str, seconds: float = BEAT_SECONDS) -> None:
        self._store = store
        self._name = name
        self._instance = instance
        self._seconds = seconds
        self._said: tuple[str, Mapping[str, Any]] = ("starting", {})
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{name}-heartbeat", daemon=True)

    def ready(self, detail: Mapping[str, Any] | None = None) -> None:
        """Said at once: the supervisor waits for it."""
        self._said = ("ready", dict(detail or {}))
        self._beat()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():
            self._beat()
            self._ended.wait(self._seconds)

    def _beat(self) -> None:
        state, detail = self._said
        try:
            self._store.beat(self._name, self._instance, os.getpid(), state, detail)
        except DBAPIError as error:
            # The next beat tries again; that this one is missing shows in the beat's age.
            log.warning("the control state did not take a beat: %s", error.orig)
