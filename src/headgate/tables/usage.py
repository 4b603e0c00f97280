"""What a table takes in storage, beside the files of its newest snapshot: looked up now and then."""

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from headgate.catalog.history import storage

log = logging.getLogger(__name__)

# The whole of a table's metadata is read for it: not after each batch.
EVERY_SECONDS = 60.0


class Usage:
    """The figures of one table, at most so old."""

    def __init__(self, topic: str, metadata: Callable[[Any], str], every: float = EVERY_SECONDS) -> None:
        """`metadata` gives a table's metadata as JSON."""
        self._topic = topic
        self._metadata = metadata
        self._every = every
        self._looked_at = float("-inf")
        self._facts: dict[str, Any] = {}

    def forget(self) -> None:
        """Look again at the next opportunity."""
        self._looked_at = float("-inf")

    def facts(self, table: Any, log_bytes: Callable[[], int | None]) -> dict[str, Any]:
        """`log_bytes` tells the size of the Delta log, if there is one."""
        now = time.monotonic()
        if now - self._looked_at < self._every:
            return self._facts
        self._looked_at = now
        try:
            found = storage(json.loads(self._metadata(table)))
            self._facts = {**found, "delta_log_bytes": log_bytes()}
        except Exception as error:  # noqa: BLE001 - the rows are in the table: figures may be late
            log.warning("What table '%s' takes is not known now: %s", self._topic, error)
        return self._facts
