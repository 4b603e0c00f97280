"""Keeps the generators that are wanted at work, each in a thread, and says where they stand."""

import logging
import threading
import time
from dataclasses import dataclass, field

from sqlalchemy.exc import OperationalError

from headgate.backoff import Backoff
from headgate.datagen import GeneratorSpec
from headgate.errors import HeadgateError, TransientError
from headgate.generators.run import Run
from headgate.kafka.access import KafkaAccess
from headgate.kafka.registry import RegistryAccess
from headgate.store import GeneratorRecord, Generators, GeneratorState

LOOK_SECONDS = 0.5
BACKOFF = Backoff(1.0, 30.0)
PROGRESS_SECONDS = 1.0

log = logging.getLogger("headgate.generators")


class Worker:
    """Looks again and again at what is wanted."""

    def __init__(self, generators: Generators, kafka: KafkaAccess, registry: RegistryAccess) -> None:
        self._generators = generators
        self._kafka = kafka
        self._registry = registry
        self._tasks: dict[str, Task] = {}

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                try:
                    self.look()
                except OperationalError as error:
                    log.warning("the control state does not answer, trying on: %s", error.orig)
                stop.wait(LOOK_SECONDS)
        finally:
            for task in self._tasks.values():
                task.end.set()
            for task in self._tasks.values():
                task.thread.join()

    def look(self) -> None:
        """Start those that are wanted and do not run, end those that run and are not wanted."""
        records = {record.id: record for record in self._generators.all()}
        for id_, task in list(self._tasks.items()):
            record = records.get(id_)
            if not task.thread.is_alive():
                del self._tasks[id_]
            elif record is None or record.desired != "running":
                task.end.set()
        for id_, record in records.items():
            if record.is_wanted and id_ not in self._tasks:
                task = Task(self._generators, record, self._kafka, self._registry)
                self._tasks[id_] = task
                task.thread.start()
            elif record.desired == "stopped" and id_ not in self._tasks:
                self._generators.report(id_, GeneratorState.STOPPED)


@dataclass
class Task:
    """One generator's thread. What passes is tried again; what does not is said, and ends it."""

    generators: Generators
    record: GeneratorRecord
    kafka: KafkaAccess
    registry: RegistryAccess
    end: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)
    _records: int = 0
    _told_at: float = 0.0
    _failures: int = 0

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, name=f"generator-{self.record.name}", daemon=True)
        self._records = self.record.records

    def _run(self) -> None:
        while not self.end.is_set():
            try:
                self._attempt()
                return
            except (TransientError, OperationalError) as error:
                self._failures += 1
                log.warning("generator %s waits: %s", self.record.name, error)
                self._say(GeneratorState.WAITING, str(error))
                self.end.wait(BACKOFF.after(self._failures))
            except HeadgateError as error:
                self._say(GeneratorState.FAILED, str(error))
                return
            except Exception as error:
                log.exception("generator %s", self.record.name)
                self._say(GeneratorState.FAILED, f"{type(error).__name__}: {error}")
                return

    def _attempt(self) -> None:
        spec = GeneratorSpec.from_dict(dict(self.record.spec))
        run = Run(self.record.id, spec, self.kafka, self.registry)
        complete = run.go(self._records, self._progress, self.end.is_set)
        self._keep(0.0)
        self.generators.report(
            self.record.id, GeneratorState.COMPLETED if complete else GeneratorState.STOPPED
        )

    def _progress(self, records: int, rate: float) -> None:
        if records > self._records or not self._told_at:
            self._failures = 0
        self._records = records
        if time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._keep(rate)
            self.generators.report(self.record.id, GeneratorState.RUNNING)

    def _keep(self, rate: float) -> None:
        self._told_at = time.monotonic()
        self.generators.progress(self.record.id, self._records, rate)

    def _say(self, state: GeneratorState, reason: str) -> None:
        try:
            self.generators.report(self.record.id, state, reason)
        except OperationalError as error:
            # It is said again with the next attempt, or found by the next look.
            log.warning("the control state did not take it: %s", error.orig)
