"""The queries that run now. Each has a thread, and a reader; without a reader it ends."""

import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headgate.adhoc.arrow import ArrowResults
from headgate.adhoc.history import Ending, HistoryWriter
from headgate.adhoc.lake import Lake, run_lake
from headgate.adhoc.live import BATCH_ROWS, LiveQuery, StagedLiveQuery, run_live
from headgate.adhoc.reading import Reading
from headgate.adhoc.redaction import condition_of, error_text
from headgate.adhoc.results import Closed, Results
from headgate.adhoc.snapshot import Snapshot
from headgate.config import Statements as StatementSettings
from headgate.errors import (
    HeadgateError,
    InvalidRequest,
    LimitReached,
    NotAuthorized,
    NotFound,
    ServerUnavailable,
    StatementFailed,
    TooManyRequests,
)
from headgate.kafka.access import KafkaAccess
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.statements.asking import Asked, Caller
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.query import Running
from headgate.statements.stages import delete_topics
from headgate.store.queries import QueryState

log = logging.getLogger(__name__)

# As Spark names what is wrong, with its first line.
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\].*")

MOST = 16
# Kinds of queries that read the lake, not topics.
LAKE = ("lake", "changes")
# Whose internal topics they are: no statement's.
OWNER = "query-"
# A query whose rows nobody came for.
LONELY_SECONDS = 60.0
LOOK_SECONDS = 1.0
END_SECONDS = 30.0


@dataclass
class Query:
    """`read_at`: since when somebody reads it."""

    id: str
    asked: Asked
    results: Results
    since: float = field(default_factory=time.time)
    made_at: float = field(default_factory=time.monotonic)
    read_at: float | None = None
    thread: threading.Thread | None = None
    plan: Plan | None = None
    reading: Reading = field(default_factory=Reading)
    # The limit that ended it while it ran.
    exceeded: LimitReached | None = None

    @property
    def owner(self) -> str | None:
        return None if self.asked.caller is None else self.asked.caller.id

    @property
    def is_alive(self) -> bool:
        return self.thread is not None and self.thread.is_alive()

    def to_dict(self) -> dict[str, Any]:
        read = self.read_at is not None
        about = {"id": self.id, "kind": self.asked.kind, "sql": self.asked.sql, "owner": self.owner}
        return {**about, "since": self.since, "rows": self.results.rows, "read": read}


