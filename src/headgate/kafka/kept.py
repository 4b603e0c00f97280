"""Transactional writers that stay open from one batch to the next, in the process that drives the batches."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headgate.errors import StaleBatch
from headgate.kafka.client import Link, Where
from headgate.kafka.markers import Marker
from headgate.kafka.transactional import Row, TransactionalWriter

# A writer without work for so long is closed: it has threads and connections.
IDLE_SECONDS = 120.0
Open = Callable[[int], TransactionalWriter]


@dataclass
class _Kept:
    writer: TransactionalWriter
    used_at: float


class KeptWriters:
    """The writers of one name, by task, each opened when its task has rows for the first time.

    A writer that is open knows what was committed last under its name and task: nobody can have committed
    since, but by taking over, and then its own next commit fails. So it begins and looks once, not with each
    batch. Batches come from one thread; `close` and `close_idle` may come from others.
    """

    def __init__(self, where: Where, name: str, markers_topic: str, open_writer: Open | None = None) -> None:
        self._name = name
        self._open = open_writer or _opener(where, name, markers_topic)
        self._writers: dict[int, _Kept] = {}
        self._is_closed = False

    def write(self, batch: int | Marker, topic: str, rows: Mapping[int, Sequence[Row]]) -> int:
        """Commits the rows of each task as this batch, one transaction each; how many of them wrote now."""
        written = 0
        try:
            for task, own in sorted(rows.items()):
                if own:
                    written += self._of(task).write(batch, topic, own)
        except BaseException:
            # Whether it is in the topic or not: a new writer will know.
            self.forget()
            raise
        return written

    def _of(self, task: int) -> TransactionalWriter:
        if self._is_closed:
            raise StaleBatch(f"The writers of '{self._name}' are closed: its query was stopped.")
        kept = self._writers.get(task)
        if kept is None:
            kept = self._writers[task] = _Kept(self._open(task), time.monotonic())
        kept.used_at = time.monotonic()
        return kept.writer

    def forget(self) -> None:
        """The next batch opens writers again: others have written, or may have.

        One that is at work goes on. It ends with its batch, when nothing refers to it any more.
        """
        self._writers = {}

    def close_idle(self, seconds: float = IDLE_SECONDS) -> None:
        """Those that had no rows for so long."""
        now = time.monotonic()
        for task, kept in list(self._writers.items()):
            if now - kept.used_at > seconds:
                self._writers.pop(task, None)

    def close(self) -> None:
        """A batch that is under way opens no further writer."""
        self._is_closed = True
        self.forget()


def _opener(where: Where, name: str, markers_topic: str) -> Open:
    def open_writer(task: int) -> TransactionalWriter:
        link = Link(where)
        writer = TransactionalWriter(link, name, task, markers_topic)
        # Its admin client was for reading the marker.
        link.renew()
        return writer

    return open_writer
