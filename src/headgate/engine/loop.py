"""The reconciling loop: what is wanted, what is there, what to do next."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from headgate.config import Engine as EngineSettings
from headgate.config import TablePattern
from headgate.engine.patterns import changes
from headgate.engine.source import KafkaSource
from headgate.engine.task import FAILED_AFTER, TableTask
from headgate.errors import (
    ForeignTable,
    HeadgateError,
    InvalidRequest,
    MirrorStopped,
    TableStopped,
    TerminalError,
    TransientError,
)
from headgate.failpoints import working_on
from headgate.maintain.service import KINDS, Maintenance
from headgate.maintain.verify import Known, Verifier
from headgate.model import WAITING_FOR_SCHEMA, TableState
from headgate.store import Request, Store, TableRecord
from headgate.tables.lake import Lake
from headgate.tables.materialize import BatchReport, Materializer, TopicView
from headgate.tables.mirror import NeedsRewrite, NeedsWiderFiles
from headgate.tables.rollback import Records, Wanted

log = logging.getLogger(__name__)

# How often to look whether somebody wants something else: one small read.
WANTS_SECONDS = 0.1
# How often topics are matched with the configuration's patterns.
PATTERN_SECONDS = 5.0
VERIFY = "verify"
ENDING = ("disabled", "purged")


class Loop:
    """Runs the tables that the store wants, each at most one batch at a time."""

    def __init__(
        self,
        store: Store,
        source: KafkaSource,
        lake: Lake,
        make: Callable[[TableRecord], Materializer],
        settings: EngineSettings,
        patterns: Sequence[TablePattern] = (),
        maintenance: Maintenance | None = None,
        verifier: Verifier | None = None,
    ) -> None:
        self._store = store
        self._source = source
        self._lake = lake
        self._make = make
        self._tasks: dict[str, TableTask] = {}
        # Set when a batch has ended: the next round need not wait for the clock.
        self._wake = threading.Event()
        self._wants: set[tuple[str, str]] = set()
        self._patterns = patterns
        self._maintenance = maintenance
        # One table at a time is maintained by itself: the other workers are for batches.
        self._upkeep: Future[BatchReport | None] | None = None
        self._matched_at = -PATTERN_SECONDS
        # Verifications read one snapshot: they run beside the batches, one at a time.
        self._verifier = verifier
        self._verifying: set[str] = set()
        self._verifications = ThreadPoolExecutor(1, thread_name_prefix="verify")
        self._workers = ThreadPoolExecutor(settings.workers, thread_name_prefix="table")

    def tick(self) -> None:
        """One round: reconcile, look at Kafka once for all tables, start what is due."""
        # First what the workers did: it may have changed what the store says.
        self._collect()
        self._match()
        self._wants = self._store.wants()
        records = {record.spec.topic: record for record in self._store.tables()}
        waiting = self._store.waiting()
        self._reconcile(records)
        self._begin_verifications(records, waiting)
        active = [topic for topic, task in self._tasks.items() if task.running is None]
        if not active:
            return
        try:
            views = self._source.views(active)
        except HeadgateError as error:
            log.warning("Kafka does not answer: %s", error)
            for topic in active:
                self._tell(topic, self._tasks[topic], TableState.DEGRADED, f"waiting for Kafka: {error}")
            return
        for topic in active:
            if topic not in self._tasks:
                continue
            try:
                self._look(records[topic], self._tasks[topic], views.get(topic), waiting.get(topic, []))
            except Exception as error:  # noqa: BLE001 - the other tables are looked at all the same
                self._after_failure(topic, self._tasks[topic], error, time.monotonic())

    def rest(self, seconds: float) -> None:
        """Until the next round is due: sooner when a batch has ended or somebody wants something else."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._wake.wait(min(seconds, WANTS_SECONDS)) or self._store.wants() != self._wants:
                break
        self._wake.clear()

    def close(self, wait_seconds: float = 3.0) -> None:
        """Start nothing more; give what runs a moment."""
        deadline = time.monotonic() + wait_seconds
        while time.monotonic() < deadline and any(task.running for task in self._tasks.values()):
            if all(task.running is None or task.running.done() for task in self._tasks.values()):
                break
            time.sleep(0.05)
        self._workers.shutdown(wait=False, cancel_futures=True)
        self._verifications.shutdown(wait=False, cancel_futures=True)

    # -- reconciling

    def _match(self) -> None:
        """Topics that the configuration's patterns want become tables."""
        if not self._patterns or time.monotonic() - self._matched_at < PATTERN_SECONDS:
            return
        self._matched_at = time.monotonic()
        try:
            topics = [topic.name for topic in self._source.topics()]
            records = {record.spec.topic: record for record in self._store.tables()}
            new, altered = changes(topics, self._patterns, records, self._store.declined())
            for spec in new:
                self._store.enable_table(spec, origin="pattern")
            for spec in altered:
                self._store.alter_table(spec)
        except HeadgateError as error:
            log.warning("topics cannot be matched with the configuration's patterns now: %s", error)

    def _reconcile(self, records: dict[str, TableRecord]) -> None:
        for topic in [t for t in self._tasks if t not in records]:
            del self._tasks[topic]
        for topic, record in records.items():
            task = self._tasks.get(topic)
            if task is not None and task.running is not None:
                continue  # a batch under way ends first
            match record.desired:
                case "enabled":
                    if task is None or task.materializer.spec != record.spec:
                        self._take_up(record)
                case "suspended":
                    self._tasks.pop(topic, None)
                    if record.status.state is not TableState.SUSPENDED:
                        self._store.report(topic, TableState.SUSPENDED, "by request", record.status.detail)
                case _ if record.desired in ENDING:
                    self._tasks.pop(topic, None)
                    self._remove(record)

    def _take_up(self, record: TableRecord) -> None:
        topic = record.spec.topic
        try:
            self._tasks[topic] = TableTask(self._make(record), told=dict(record.status.detail))
        except TerminalError as error:
            self._tasks.pop(topic, None)
            self._store.suspend(topic, str(error), record.status.detail)
        except Exception as error:
            self._tasks.pop(topic, None)
            if not isinstance(error, TransientError):
                log.exception("Table '%s' cannot be taken up", topic)
            said = f"trying again: {_text_of(error)}"
            self._store.report(topic, TableState.DEGRADED, said, record.status.detail)

    def _remove(self, record: TableRecord) -> None:
        topic = record.spec.topic
        try:
            if record.desired == "purged":
                self._lake.drop(topic)
            self._store.remove_table(topic)
        except ForeignTable as error:
            # What was asked to be purged is not ours; only our record of it goes.
            log.warning("%s", error)
            self._store.remove_table(topic)
        except Exception as error:  # noqa: BLE001 - whatever the catalog says, the other tables go on
            log.warning("Table '%s' cannot be removed yet: %s", topic, error)
            self._store.report(topic, TableState.DEGRADED, f"to be removed: {error}", record.status.detail)

    # -- batches

    def _look(
        self, record: TableRecord, task: TableTask, view: TopicView | None, requests: Sequence[Request]
    ) -> None:
        topic = record.spec.topic
        if view is None:
            gone = f"Topic '{topic}' does not exist or does not answer. Create it, or disable the table."
            self._tell(topic, task, TableState.DEGRADED, gone)
            return
        if self._verifier is not None:
            requests = [request for request in requests if request.kind != VERIFY]
        self._look_at(record, task, view, requests)

    def _look_at(
        self, record: TableRecord, task: TableTask, view: TopicView, requests: Sequence[Request]
    ) -> None:
        now = time.monotonic()
        if requests and now >= task.retry_at:
            self._submit(task, view, requests)
            return
        try:
            task.materializer.check(view)
        except TableStopped as error:
            # Offsets of another topic: neither a lag nor a sync means anything.
            self._after_failure(record.spec.topic, task, error, now)
            return
        if record.status.state.value != task.told.get("state"):
            # Suspended and resumed between two looks: the store has forgotten what it was told.
            task.told = {key: value for key, value in task.told.items() if key != "state"}
        behind = task.see(view, now, time.time())
        task.request_sync(record.sync_request, view)
        due = task.due(behind, now)
        if not task.failures and not task.schemaless:
            syncing = not task.opened or task.sync_target is not None or (task.backlog and behind > 0)
            state = TableState.SYNCING if syncing else TableState.RUNNING
            trouble = task.materializer.mirror_trouble
            if trouble is not None:
                state = TableState.DEGRADED
            self._tell(record.spec.topic, task, state, "" if trouble is None else str(trouble), view)
        if due:
            self._submit(task, view)
        elif task.opened and now >= task.retry_at and self._is_upkeep_due(record.spec.topic, now):
            self._submit(task, view, upkeep=True)

    def _begin_verifications(
        self, records: Mapping[str, TableRecord], waiting: Mapping[str, Sequence[Request]]
    ) -> None:
        """Beside the batches, and whatever the state of a table: one in trouble is worth a look."""
        for topic, record in records.items():
            if self._verifier is None or record.desired in ENDING:
                continue
            for request in waiting.get(topic, ()):
                if request.kind == VERIFY and request.id not in self._verifying:
                    self._verifying.add(request.id)
                    self._verifications.submit(self._verify, self._verifier, self._known(record), request)

    def _known(self, record: TableRecord) -> Known:
        task = self._tasks.get(record.spec.topic)
        if task is None:
            return Known(record.spec)
        one = task.materializer
        return Known(one.spec, one.places, one.record_plan)

    def _verify(self, verifier: Verifier, known: Known, request: Request) -> None:
        try:
            deep = bool(request.arguments.get("deep"))
            found = verifier.verify(known, deep, lambda text: self._store.progress(request, text))
            self._store.answer(request, "done", found)
        except Exception as error:
            log.warning("Table '%s' cannot be verified", request.topic, exc_info=error)
            self._store.answer(request, "failed", {"error": str(error)})
        finally:
            self._verifying.discard(request.id)

    def _is_upkeep_due(self, topic: str, now: float) -> bool:
        if self._maintenance is None or (self._upkeep is not None and not self._upkeep.done()):
            return False
        return self._maintenance.is_due(topic, now)

    def _submit(
        self, task: TableTask, view: TopicView, requests: Sequence[Request] = (), upkeep: bool = False
    ) -> None:
        task.running = self._workers.submit(self._run_worker, task.materializer, view, requests, upkeep)
        task.running.add_done_callback(lambda _: self._wake.set())
        if upkeep:
            self._upkeep = task.running

    def _run_worker(
        self, materializer: Materializer, view: TopicView, requests: Sequence[Request], upkeep: bool
    ) -> BatchReport | None:
        with working_on(materializer.spec.topic):
            return self._work(materializer, view, requests, upkeep)

    def _work(
        self, materializer: Materializer, view: TopicView, requests: Sequence[Request], upkeep: bool
    ) -> BatchReport | None:
        """In a worker: what was asked for, then the next batch."""
        if upkeep and self._maintenance is not None and self._maintenance.look(materializer.spec.topic):
            materializer.forget()
        for request in requests:
            try:
                result = self._carry_out(materializer, view, request)
            except TransientError:
                raise  # it waits, and is tried again with the table
            except Exception as error:
                self._store.answer(request, "failed", {"error": str(error)})
                if not isinstance(error, InvalidRequest | MirrorStopped) and request.kind not in KINDS:
                    raise
            else:
                self._store.answer(request, "done", result)
        report = materializer.run(view)
        trouble, spec = materializer.mirror_trouble, materializer.spec
        too_narrow = isinstance(trouble, NeedsWiderFiles) and spec.avoids_widening
        if too_narrow or (isinstance(trouble, NeedsRewrite) and spec.rewrite):
            self._rewrite(materializer, view)
        return report

    def _rewrite(self, materializer: Materializer, view: TopicView) -> None:
        """Its owner wants files written anew rather than a Delta log that waits."""
        if self._maintenance is not None:
            self._maintenance.rewrite(materializer.spec.topic)
            materializer.forget()
            materializer.open(view)

    def _carry_out(self, materializer: Materializer, view: TopicView, request: Request) -> Mapping[str, Any]:
        if request.kind in KINDS and self._maintenance is not None:
            try:
                return self._maintenance.carry_out(request)
            finally:
                # The table has another head, and perhaps other files: batches begin with a fresh look.
                materializer.forget()
        match request.kind:
            case "replay":
                return asdict(materializer.replay(view, request.asked_by))
            case "mirror":
                return materializer.mirror(view, bool(request.arguments.get("rebuild")))
            case "rollback" | "plan-rollback":
                return materializer.rollback(view, _rollback_wanted(request))
            case "accept":
                what = str(request.arguments["what"])
                materializer.accept(view, what, request.id, request.asked_by)
                return {"accepted": what}
        raise InvalidRequest(f"The engine does not know how to {request.kind}.")

    def _collect(self) -> None:
        """Take in what the workers have done since the last round."""
        for topic, task in list(self._tasks.items()):
            if task.running is None or not task.running.done():
                continue
            done, task.running = task.running, None
            error = done.exception()
            now = time.monotonic()
            if error is None:
                self._after(topic, task, done.result(), now)
            elif isinstance(error, Exception):
                self._after_failure(topic, task, error, now)
            else:
                raise error

    def _after(self, topic: str, task: TableTask, report: BatchReport | None, now: float) -> None:
        task.failures = 0
        task.opened = task.materializer.is_open
        if not task.opened:
            # No schema yet: ask again soon, without a Spark job.
            task.retry_at = now + 2.0
            task.schemaless = True
            subject = f"{topic}-value"
            reason = (
                f"{WAITING_FOR_SCHEMA}: register one for subject '{subject}', produce a record that names "
                "one, or enable the table with a --value-format that needs none"
            )
            self._tell(topic, task, TableState.PENDING, reason)
            return
        task.schemaless = False
        task.finished(report, now, time.time())

    def _after_failure(self, topic: str, task: TableTask, error: Exception, now: float) -> None:
        task.failed(now)
        # Whatever was believed of the table may be what was wrong.
        task.materializer.forget()
        task.opened = False
        match error:
            case TransientError():
                log.warning("Table '%s' tries again: %s", topic, error)
                state = TableState.FAILED if task.failures >= FAILED_AFTER else TableState.DEGRADED
                self._tell(topic, task, state, f"trying again: {error}")
            case TerminalError():
                log.warning("Table '%s' is suspended: %s", topic, error)
                self._store.suspend(topic, str(error), task.detail(None))
                # Nothing more is said of it until its owner resumes it.
                self._tasks.pop(topic, None)
            case _:
                log.error("Table '%s' failed", topic, exc_info=error)
                self._tell(topic, task, TableState.FAILED, f"trying again: {_text_of(error)}")

    def _tell(
        self, topic: str, task: TableTask, state: TableState, reason: str, view: TopicView | None = None
    ) -> None:
        """Report, when it says something new."""
        task.state, task.reason = state, reason
        said = {"state": state.value, "reason": reason, **task.detail(view)}
        if said == task.told:
            return
        task.told = said
        detail = {key: value for key, value in said.items() if key not in ("state", "reason")}
        self._store.report(topic, state, reason, detail)


def _text_of(error: Exception) -> str:
    """One line for who looks at a table; the type of what nobody has thought of."""
    if isinstance(error, HeadgateError):
        return str(error)
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _rollback_wanted(request: Request) -> Wanted:
    """Without `records` a plan is asked for."""
    said = request.arguments
    records = Records(said["records"]) if request.kind == "rollback" else None
    return Wanted(request.id, str(said["to"]), records, request.asked_by)
