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

from headgate.backoff import Backoff
from headgate.config import Statements as StatementSettings
from headgate.engine.reset import Resetter
from headgate.errors import HeadgateError, StatementFailed, TerminalError, TransientError
from headgate.kafka.access import KafkaAccess
from headgate.kafka.topics import Topics, is_reserved
from headgate.kafka.transactional import end_open
from headgate.model import StatementState
from headgate.registry.client import SchemaSource
from headgate.statements.bounded import BoundedQuery, Result
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.closing import Closer
from headgate.statements.ends import Ends
from headgate.statements.options import StatementOptions
from headgate.statements.progress import Totals
from headgate.statements.query import Running, StatementQuery
from headgate.statements.recovery import check_topic_ids
from headgate.statements.runnable import Job, is_stateful, tables_read
from headgate.statements.staged import StagedQuery, check_steps, running_of
from headgate.statements.stages import create_topics, delete_topics, stage_topics
from headgate.statements.standing import standing_of
from headgate.statements.takeover import Rebuild, start_texts
from headgate.statements.waiting import why_nothing_comes
from headgate.store import StatementRecord, Statements

log = logging.getLogger(__name__)

BACKOFF = Backoff(0.5, 30.0)
# Failures in a row after which a statement that still tries is called Failed.
FAILED_AFTER = 8
# How long it has to run for the next failure to be the first again.
WELL_SECONDS = 60.0
# How often a statement that runs is reported, and how often the loop looks.
REPORT_SECONDS, LOOK_SECONDS = 1.0, 0.1
# How often Spark is asked of a query of which nothing has come: silence, too, moves event time.
QUIET_SECONDS = 0.5
WORKERS = 4
# How often records between the queries of a statement are deleted that nobody will read again.
CLEAN_SECONDS = 30.0
# Of a statement that ends: which files have its rows.
RESULT = "result"
ENDED = (StatementState.STOPPED, StatementState.FAILED, StatementState.COMPLETED)


Query = StatementQuery | StagedQuery | BoundedQuery


