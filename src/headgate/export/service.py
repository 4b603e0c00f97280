"""Exports looked after: times of schedules become runs, and runs are carried out, a few at a time."""

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from headgate.backoff import Backoff
from headgate.errors import AlreadyExists, HeadgateError, InvalidRequest
from headgate.export.definition import ExportOptions, parse_options
from headgate.export.lease import LEASE_SECONDS, Lease, LeaseLost
from headgate.export.notify import Notifier, open_failure_mails, open_mails
from headgate.export.prune import prune
from headgate.export.run import FileRun, Surroundings
from headgate.export.schedule import bounds, times
from headgate.store import ExportRecord, Exports, RunRecord, RunState
from headgate.store.export_records import NOT_TOLD, Slot

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
LONGEST_WAIT = 3600.0
# What fails again until somebody changes the export; all else may pass.
FINAL = (InvalidRequest, AlreadyExists)
# Of times that were missed, so many become runs.
MOST_MISSED = 1000
# A time that is seen so late was not missed.
PUNCTUAL_SECONDS = 120.0


class Scheduler:
    """Makes runs of times. Of several on one control state, one makes each."""

    def __init__(self, exports: Exports, clock: Callable[[], float] = time.time) -> None:
        self._exports = exports
        self._clock = clock

    def look(self) -> None:
        for record in self._exports.all():
            if record.desired == "active":
                try:
                    self._look_at(record)
                except HeadgateError as error:
                    # The others go on.
                    log.error("export %s is not scheduled: %s", record.name, error)

    def look_at(self, name: str) -> None:
        """Makes the runs of one export's schedule, if it is active."""
        record = self._exports.get(name)
        if record.desired == "active":
            self._look_at(record)

    def _look_at(self, record: ExportRecord) -> None:
        options = parse_options(record.spec)
        zone = ZoneInfo(options.zone)
        now = datetime.fromtimestamp(self._clock(), UTC)
        after = datetime.fromtimestamp(record.scheduled_until, UTC)
        due = deque(times(options.cron, zone, after, now), maxlen=MOST_MISSED)
        if not due:
            return
        made = list(due)
        if options.catch_up == "last" or (options.incremental is not None and options.catch_up == "all"):
            # One run takes all that was committed since the last.
            made = made[-1:]
        elif options.catch_up == "none":
            made = [at for at in made[-1:] if (now - at).total_seconds() <= PUNCTUAL_SECONDS]
        slots = []
        for at in made:
            about = bounds(options.period, options.cron, zone, at)
            slots.append(Slot(f"schedule {at.isoformat()}", about.start.timestamp(), about.end.timestamp()))
        until = due[-1].timestamp()
        self._exports.schedule(record.name, record.scheduled_until, until, slots, len(due) - len(made))


