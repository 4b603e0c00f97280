"""A statement of several queries, each of which reads what those before it have written: one to its owner."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from headgate.errors import HeadgateError, StatementFailed
from headgate.failpoints import failpoint
from headgate.kafka.access import KafkaAccess
from headgate.registry.client import SchemaSource
from headgate.statements.checkpoint import Checkpoint, Offsets
from headgate.statements.progress import Progress, Totals
from headgate.statements.query import STOP_SECONDS, Running, StageQuery, StatementQuery
from headgate.statements.runnable import Job
from headgate.statements.stages import StageTopic, delete_done, stable_ends, stage_topics
from headgate.statements.takeover import Rebuild, is_rebuilt

# How long steps may read what is between them when their owner stops them.
DRAIN_SECONDS = 60.0


def running_of(running: Running, step: int, steps: int) -> Running:
    """What one of its queries needs. The last has what a statement of one query would have, the others have
    theirs beside it."""
    if step == steps:
        return running
    return replace(running, id=f"{running.id}.{step}", checkpoint=f"{running.checkpoint}.{step}")


class StagedQuery:
    """Not for two threads at once, but for `delete_done`. All of its queries run, or it does not."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        job: Job,
        running: Running,
        totals: Totals | None = None,
        last: Callable[[Mapping[str, StageTopic]], StatementQuery] | None = None,
    ) -> None:
        """`last` makes the query of the last step, if it is not to write the job's topic."""
        self._spark = spark
        self._access = access
        self.totals = totals or Totals()
        stages = stage_topics(running.id, job.runnable.stages)
        self._topics = list(stages.values())
        steps = len(stages) + 1
        self._runnings = [running_of(running, step, steps) for step in range(1, steps + 1)]
        self._queries: list[StatementQuery] = []
        before: dict[str, StageTopic] = {}
        for stage, own in zip(self._topics, self._runnings, strict=False):
            self._queries.append(StageQuery(spark, access, schemas, stage, own, self.totals, dict(before)))
            before[stage.stage.name] = stage
        make = last or partial(self._writing, schemas, job, running)
        self._queries.append(make(before))
        #: Up to where records were deleted, by topic: for the same offsets nobody is asked twice.
        self._deleted: dict[str, Mapping[int, int]] = {}

    def _writing(
        self, schemas: SchemaSource, job: Job, running: Running, before: Mapping[str, StageTopic]
    ) -> StatementQuery:
        return StatementQuery(self._spark, self._access, schemas, job, running, self.totals, before)

    # -- start and stop

    def start(self, rebuild: Rebuild | None = None) -> None:
        """In order. Those that run still are stopped first: all of them begin anew."""
        self.stop()
        known = None if rebuild is None else self._rebuild(rebuild)
        for number, query in enumerate(self._queries):
            try:
                query.start(None if known is None else known.of_step(number, {}))
            except Exception as error:
                self.stop(0)
                raise self._in_step(number, error) from error

    def _rebuild(self, rebuild: Rebuild) -> Rebuild:
        """One step after the other, before any goes on: what is between them is what the rebuild has made."""
        for number, (query, own) in enumerate(zip(self._queries, self._runnings, strict=True)):
            if is_rebuilt(Checkpoint(self._spark, own.checkpoint)):
                continue
            before = [stage.topic for stage in self._topics[:number]]
            try:
                query.rebuild(rebuild.of_step(number, stable_ends(self._access, before)))
            except Exception as error:
                raise self._in_step(number, error) from error
            failpoint("statement-rebuilding")
        return rebuild

    def drain(self, patience: float = DRAIN_SECONDS) -> None:
        """Stops each step when it has read what those before it have written, if `patience` seconds do:
        then nothing is under way between them, and another statement can take over."""
        deadline = time.monotonic() + patience
        for query, own in zip(self._queries, self._runnings, strict=True):
            between = [stage.topic for stage in self._topics if stage.stage.name in query.reads]
            ends = stable_ends(self._access, between)
            while query.is_active and time.monotonic() < deadline and not self._has_read(own, ends):
                time.sleep(0.1)
            query.stop(max(0.0, deadline - time.monotonic()))

    def _has_read(self, own: Running, ends: Offsets) -> bool:
        checkpoint = Checkpoint(self._spark, own.checkpoint)
        reached = checkpoint.reached()
        readings = [] if reached is None else checkpoint.readings(reached.batch)
        return ends.keys() <= {topic for topic, _ in readings} and all(
            read.get(partition, 0) >= end
            for topic, read in readings
            for partition, end in ends.get(topic, {}).items()
        )

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Each between two of its batches, if all of them come to one within `patience` seconds."""
        deadline = time.monotonic() + patience
        for query in self._queries:
            query.stop(max(0.0, deadline - time.monotonic()))

    @property
    def is_active(self) -> bool:
        return all(query.is_active for query in self._queries)

    # -- while it runs

    def poll(self) -> None:
        for query in self._queries:
            query.poll()

    @property
    def has_news(self) -> bool:
        return any(query.has_news for query in self._queries)

    @property
    def is_outgrown(self) -> bool:
        return any(query.is_outgrown for query in self._queries)

    def failure(self) -> HeadgateError | Exception | None:
        """Why a query has ended, and which; None if a start will do."""
        for number, query in enumerate(self._queries):
            error = None if query.is_active else query.failure()
            if error is not None:
                return self._in_step(number, error)
        return None

    def _in_step(self, number: int, error: Exception) -> Exception:
        where = f"Step {number + 1} of {len(self._queries)}"
        if isinstance(error, HeadgateError):
            return type(error)(f"{where}: {error.message}", error.remedy)
        said = next(iter(str(error).splitlines()), "")
        found = RuntimeError(f"{where}: {type(error).__name__}: {said}")
        found.__cause__ = error
        return found

    def delete_done(self) -> None:
        """Records between two queries go when all that read them have done with them."""
        for stage in self._topics:
            readers = [
                own.checkpoint
                for query, own in zip(self._queries, self._runnings, strict=True)
                if stage.stage.name in query.reads
            ]
            known = self._deleted.get(stage.topic)
            self._deleted[stage.topic] = delete_done(self._spark, self._access, stage.topic, readers, known)

    # -- what is told

    @property
    def queries(self) -> Sequence[StatementQuery]:
        """One for each step, in order."""
        return self._queries

    @property
    def progress(self) -> Progress | None:
        """None before all of them have told something."""
        told = [query.progress for query in self._queries]
        known = [progress for progress in told if progress is not None]
        return Progress.together(known) if len(known) == len(told) else None

    def watermarks(self) -> dict[str, int | None]:
        """Of a topic that several queries read, the one that is behind."""
        found: dict[str, int | None] = {}
        for query in self._queries:
            for topic, time_ms in query.watermarks().items():
                before = found.get(topic, time_ms)
                found[topic] = None if before is None or time_ms is None else min(before, time_ms)
        return found

    def steps(self) -> list[dict[str, Any]]:
        """Each query by itself, in order."""
        numbers = {stage.stage.name: f"step {number}" for number, stage in enumerate(self._topics, 1)}
        found: list[dict[str, Any]] = []
        for number, query in enumerate(self._queries, 1):
            progress = query.progress
            found.append(
                {
                    "step": number,
                    "reads": [numbers.get(name, name) for name in query.reads],
                    "batch": None if progress is None else progress.batch,
                    "batch_seconds": None if progress is None else progress.seconds,
                    "lag": None if progress is None else progress.lag,
                    "state_rows": None if progress is None else progress.state_rows,
                    "state_bytes": None if progress is None else progress.state_bytes,
                }
            )
        return found


def check_steps(name: str, known: Sequence[str], topics: Sequence[StageTopic]) -> None:
    """The records between the queries were written by the plan that was settled: it must be the same."""
    if list(known) != [stage.codec.mark for stage in topics]:
        raise StatementFailed(
            f"Statement '{name}' would run in other steps now than when it was made.",
            "Delete the statement and create it anew.",
        )
