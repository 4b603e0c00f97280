"""A SELECT on topics that goes on: a statement's query whose rows go to a reader instead of a topic."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.storagelevel import StorageLevel

from headgate.adhoc.results import DELETE, INSERT, UPSERT, Closed, Results
from headgate.adhoc.values import plain_rows
from headgate.errors import StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.transactional import end_open
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.closing import Closer
from headgate.statements.query import Running, StatementQuery
from headgate.statements.staged import StagedQuery
from headgate.statements.stages import StageTopic, create_topics, delete_topics
from headgate.statements.takeover import Rebuild
from headgate.statements.whole import LEARNINGS, last_changes

# How often a query that runs is looked at, and how much it reads at once: rows are wanted soon.
LOOK_SECONDS = 0.2
BATCH_ROWS = 100_000


def give(rows: DataFrame, plan: Plan, results: Results, changing: bool) -> None:
    """All of these rows. They are computed before the first is given: what fails then was not half seen.

    Of a retract result a row comes, or one that is the same is gone.
    """
    names = [*plan.columns.names, *([r.OP] if changing else [])]
    kept = rows.select(*(f.col(quote(name)) for name in names)).persist(StorageLevel.DISK_ONLY)
    try:
        kept.count()
        for values in plain_rows(kept, plan.options.zone):
            op = INSERT
            if changing:
                op = _shown(values.pop(r.OP))
            results.row(op, values)
        results.flush()
    finally:
        kept.unpersist()


def _shown(op: str) -> str:
    if op in (r.UPSERT, r.DELETE):
        return UPSERT if op == r.UPSERT else DELETE
    return DELETE if op.startswith("-") else INSERT


class RowSink:
    """Each batch once, in order."""

    def __init__(self, plan: Plan, results: Results) -> None:
        self._plan = plan
        self._results = results
        self._given = -1
        self.error: Exception | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if batch <= self._given:
            return
        try:
            changing = self._plan.changelog != "append"
            give(last_changes(rows, self._plan), self._plan, self._results, changing)
            self._given = batch
        except Exception as error:  # noqa: BLE001
            self.error = error
            # The text is all that Spark takes.
            raise RuntimeError(str(error) or type(error).__name__) from None


class LiveQuery(StatementQuery):
    """The rows of a plan, for ever, as they come and change."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        plan: Plan,
        running: Running,
        results: Results,
        stages: Mapping[str, StageTopic] | None = None,
    ) -> None:
        output = r.Output("", plan.columns, plan.key, plan.changelog)
        super().__init__(spark, access, schemas, r.Job(plan, output), running, stages=stages)
        self._row_sink = RowSink(plan, results)

    def _check(self, job: r.Job) -> None:
        """Any rows can be shown."""

    def _begin(self, rebuild: Rebuild | None, goes_on: bool = True) -> None:
        if rebuild is not None:
            raise AssertionError("a live query takes nothing over")
        self._row_sink.error = None
        self._sink = self._row_sink
        interval = f"{int(self._running.interval_seconds * 1000)} milliseconds"
        frame = self.frame()
        self._take_up(Checkpoint(self._spark, self._running.checkpoint))
        self._launch(frame, {"processingTime": interval})

    @property
    def is_satisfied(self) -> bool:
        return isinstance(self._row_sink.error, Closed)

    def clear(self) -> None:
        """Nothing of it is left."""
        Checkpoint(self._spark, self._running.checkpoint).delete()


class StagedLiveQuery(StagedQuery):
    """One whose plan Spark cannot run as one query: it has internal topics as long as it runs."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        plan: Plan,
        running: Running,
        results: Results,
    ) -> None:
        self._live: LiveQuery | None = None
        self._id = running.id

        def last(before: Mapping[str, StageTopic]) -> LiveQuery:
            self._live = LiveQuery(spark, access, schemas, plan, running, results, before)
            return self._live

        job = r.Job(plan, r.Output("", plan.columns, plan.key, plan.changelog))
        super().__init__(spark, access, schemas, job, running, last=last)
        create_topics(access, self._topics, running.tasks)

    @property
    def is_satisfied(self) -> bool:
        return self._live is not None and self._live.is_satisfied

    def clear(self) -> None:
        for own in self._runnings:
            Checkpoint(self._spark, own.checkpoint).delete()
            end_open(self._access, own.writer, own.tasks)
        delete_topics(self._access, self._id)


def run_live(query: LiveQuery | StagedLiveQuery, results: Results, flush_seconds: float | None = None) -> str:
    """Until nobody wants more; how it ended. Nothing of it is left then.

    `flush_seconds`: the silence after which what has come is closed.
    """
    try:
        _watch(query, results, flush_seconds)
    finally:
        results.finish()
        query.stop(0)
        query.clear()
    return "Completed" if results.is_full else "Stopped"


def _watch(query: LiveQuery | StagedLiveQuery, results: Results, flush_seconds: float | None) -> None:
    query.start()
    learned, closer = 0, Closer(_at_once, flush_seconds)
    while results.is_wanted and not results.is_full:
        query.poll()
        if not query.is_active and not query.is_satisfied:
            error = query.failure()
            if error is not None:
                raise error
            learned += 1
            if learned > LEARNINGS:
                raise StatementFailed("The topic has records whose schemas cannot be learned.")
            query.start()
            closer = Closer(_at_once, flush_seconds)
        elif query.is_outgrown:
            query.stop()
            query.start()
            closer = Closer(_at_once, flush_seconds)
        else:
            closer.look(query.queries, None)
        time.sleep(LOOK_SECONDS)


def _at_once(ask: Callable[[], Any]) -> Future[Any]:
    asked: Future[Any] = Future()
    asked.set_result(ask())
    return asked
