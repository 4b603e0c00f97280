"""Queries as the history is told of them: when they begin, and what came of them."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import OperationalError, SQLAlchemyError

from headgate.adhoc.redaction import redact_sql
from headgate.statements.asking import Asked
from headgate.store.queries import QueryHistory, QueryRecord, QueryState

log = logging.getLogger(__name__)

PRUNE_SECONDS = 600.0
MOST_WAITING = 10_000


@dataclass(frozen=True)
class Ending:
    """How a query ended. `figures`: rows, seconds, files and bytes; `tables`: what it read of which."""

    state: QueryState
    error: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)


class HistoryWriter:
    """Writes in the order in which things happened, for many threads.

    What the database does not take for the moment waits, and queries do not wait for it.
    """

    def __init__(self, history: QueryHistory, instance: str, keep: float, most: int) -> None:
        """`keep`: for how many seconds a query is remembered; `most`: how many are."""
        self._history = history
        self._instance = instance
        self._keep = keep
        self._most = most
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], object]] = deque(maxlen=MOST_WAITING)
        self._pruned_at = float("-inf")
        self._answers = True
        self._put(lambda: history.abandon(instance))

    def begin(self, query_id: str, asked: Asked, started_at: float) -> None:
        caller = asked.caller
        record = QueryRecord(
            query_id,
            asked.kind,
            redact_sql(_text(asked)),
            "" if caller is None else caller.id,
            "" if caller is None else caller.name.strip("'"),
            self._instance,
            started_at=started_at,
        )
        self._put(lambda: self._history.begin(record))

    def end(self, query_id: str, ending: Ending) -> None:
        ended_at = time.time()
        self._put(
            lambda: self._history.end(
                query_id, ending.state, ended_at, ending.error, ending.tables, ending.figures
            )
        )

    def tend(self) -> None:
        """Writes what waits, and forgets what is old. To be called now and then."""
        with self._lock:
            if time.monotonic() - self._pruned_at > PRUNE_SECONDS:
                self._pruned_at = time.monotonic()
                self._waiting.append(lambda: self._history.forget(time.time() - self._keep, self._most))
            self._write()

    def _put(self, action: Callable[[], object]) -> None:
        with self._lock:
            self._waiting.append(action)
            self._write()

    def _write(self) -> None:
        while self._waiting:
            try:
                self._waiting[0]()
            except OperationalError as error:
                if self._answers:
                    log.warning("the query history waits for its database: %s", error.orig)
                self._answers = False
                return
            except SQLAlchemyError:
                log.exception("the query history misses an entry")
            self._answers = True
            self._waiting.popleft()


def _text(asked: Asked) -> str:
    """What was asked, as its user would type it."""
    if asked.kind != "changes":
        return asked.sql
    wanted = asked.changes
    ends = [f"--{name} {wanted[key]}" for name, key in (("from", "start"), ("to", "end")) if wanted.get(key)]
    return " ".join(["headgate table changes", str(wanted["topic"]), *ends])
