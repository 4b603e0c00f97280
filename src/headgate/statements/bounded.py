"""A statement that ends: its topics up to where they ended when it was made, its result once, and no more.

The result is computed as a whole and kept as files beside the checkpoints of other statements, before any of
it is written. Which files count is said once, in the statement's record: whoever goes on after a crash writes
the same rows, in the same transactions, and those that were committed are left out.
"""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.errors import HeadgateError, StatementFailed
from headgate.failpoints import failpoint
from headgate.kafka.access import KafkaAccess
from headgate.kafka.frames import write_frame
from headgate.kafka.topics import Topics
from headgate.kafka.transactional import end_open
from headgate.registry.client import SchemaSource
from headgate.sql.planner import Plan
from headgate.sql.types import quote
from headgate.statements import runnable as r
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.ends import Ends
from headgate.statements.failures import meant_by
from headgate.statements.progress import Progress, Totals
from headgate.statements.query import STOP_SECONDS, Running
from headgate.statements.recovery import check_topic_ids
from headgate.statements.scan import BAD, ROWS
from headgate.statements.sink import MARKERS, TopicSink, check_output, prepare_output
from headgate.statements.takeover import Rebuild
from headgate.statements.whole import (
    LEARNINGS,
    SparkErrors,
    WholeQuery,
    last_changes,
    what_is_left,
)

# How many rows of a task go in one transaction: it has to be committed in time.
CHUNK_ROWS = 50_000
# How long what was observed of a query that has ended is waited for.
OBSERVED_SECONDS = 2.0
_AT, _CHUNK = "$at", "chunk"


@dataclass(frozen=True)
class Result:
    """Files that hold all rows of a statement, in so many chunks; `name` is their folder's."""

    name: str
    rows: int
    chunks: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Self:
        return cls(**known)


