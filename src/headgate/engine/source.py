"""Kafka as the engine asks it: one batched look-up for all tables."""

import logging
from collections.abc import Iterable, Mapping

from headgate.errors import KafkaUnavailable
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import StartKind, TableSpec, Topic
from headgate.tables.materialize import TopicView

log = logging.getLogger(__name__)


class KafkaSource:
    """Describes topics and their offsets, many at a time."""

    def __init__(self, bootstrap: str) -> None:
        self._topics = Topics(bootstrap)
        self._offsets = Offsets(bootstrap)
        self._cluster_id: str | None = None

    def views(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Every named topic that exists and answers, as it is now: three calls, however many there are."""
        try:
            if self._cluster_id is None:
                self._cluster_id = self._topics.cluster_id()
            topics = self._topics.describe_many(names)
        except KafkaUnavailable:
            # What comes back at this address may be another cluster.
            self._cluster_id = None
            raise
        try:
            return self._look_up(self._cluster_id, topics)
        except KafkaUnavailable:
            # One partition without a leader fails the whole call: it must not hold up the other tables.
            return self._one_by_one(self._cluster_id, topics)

    def _look_up(self, cluster_id: str, topics: Mapping[str, Topic]) -> dict[str, TopicView]:
        ends = self._offsets.stable_ends(topics.values())
        earliest = self._offsets.earliest(topics.values())
        return {
            name: TopicView(cluster_id, topic, earliest[name], ends[name])
            for name, topic in topics.items()
            if name in ends and name in earliest
        }

    def _one_by_one(self, cluster_id: str, topics: Mapping[str, Topic]) -> dict[str, TopicView]:
        found: dict[str, TopicView] = {}
        failure: KafkaUnavailable | None = None
        for name, topic in topics.items():
            try:
                found |= self._look_up(cluster_id, {name: topic})
            except KafkaUnavailable as error:
                log.warning("topic '%s' does not answer: %s", name, error)
                failure = error
        if failure is not None and not found:
            raise failure
        return found

    def describe(self, topic: str) -> Topic:
        return self._topics.describe(topic)

    def start_offsets(self, spec: TableSpec, topic: Topic) -> Mapping[int, int]:
        if spec.start.kind is StartKind.LATEST and spec.start.offsets is not None:
            # The end as it was when the table was asked for; partitions added since are new from their start.
            return {partition: spec.start.offsets.get(partition, 0) for partition in topic.partitions}
        return self._offsets.start_offsets(spec.start, topic)

    def record_bytes(self, topic: Topic, offsets: Mapping[int, int]) -> float:
        return self._offsets.record_size_sample(topic, offsets)
