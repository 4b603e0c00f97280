"""Rows into a topic exactly once: a batch is one Kafka transaction per task, which also records the batch.

Who writes is known by a name and the number of a task. Opening a writer takes over from any earlier one of
the same name and task: what that one left open is ended, and it can commit nothing more. Only then the marker
is read, the last batch that was committed; so a batch that is tried again finds itself done, and a writer
that was stopped and woken finds itself replaced. Markers of statements say of which checkpoint a batch was
and what it has read: of another history no batch is done.
"""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException, Message

from headgate.errors import CommitUnknown, HeadgateError, InvalidRequest, KafkaUnavailable, StaleBatch
from headgate.kafka.client import Link, Where, kafka_error, settle
from headgate.kafka.markers import (
    POLL_SECONDS,
    TRANSACTION_SECONDS,
    Marker,
    marker_partition,
    prepare_markers,
    read_marker,
)

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
                # Rows without a key are for all partitions. Sticky, those of a small batch would be in one of
                # them, and the others' readers would wait for event time.
                "sticky.partitioning.linger.ms": 0,
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