@dataclass
class _Task:
    """One statement in the engine. `doing`: it is being started or stopped, in a worker."""

    record: StatementRecord
    query: Query | None = None
    doing: Future[Query | None] | None = None
    failures: int = 0
    retry_at: float = 0.0
    started_at: float = 0.0
    watched_at: float = 0.0
    reported_at: float = 0.0
    cleaned_at: float = 0.0
    cleaning: Future[None] | None = None
    closer: Closer | None = None
    #: What came of the last request to close what has come.
    answered: Mapping[str, Any] | None = None
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
            try:
                if task.doing is not None:
                    # What follows is decided when the record says so: it may have changed what is wanted.
                    self._collect(task)
                else:
                    self._reconcile(task)
            except Exception as error:  # noqa: BLE001 - the others are looked at all the same
                self._stumbled(task, error)

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
            case "reset":
                if time.monotonic() >= task.retry_at:
                    task.doing = self._workers.submit(self._reset, record, query)
            case "deleted":
                if time.monotonic() >= task.retry_at:
                    task.doing = self._workers.submit(self._delete, record, query, task.cleaning)

    def _collect(self, task: _Task) -> None:
        """Take in what a worker has done."""
        doing = task.doing
        if doing is None or not doing.done():
            return
        task.doing = None
        # A closing that was under way begins again: the query has another clock now.
        task.closer = None
        error = doing.exception()
        before, task.query = task.query, None
        if isinstance(error, Exception):
            self._failed(task, error, before)
            return
        if error is not None:
            raise error
        task.query = doing.result()
        if task.query is not None:
            task.started_at = time.monotonic()
            self._tell(task, StatementState.RUNNING, "")
        elif before is not None and task.record.desired != "reset":
            self._statements.report(
                task.record.id, StatementState.STOPPED, "by request", self._detail(task, before)
            )

    def _watch(self, task: _Task) -> None:
        query, now = task.query, time.monotonic()
        assert query is not None
        if not self._has_to_look(task, query, now):
            return
        task.watched_at = now
        query.poll()
        if not query.is_active:
            error = query.failure()
            if error is None and isinstance(query, BoundedQuery) and query.is_completed:
                self._complete(task, query)
            elif error is not None:
                task.doing = self._workers.submit(self._wind_up, query, error)
            else:
                # A schema was learned: it goes on with that at once.
                task.doing = self._workers.submit(self._start, task.record, task.totals, query)
            return
        if query.is_outgrown:
            task.doing = self._workers.submit(self._restart, task.record, query)
            return
        if task.failures and now - task.started_at > WELL_SECONDS:
            task.failures = 0
        if not isinstance(query, BoundedQuery):
            self._close(task, query)
        if now - task.reported_at >= REPORT_SECONDS:
            self._tell(task, StatementState.RUNNING, "")
        if isinstance(query, StagedQuery):
            self._clean(task, query, now)

    def _has_to_look(self, task: _Task, query: Query, now: float) -> bool:
        """A look at a query that rests asks its JVM half a dozen times."""
        if query.has_news or now - task.watched_at >= QUIET_SECONDS:
            return True
        asked = self._open_request(task) is not None
        return asked or (task.closer is not None and task.closer.is_closing)

    @staticmethod
    def _open_request(task: _Task) -> str | None:
        """The request to close what has come that is not answered yet."""
        request: str | None = task.record.options.get("finish")
        answered = (task.answered or task.record.detail.get("finished") or {}).get("request")
        return None if request == answered else request

    def _close(self, task: _Task, query: StatementQuery | StagedQuery) -> None:
        """Close what has come, if somebody asked for it or no record has come for long."""
        record = task.record
        if task.closer is None:
            options = StatementOptions.from_dict(record.options)
            task.closer = Closer(self._workers.submit, options.idle_flush_seconds)
        try:
            closed = task.closer.look(query.queries, self._open_request(task))
        except HeadgateError as error:
            log.warning("Statement '%s' is closed later: %s", record.name, error)
            return
        if closed is not None:
            if closed.request is not None:
                task.answered = {"request": closed.request, "watermark": _text(closed.watermark_ms)}
            self._statements.note(record.name, "closed", closed.text)
            self._tell(task, StatementState.RUNNING, "")

    def _complete(self, task: _Task, query: BoundedQuery) -> None:
        """The word of it first: whoever comes after a crash needs its files until then."""
        self._statements.end(task.record.id, StatementState.COMPLETED, "", self._detail(task, query))
        task.query = None
        self._workers.submit(query.clear)

    def _stumbled(self, task: _Task, error: Exception) -> None:
        """The look at one statement has failed: the others are looked at all the same.

        A query that runs is looked at again in the next round. One that has ended is tried again after a
        while, as after any failure.
        """
        log.error("Statement '%s' cannot be looked at", task.record.name, exc_info=error)
        query = task.query
        if task.doing is None and query is not None and not query.is_active:
            task.doing = self._workers.submit(self._wind_up, query, error)

    def _clean(self, task: _Task, query: StagedQuery, now: float) -> None:
        if task.cleaning is not None and task.cleaning.done():
            if (error := task.cleaning.exception()) is not None:
                # Nothing is lost but disk space, and the next time does what this one did not.
                log.warning("Statement '%s' keeps what its steps have read: %s", task.record.name, error)
            task.cleaning = None
        if task.cleaning is None and now - task.cleaned_at >= CLEAN_SECONDS:
            task.cleaned_at = now
            task.cleaning = self._workers.submit(query.delete_done)

    def _failed(self, task: _Task, error: Exception, query: Query | None = None) -> None:
        name, detail = task.record.name, self._detail(task, query)
        if isinstance(error, TerminalError):
            log.warning("Statement '%s' has failed: %s", name, error)
            self._statements.end(task.record.id, StatementState.FAILED, str(error), detail)
            return
        task.failures += 1
        task.retry_at = time.monotonic() + BACKOFF.after(task.failures)
        if isinstance(error, TransientError):
            log.warning("Statement '%s' tries again: %s", name, error)
            said = str(error)
        else:
            log.error("Statement '%s' failed", name, exc_info=error)
            said = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"
        state = StatementState.FAILED if task.failures >= FAILED_AFTER else StatementState.PENDING
        self._statements.report(task.record.id, state, f"trying again: {said}", detail)

    # -- in workers

    def _start(self, record: StatementRecord, totals: Totals, query: Query | None = None) -> Query:
        """Takes a statement up, for the first time or again; `query`: one that has ended and knows more."""
        if not record.settled:
            settled = self._settle(record, StatementOptions.from_dict(record.options))
            self._statements.settle(record.id, settled)
        else:
            settled = dict(record.settled)
        check_topic_ids(record.name, settled["topics"], self._topic_ids(list(settled["topics"])))
        if query is None:
            query = self._query(record, settled, totals)
        known = settled.get("rebuild")
        query.start(None if known is None else Rebuild.from_dict(known))
        return query

    def _restart(self, record: StatementRecord, query: Query) -> Query:
        query.stop()
        return self._start(record, query.totals, query)

    def _stop(self, query: Query) -> None:
        if isinstance(query, StagedQuery):
            query.drain()
        else:
            query.stop()

    def _reset(self, record: StatementRecord, query: Query | None) -> None:
        if query is not None:
            query.stop(0)
        running = self._running(record, record.settled)
        Resetter(self._statements, self._spark, self._access, record).run(self._make(record), running)

    def _wind_up(self, query: Query, error: Exception) -> None:
        """After a failure: none of its queries goes on alone."""
        query.stop()
        raise error

    def _delete(self, record: StatementRecord, query: Query | None, cleaning: Future[None] | None) -> None:
        if query is not None:
            query.stop(0)
        if cleaning is not None:
            wait([cleaning])
        steps = len(record.settled.get("steps") or ()) + 1
        for step in range(1, steps):
            own = running_of(self._running(record, record.settled), step, steps)
            end_open(self._access, own.writer, own.tasks)
            Checkpoint(self._spark, own.checkpoint).delete()
        if steps > 1 or not record.settled:
            # Before it was settled topics may have been made, and nothing says so.
            delete_topics(self._access, record.id)
        Checkpoint(self._spark, self._checkpoint(record.id)).delete()
        self._statements.remove(record.id)

    def _query(self, record: StatementRecord, settled: Mapping[str, Any], totals: Totals) -> Query:
        job, running = self._make(record), self._running(record, settled)
        ends = StatementOptions.from_dict(record.options).ends
        if ends is not None:
            return self._bounded(record, settled, job, running, Ends.from_dict(ends), totals)
        stages = stage_topics(record.id, job.runnable.stages)
        check_steps(record.name, settled.get("steps") or (), list(stages.values()))
        kind = StagedQuery if stages else StatementQuery
        return kind(self._spark, self._access, self._schemas, job, running, totals)

    def _bounded(
        self,
        record: StatementRecord,
        settled: Mapping[str, Any],
        job: Job,
        running: Running,
        ends: Ends,
        totals: Totals,
    ) -> BoundedQuery:
        def settle(made: Result) -> Result:
            return Result.from_dict(self._statements.settle_once(record.id, RESULT, made.to_dict()))

        known = settled.get(RESULT)
        result = None if known is None else Result.from_dict(known)
        spark, access = self._spark, self._access
        return BoundedQuery(spark, access, self._schemas, job, running, ends, settle, result, totals)

    def _running(self, record: StatementRecord, settled: Mapping[str, Any]) -> Running:
        ours, options = self._settings, StatementOptions.from_dict(record.options)
        return Running(
            record.id,
            self._checkpoint(record.id),
            settled["tasks"],
            options.interval_seconds or ours.interval,
            options.idle_seconds or ours.idle_timeout,
            options.max_rows or ours.max_batch_rows,
            options.on_bad_record == "skip",
            settled.get("starts") or {},
            record.name,
            settled.get("topics") or {},
        )

    def _settle(self, record: StatementRecord, options: StatementOptions) -> dict[str, Any]:
        """What stays as it is from the first batch on."""
        if options.ends is not None:
            return {"tasks": self._settings.tasks, "topics": dict(Ends.from_dict(options.ends).ids)}
        job = self._make(record)
        stages = stage_topics(record.id, job.runnable.stages)
        found: dict[str, Any] = {"tasks": self._settings.tasks, "starts": dict(options.starts or {})}
        if options.initial_offset_from is not None:
            found |= self._taken_over(job, options.initial_offset_from)
        if stages:
            found["steps"] = [stage.codec.mark for stage in stages.values()]
            create_topics(self._access, stages.values(), found["tasks"])
        between = [stage.topic for stage in stages.values()]
        found["topics"] = self._topic_ids([*tables_read(job.runnable), *between])
        return found

    def _taken_over(self, job: Job, name: str) -> dict[str, Any]:
        other = self._statements.get(name)
        if other.desired == "running" or other.state not in ENDED:
            raise StatementFailed(
                f"Statement '{name}' still runs: nothing can go on where it is.",
                f"Stop it first: `headgate statement stop {name}`; then start this one again.",
            )
        if other.options.get("ends") is not None:
            raise StatementFailed(
                f"Statement '{name}' ends where its topics ended: it keeps nothing to take over.",
                "Delete this statement, and create it without initial-offset-from.",
            )
        settled: Mapping[str, Any] = {"tasks": self._settings.tasks, **other.settled}
        read = settled.get("topics") or {}
        check_topic_ids(name, read, self._topic_ids(list(read)))
        steps, running = len(settled.get("steps") or ()) + 1, self._running(other, settled)
        runnings = [running_of(running, step, steps) for step in range(1, steps + 1)]
        standing = standing_of(self._spark, self._access, name, runnings, "rebuild" in settled)
        found: dict[str, Any] = {"tasks": running.tasks}
        if not is_stateful(job.runnable):
            return found | {"starts": start_texts(standing.offsets)}
        rebuild = standing.rebuild(job.runnable).to_dict()
        return found | {"starts": dict(settled.get("starts") or {}), "rebuild": rebuild}

    def _topic_ids(self, names: list[str]) -> dict[str, str]:
        return {name: topic.id for name, topic in Topics(self._access).describe_many(names).items()}

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

    def _detail(self, task: _Task, query: Query | None = None) -> dict[str, Any]:
        """The last known of what there is no news of."""
        found = dict(task.record.detail)
        if query is None:
            return found
        task.totals = query.totals
        found |= query.totals.to_dict()
        if task.answered is not None:
            found["finished"] = dict(task.answered)
        found["watermarks"] = {topic: _text(time_ms) for topic, time_ms in query.watermarks().items()}
        if isinstance(query, StagedQuery):
            found["steps"] = query.steps()
        progress = query.progress
        if progress is not None:
            found |= {
                "batch": progress.batch,
                "batch_seconds": progress.seconds,
                "watermark": _text(progress.watermark_ms),
                "lag": progress.lag,
                "lags": {
                    topic: sum(behind.values())
                    for topic, behind in progress.behind.items()
                    if not is_reserved(topic)
                },
                "offsets": {
                    topic: {str(p): offset for p, offset in ends.items()}
                    for topic, ends in progress.offsets.items()
                    if not is_reserved(topic)
                },
                "state_rows": progress.state_rows,
                "state_bytes": progress.state_bytes,
            }
            if not isinstance(query, BoundedQuery):
                found["waiting"] = why_nothing_comes(
                    [step.standing() for step in query.queries],
                    query.totals,
                    sorted(found["offsets"]),
                    not any(any(ends.values()) for ends in found["offsets"].values()),
                )
        return found


def _text(time_ms: int | None) -> str | None:
    if time_ms is None:
        return None
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