class Worker:
    """Carries out one run after the other, as long as some wait."""

    def __init__(
        self,
        exports: Exports,
        around: Surroundings,
        notifier: Notifier,
        first_wait: float,
        stop: threading.Event,
        home: str = "",
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        """`home` is the installation that it belongs to: its next process goes on at once with its runs."""
        self._exports = exports
        self._around = around
        self._notifier = notifier
        self._backoff = Backoff(first_wait, max(first_wait, LONGEST_WAIT))
        self._stop = stop
        self._lease_seconds = lease_seconds
        self._owner = f"{home}.{uuid.uuid4().hex}"

    def work(self) -> bool:
        """One run, if one waits; whether there was one."""
        run = self._exports.take(self._owner, self._lease_seconds)
        if run is None:
            return False
        with Lease(self._exports, run, self._owner, self._stop, self._lease_seconds) as lease:
            try:
                self._carry_out(run, lease)
            except LeaseLost:
                log.warning("run %s of export %s is another's now, or gone", run.id, run.export)
        return True

    def _carry_out(self, run: RunRecord, lease: Lease) -> None:
        options = parse_options(run.spec)
        if run.state is RunState.FAILED:
            self._tell_again(run, options, lease)
            return
        file_run = FileRun(run, options, self._around, lease)
        detail = file_run.detail
        state = run.state
        try:
            if state is not RunState.WRITTEN:
                file_run.carry_out()
                state = RunState.WRITTEN
            self._notifier.tell_written(run, options, detail, lambda: lease.note(RunState.WRITTEN, detail))
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is: this run is tried again, others go on
            if self._stop.is_set():
                lease.release()
                return
            self._failed(run, options, state, error, file_run, lease)
        else:
            lease.end(RunState.DONE, "", detail)
            prune(self._exports, self._around.destination, run.export, options)

    def _failed(
        self,
        run: RunRecord,
        options: ExportOptions,
        state: RunState,
        error: Exception,
        file_run: FileRun,
        lease: Lease,
    ) -> None:
        if not isinstance(error, HeadgateError):
            log.error("run %s of export %s failed", run.id, run.export, exc_info=error)
        reason = str(error) if isinstance(error, HeadgateError) else f"{type(error).__name__}, see the log"
        is_final = isinstance(error, FINAL) and state is not RunState.WRITTEN
        # A mail is given to its server however long that takes.
        is_unmailed = (
            state is RunState.WRITTEN
            and isinstance(error, HeadgateError)
            and bool(open_mails(options, file_run.detail))
        )
        if is_unmailed or (not is_final and run.attempts < options.retries):
            lease.retry(reason, self._backoff.after(run.attempts + 1))
            return
        if state is RunState.WRITTEN:
            reason = f"the file is there, and not all were told: {reason}"
        else:
            file_run.give_up()
        detail = file_run.detail
        wait = self._tell_failed(run, options, reason, detail, lambda: lease.note(state, detail))
        lease.end(RunState.FAILED, reason, detail, wait)

    def _tell_again(self, run: RunRecord, options: ExportOptions, lease: Lease) -> None:
        """Those who do not know yet that a run has failed."""
        detail = dict(run.detail)
        wait = self._tell_failed(
            run, options, run.reason, detail, lambda: lease.note(RunState.FAILED, detail, run.reason)
        )
        lease.leave(detail, wait)

    def _tell_failed(
        self,
        run: RunRecord,
        options: ExportOptions,
        reason: str,
        detail: dict[str, Any],
        record: Callable[[], None],
    ) -> float:
        """Seconds after which those are told who cannot be now: by mail however long that takes."""
        tellings = detail["tellings"] = int(detail.get("tellings", 0)) + 1
        try:
            self._notifier.tell_failed(run, options, reason, detail, record)
        except HeadgateError as told:
            log.warning("of the failure of run %s not all know: %s", run.id, told)
            if open_failure_mails(options, detail) or tellings <= options.retries:
                detail[NOT_TOLD] = str(told)
                return self._backoff.after(tellings)
        detail.pop(NOT_TOLD, None)
        return 0.0


class ExportService:
    """Threads of workers behind one scheduler, until it is stopped."""

    def __init__(self, scheduler: Scheduler, workers: list[Worker], stop: threading.Event) -> None:
        self._scheduler = scheduler
        self._stop = stop
        self._threads = [
            threading.Thread(target=self._attend, args=(worker.work,), name=f"exports {number}", daemon=True)
            for number, worker in enumerate(workers)
        ]

    def start(self) -> None:
        schedule = threading.Thread(target=self._attend, args=(self._look,), name="schedules", daemon=True)
        self._threads.append(schedule)
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _look(self) -> bool:
        self._scheduler.look()
        return False

    def _attend(self, step: Callable[[], bool]) -> None:
        """Again and again: at once where there was something to do."""
        while not self._stop.is_set():
            try:
                is_busy = step()
            except Exception:
                log.exception("exports are looked at again")
                is_busy = False
            if not is_busy:
                self._stop.wait(LOOK_SECONDS)
