"""One statement as a streaming query of Spark's: started where it was, watched, stopped between batches."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import HeadgateError, NotFound, StatementFailed
from headgate.kafka.access import KafkaAccess
from headgate.kafka.topics import Topics, is_reserved
from headgate.kafka.transactional import take_over_markers
from headgate.registry.client import SchemaSource
from headgate.sql.late import LateRows
from headgate.statements import runnable as r
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.clock import SourceClock
from headgate.statements.event_time import EventTime
from headgate.statements.failures import meant_by
from headgate.statements.late import LateBefore
from headgate.statements.leaders import Leaders
from headgate.statements.progress import Progress, Totals, ran
from headgate.statements.recovery import begin, check_topic_ids, reset_command, unlogged_batch
from headgate.statements.scan import Reading, scan, start_of_all
from headgate.statements.sink import MARKERS, Sink, TopicSink, check_output, prepare_output
from headgate.statements.small import most_rows
from headgate.statements.stages import StageSink, StageTopic, scan_stage
from headgate.statements.step import Step
from headgate.statements.takeover import REBUILD_BATCHES, Rebuild, plan_rebuild
from headgate.statements.topics import TopicReader
from headgate.tables.records import BAD_RECORD_PLACE

SESSION = {
    # Which task writes a row is part of its batch: nothing may join or split the partitions.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.metricsEnabled": "false",
}
# The observation of what leaves a statement.
_OUT = "out"
STOP_SECONDS = 20.0


@dataclass(frozen=True)
class Running:
    """What a query needs beside its job. What stands here must stay the same as long as the checkpoint does,
    except for `interval_seconds`, `idle_seconds` and `skip_bad`."""

    #: Unique for ever: a statement that is deleted and made anew has another.
    id: str
    checkpoint: str
    tasks: int
    interval_seconds: float = 1.0
    idle_seconds: float = 60.0
    max_rows: int = 1_000_000
    skip_bad: bool = False
    #: Where topics are begun, the first time: `earliest`, `latest`, or offsets as Spark's source takes them.
    starts: Mapping[str, str] = field(default_factory=dict)
    #: What its owner calls it.
    name: str = ""
    #: The ids of the topics that its offsets are of, as far as they are known.
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def writer(self) -> str:
        return f"headgate-statement-{self.id}"


class Rows(Protocol):
    """Where the rows of a batch go. `error`: what Spark hands on as text only."""

    error: Exception | None

    def __call__(self, rows: DataFrame, batch: int) -> None: ...


class StatementQuery(Step):
    """Not for two threads at once. An error ends the query; `failure` says what it means."""

    _make_sink = TopicSink

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        job: r.Job,
        running: Running,
        totals: Totals | None = None,
        stages: Mapping[str, StageTopic] | None = None,
    ) -> None:
        """`stages`: those before this query, by the names under which it scans them."""
        self._check(job)
        self._spark = spark
        self._access = access
        self._schemas = schemas
        self._job = job
        self._running = running
        self._name = running.name or running.id
        self._idle_seconds = running.idle_seconds
        self._stages = stages or {}
        self._topics = Topics(access)
        self._readers: dict[str, TopicReader] = {}
        #: Of the topics that it reads, as its offsets are of them.
        self._topic_ids = dict(running.topic_ids)
        self._leaders: Leaders | None = None
        self._query: StreamingQuery | None = None
        self._sink: Rows | None = None
        #: The sink that has writers open, when there is one.
        self._writing: Sink | None = None
        self._started = threading.Event()
        self._stopping = threading.Event()
        self._event_time = EventTime()
        #: By the name of an observation: the topic that it is about.
        self._scans: dict[str, str] = {}
        self._rowtimes: dict[str, int] = {}
        #: Number and time of the last trigger whose progress was taken in.
        self._last_told: tuple[int, str] | None = None
        self._looked_at_ends = False
        #: What the last batch of this run has told: before one ran, nobody says how much state there is.
        self._ran: Progress | None = None
        #: The last batch that has ended, well or not, as long as `poll` has not taken in what it tells.
        self._ended: int | None = None
        self.totals = totals or Totals()
        self.progress: Progress | None = None

    # -- what a stage does in another way

    def _check(self, job: r.Job) -> None:
        check_output(job.runnable, job.output)

    def _open_sink(self, silent_before: int) -> Sink:
        encoding = prepare_output(self._job.output, self._access, self._schemas)
        running = self._running
        return self._make_sink(
            self._job.output, encoding, self._access, running.writer, running.tasks, silent_before
        )

    def _left(self, observed: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What is known of the rows of a batch that left the statement."""
        return observed.get(_OUT) or {}

    # -- start and stop

    def start(self, rebuild: Rebuild | None = None) -> None:
        """Goes on where the checkpoint is; without one, at the starts, or where the rebuild ends."""
        self._try(lambda: self._begin(rebuild))

    def rebuild(self, rebuild: Rebuild) -> None:
        """Becomes what another one was, and does not go on yet."""
        self._try(lambda: self._begin(rebuild, goes_on=False))

    def _try(self, begin: Callable[[], None]) -> None:
        try:
            begin()
        except AnalysisException as error:
            said = next((line for line in str(error).splitlines() if line.strip()), "")
            raise StatementFailed(
                f"Spark does not take the query of the statement: {said}", "Write it in another way."
            ) from error

    def _begin(self, rebuild: Rebuild | None, goes_on: bool = True) -> None:
        frame = self.frame()
        running = self._running
        self._close_writers()
        sink = self._sink = self._writing = self._open_sink(0 if rebuild is None else REBUILD_BATCHES)
        checkpoint = Checkpoint(self._spark, running.checkpoint)
        sink.marker_of = checkpoint.marker
        sink.is_narrow = not self._job.runnable.stateful
        sink.most_rows = self._most_rows
        markers = take_over_markers(self._access, running.writer, running.tasks, MARKERS)
        to_come = (REBUILD_BATCHES, rebuild.entry) if rebuild is not None and rebuild.entry else None
        unlogged = unlogged_batch(checkpoint, markers, self._name, to_come)
        planned = checkpoint.planned()
        if planned is None:
            begin(checkpoint, markers, self._access, running.writer, MARKERS)
        while rebuild is not None and plan_rebuild(frame, checkpoint, rebuild):
            frame = self._run_planned(frame)
        if not goes_on:
            return
        if unlogged is not None:
            # A batch that ends because a schema was learned is run again: Spark would pass it over.
            while planned is not None and not checkpoint.is_done(planned):
                frame = self._run_planned(frame)
            checkpoint.write_entry(unlogged.batch, unlogged.entry)
        self._take_up(checkpoint)
        self._launch(frame, {"processingTime": f"{int(running.interval_seconds * 1000)} milliseconds"})

    def _most_rows(self, offsets: int, batch: int) -> int | None:
        return most_rows(offsets, self._ran, batch) if self._job.runnable.stateful else offsets

    def _close_writers(self) -> None:
        if self._writing is not None:
            self._writing.close()
            self._writing = None

    def _run_planned(self, frame: DataFrame) -> DataFrame:
        """The one batch that is planned; then the query again, for what follows, or for that batch with
        what was learned."""
        self._launch(frame, {"once": True})
        assert self._query is not None
        try:
            self._query.awaitTermination()
        except StreamingQueryException:
            error = self.failure()
            if error is not None:
                raise error from None
        return self.frame()

    def _take_up(self, checkpoint: Checkpoint) -> None:
        """What earlier runs have seen of event time; and what they have left due comes out."""
        if self._event_time.is_watched:
            self._event_time.recall(json.loads(checkpoint.kept() or "{}"))
            self._late_before.set(checkpoint.last_watermark())
            if self._job.runnable.stateful:
                checkpoint.plan_due()

    def _launch(self, frame: DataFrame, trigger: Mapping[str, Any]) -> None:
        running = self._running
        writer = (
            frame.writeStream.queryName(running.writer)
            .option("checkpointLocation", running.checkpoint)
            .outputMode(self._job.runnable.output_mode)
            .trigger(**trigger)
            .foreachBatch(self._batch)
        )
        self._last_told, self._looked_at_ends, self._leaders = None, False, None
        self._ended = self._ran = None
        self._started.clear()
        self._stopping.clear()
        context = self._spark.sparkContext
        # Statements share the engine fairly, whatever each has to do.
        context.setLocalProperty("spark.scheduler.pool", running.writer)
        try:
            self._query = writer.start()
            self._started.set()
        finally:
            context.setLocalProperty("spark.scheduler.pool", cast(Any, None))

    def _batch(self, rows: DataFrame, number: int) -> None:
        """In Spark's own thread of this query."""
        try:
            self._run_batch(rows, number)
        finally:
            self._ended = number

    def _run_batch(self, rows: DataFrame, number: int) -> None:
        # The first one may come before `start` has the query in its hands.
        if not self._started.wait(STOP_SECONDS) or self._sink is None or self._query is None:
            raise AssertionError("a batch of no query")
        if self._stopping.is_set():
            raise RuntimeError(f"batch {number} is left for the next start: '{self._name}' is to stop")
        if not self._looked_at_ends:
            self._look_at_ends()
        self._check_topics(self._sink, number)
        self._sink(rows, number)
        self._late_before.set(self._event_time.batch_ran(self._query, number))
        if self._event_time.is_watched:
            kept = json.dumps(self._event_time.to_dict())
            Checkpoint(self._spark, self._running.checkpoint).keep(number, kept)

    def _check_topics(self, sink: Rows, number: int) -> None:
        """A topic that was created again may be longer already than the one before it: Spark would go on in
        its middle. So it would behind records that another leader has written."""
        read = {topic: self._topic_ids[topic] for topic in self._scans.values() if topic in self._topic_ids}
        try:
            topics = self._topics.describe_many(read).values()
            check_topic_ids(self._name, read, {topic.name: topic.id for topic in topics})
            if self._leaders is None:
                checkpoint = Checkpoint(self._spark, self._running.checkpoint)
                self._leaders = Leaders(self._access, self._name, checkpoint)
            self._leaders.check(topics, number)
        except HeadgateError as error:
            sink.error = error
            raise RuntimeError(str(error)) from None

    def _look_at_ends(self) -> None:
        """Spark's Kafka source falls over its own metrics after a batch that is done again at the beginning
        of a run, because it has not looked at the ends of its topics before (so in 4.1)."""
        every = cast(
            Any, self._spark._jvm
        ).org.apache.spark.sql.connector.read.streaming.ReadLimit.allAvailable()
        sources = cast(Any, self._query)._jsq.streamingQuery().sources()
        for number in range(sources.size()):
            source = sources.apply(number)
            source.latestOffset(source.initialOffset(), every)
        self._looked_at_ends = True

    def frame(self) -> DataFrame:
        """The query over its topics, as they are now."""
        session = self._spark.newSession()
        tasks = {"spark.sql.shuffle.partitions": str(self._running.tasks)}
        for key, value in {**self._job.runnable.settings, **SESSION, **tasks}.items():
            session.conf.set(key, value)
        self._event_time, self._scans, self._rowtimes = EventTime(), {}, {}

        def scanned(source: r.Source) -> DataFrame:
            table, watermark = source.table, source.watermark
            name = f"scan{len(self._scans)}"
            stage = self._stages.get(table.name)
            if stage is not None:
                self._scans[name] = stage.topic
                self._check_stage(stage)
                every = Reading(self._access.spark_options(), max_rows=self._running.max_rows)
                return scan_stage(session, stage, table, every, name)
            reader = self._readers.get(table.name)
            if reader is None:
                reader = self._readers[table.name] = TopicReader(
                    table, self._schemas, self._access, self._running.skip_bad
                )
            partitions = self._partitions(table.name)
            self._scans[name] = table.name
            if watermark is not None:
                clock = SourceClock(watermark.delay_ms, self._running.idle_seconds)
                clock.know(partitions, time.monotonic())
                self._event_time.watch(name, clock)
                if watermark.column == r.ROWTIME and watermark.expression is None:
                    self._rowtimes[name] = watermark.delay_ms
            reading = Reading(
                self._access.spark_options(),
                start_of_all(table.name, self._running.starts.get(table.name, "earliest"), partitions),
                self._running.max_rows,
            )
            return scan(session, reader, watermark, reading, partitions, name)

        self._late_before = LateBefore(self._spark)
        self._late = LateRows(self._late_before.column())
        built = self._job.runnable.build(scanned, self._late)
        return built.observe(_OUT, f.count(f.lit(1)).alias("rows"))

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Between two batches, if one ends within `patience` seconds: then nothing is left half done.

        A batch that begins meanwhile ends at once with an error: it is planned, nothing of it is written, and
        it is the first of the next start.
        """
        query = self._query
        if query is None:
            self._close_writers()
            return
        deadline = time.monotonic() + patience
        if patience:
            self._stopping.set()
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        self._close_writers()
        self.poll()
        self._query = None

    @property
    def is_active(self) -> bool:
        return self._query is not None and self._query.isActive

    # -- while it runs

    def poll(self) -> None:
        """Take in what the batches since the last look have shown; event time goes on."""
        if self._query is None:
            return
        for told in self._new_progress():
            self._take_in(told)
        if self._query.isActive:
            self._event_time.look(self._query)
        if (writing := self._writing) is not None:
            writing.rest()

    @property
    def has_news(self) -> bool:
        """Whether a batch has ended that `poll` has seen nothing of: to ask Spark costs more than this."""
        return self._ended is not None

    @property
    def is_outgrown(self) -> bool:
        """A topic has partitions that the query does not know: it is to be stopped and started."""
        return self._event_time.outgrown

    def failure(self) -> HeadgateError | Exception | None:
        """Why the query has ended; None if a start will do, now that something was learned."""
        query = self._query
        error: Exception | None = None if query is None else query.exception()
        if error is None:
            return None
        said = str(error)
        place = BAD_RECORD_PLACE.search(said)
        if place is not None:
            partition, offset, topic = int(place[1]), int(place[2]), place[3]
            try:
                self._readers[topic].learn(partition, offset, self._spark)
            except HeadgateError as found:
                return found
            return None
        meant = meant_by(
            said,
            "Lengthen the topic's retention; have the statement begin at what is there: "
            f"{reset_command(self._name)}.",
        )
        if meant is not None:
            return meant
        own = None if self._sink is None else self._sink.error
        return own or error

    def _partitions(self, topic: str) -> tuple[int, ...]:
        try:
            found = self._topics.describe(topic)
            self._topic_ids.setdefault(topic, found.id)
            return found.partitions
        except NotFound as error:
            raise StatementFailed(error.message, error.remedy) from error

    def _check_stage(self, stage: StageTopic) -> None:
        if stage.topic not in self._topics.describe_many([stage.topic]):
            raise StatementFailed(
                f"Topic '{stage.topic}' between two steps of the statement is gone, and what was in it.",
                f"Have all steps begin again: {reset_command(self._name)}.",
            )

    def _new_progress(self) -> list[dict[str, Any]]:
        """What follows what was taken in. A query that waits says so now and then, under the number of the
        batch that is to come; and times go back when the wall clock does."""
        told = cast(Any, self._query)._jsq.recentProgress()
        found: list[dict[str, Any]] = []
        for number in range(len(told) - 1, -1, -1):
            if self._last_told == (told[number].batchId(), told[number].timestamp()):
                break
            found.insert(0, json.loads(told[number].json()))
        return found

    def _take_in(self, told: Mapping[str, Any]) -> None:
        self._last_told = int(told["batchId"]), told["timestamp"]
        if ran(told) and self._ended is not None and int(told["batchId"]) >= self._ended:
            self._ended = None
        self.progress = Progress.of(told, self.progress)
        if ran(told):
            self._ran = self.progress
            seen = told.get("observedMetrics") or {}
            scans = [seen.get(name) or {} for name, topic in self._scans.items() if not is_reserved(topic)]
            late = [seen[name] for name in self._late.names if name in seen]
            self.totals.add(told, scans, self._left(seen), late)
        for name, topic in self._scans.items():
            self._event_time.heard(name, self.progress.behind.get(topic, {}), int(told["batchId"]))

    def watermarks(self) -> dict[str, int | None]:
        """By topic, how far event time is there."""
        return {self._scans[name]: time_ms for name, time_ms in self._event_time.watermarks().items()}

    @property
    def queries(self) -> "Sequence[StatementQuery]":
        """Itself, as the only step of a statement."""
        return [self]

    @property
    def reads(self) -> list[str]:
        """The names of its tables, as its plan has them."""
        return sorted({source.table.name for source in self._job.runnable.sources})


class StageQuery(StatementQuery):
    """A query whose rows stay within its statement: they go into an internal topic."""

    def __init__(
        self,
        spark: SparkSession,
        access: KafkaAccess,
        schemas: SchemaSource,
        stage: StageTopic,
        running: Running,
        totals: Totals,
        stages: Mapping[str, StageTopic],
    ) -> None:
        self._stage = stage
        found = stage.stage.runnable
        job = r.Job(found, r.Output(stage.topic, found.columns))
        super().__init__(spark, access, schemas, job, running, totals, stages)

    def _check(self, job: r.Job) -> None:
        """The codec was made, so there is one."""

    def _open_sink(self, silent_before: int) -> Sink:
        self._check_stage(self._stage)
        return StageSink(self._stage, self._access, self._running.writer, self._running.tasks)

    def _left(self, observed: Mapping[str, Any]) -> None:
        return None
