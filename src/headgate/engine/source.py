"""Kafka as the engine asks it: one batched look-up for all tables."""

from collections.abc import Iterable, Mapping

from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import TableSpec, Topic
from headgate.tables.materialize import TopicView


class KafkaSource:
    """Describes topics and their offsets, many at a time."""

    def __init__(self, bootstrap: str) -> None:
        self._topics = Topics(bootstrap)
        self._offsets = Offsets(bootstrap)
        self._cluster_id: str | None = None

    def views(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Every named topic that exists, as it is now: three calls, however many there are."""
        if self._cluster_id is None:
            self._cluster_id = self._topics.cluster_id()
        topics = self._topics.describe_many(names)
        ends = self._offsets.stable_ends(topics.values())
        earliest = self._offsets.earliest(topics.values())
        return {
            name: TopicView(self._cluster_id, topic, earliest[name], ends[name])
            for name, topic in topics.items()
            if name in ends and name in earliest
        }

    def describe(self, topic: str) -> Topic:
        return self._topics.describe(topic)

    def start_offsets(self, spec: TableSpec, topic: Topic) -> Mapping[int, int]:
        return self._offsets.start_offsets(spec.start, topic)

    def record_bytes(self, topic: Topic, offsets: Mapping[int, int]) -> float:
        return self._offsets.record_size_sample(topic, offsets)
