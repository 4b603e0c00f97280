"""Offsets: where topics begin and end, and where a table begins in its topic."""

import math
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple, assert_never

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from headgate.errors import InvalidRequest, KafkaUnavailable, NotFound
from headgate.kafka.client import TIMEOUT_SECONDS, UNKNOWN_TOPIC, Link, Where, code_of, kafka_error
from headgate.kafka.epochs import leader_epochs
from headgate.kafka.topics import Topics
from headgate.model import Start, StartKind, Topic

NO_SUCH_OFFSET = -1
LEADER_SECONDS = 2.0
LEADER_CHANGED = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)


class Offsets:
    """Looks offsets up, for many topics in one call. Raises KafkaUnavailable while no broker answers.

    Ends are last stable offsets: up to there every transaction is decided, so records before the end
    never change and those after it are not to be read yet.
    """

    def __init__(self, where: Where, timeout: float = TIMEOUT_SECONDS) -> None:
        self._link = Link(where, timeout)
        self._timeout = timeout
        self._topics = Topics(where, timeout)
        self._asker: Consumer | None = None

    def stable_ends(self, topics: Iterable[Topic]) -> dict[str, dict[int, int]]:
        """By topic and partition. A topic that lost a partition since it was described, as a deleted or
        replaced one does, is absent: describe it again."""
        return _offsets(self.ends(topics))

    def ends(self, topics: Iterable[Topic]) -> dict[str, dict[int, "Found"]]:
        """As `stable_ends`, with the epochs of the leaders that told them."""
        return self._look_up(topics, OFFSET_END)

    def earliest(self, topics: Iterable[Topic]) -> dict[str, dict[int, int]]:
        """The first offsets that are still there. Topics are absent as in `stable_ends`."""
        return _offsets(self._look_up(topics, OFFSET_BEGINNING))

    def at_timestamp(self, topic: Topic, timestamp_ms: int) -> dict[int, int]:
        """The first record of each partition that is as new as that; the stable end where there is none."""
        if timestamp_ms < 0:
            raise InvalidRequest(
                f"{timestamp_ms} ms is no time that a record of topic '{topic.name}' can have."
            )
        # Ends first: a record that arrives between the two calls is then found, or lies behind the end.
        ends = self._of(topic, self.stable_ends([topic]))
        found = self._of(topic, _offsets(self._look_up([topic], timestamp_ms)))
        return {p: ends[p] if offset == NO_SUCH_OFFSET else offset for p, offset in found.items()}

    def start_offsets(self, start: Start, topic: Topic) -> dict[int, int]:
        """Where a table with this start begins to read, for each partition."""
        match start.kind:
            case StartKind.EARLIEST:
                return self._of(topic, self.earliest([topic]))
            case StartKind.LATEST:
                return self._of(topic, self.stable_ends([topic]))
            case StartKind.TIMESTAMP:
                if start.timestamp_ms is None:
                    raise InvalidRequest(f"The start of '{topic.name}' is a timestamp, and names none.")
                return self.at_timestamp(topic, start.timestamp_ms)
            case StartKind.OFFSETS:
                earliest = self._of(topic, self.earliest([topic]))
                ends = self._of(topic, self.stable_ends([topic]))
                return explicit_start(topic, start.offsets or {}, earliest, ends)
            case _:
                assert_never(start.kind)

    def reach(self, topic: Topic) -> list[dict[str, int]]:
        """From where to where each partition can be read, by its number."""
        earliest, ends = self._of(topic, self.earliest([topic])), self._of(topic, self.stable_ends([topic]))
        return [{"partition": p, "earliest": earliest[p], "end": ends[p]} for p in topic.partitions]

    def record_size_sample(self, topic: Topic, offsets: Mapping[int, int], records: int = 200) -> float:
        """Mean bytes (key, value, headers) of up to that many records from these offsets on; 0.0 if none.

        Each partition gives an equal share at most. The consumer belongs to no group and commits nothing.
        """
        if not offsets or records < 1:
            return 0.0
        share = math.ceil(records / len(offsets))
        consumer = self._link.consumer(
            {
                "group.id": "headgate-sample",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                # Retention may have moved on since the offsets were looked up; a sample can do without.
                "auto.offset.reset": "earliest",
                "queued.min.messages": share,
                # The broker would hold an answer at the end of a partition back for half a second.
                "fetch.wait.max.ms": 10,
            }
        )
        try:
            consumer.assign([TopicPartition(topic.name, p, offset) for p, offset in offsets.items()])
            sizes = self._sample(consumer, topic, set(offsets), share)
        except KafkaException as error:
            raise self._link.failure(error, f"read topic '{topic.name}'") from error
        finally:
            consumer.close()
        return sum(sizes) / len(sizes) if sizes else 0.0

    def leader_epochs(
        self, topic: Topic, ranges: Mapping[int, tuple[int, int]]
    ) -> dict[int, list[tuple[int, int]]]:
        """For each partition the steps within its range of offsets: from this offset on, this leader epoch.

        No steps where there is no record, or none that tells.
        """
        asked = {partition: span for partition, span in ranges.items() if span[0] < span[1]}
        nothing: dict[int, list[tuple[int, int]]] = {partition: [] for partition in ranges}
        if not asked:
            return nothing
        try:
            return nothing | leader_epochs(self._link, topic.name, asked, self._timeout)
        except KafkaException as error:
            raise self._link.failure(error, f"read topic '{topic.name}'") from error

    def _sample(self, consumer: Consumer, topic: Topic, pending: set[int], share: int) -> list[int]:
        sizes: dict[int, list[int]] = {partition: [] for partition in pending}
        deadline = time.monotonic() + self._timeout
        while pending:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                doing = f"read topic '{topic.name}'"
                raise self._link.silence(
                    doing, f"Kafka at {self._link.access} gave no records of '{topic.name}' in time."
                )
            message = consumer.poll(remaining)
            if message is None:
                continue
            partition, problem = int(message.partition() or 0), message.error()
            if problem is not None and problem.code() != KafkaError._PARTITION_EOF:
                raise self._link.failure(problem, f"read topic '{topic.name}'")
            if partition not in pending:
                continue
            if problem is None:
                sizes[partition].append(size_of(message))
            if problem is not None or len(sizes[partition]) == share:
                pending.remove(partition)
        return [size for found in sizes.values() for size in found]

    def _look_up(self, topics: Iterable[Topic], moment: int) -> dict[str, dict[int, "Found"]]:
        """Offsets at a time in milliseconds, or at one of the two that Kafka has numbers for: the ends."""
        wanted = list(topics)
        found = self._ask(wanted, moment)
        missing = [topic for topic in wanted if topic.name not in found]
        if missing:
            # A client keeps for minutes what it knows of a topic: an old one knows no added partitions.
            self._asker = None
            found |= self._ask(missing, moment)
        return found

    def _ask(self, topics: Iterable[Topic], moment: int) -> dict[str, dict[int, "Found"]]:
        """One request to each broker, however many topics."""
        wanted = {topic.name: topic for topic in topics}
        request = [TopicPartition(t.name, p, moment) for t in wanted.values() for p in t.partitions]
        if not request:
            return {}
        found: dict[str, dict[int, Found]] = {name: {} for name in wanted}
        asker = self._lookup_client()
        try:
            answers = self._answers(asker, request)
        except KafkaException as error:
            asker.poll(0)
            cause = kafka_error(error)
            if len(wanted) == 1 and self._is_gone(next(iter(wanted.values())), cause):
                return {}
            if len(wanted) > 1 and cause.code() in UNKNOWN_TOPIC | {KafkaError._NOENT}:
                # Said of all when it is true of all; each is asked, to be sure.
                return {name: at for t in wanted.values() for name, at in self._ask([t], moment).items()}
            raise self._link.failure(error, f"look up offsets of {_listed(wanted)}") from error
        for answer in answers:
            if answer.error is not None:
                if not self._is_gone(wanted[answer.topic], answer.error):
                    raise self._link.failure(answer.error, f"look up offsets of topic '{answer.topic}'")
                found.pop(answer.topic, None)
            elif answer.topic in found:
                found[answer.topic][answer.partition] = Found(answer.offset, answer.leader_epoch)
        return found

    def _answers(self, asker: Consumer, request: list[TopicPartition]) -> list[TopicPartition]:
        """A leader that has just changed fails the whole call, and is known in a moment."""
        deadline = time.monotonic() + min(LEADER_SECONDS, self._timeout)
        while True:
            try:
                return asker.offsets_for_times(request, timeout=self._timeout)
            except KafkaException as error:
                if code_of(error) not in LEADER_CHANGED or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _lookup_client(self) -> Consumer:
        """A consumer that consumes nothing: it looks 800 partitions up for a third of what an admin takes."""
        asker = self._asker
        if asker is None:
            asker = self._asker = self._link.consumer(
                {
                    "group.id": "headgate-offsets",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                }
            )
        # What it told aside is about now, not about an earlier call.
        asker.poll(0)
        self._link.forget()
        return asker

    def _is_gone(self, topic: Topic, error: KafkaError) -> bool:
        if error.code() in UNKNOWN_TOPIC:
            return True
        if error.code() != KafkaError._NOENT:
            return False
        # What librdkafka says when it found no leader at all: for want of the topics, or of a broker.
        now = self._topics.describe_many([topic.name]).get(topic.name)
        if now is not None and set(topic.partitions) <= set(now.partitions):
            raise KafkaUnavailable(f"The partitions of topic '{topic.name}' have no leaders now.")
        return True

    def _of(self, topic: Topic, found: Mapping[str, dict[int, int]]) -> dict[int, int]:
        if topic.name not in found:
            raise NotFound(
                f"Topic '{topic.name}' is gone, or was created anew with fewer partitions.",
                "`headgate topic list` shows the topics.",
            )
        return found[topic.name]