class Queries:
    """For many threads. Of a query that has ended nothing is kept here but what `history` is told."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        secret: Callable[[str], str],
        checkpoints: str,
        settings: StatementSettings,
        lake: Lake,
        catalog: Mapping[str, str],
        history: HistoryWriter,
    ) -> None:
        """`checkpoints`: the folder of those of live queries, emptied first; `catalog`: properties by which,
        with a caller's token, the catalog is shown who asks; `history` is told of each query."""
        self._spark = spark
        self._access = access
        self._schemas = schemas
        self._secret = secret
        self._checkpoints = checkpoints.rstrip("/")
        self._settings = settings
        self._lake = lake
        self._catalog = catalog
        self._history = history
        self._running: dict[str, Query] = {}
        #: Those that were told to end while their threads went on.
        self._ending: dict[str, Query] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        # What a driver that was killed has left.
        Checkpoint(spark, self._checkpoints).delete()
        delete_topics(access, OWNER, every=True)
        self._keeper = threading.Thread(target=self._keep, name="queries", daemon=True)
        self._keeper.start()

    def start(self, asked: Asked) -> Query:
        plan = None if asked.kind in LAKE else asked.plan(self._secret)
        # A stream's limit is counted as its rows are given.
        limit = plan.limit if plan is not None and asked.kind == "live" else None
        made = ArrowResults if asked.form == "arrow" and asked.kind in LAKE else Results
        results = made(limit, plan.key if plan is not None else (), asked.caller)
        query = Query(uuid.uuid4().hex, asked, results, plan=plan)
        query.thread = threading.Thread(
            target=self._run, args=(query,), name=f"query-{query.id}", daemon=True
        )
        with self._lock:
            self._check_concurrent(asked.caller)
            if len(self._running) >= MOST:
                raise ServerUnavailable(
                    f"{MOST} queries run already.", "Try again when one has ended, or stop one."
                )
            self._running[query.id] = query
        self._history.begin(query.id, asked, query.since)
        query.thread.start()
        return query

    def _check_concurrent(self, caller: Caller | None) -> None:
        if caller is None or not caller.concurrent:
            return
        if sum(query.owner == caller.id for query in self._running.values()) >= caller.concurrent:
            raise TooManyRequests(
                f"{caller.name} runs {caller.concurrent} queries already, and may run no more.",
                f"Ask again when one has ended, or raise {caller.limits}.concurrent.",
            )

    def all(self) -> list[Query]:
        with self._lock:
            return sorted(self._running.values(), key=lambda query: query.since)

    def get(self, query_id: str, owner: str | None = None) -> Query:
        """`owner`: whose it must be; None is anybody's."""
        with self._lock:
            found = self._running.get(query_id)
        if found is None or owner not in (None, found.owner):
            raise NotFound(f"There is no query '{query_id}'.", "It has ended, or never was.")
        return found

    def read(self, query_id: str, owner: str | None = None) -> Query:
        """For its one reader."""
        found = self.get(query_id, owner)
        with self._lock:
            if found.read_at is not None:
                raise InvalidRequest(f"Query '{query_id}' is being read.", "Ask again: each has one reader.")
            found.read_at = time.monotonic()
        return found

    def leave(self, query: Query) -> None:
        """Its reader has all, or has gone."""
        query.results.close()
        self._interrupt(query)
        with self._lock:
            self._running.pop(query.id, None)

    def cancel(self, query_id: str, owner: str | None = None) -> None:
        found = self.get(query_id, owner)
        found.results.cancel()
        self._interrupt(found)
        if found.read_at is None:
            self.leave(found)

    def close(self) -> None:
        """All of them end."""
        self._ended.set()
        self._keeper.join()
        found = self.all()
        for query in found:
            self.leave(query)
        deadline = time.monotonic() + END_SECONDS
        for query in found:
            while query.thread is not None and query.is_alive and time.monotonic() < deadline:
                self._interrupt_again()
                query.thread.join(LOOK_SECONDS / 2)

    # -- in threads

    def _run(self, query: Query) -> None:
        results = query.results
        context = self._spark.sparkContext
        context.setJobGroup(query.id, query.asked.sql[:200], interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", query.id)
        try:
            state, more = self._rows(query)
            # Whoever has read the last row finds the query finished.
            ended = QueryState.FINISHED if state == "Completed" else QueryState.CANCELLED
            self._remember(query, ended, read=more or None)
            results.end(state, **more)
        except Closed:
            self._stopped(query)
        except Exception as error:  # noqa: BLE001 - whatever it is, its reader is told
            if not results.is_wanted:
                self._stopped(query)
                return
            shown = _meant(error, query)
            self._remember(query, QueryState.FAILED, error_text(error, shown))
            results.fail(shown)

    def _stopped(self, query: Query) -> None:
        """The last word to who still reads."""
        if query.exceeded is not None:
            self._remember(query, QueryState.FAILED, query.exceeded.message)
            query.results.fail(query.exceeded)
        elif self._ended.is_set():
            self._remember(query, QueryState.FAILED, "The query driver was stopped.")
            query.results.end("Stopped")
        else:
            self._remember(query, QueryState.CANCELLED)
            query.results.end("Stopped")

    def _remember(
        self, query: Query, state: QueryState, error: str = "", read: Mapping[str, Any] | None = None
    ) -> None:
        """`read`: what it has read, where that was asked already."""
        results = query.results
        known = dict(_read_by(query) if read is None else read)
        tables = known.pop("tables", [])
        figures = {"rows": results.rows, "result_bytes": results.size, "seconds": results.seconds}
        self._history.end(query.id, Ending(state, error, figures | known, tables))

    def _rows(self, query: Query) -> tuple[str, dict[str, Any]]:
        asked, results = query.asked, query.results
        if asked.kind in LAKE:
            return "Completed", run_lake(self._lake, asked, self._shown(asked), results, query.reading)
        assert query.plan is not None
        if asked.kind == "live":
            live = self._live(query, f"{self._checkpoints}/{query.id}")
            return run_live(live, results, asked.flush_seconds), {}
        settings = self._settings
        snapshot = Snapshot(
            self._spark,
            self._access,
            self._schemas,
            query.plan,
            asked.starts,
            asked.skip_bad,
            settings.tasks,
        )
        snapshot.run(results)
        return "Completed", {}

    def _shown(self, asked: Asked) -> Mapping[str, str]:
        """By what the catalog is shown whose query it is."""
        if not self._catalog:
            return {}
        if asked.caller is None or asked.caller.token is None:
            # Without one the catalog would take the driver for whoever is on this machine.
            raise NotAuthorized(
                "The query names nobody whose rights it has.", "Ask the server, not the driver."
            )
        return {**self._catalog, "token": asked.caller.token}

    def _live(self, query: Query, uri: str) -> LiveQuery | StagedLiveQuery:
        assert query.plan is not None
        asked, settings = query.asked, self._settings
        plan = replace(query.plan, root=replace(query.plan.root, limit=None))
        running = Running(
            f"{OWNER}{query.id}",
            uri,
            settings.tasks,
            settings.interval,
            asked.idle_seconds or settings.idle_timeout,
            BATCH_ROWS,
            asked.skip_bad,
            asked.starts,
        )
        kind = StagedLiveQuery if plan.stages else LiveQuery
        return kind(self._spark, self._access, self._schemas, plan, running, query.results)

    def _interrupt(self, query: Query) -> None:
        """Ends the jobs that run for it; a live query ends its own."""
        if query.asked.kind != "live":
            with self._lock:
                self._ending[query.id] = query
            self._spark.sparkContext.cancelJobGroup(query.id)

    def _interrupt_again(self) -> None:
        """Spark cancels the jobs that there are: one that was only planned then begins behind that."""
        with self._lock:
            self._ending = {key: query for key, query in self._ending.items() if query.is_alive}
            ending = list(self._ending)
        for query_id in ending:
            self._spark.sparkContext.cancelJobGroup(query_id)

    def _hold_to_limits(self, query: Query, now: float) -> None:
        """Ends one that runs for longer, or reads more, than its caller may."""
        if query.exceeded is not None:
            return
        try:
            _check_seconds(query, now)
            query.reading.check_running(query.asked.caller)
        except LimitReached as reached:
            query.exceeded = reached
            query.results.cancel()
            self._interrupt(query)
        except Py4JError:
            log.warning("what query %s reads is not known", query.id, exc_info=True)

    def _keep(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            try:
                self._look_after()
            except Exception:
                # Whatever one query meets: the limits of all others hold.
                log.exception("queries could not be looked after: trying again")

    def _look_after(self) -> None:
        self._history.tend()
        self._interrupt_again()
        now = time.monotonic()
        for query in self.all():
            self._hold_to_limits(query, now)
            if query.read_at is None and now - query.made_at > LONELY_SECONDS:
                log.info("nobody has come for the rows of query %s: it ends", query.id)
                self.leave(query)


def _read_by(query: Query) -> Mapping[str, Any]:
    """What a query that broke off had read; nothing if its JVM is gone, or its plan never came to be."""
    try:
        return query.reading.figures()
    except Py4JError:
        log.warning("what query %s has read is not known", query.id, exc_info=True)
        return {}


def _check_seconds(query: Query, now: float) -> None:
    """Raises LimitReached for one that has an end, and does not come to it in time."""
    caller = query.asked.caller
    if caller is None or not caller.seconds or query.asked.kind == "live":
        return
    if now - query.made_at > caller.seconds:
        raise LimitReached(
            f"The query has run for {caller.seconds:g} s, the limit for {caller.name}.",
            f"Ask for less, or raise {caller.limits}.seconds.",
        )


def _meant(error: Exception, query: Query) -> Exception:
    """What Spark refuses, in its first words; the stack is in the log."""
    if isinstance(error, HeadgateError):
        return error
    if query.asked.hides_rows:
        # Spark's words may hold a value that could not be cast; so may the stack.
        words = condition_of(_first_words(error)) or type(error).__name__
        log.warning("query %s has failed: %s", query.id, words)
        return StatementFailed(
            f"The query fails at its rows: {words}.",
            "Its values are not shown here: ask it by `headgate query`.",
        )
    log.warning("query %s has failed", query.id, exc_info=error)
    if not isinstance(error, (PySparkException, Py4JJavaError)):
        return error
    line = _first_words(error)
    if query.asked.caller is not None and query.asked.caller.token:
        line = line.replace(query.asked.caller.token, "…")
    return InvalidRequest(line) if query.asked.kind in LAKE else StatementFailed(line)


def _first_words(error: Exception) -> str:
    """What Spark itself says, without who passed it on: `[CONDITION] …`, or else the first line."""
    texts = [str(error)]
    if isinstance(error, Py4JJavaError):
        texts, cause = [], error.java_exception
        while cause is not None:
            texts.append(str(cause.getMessage()))
            cause = cause.getCause()
    for text in texts:
        if (condition := _CONDITION.search(text)) is not None:
            return condition[0].strip().rstrip(";")
    said = texts[0].split("\n\nJVM stacktrace")[0].split(";\n")[0].splitlines()
    return next((text.strip() for text in said if text.strip()), type(error).__name__)
