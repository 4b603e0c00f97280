"""Ranges of offsets, read from Kafka for somebody who looks at them."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headgate.errors import KafkaUnavailable
from headgate.kafka.client import TIMEOUT_SECONDS, Link, Where
from headgate.kafka.offsets import size_of
from headgate.server.messages.pages import RangesTooLarge

POLL_SECONDS = 0.2
AT_ONCE = 500
# What is fetched ahead is thrown away.
FETCH_BYTES = 4 * 1024**2
MOST_BYTES = 64 * 1024**2


class RangeReader:
    """Reads committed records of one topic. Not for two threads at once."""

    def __init__(self, link: Link, consumer: Consumer, topic: str) -> None:
        self._link = link
        self._consumer = consumer
        self._topic = topic

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> dict[int, list[Message]]:
        """By partition, the records from the first offset up to, not including, the second. What retention or
        compaction has taken is not among them."""
        found: dict[int, list[Message]] = {partition: [] for partition in ranges}
        ends = {partition: end for partition, (start, end) in ranges.items() if start < end}
        doing = f"read topic '{self._topic}'"
        try:
            self._consumer.assign([TopicPartition(self._topic, p, ranges[p][0]) for p in ends])
            heard, size = time.monotonic(), 0
            is_divisible = any(end - start > 1 for start, end in ranges.values())
            while ends:
                messages = self._consumer.consume(AT_ONCE, POLL_SECONDS)
                if self._link.refusal is not None:
                    raise self._link.failure(self._link.refusal, doing)
                if messages:
                    heard = time.monotonic()
                    size += sum(size_of(message) for message in messages if message.error() is None)
                    if size > MOST_BYTES and is_divisible:
                        raise RangesTooLarge
                elif time.monotonic() - heard > TIMEOUT_SECONDS:
                    raise KafkaUnavailable(
                        f"Kafka at {self._link.access} gave no records of '{self._topic}' in time."
                    )
                done = {
                    p for message in messages if (p := self._take(message, ends, found, doing)) is not None
                }
                for partition in done & ends.keys():
                    del ends[partition]
                    self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
        except KafkaException as error:
            raise self._link.failure(error, doing) from error
        return found

    def _take(
        self, message: Message, ends: Mapping[int, int], found: dict[int, list[Message]], doing: str
    ) -> int | None:
        """The partition, if it has been read to its end by that."""
        partition, offset, problem = (
            int(message.partition() or 0),
            int(message.offset() or 0),
            message.error(),
        )
        if problem is not None:
            if problem.code() != KafkaError._PARTITION_EOF:
                raise self._link.failure(problem, doing)
            return partition
        end = ends.get(partition)
        if end is None:
            return None
        if offset < end:
            found[partition].append(message)
        return partition if offset >= end - 1 else None


@contextmanager
def range_reader(where: Where, topic: str) -> Iterator[RangeReader]:
    """Open while the block lasts."""
    link = Link(where)
    consumer = link.consumer(
        {
            "group.id": "headgate-messages",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            # Retention may overtake the offsets; what is still there is what can be shown.
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # The broker would hold an answer at the end of a partition back for half a second.
            "fetch.wait.max.ms": 10,
            "queued.min.messages": AT_ONCE,
            "fetch.max.bytes": FETCH_BYTES,
            "max.partition.fetch.bytes": FETCH_BYTES // 4,
            "queued.max.messages.kbytes": FETCH_BYTES // 1024 * 4,
        }
    )
    try:
        yield RangeReader(link, consumer, topic)
    finally:
        consumer.close()