class BoundedQuery:
    """Runs in a thread of its own. Not for two threads at once otherwise."""

    is_outgrown = False
    # To look at it asks nobody.
    has_news = True

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        job: r.Job,
        running: Running,
        ends: Ends,
        settle: Callable[[Result], Result],
        result: Result | None = None,
        totals: Totals | None = None,
    ) -> None:
        """`settle` says which result is the statement's for good: this one, unless there is another.
        `result`: the one that is known to be."""
        if not isinstance(job.runnable, Plan):
            raise AssertionError("what ends is planned as a whole")
        check_output(job.runnable, job.output)
        self._spark = spark
        self._access = access
        self._schemas = schemas
        self._plan, self._output = job.runnable, job.output
        self._running = running
        self._ends = ends
        self._settle = settle
        self._result = result
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._error: Exception | None = None
        self._began = time.monotonic()
        self.totals = totals or Totals()
        self.progress: Progress | None = None
        self.is_completed = False

    # -- start and stop

    def start(self, rebuild: Rebuild | None = None) -> None:
        if rebuild is not None:
            raise AssertionError("a statement that ends takes over from none")
        self.stop()
        self._stopping.clear()
        self._error, self._began = None, time.monotonic()
        self._thread = threading.Thread(target=self._run, name=self._running.writer, daemon=True)
        self._thread.start()

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Between two transactions, if one ends within `patience` seconds; what is computed is cut off."""
        thread = self._thread
        if thread is None:
            return
        self._stopping.set()
        if self._result is not None:
            thread.join(patience)
        deadline = time.monotonic() + STOP_SECONDS
        while thread.is_alive() and time.monotonic() < deadline:
            # A job that is not there yet is not cancelled.
            self._spark.sparkContext.cancelJobGroup(self._running.writer)
            thread.join(0.2)

    @property
    def is_active(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def poll(self) -> None:
        """What there is to tell is told as it happens."""

    def failure(self) -> HeadgateError | Exception | None:
        error = self._error
        if error is None or isinstance(error, HeadgateError):
            return error
        remedy = "Lengthen the topic's retention; delete the statement and create it again."
        return meant_by(str(error), remedy) or error

    def watermarks(self) -> dict[str, int | None]:
        """No event time has a part in it."""
        return {}

    def clear(self) -> None:
        """Of a statement that is completed nothing is needed any more."""
        Checkpoint(self._spark, self._running.checkpoint).delete()

    # -- in its thread

    def _run(self) -> None:
        context, writer = self._spark.sparkContext, self._running.writer
        context.setJobGroup(writer, f"statement {self._running.id}", interruptOnCancel=True)
        context.setLocalProperty("spark.scheduler.pool", writer)
        try:
            sink = self._sink()
            if self._result is None:
                self._result = self._computed(sink)
            self._write(sink, self._result)
            self.is_completed = not self._stopping.is_set()
        except Exception as error:  # noqa: BLE001 - whatever it is, `failure` says so
            if not self._stopping.is_set():
                self._error = error

    def _sink(self) -> TopicSink:
        running = self._running
        encoding = prepare_output(self._output, self._access, self._schemas)
        end_open(self._access, running.writer, running.tasks)
        return TopicSink(self._output, encoding, self._access, running.writer, running.tasks)

    def _computed(self, sink: TopicSink) -> Result:
        running = self._running
        query = WholeQuery(
            self._spark,
            self._access,
            self._schemas,
            self._plan,
            self._ends.ranges,
            running.skip_bad,
            running.tasks,
            counted=True,
        )
        self._tell(-1, self._ends.left())
        for _ in range(LEARNINGS):
            try:
                made = self._kept(query, sink)
            except SparkErrors as error:
                if self._stopping.is_set() or not query.learn(error):
                    raise
            else:
                self._count(query)
                break
        else:
            raise StatementFailed("The topics have records whose schemas cannot be learned.")
        # What was read then was read from the topics that its ends are of.
        read = Topics(self._access).describe_many(self._ends.ids).values()
        check_topic_ids(running.name, self._ends.ids, {topic.name: topic.id for topic in read})
        failpoint("bounded-computed")
        found = self._settle(made)
        if found.name != made.name:
            # Another engine was faster; all write its rows.
            self._folder(made).delete()
        return found

    def _kept(self, query: WholeQuery, sink: TopicSink) -> Result:
        """All rows, as records and in the order in which each task writes them."""
        records = sink.records(self._rows(query))
        order = sink.order(records)
        spread = records.repartition(self._running.tasks, *sink.by)
        ordered = spread.sortWithinPartitions(*order) if order else spread
        # Spark's number of a row: that of its task, and behind it that within the task.
        at = f.monotonically_increasing_id().bitwiseAND(f.lit((1 << 33) - 1))
        placed = ordered.withColumn(_AT, at)
        chunked = placed.withColumn(_CHUNK, (f.col(quote(_AT)) / CHUNK_ROWS).cast("int"))
        name = f"result-{uuid.uuid4().hex}"
        uri = f"{self._running.checkpoint}/{name}"
        chunked.write.partitionBy(_CHUNK).parquet(uri)
        there = query.session.read.schema(chunked.schema).parquet(uri)
        rows, last = there.agg(f.count(f.lit(1)), f.max(_CHUNK)).collect()[0]
        return Result(name, rows, 0 if last is None else last + 1)

    def _rows(self, query: WholeQuery) -> DataFrame:
        rows = query.frame()
        if self._plan.changelog == "retract":
            return what_is_left(rows, self._plan.columns.names)
        return last_changes(rows, self._plan)

    def _write(self, sink: TopicSink, result: Result) -> None:
        running, ends = self._running, self._ends.ends()
        if result.chunks and not self._folder(result).exists():
            raise StatementFailed(
                f"The result of the statement is gone from '{self._folder(result).uri}', and perhaps a part "
                f"of it is in topic '{self._output.topic}' already.",
                "Delete the statement and what it wrote, and create it again.",
            )
        self.totals.rows_out = result.rows
        self.totals.batches = result.chunks
        nothing = {name: dict.fromkeys(one, 0) for name, one in ends.items()}
        self._tell(0, nothing)
        there = self._spark.newSession().read
        for chunk in range(result.chunks):
            if self._stopping.is_set():
                return
            rows = there.parquet(self._folder(result).uri).where(f.col(_CHUNK) == chunk).drop(_CHUNK)
            written = write_frame(
                rows,
                self._access,
                running.writer,
                chunk,
                self._output.topic,
                running.tasks,
                MARKERS,
                order=[quote(_AT)],
                by=sink.by,
                mark_empty=False,
            )
            self._tell(chunk, nothing)
            if written.tasks:
                failpoint("bounded-written")

    def _folder(self, result: Result) -> Checkpoint:
        return Checkpoint(self._spark, f"{self._running.checkpoint}/{result.name}")

    # -- what is told

    def _tell(self, chunk: int, behind: Mapping[str, Mapping[int, int]]) -> None:
        seconds = time.monotonic() - self._began
        read = self._ends.ends() if chunk >= 0 else {}
        self.progress = Progress(max(chunk, 0), round(seconds, 3), None, read, behind, 0, 0)

    def _count(self, query: WholeQuery) -> None:
        """What Spark tells a moment after the query; nothing, of a scan that it found not to be needed."""
        deadline = time.monotonic() + OBSERVED_SECONDS
        self.totals.rows_in = self.totals.bad_rows = 0
        for seen in query.read:
            told = cast(Any, seen)._jo
            while not told.future().isCompleted() and time.monotonic() < deadline:
                time.sleep(0.02)
            if told.future().isCompleted() and (row := told.getRow()).size():
                self.totals.rows_in += row.getLong(row.fieldIndex(ROWS))
                self.totals.bad_rows += row.getLong(row.fieldIndex(BAD))
