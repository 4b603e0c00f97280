"""The statements that the store wants, each a streaming query in the engine's session."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from headgate.config import Statements as StatementSettings
from headgate.errors import StatementFailed, TerminalError, TransientError
from headgate.kafka.access import KafkaAccess
from headgate.kafka.topics import Topics
from headgate.model import StatementState
from headgate.registry.client import SchemaSource
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.options import StatementOptions
from headgate.statements.progress import Totals
from headgate.statements.query import Running, StatementQuery
from headgate.statements.runnable import Job
from headgate.statements.takeover import (
    Rebuild,
    check_nothing_is_half_done,
    start_texts,
)
from headgate.store import StatementRecord, Statements

log = logging.getLogger(__name__)

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
# Failures in a row after which a statement that still tries is called Failed.
FAILED_AFTER = 8
# How long it has to run for the next failure to be the first again.
WELL_SECONDS = 60.0
# How often a statement that runs is reported, and how often the loop looks.
REPORT_SECONDS, LOOK_SECONDS = 1.0, 0.1
WORKERS = 4
ENDED = (StatementState.STOPPED, StatementState.FAILED, StatementState.COMPLETED)


@dataclass
class _Task:
    """One statement in the engine. `doing`: it is being started or stopped, in a worker."""

    record: StatementRecord
    query: StatementQuery | None = None
    doing: Future[StatementQuery | None] | None = None
    failures: int = 0
    retry_at: float = 0.0
    started_at: float = 0.0
    reported_at: float = 0.0
    totals: Totals = field(default_factory=Totals)
    told: Mapping[str, Any] | None = None


class StatementLoop:
    """Runs what is wanted. `tick` never waits: what takes long is done by workers."""

    def __init__(
        self,
        statements: Statements,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        make: Callable[[StatementRecord], Job],
        checkpoints: str,
        settings: StatementSettings,
    ) -> None:
        """`make` plans a statement; `checkpoints` is the URI of the folder that holds those of all."""
        self._statements = statements
        self._spark = spark
        self._access = access
        self._schemas = schemas
        self._make = make
        self._checkpoints = checkpoints.rstrip("/")
        self._settings = settings
        self._tasks: dict[str, _Task] = {}
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="statement")

    def run(self, stop: threading.Event) -> None:
        """Until told to stop; for a thread of its own."""
        try:
            while not stop.wait(LOOK_SECONDS):
                try:
                    self.tick()
                except Exception:
                    # Whatever one look meets, the next one begins afresh; the queries run on meanwhile.
                    log.exception("statements are looked at again")
        finally:
            self.close()

    def tick(self) -> None:
        records = {record.id: record for record in self._statements.all()}
        for gone in [known for known in self._tasks if known not in records]:
            task = self._tasks.pop(gone)
            if task.query is not None:
                self._workers.submit(task.query.stop)
        for record in records.values():
            task = self._tasks.setdefault(record.id, _Task(record, totals=Totals.from_dict(record.detail)))
            task.record = record
            if task.doing is not None:
                self._collect(task)
            if task.doing is None:
                self._reconcile(task)

    def close(self, patience: float = 5.0) -> None:
        """Batches that run are given a moment; one that is cut off is done again by the next engine."""
        running = [task.query for task in self._tasks.values() if task.query is not None]
        list(self._workers.map(lambda query: query.stop(patience), running))
        # One that is being started, or rebuilds its state, ends with the session at the latest.
        wait([task.doing for task in self._tasks.values() if task.doing is not None], patience)
        self._workers.shutdown(wait=False, cancel_futures=True)

    # -- one statement

    def _reconcile(self, task: _Task) -> None:
        record, query = task.record, task.query
        match record.desired:
            case "running" if query is None:
                if time.monotonic() >= task.retry_at:
                    task.doing = self._workers.submit(self._start, record, task.totals)
            case "running":
                self._watch(task)
            case "stopped" if query is not None:
                task.doing = self._workers.submit(self._stop, query)
            case "stopped":
                if record.state not in ENDED:
                    self._statements.report(
                        record.id, StatementState.STOPPED, "by request", self._detail(task)
                    )
            case "deleted":
                task.doing = self._workers.submit(self._delete, record, query)

    def _collect(self, task: _Task) -> None:
        """Take in what a worker has done."""
        doing = task.doing
        if doing is None or not doing.done():
            return
        task.doing = None
        error = doing.exception()
        if isinstance(error, Exception):
            task.query = None
            self._failed(task, error)
            return
        if error is not None:
            raise error
        before, task.query = task.query, doing.result()
        if task.query is not None:
            task.started_at = time.monotonic()
            self._tell(task, StatementState.RUNNING, "")
        elif before is not None:
            self._statements.report(
                task.record.id, StatementState.STOPPED, "by request", self._detail(task, before)
            )

    def _watch(self, task: _Task) -> None:
        query, now = task.query, time.monotonic()
        assert query is not None
        query.poll()
        if not query.is_active:
            task.query = None
            error = query.failure()
            if error is not None:
                self._failed(task, error, query)
            else:
                # A schema was learned: it goes on with that at once.
                task.doing = self._workers.submit(self._start, task.record, task.totals, query)
            return
        if query.is_outgrown:
            task.doing = self._workers.submit(self._restart, task.record, query)
            return
        if task.failures and now - task.started_at > WELL_SECONDS:
            task.failures = 0
        if now - task.reported_at >= REPORT_SECONDS:
            self._tell(task, StatementState.RUNNING, "")

    def _failed(self, task: _Task, error: Exception, query: StatementQuery | None = None) -> None:
        name, detail = task.record.name, self._detail(task, query)
        if isinstance(error, TerminalError):
            log.warning("Statement '%s' has failed: %s", name, error)
            self._statements.end(task.record.id, StatementState.FAILED, str(error), detail)
            return
        task.failures += 1
        pause = min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (task.failures - 1))
        task.retry_at = time.monotonic() + pause
        if isinstance(error, TransientError):
            log.warning("Statement '%s' tries again: %s", name, error)
            said = str(error)
        else:
            log.error("Statement '%s' failed", name, exc_info=error)
            said = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        state = StatementState.FAILED if task.failures >= FAILED_AFTER else StatementState.PENDING
        self._statements.report(task.record.id, state, f"trying again: {said}", detail)

    # -- in workers

    def _start(
        self, record: StatementRecord, totals: Totals, query: StatementQuery | None = None
    ) -> StatementQuery:
        """Takes a statement up, for the first time or again; `query`: one that has ended and knows more."""
        options = StatementOptions.from_dict(record.options)
        if not record.settled:
            settled = self._settle(record, options)
            self._statements.settle(record.id, settled)
        else:
            settled = dict(record.settled)
        self._check_topics(record, settled["topics"])
        if query is None:
            query = self._query(record, options, settled, totals)
        known = settled.get("rebuild")
        query.start(None if known is None else Rebuild.from_dict(known))
        return query

    def _restart(self, record: StatementRecord, query: StatementQuery) -> StatementQuery:
        query.stop()
        return self._start(record, query.totals, query)

    def _stop(self, query: StatementQuery) -> None:
        query.stop()

    def _delete(self, record: StatementRecord, query: StatementQuery | None) -> None:
        if query is not None:
            query.stop(0)
        Checkpoint(self._spark, self._checkpoint(record.id)).delete()
        self._statements.remove(record.id)

    def _query(
        self,
        record: StatementRecord,
        options: StatementOptions,
        settled: Mapping[str, Any],
        totals: Totals | None = None,
    ) -> StatementQuery:
        ours = self._settings
        running = Running(
            record.id,
            self._checkpoint(record.id),
            settled["tasks"],
            options.interval_seconds or ours.interval,
            options.idle_seconds or ours.idle_timeout,
            options.max_rows or ours.max_batch_rows,
            options.on_bad_record == "skip",
            settled.get("starts") or {},
        )
        return StatementQuery(
            self._spark, self._access, self._schemas, self._make(record), running, totals or Totals()
        )

    def _settle(self, record: StatementRecord, options: StatementOptions) -> dict[str, Any]:
        """What stays as it is from the first batch on."""
        job = self._make(record)
        sources = sorted({source.table.name for source in job.runnable.sources})
        found: dict[str, Any] = {
            "tasks": self._settings.tasks,
            "topics": self._topic_ids(sources),
            "starts": dict(options.starts or {}),
        }
        if options.initial_offset_from is not None:
            found |= self._taken_over(job, options.initial_offset_from)
        return found

    def _taken_over(self, job: Job, name: str) -> dict[str, Any]:
        other = self._statements.get(name)
        if other.desired == "running" or other.state not in ENDED:
            raise StatementFailed(
                f"Statement '{name}' still runs: nothing can go on where it is.",
                f"Stop it first: `headgate statement stop {name}`; then start this one again.",
            )
        reached = Checkpoint(self._spark, self._checkpoint(other.id)).reached()
        if reached is None:
            raise StatementFailed(
                f"Statement '{name}' has read nothing yet: there is nothing to take over.",
                "Delete this statement, and create it without initial-offset-from.",
            )
        tasks = int(other.settled["tasks"])
        check_nothing_is_half_done(self._access, name, _writer(other.id), tasks, reached)
        found: dict[str, Any] = {"tasks": tasks}
        if not job.runnable.stateful:
            return found | {"starts": start_texts(reached.offsets)}
        rebuild = Rebuild(reached.offsets, reached.watermark_ms, reached.conf)
        return found | {"starts": dict(other.settled.get("starts") or {}), "rebuild": rebuild.to_dict()}

    def _topic_ids(self, names: list[str]) -> dict[str, str]:
        return {name: topic.id for name, topic in Topics(self._access).describe_many(names).items()}

    def _check_topics(self, record: StatementRecord, known: Mapping[str, str]) -> None:
        now = self._topic_ids(list(known))
        for name, topic_id in known.items():
            if name in now and now[name] != topic_id:
                raise StatementFailed(
                    f"Topic '{name}' was deleted and created again: the offsets of statement "
                    f"'{record.name}' mean nothing in it.",
                    "Delete the statement and create it anew.",
                )

    def _checkpoint(self, statement_id: str) -> str:
        return f"{self._checkpoints}/{statement_id}"

    # -- what is told

    def _tell(self, task: _Task, state: StatementState, reason: str) -> None:
        detail = self._detail(task, task.query)
        task.reported_at = time.monotonic()
        said = {"state": state, "reason": reason, **detail}
        if said != task.told or task.record.state is not state:
            self._statements.report(task.record.id, state, reason, detail)
            task.told = said

    def _detail(self, task: _Task, query: StatementQuery | None = None) -> dict[str, Any]:
        """The last known of what there is no news of."""
        found = dict(task.record.detail)
        if query is None:
            return found
        task.totals = query.totals
        found |= query.totals.to_dict()
        found["watermarks"] = {topic: _text(time_ms) for topic, time_ms in query.watermarks().items()}
        progress = query.progress
        if progress is not None:
            found |= {
                "batch": progress.batch,
                "batch_seconds": progress.seconds,
                "watermark": _text(progress.watermark_ms),
                "lag": progress.lag,
                "lags": {topic: sum(behind.values()) for topic, behind in progress.behind.items()},
                "offsets": {
                    topic: {str(p): offset for p, offset in ends.items()}
                    for topic, ends in progress.offsets.items()
                },
                "state_rows": progress.state_rows,
                "state_bytes": progress.state_bytes,
            }
        return found


def _writer(statement_id: str) -> str:
    return Running(statement_id, "", 1).writer


def _text(time_ms: int | None) -> str | None:
    if time_ms is None:
        return None
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
