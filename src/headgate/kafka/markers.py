"""Which batch a writer committed last: markers in a compacted topic, each part of its batch's transaction."""

import base64
import json
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from headgate.errors import AlreadyExists, ConfigError, KafkaUnavailable, NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.client import EARLIEST, LATEST, Link, Where, code_of
from headgate.kafka.topics import Topics

# A transaction that its writer abandons is ended by the broker after so long, or by the next writer before.
TRANSACTION_SECONDS = 120.0
READ_SECONDS = 60.0
POLL_SECONDS = 0.1

# Markers of many writers share a few partitions; the number is fixed, or a marker would not be found again.
MARKER_PARTITIONS = 8
MARKERS_CONFIG = {
    "cleanup.policy": "compact",
    # Small segments and eager cleaning keep the log near one record per writer.
    "segment.bytes": "1048576",
    "segment.ms": "3600000",
    "min.cleanable.dirty.ratio": "0.1",
}
# The end of the log is looked at first: a writer that is at work was here a moment ago.
FIRST_LOOK, WIDER = 256, 16
# How long the topic of markers is taken to be as it was found.
PREPARED_SECONDS = 60.0
# A longer text is packed: a topic may have thousands of partitions, and brokers take records of a million
# bytes.
PLAIN_BYTES = 16 * 1024


@dataclass(frozen=True)
class Marker:
    """The last batch that a writer has committed. Of a statement also what the batch was: numbers alone say
    nothing once a checkpoint is lost, or an older one is in its place."""

    batch: int
    #: The id of the checkpoint that the batch is of.
    checkpoint: str | None = None
    #: The text of the batch's entry in the checkpoint's log of offsets.
    entry: str = ""
    #: That of the batch before it; empty for a first batch.
    before: str = ""

    def to_bytes(self) -> bytes:
        """The value of the record."""
        if self.checkpoint is None:
            return json.dumps({"batch": self.batch}).encode()
        texts = {"entry": _packed(self.entry), "before": _packed(self.before)}
        return json.dumps({"batch": self.batch, "checkpoint": self.checkpoint, **texts}).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "Marker":
        known = json.loads(value)
        texts = [_unpacked(known.get(name, "")) for name in ("entry", "before")]
        return cls(int(known["batch"]), known.get("checkpoint"), *texts)


def _packed(text: str) -> str | dict[str, str]:
    if len(text) <= PLAIN_BYTES:
        return text
    return {"zlib": base64.b64encode(zlib.compress(text.encode())).decode()}


def _unpacked(known: str | dict[str, str]) -> str:
    return known if isinstance(known, str) else zlib.decompress(base64.b64decode(known["zlib"])).decode()


def prepare_markers(where: Where, topic: str) -> None:
    """Creates the topic of markers if it is missing; one that would forget them is refused."""
    topics = Topics(where)
    found = topics.describe_many([topic]).get(topic)
    if found is None:
        with suppress(AlreadyExists):
            topics.create(topic, MARKER_PARTITIONS, config=MARKERS_CONFIG)
        found = topics.describe(topic)
    if topics.config(topic)["cleanup.policy"] != "compact" or len(found.partitions) < MARKER_PARTITIONS:
        raise ConfigError(
            f"Topic '{topic}' cannot keep the markers of transactions: it must be compacted, never delete, "
            f"and have {MARKER_PARTITIONS} partitions.",
            "Name another topic, or delete it while nothing is written; Headgate creates it.",
        )


_prepared: dict[tuple[KafkaAccess, str], float] = {}


def keep_prepared(access: KafkaAccess, topic: str) -> None:
    """`prepare_markers`, by one process once a minute: two requests and a client are much for a small batch.

    What is refused is refused a minute later at most, and nothing is forgotten so soon.
    """
    looked_at = _prepared.get((access, topic))
    if looked_at is None or time.monotonic() - looked_at > PREPARED_SECONDS:
        now = time.monotonic()
        prepare_markers(access, topic)
        _prepared[(access, topic)] = now


def marker_partition(key: str) -> int:
    return zlib.crc32(key.encode()) % MARKER_PARTITIONS


def read_marker(link: Link, topic: str, key: str) -> Marker | None:
    """The newest committed marker of `key`, as of now.

    Other writers' open transactions hide what was committed behind them. So the end is taken first, and
    awaited until everything before it is decided.
    """
    place = TopicPartition(topic, marker_partition(key))
    try:
        low, end = _bounds(link, place)
    except NotFound:
        # An answer of nothing would be taken for a writer that never wrote: make sure, and ask again.
        prepare_markers(link.access, topic)
        link.renew()
        low, end = _bounds(link, place)
    _await_decided(link, place, end)
    consumer = link.consumer(
        {
            "group.id": "headgate-markers",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            # The cleaner may have removed what stood there.
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        for start, stop in _looks(low, end):
            here = _between(link, consumer, place, start, stop)
            if own := [message.value() for message in here if message.key() == key.encode()]:
                return None if own[-1] is None else Marker.from_bytes(bytes(own[-1]))
        return None
    except KafkaException as error:
        raise link.failure(error, f"read topic '{topic}'") from error
    finally:
        consumer.close()


def _looks(low: int, end: int) -> Iterator[tuple[int, int]]:
    """From the end backwards, each look wider than the one before."""
    width = FIRST_LOOK
    while end > low:
        start = max(low, end - width)
        yield start, end
        end, width = start, width * WIDER


def _between(
    link: Link, consumer: Consumer, place: TopicPartition, start: int, stop: int
) -> Iterator[Message]:
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    deadline = time.monotonic() + READ_SECONDS
    while time.monotonic() < deadline:
        message = consumer.poll(POLL_SECONDS)
        if message is None:
            continue
        problem = message.error()
        if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
            raise link.failure(problem, f"read topic '{place.topic}'")
        if problem is not None or int(message.offset() or 0) >= stop:
            return
        yield message
    raise link.silence(
        f"read topic '{place.topic}'", f"Kafka at {link.access} gave no markers of '{place.topic}' in time."
    )


def _bounds(link: Link, place: TopicPartition) -> tuple[int, int]:
    """Where the log begins and ends, with what is not decided yet."""
    low = _offset(link, place, EARLIEST, IsolationLevel.READ_UNCOMMITTED)
    return low, _offset(link, place, LATEST, IsolationLevel.READ_UNCOMMITTED)


def _await_decided(link: Link, place: TopicPartition, end: int) -> None:
    deadline = time.monotonic() + TRANSACTION_SECONDS + READ_SECONDS
    while _offset(link, place, LATEST, IsolationLevel.READ_COMMITTED) < end:
        if time.monotonic() > deadline:
            raise KafkaUnavailable(
                f"A transaction on topic '{place.topic}' stays open, and hides what follows."
            )
        time.sleep(0.02)


def _offset(link: Link, place: TopicPartition, spec: OffsetSpec, isolation: IsolationLevel) -> int:
    asked = link.settled_admin.list_offsets(
        {place: spec}, isolation_level=isolation, request_timeout=link.timeout
    )
    try:
        return int(asked[place].result().offset)
    except KafkaException as error:
        if code_of(error) == KafkaError._NOENT:
            # What librdkafka says when it found no leader: for want of the topic, or of a broker.
            raise NotFound(
                f"Topic '{place.topic}' has no partition {place.partition} with a leader."
            ) from error
        raise link.failure(error, f"look up offsets of topic '{place.topic}'") from error
