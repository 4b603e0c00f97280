"""Kafka as the engine asks it: one batched look-up for all tables."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from confluent_kafka import Message as KafkaMessage

from headgate.errors import HeadgateError, KafkaUnavailable
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics
from headgate.model import StartKind, TableSpec, Topic
from headgate.tables.evolve import Message
from headgate.tables.materialize import TopicView

# After so many topics in a row that do not answer, the others are not asked.
HOPELESS = 3
# How many records tell what a topic holds, and how long to wait for them.
PEEKED = 100
PEEK_SECONDS = 1.0

log = logging.getLogger(__name__)


class KafkaSource:
    """Describes topics and their offsets, many at a time."""

    def __init__(self, access: KafkaAccess | str) -> None:
        self._access = KafkaAccess.at(access)
        self._topics = Topics(self._access)
        self._offsets = Offsets(self._access)
        self._cluster_id: str | None = None

    def views(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Every named topic that exists and answers, as it is now: three calls, however many there are."""
        wanted = list(names)
        try:
            if self._cluster_id is None:
                self._cluster_id = self._topics.cluster_id()
            return self._look_up(self._cluster_id, self._topics.describe_many(wanted))
        except HeadgateError as error:
            # What comes back at this address may be another cluster.
            self._cluster_id = None
            # One topic without a leader or without our rights fails the call: it must not hold up the others.
            return self._one_by_one(wanted, error)

    def _look_up(self, cluster_id: str, topics: Mapping[str, Topic]) -> dict[str, TopicView]:
        ends = self._offsets.ends(topics.values())
        earliest = self._offsets.earliest(topics.values())
        return {
            name: TopicView(
                cluster_id,
                topic,
                earliest[name],
                {p: end.offset for p, end in ends[name].items()},
                {p: end.leader_epoch for p, end in ends[name].items() if end.leader_epoch is not None},
            )
            for name, topic in topics.items()
            if name in ends and name in earliest
        }

    def _one_by_one(self, names: Sequence[str], failure: HeadgateError) -> dict[str, TopicView]:
        found: dict[str, TopicView] = {}
        for tried, name in enumerate(names):
            if tried == HOPELESS and not found:
                break  # it is not one topic, it is Kafka
            try:
                found[name] = self.view(name)
            except HeadgateError as error:
                log.warning("topic '%s' does not answer: %s", name, error)
        if not found:
            raise failure
        return found

    def view(self, topic: str) -> TopicView:
        """One topic, as it is now."""
        if self._cluster_id is None:
            self._cluster_id = self._topics.cluster_id()
        found = self._look_up(self._cluster_id, {topic: self._topics.describe(topic)})
        if topic not in found:
            raise KafkaUnavailable(f"Topic '{topic}' is being changed.")
        return found[topic]

    def start_offsets(self, spec: TableSpec, topic: Topic) -> Mapping[int, int]:
        if spec.start.kind is StartKind.LATEST and spec.start.offsets is not None:
            # The end as it was when the table was asked for; partitions added since are new from their start.
            return {partition: spec.start.offsets.get(partition, 0) for partition in topic.partitions}
        return self._offsets.start_offsets(spec.start, topic)

    def record_bytes(self, topic: Topic, offsets: Mapping[int, int]) -> float:
        return self._offsets.record_size_sample(topic, offsets)

    def peek(self, topic: Topic, offsets: Mapping[int, int]) -> Iterator[Message]:
        """The first records, to see what they are."""
        ends = self._offsets.stable_ends([topic]).get(topic.name, {})
        waiting = {p: offset for p, offset in offsets.items() if ends.get(p, 0) > offset}
        if not waiting:
            return
        for found in committed_records(self._access, topic.name, waiting, PEEKED, PEEK_SECONDS):
            headers = [(str(name), _bytes(value)) for name, value in _pairs(found)]
            yield Message(_bytes(found.key()), _bytes(found.value()), headers)

    def leader_epochs(
        self, topic: Topic, ranges: Mapping[int, tuple[int, int]]
    ) -> Mapping[int, Sequence[tuple[int, int]]]:
        return self._offsets.leader_epochs(topic, ranges)

    def cleanup_policy(self, topic: str) -> str:
        """`delete`, `compact`, or both."""
        return self._topics.config(topic).get("cleanup.policy", "")

    def topics(self) -> list[Topic]:
        """All that are not internal to Kafka."""
        return self._topics.list()


def _pairs(message: KafkaMessage) -> list[tuple[str, str | bytes | None]]:
    return cast(list[tuple[str, str | bytes | None]], message.headers() or [])


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