class Found(NamedTuple):
    """An offset, and the epoch of the leader that told it, as far as its broker tells epochs."""

    offset: int
    leader_epoch: int | None


def _offsets(found: Mapping[str, Mapping[int, Found]]) -> dict[str, dict[int, int]]:
    return {name: {p: one.offset for p, one in partitions.items()} for name, partitions in found.items()}


def explicit_start(
    topic: Topic, wanted: Mapping[int, int], earliest: Mapping[int, int], ends: Mapping[int, int]
) -> dict[int, int]:
    """The offsets named, checked; partitions that are not named begin at their earliest."""
    if not wanted:
        raise InvalidRequest(f"The start of '{topic.name}' is offsets, and names none.")
    for partition, offset in sorted(wanted.items()):
        if partition not in topic.partitions:
            known = ", ".join(str(p) for p in topic.partitions)
            raise InvalidRequest(
                f"Topic '{topic.name}' has no partition {partition}.", f"Its partitions are {known}."
            )
        low, high = earliest[partition], ends[partition]
        if not low <= offset <= high:
            raise InvalidRequest(
                f"Offset {offset} is not in partition {partition} of topic '{topic.name}'.",
                f"Choose one from {low} to {high}.",
            )
    return {partition: wanted.get(partition, earliest[partition]) for partition in topic.partitions}


def _listed(topics: Iterable[str]) -> str:
    names = [f"'{name}'" for name in topics]
    return f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics, {names[0]} among them"


def size_of(message: Message) -> int:
    """Bytes that its sender gave it."""
    headers = message.headers() or []
    pairs = [(message.key(), message.value()), *headers]
    return sum(len(part) for pair in pairs for part in pair if part is not None)
