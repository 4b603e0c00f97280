"""Rows into a topic exactly once: a batch is one Kafka transaction per task, which also records the batch.

Who writes is known by a name and the number of a task. Opening a writer takes over from any earlier one of
the same name and task: what that one left open is ended, and it can commit nothing more. Only then the marker
is read, the last batch that was committed; so a batch that is tried again finds itself done, and a writer
that was stopped and woken finds itself replaced. Markers of statements say of which checkpoint a batch was
and what it has read: of another history no batch is done.
"""

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException, Message

from headgate import errors
from headgate.errors import CommitUnknown, HeadgateError, InvalidRequest, KafkaUnavailable, StaleBatch
from headgate.kafka.client import KafkaAccess, Link, Where, kafka_error, settle
from headgate.kafka.markers import (
    POLL_SECONDS,
    TRANSACTION_SECONDS,
    Marker,
    marker_partition,
    prepare_markers,
    read_marker,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# For what a broker answers at once when it is well: to begin, to commit, to abort.
CALL_SECONDS = 60.0
# How often a writer looks whether a row has failed.
ROWS_BETWEEN_POLLS = 200
# For as long such a call is made again.
PATIENCE_SECONDS = TRANSACTION_SECONDS

FENCED = frozenset({KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED})
# A transaction that cannot go on, through no fault of its rows: a new writer can.
PASSING = frozenset(
    {
        KafkaError._FATAL,
        KafkaError._INCONSISTENT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError._PURGE_QUEUE,
        KafkaError._STATE,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.INVALID_TXN_STATE,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
    }
)


# librdkafka writes fatal errors to stderr whatever its level is; to be fenced is one, and not unheard of.
_SILENT = logging.getLogger("headgate.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


class Row(NamedTuple):
    """A record to be. Without a partition, its key decides as in Java's clients; without a time, now."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class TransactionalWriter:
    """One task's way into a topic. Use it in a `with` block, in one thread.

    Any error ends it. A StaleBatch says that another writer has taken over. After a CommitUnknown perhaps all
    of the batch is there to be seen, after any other error nothing: open a new writer, and write it again.
    """

    def __init__(self, where: Where | Link, name: str, task: int, markers_topic: str) -> None:
        if not name or task < 0:
            raise InvalidRequest(f"'{name}' and {task} name no writer.")
        self._link = where if isinstance(where, Link) else Link(where)
        self._key = f"{name}/{task}"
        self._markers = markers_topic
        self._last: Marker | None = None
        self._ended = False
        self._producer = self._link.producer(
            {
                "transactional.id": self._key,
                "transaction.timeout.ms": int(TRANSACTION_SECONDS * 1000),
                # As Kafka's Java clients choose a partition for a key; librdkafka's own default is another.
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
                "linger.ms": 5,
                # A topic that was just created may take a moment to be known everywhere.
                "topic.metadata.propagation.max.ms": 5000,
                # The topic's own limit decides.
                "message.max.bytes": 100 * 1024 * 1024,
                # What went well is known when the transaction is committed.
                "delivery.report.only.error": True,
                "logger": _SILENT,
            }
        )
        try:
            settle(self._producer)
            self._persist(self._producer.init_transactions, "begin to write")
            self._last = read_marker(self._link, markers_topic, self._key)
        except BaseException:
            self.close()
            raise

    def committed(self) -> int | None:
        """The last batch that was committed under this name and task; None if none ever was."""
        return None if self._last is None else self._last.batch

    def write(self, batch: int | Marker, topic: str, rows: Iterable[Row]) -> bool:
        """Commits the rows as this batch; False, and nothing is done, if it or a later one is committed."""
        if self._ended:
            raise RuntimeError(f"The writer '{self._key}' has failed: open a new one.")
        own = batch if isinstance(batch, Marker) else Marker(batch)
        if self._is_done(own):
            return False
        self._commit(own, topic, rows)
        return True

    def replace_marker(self, marker: Marker) -> None:
        """Commits this marker and no rows, whatever was committed before."""
        if self._last != marker:
            self._commit(marker, self._markers, ())

    def _commit(self, own: Marker, topic: str, rows: Iterable[Row]) -> None:
        # Until all went well: librdkafka may still purge what a next transaction sends.
        self._ended = True
        doing = f"write to topic '{topic}'"
        self._run(self._producer.begin_transaction, doing)
        try:
            self._send(topic, rows, doing)
            self._mark(own)
            self._persist(self._producer.commit_transaction, doing, commit=True)
        except CommitUnknown:
            raise
        except BaseException:
            self._abort()
            raise
        self._last, self._ended = own, False

    def _is_done(self, own: Marker) -> bool:
        """By the batch's number within one checkpoint. What another one has committed says nothing of this
        batch: a statement looks at that when it starts, so it came from another engine since."""
        last = self._last
        if last is None:
            return False
        if own.checkpoint is not None and last.checkpoint is not None:
            others = own.checkpoint != last.checkpoint or own.batch < last.batch - 1
            if others or (own.batch == last.batch and own.entry != last.entry):
                raise StaleBatch(
                    f"'{self._key}' has committed batch {last.batch} of another run than this one's "
                    f"batch {own.batch}.",
                    "See what it has committed, then go on.",
                )
        return own.batch <= last.batch

    def close(self) -> None:
        """What was not committed never will be."""
        # Its own close() would try to abort once more, and warn when a fenced writer cannot.
        del self._producer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, topic: str, rows: Iterable[Row], doing: str) -> None:
        failed: list[KafkaError] = []

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None and not failed:
                failed.append(error)

        try:
            for number, row in enumerate(rows):
                self._hand_over(topic, row, told)
                if number % ROWS_BETWEEN_POLLS == 0:
                    self._producer.poll(0)
                    if failed:
                        break
            # The marker goes last: while it is open, nobody can read the markers of others behind it.
            while not failed and self._producer.flush(POLL_SECONDS):
                pass
        except KafkaException as error:
            # What made the transaction fail was told by an earlier row, if by any.
            raise self._failure(failed[0] if failed else kafka_error(error), doing) from error
        if failed:
            raise self._failure(failed[0], doing)

    def _hand_over(self, topic: str, row: Row, told: Callable[[KafkaError | None, Message], None]) -> None:
        arguments = _arguments(row)
        while True:
            try:
                self._producer.produce(topic, on_delivery=told, **arguments)
                break
            except BufferError:
                # As many rows are under way as may be.
                self._producer.poll(POLL_SECONDS)

    def _mark(self, marker: Marker) -> None:
        partition = marker_partition(self._key)
        doing = f"record batch {marker.batch} in topic '{self._markers}'"
        self._run(
            lambda: self._producer.produce(
                self._markers, marker.to_bytes(), self._key.encode(), partition=partition
            ),
            doing,
        )

    def _abort(self) -> None:
        # A writer that is fenced, or that Kafka does not answer, cannot; the next one's beginning does it.
        with suppress(KafkaException):
            self._producer.abort_transaction(CALL_SECONDS)

    def _run(self, call: Callable[[], object], doing: str) -> None:
        try:
            call()
        except KafkaException as error:
            raise self._failure(kafka_error(error), doing) from error

    def _persist(self, call: Callable[[float], object], doing: str, commit: bool = False) -> None:
        """librdkafka goes on with a call that is made again after a retriable error."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                call(CALL_SECONDS)
                return
            except KafkaException as error:
                cause = kafka_error(error)
                if cause.retriable() and time.monotonic() < deadline:
                    continue
                raise self._failure(cause, doing, commit) from error

    def _failure(self, error: KafkaError, doing: str, commit: bool = False) -> HeadgateError:
        if error.code() in FENCED:
            return StaleBatch(
                f"Another writer has taken over from '{self._key}'.", "See what it has committed, then go on."
            )
        if commit and not error.txn_requires_abort() and not error.fatal():
            return CommitUnknown(
                f"Kafka at {self._link.access} was asked to commit, and did not say whether it has: "
                f"{error.str()}."
            )
        if error.code() in PASSING:
            return KafkaUnavailable(f"Kafka at {self._link.access} cannot {doing} now: {error.str()}.")
        return self._link.failure(error, doing)


def end_open(where: Where, name: str, tasks: int) -> None:
    """Ends what earlier writers of this name left open, before others wait for it to read their markers.

    After a crash every writer does so for itself; but it may be one that waits for a place to run.
    """
    link = Link(where)
    for task in range(tasks):
        settings = {
            "transactional.id": f"{name}/{task}",
            "transaction.timeout.ms": int(TRANSACTION_SECONDS * 1000),
            "logger": _SILENT,
        }
        try:
            producer = link.producer(settings)
            settle(producer)
            producer.init_transactions(CALL_SECONDS)
        except KafkaException as error:
            raise link.failure(error, f"end the open transactions of '{name}'") from error


def take_over_markers(where: Where, name: str, tasks: int, markers_topic: str) -> list[Marker | None]:
    """The last marker of each task, when no earlier writer of this name can commit any more."""
    end_open(where, name, tasks)
    prepare_markers(where, markers_topic)
    link = Link(where)
    return [read_marker(link, markers_topic, f"{name}/{task}") for task in range(tasks)]


def _arguments(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {"key": row.key, "value": row.value}
    if row.headers:
        found["headers"] = list(row.headers)
    if row.partition is not None:
        found["partition"] = row.partition
    if row.timestamp_ms is not None:
        if row.timestamp_ms <= 0:
            raise InvalidRequest(f"{row.timestamp_ms} ms is no time that Kafka's client can give a record.")
        found["timestamp"] = row.timestamp_ms
    return found


# -- in Spark's tasks

_REPORT = re.compile(r'headgate-writer: (\{".*\})')
_TASK = "headgate_task"
_OPTIONAL = ("headers", "partition", "timestamp")
_planning = threading.Lock()


def write_frame(
    df: "DataFrame",
    where: Where,
    name: str,
    batch: int | Marker,
    topic: str,
    tasks: int,
    markers_topic: str,
    order: "Sequence[str | Column]" = (),
    by: Sequence[str] = ("key",),
    mark_empty: bool = True,
) -> int:
    """Writes a frame as one batch, by so many tasks, each with a transaction; how many of them wrote now.

    Columns as in Spark's own Kafka sink: `key` and `value` (binary), and `headers`, `partition`, `timestamp`
    if there are any. Rows of equal `by` columns go to the same task, and leave it in the order of `order`.

    A batch that is tried again must have the same rows and the same number of tasks: those that had committed
    are left out. Columns of `order` and `by` may be others than those that are written.

    A task without rows records the batch all the same, unless `mark_empty` is false: then it does nothing.
    The same batch has none for it the next time either, and a later one that has some opens a writer, which
    ends what an older one left open.
    """
    access = KafkaAccess.at(where)
    prepare_markers(access, markers_topic)
    plan = _planned(
        _distributed(df, tasks, order, by),
        _task_function(access, name, batch, topic, markers_topic, mark_empty),
    )
    try:
        done = plan.collect()
    except Exception as error:
        raise _reported(error) or error from error
    # Of a frame that is known to be empty before it runs, Spark runs nothing.
    if done and sorted(row["task"] for row in done) != list(range(tasks)):
        number = batch.batch if isinstance(batch, Marker) else batch
        raise RuntimeError(f"{len(done)} tasks of {tasks} wrote batch {number} of '{name}'.")
    return sum(row["written"] for row in done)


def _distributed(
    df: "DataFrame", tasks: int, order: "Sequence[str | Column]", by: Sequence[str]
) -> "DataFrame":
    from pyspark.sql import functions as f

    written = ["key", "value", *(column for column in _OPTIONAL if column in df.columns)]
    # The expression that Spark distributes by: the task checks that it was given its own rows.
    task = f.pmod(f.hash(*by), f.lit(tasks)).cast("int").alias(_TASK)
    spread = df.select("*", task).repartition(tasks, *by)
    ordered = spread.sortWithinPartitions(*order) if order else spread
    return ordered.select(*written, _TASK)


def _planned(
    rows: "DataFrame", function: "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]"
) -> "DataFrame":
    """Planned without adaptive execution, which may join partitions: a task is a partition, always."""
    found = rows.mapInArrow(function, "task int, written boolean")
    session = rows.sparkSession
    with _planning:
        before = session.conf.get("spark.sql.adaptive.enabled")
        session.conf.set("spark.sql.adaptive.enabled", "false")
        try:
            found._jdf.queryExecution().executedPlan()
        finally:
            session.conf.set("spark.sql.adaptive.enabled", str(before))
    return found


def _task_function(
    access: KafkaAccess, name: str, batch: int | Marker, topic: str, markers_topic: str, mark_empty: bool
) -> "Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]":
    def run(batches: "Iterable[pa.RecordBatch]") -> "Iterable[pa.RecordBatch]":
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        task = context.partitionId()
        rows = _rows(batches, task)
        first = next(rows, None)
        written = False
        try:
            if first is not None or mark_empty:
                with TransactionalWriter(_kept(access), name, task, markers_topic) as writer:
                    written = writer.write(batch, topic, chain([] if first is None else [first], rows))
        except HeadgateError as error:
            _kept.cache_clear()
            said = {"error": type(error).__name__, "message": error.message, "remedy": error.remedy}
            # Spark passes on an error's text and no more.
            raise RuntimeError(f"headgate-writer: {json.dumps(said)}") from error
        yield pa.RecordBatch.from_pydict(
            {"task": pa.array([task], pa.int32()), "written": pa.array([written], pa.bool_())}
        )

    return run


@lru_cache(maxsize=4)
def _kept(access: KafkaAccess) -> Link:
    """Of a worker's tasks, which come one after the other."""
    return Link(access)


def _rows(batches: "Iterable[pa.RecordBatch]", task: int) -> Iterator[Row]:
    for batch in batches:
        found = {column: batch.column(column).to_pylist() for column in batch.schema.names}
        if any(own != task for own in found[_TASK]):
            raise RuntimeError(f"Task {task} was given rows of others.")
        nothing = [None] * batch.num_rows
        columns = [found.get(column, nothing) for column in ("key", "value", *_OPTIONAL)]
        for key, value, headers, partition, timestamp in zip(*columns, strict=True):
            pairs = [(header["key"], header["value"]) for header in headers or ()]
            millis = None if timestamp is None else _milliseconds(timestamp)
            yield Row(key, value, pairs, partition, millis)


def _milliseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _reported(error: Exception) -> HeadgateError | None:
    """The error of ours that a task said."""
    found = _REPORT.search(str(error))
    if found is None:
        return None
    said = json.loads(found[1])
    kind: type[HeadgateError] = getattr(errors, said["error"])
    return kind(said["message"], said["remedy"])
