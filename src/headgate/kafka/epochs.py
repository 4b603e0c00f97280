"""Which leader wrote a record: epochs only grow with the offset, so a few records tell for all.

Spark's Kafka source does not give a record's epoch; the broker tells it with each record that a client reads.
"""

import time
from collections.abc import Generator, Mapping

from confluent_kafka import Consumer, KafkaError, TopicPartition

from headgate.kafka.client import Link

NOTHING_THERE = frozenset({KafkaError._PARTITION_EOF, KafkaError._AUTO_OFFSET_RESET})
# A record of a partition: its offset and its epoch.
Seen = tuple[int, int]
# Gives an offset to look at, gets the first record from there on, if there is one; ends with the steps.
Search = Generator[int, Seen | None, list[Seen]]


def leader_epochs(
    link: Link, topic: str, ranges: Mapping[int, tuple[int, int]], timeout: float
) -> dict[int, list[Seen]]:
    """For each partition the steps within its range: from this offset on, this epoch.

    The first step begins where the range does. A range without a record has no steps, nor has one whose
    records are too old to tell.
    """
    searches = {partition: steps(*span) for partition, span in ranges.items()}
    found: dict[int, list[Seen]] = {}
    with _Prober(link, topic, timeout) as prober:
        answers: dict[int, Seen | None] = {}
        asked: dict[int, int] = {}
        pending = dict(searches)
        while pending:
            for partition, search in list(pending.items()):
                try:
                    first = partition not in asked
                    asked[partition] = next(search) if first else search.send(answers.get(partition))
                except StopIteration as ended:
                    found[partition] = ended.value
                    del pending[partition]
            if pending:
                answers = prober.look({partition: asked[partition] for partition in pending})
    return found


def steps(start: int, end: int) -> Search:
    """Looks at the first record and the last, and between them only where their epochs differ."""
    first = yield start
    if first is None or first[0] >= end or first[1] < 0:
        return []
    last = yield from _last(first, end)
    rest = yield from _between(first, last[0], last)
    return [(start, first[1]), *rest]


def _last(first: Seen, end: int) -> Generator[int, Seen | None, Seen]:
    """Offsets at the end of a range may have no record: marks of transactions, and what was compacted."""
    low, limit, back = first, end, 1
    while low == first and low[0] + 1 < limit:
        here = max(first[0] + 1, end - back)
        seen = yield here
        if seen is None or seen[0] >= limit:
            limit, back = here, back * 2
        else:
            low = seen
    while low[0] + 1 < limit:
        middle = (low[0] + limit) // 2
        seen = yield middle
        if seen is None or seen[0] >= limit:
            limit = middle
        else:
            low = seen
    return low


def _between(low: Seen, limit: int, high: Seen) -> Generator[int, Seen | None, list[Seen]]:
    """The first record of each epoch after that of `low`, up to `high`; none stands from `limit` to it."""
    if low[1] == high[1]:
        return []
    if low[0] + 1 >= limit:
        return [high]
    middle = (low[0] + limit) // 2
    seen = yield middle
    if seen is None or seen[0] >= limit:
        return (yield from _between(low, middle, high))
    left = yield from _between(low, middle, seen)
    right = yield from _between(seen, limit, high)
    return left + right


class _Prober:
    """Looks at one record of each of many partitions at a time."""

    def __init__(self, link: Link, topic: str, timeout: float) -> None:
        self._link = link
        self._topic = topic
        self._timeout = timeout
        self._consumer: Consumer = link.consumer(
            {
                "group.id": "headgate-epochs",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # Records of transactions that were aborted have epochs, too.
                "isolation.level": "read_uncommitted",
                # An offset that is not there is told, and not taken for another one.
                "auto.offset.reset": "error",
                # One record is wanted, and as little as can be behind it.
                "queued.min.messages": 1,
                "max.partition.fetch.bytes": 1024,
                "fetch.wait.max.ms": 10,
            }
        )

    def __enter__(self) -> "_Prober":
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def look(self, offsets: Mapping[int, int]) -> dict[int, Seen | None]:
        """The first record of each partition from its offset on; None where there is none."""
        doing = f"read topic '{self._topic}'"
        self._consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in offsets.items()])
        found: dict[int, Seen | None] = {}
        deadline = time.monotonic() + self._timeout
        while len(found) < len(offsets):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                otherwise = f"Kafka at {self._link.access} gave no records of '{self._topic}' in time."
                raise self._link.silence(doing, otherwise)
            message = self._consumer.poll(remaining)
            if message is None:
                continue
            partition, problem = int(message.partition() or 0), message.error()
            if problem is not None and problem.code() not in NOTHING_THERE:
                raise self._link.failure(problem, doing)
            if problem is not None:
                found.setdefault(partition, None)
                continue
            epoch, offset = message.leader_epoch(), int(message.offset() or 0)
            if offset >= offsets[partition]:
                found.setdefault(partition, (offset, -1 if epoch is None else int(epoch)))
        return found
