"""Topics: what there is, what it is like, and how it comes and goes."""

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
    TopicDescription,
)

from headgate.errors import InvalidRequest, KafkaUnavailable, NotFound
from headgate.kafka.access import KafkaAccess
from headgate.kafka.client import LATEST, TIMEOUT_SECONDS, UNKNOWN_TOPIC, Link, Where, code_of
from headgate.model import Topic

BROKER_DEFAULT = -1
POLL_SECONDS = 0.01
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
# Topics of Headgate's own begin so.
RESERVED = "__headgate"
# Records keep the times of what they were made of, which may lie ahead of the broker's clock, or so far back
# that a retention by time would delete them as they come.
ANY_TIME = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
# Of a key's versions only the last is kept in the end. But whoever joins a row with the version of its time
# needs those before it: for a week, and in a segment that is not closed because times lie far apart.
VERSIONS = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": str(7 * 24 * 3600 * 1000),
    "segment.ms": str(2**63 - 1),
    **ANY_TIME,
}
URL_SAFE = str.maketrans("+/", "-_")

# No topic can have a name that the broker calls invalid, so to describe one is to find nothing.
ABSENT = UNKNOWN_TOPIC | {KafkaError.TOPIC_EXCEPTION}


def check_topic_name(name: str) -> None:
    """What no broker would take."""
    if _NAME.fullmatch(name) is None or name in (".", ".."):
        raise InvalidRequest(
            f"'{name}' cannot be the name of a topic.",
            "Letters, digits, dots, dashes and underscores, up to 249 of them.",
        )
    check_not_reserved(name)


def is_reserved(name: str) -> bool:
    return name.startswith(RESERVED)


def check_not_reserved(name: str) -> None:
    if is_reserved(name):
        raise InvalidRequest(
            f"'{name}' is a name of Headgate's own: topics that begin with '{RESERVED}' are internal.",
            "Choose another name.",
        )


class Topics:
    """The topics of one cluster. Calls raise KafkaUnavailable while no broker answers."""

    def __init__(self, where: Where, timeout: float = TIMEOUT_SECONDS) -> None:
        self._link = Link(where, timeout)
        self._timeout = timeout

    @property
    def access(self) -> KafkaAccess:
        return self._link.access

    def cluster_id(self) -> str:
        """Asked anew each time: a broker may come back with other data at the same address."""
        try:
            found = self._link.admin.describe_cluster(request_timeout=self._timeout).result().cluster_id
        except KafkaException as error:
            raise self._link.failure(error, "tell its cluster id") from error
        if not found:
            raise KafkaUnavailable(f"Kafka at {self._link.access} has no cluster id yet.")
        return str(found)

    def list(self, include_internal: bool = False) -> list[Topic]:
        """By name. Internal are those the broker calls so (consumer offsets, transaction state), and ours."""
        try:
            names = list(self._link.admin.list_topics(timeout=self._timeout).topics)
        except KafkaException as error:
            raise self._link.failure(error, "list topics") from error
        found = self.describe_many(names)
        return [found[name] for name in sorted(found) if include_internal or not found[name].internal]

    def beginning_with(self, prefix: str) -> Sequence[str]:
        """The names of all that begin so, internal ones too."""
        try:
            names = list(self._link.admin.list_topics(timeout=self._timeout).topics)
        except KafkaException as error:
            raise self._link.failure(error, "list topics") from error
        return sorted(name for name in names if name.startswith(prefix))

    def describe(self, name: str) -> Topic:
        found = self.describe_many([name])
        if name not in found:
            raise no_such_topic(name)
        return found[name]

    def describe_many(self, names: Iterable[str]) -> dict[str, Topic]:
        """In one call, however many. Topics that do not exist are absent."""
        wanted = sorted({name for name in names if name and _is_sendable(name)})
        if not wanted:
            return {}
        found = {}
        futures = self._link.admin.describe_topics(TopicCollection(wanted), request_timeout=self._timeout)
        for name, future in futures.items():
            try:
                found[name] = _topic(future.result())
            except KafkaException as error:
                if code_of(error) not in ABSENT:
                    raise self._link.failure(error, f"describe topic '{name}'") from error
        return found

    def create(
        self,
        name: str,
        partitions: int = 4,
        replication: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
    ) -> Topic:
        """Returns when the topic can be written and read."""
        if not _is_sendable(name):
            raise InvalidRequest("The name of a topic has a zero in it, or is no Unicode.")
        _check_config(config or {})
        topic = NewTopic(name, partitions, replication, config=dict(config or {}))
        try:
            self._link.admin.create_topics([topic], request_timeout=self._timeout)[name].result()
        except KafkaException as error:
            raise self._link.failure(error, f"create topic '{name}'") from error
        self._wait(lambda: self._has_leaders(name), f"topic '{name}' was created, but has no leaders yet")
        return self.describe(name)

    def delete(self, name: str) -> None:
        """Returns when the topic is gone, and its name can be used again."""
        self.describe(name)
        try:
            self._link.admin.delete_topics([name], request_timeout=self._timeout)[name].result()
        except KafkaException as error:
            if code_of(error) in UNKNOWN_TOPIC:
                raise no_such_topic(name) from error
            raise self._link.failure(error, f"delete topic '{name}'") from error
        self._wait(
            lambda: not self.describe_many([name]), f"topic '{name}' is being deleted, but still there"
        )

    def delete_before(self, name: str, offsets: Mapping[int, int]) -> None:
        """Records before these offsets, by partition, are gone for good."""
        places = [TopicPartition(name, partition, offset) for partition, offset in offsets.items()]
        if not places:
            return
        try:
            asked = self._link.admin.delete_records(places, request_timeout=self._timeout)
            for future in asked.values():
                future.result()
        except KafkaException as error:
            raise self._link.failure(error, f"delete records of topic '{name}'") from error

    def is_dated_by_broker(self, name: str) -> bool:
        """Whether its records have the time at which they were appended, and not their producer's."""
        return self.config(name)["message.timestamp.type"] == "LogAppendTime"

    def last_ends(self, topic: Topic) -> dict[int, int]:
        """One past the last record of each partition, those of open transactions included."""
        places = {TopicPartition(topic.name, partition): LATEST for partition in topic.partitions}
        try:
            asked = self._link.admin.list_offsets(places, request_timeout=self._timeout)
            return {place.partition: int(future.result().offset) for place, future in asked.items()}
        except KafkaException as error:
            raise self._link.failure(error, f"look up the ends of topic '{topic.name}'") from error

    def config(self, name: str) -> dict[str, str]:
        """All of the topic's configuration, defaults included."""
        return {key: _text(entry) for key, entry in self._config(name).items()}

    def configure(self, name: str, changes: Mapping[str, str | None]) -> None:
        """Sets what is named, or lets the broker's default hold again; the rest stays as it is."""
        _check_config(changes)
        self.describe(name)
        entries = [
            ConfigEntry(
                key,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in changes.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        try:
            self._link.admin.incremental_alter_configs([resource], request_timeout=self._timeout)[
                resource
            ].result()
        except KafkaException as error:
            raise self._link.failure(error, f"configure topic '{name}'") from error

    def config_overrides(self, name: str) -> dict[str, str]:
        """What was set on the topic itself."""
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG
        found = self._config(name)
        # confluent_kafka gives the source's number, though it is declared to be the enum.
        return {key: _text(entry) for key, entry in found.items() if ConfigSource(entry.source) is own}

    def _config(self, name: str) -> dict[str, ConfigEntry]:
        if not name:
            raise InvalidRequest("A topic has a name.")
        resource = ConfigResource(ResourceType.TOPIC, name)
        future = self._link.admin.describe_configs([resource], request_timeout=self._timeout)[resource]
        try:
            found: dict[str, ConfigEntry] = future.result()
        except KafkaException as error:
            if code_of(error) in ABSENT:
                raise no_such_topic(name) from error
            raise self._link.failure(error, f"show the configuration of topic '{name}'") from error
        return dict(sorted(found.items()))

    def _has_leaders(self, name: str) -> bool:
        """A broker knows of a topic a moment before it leads its partitions and answers for them."""
        topic = self.describe_many([name]).get(name)
        if topic is None or not topic.partitions:
            return False
        ends = self._link.admin.list_offsets(
            {TopicPartition(name, partition): LATEST for partition in topic.partitions},
            request_timeout=self._timeout,
        )
        return all(future.exception() is None for future in ends.values())

    def _wait(self, done: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + self._timeout
        while not done():
            if time.monotonic() > deadline:
                raise KafkaUnavailable(f"Kafka at {self._link.access} is slow: {otherwise}.")
            time.sleep(POLL_SECONDS)


def _is_sendable(text: str) -> bool:
    """Whether Kafka's client, for which a zero is the end of a text, sends all of it."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _check_config(config: Mapping[str, str | None]) -> None:
    if not all(_is_sendable(text) for pair in config.items() for text in pair if text is not None):
        raise InvalidRequest("The configuration of a topic has a zero in it, or is no Unicode.")


def no_such_topic(name: str) -> NotFound:
    return NotFound(
        f"There is no topic '{name}'.",
        f"`headgate topic list` shows the topics, `headgate topic create {name}` makes it.",
    )


def _topic(found: TopicDescription) -> Topic:
    partitions = tuple(sorted(partition.id for partition in found.partitions))
    # librdkafka writes ids in plain base64, Kafka's own tools in the form that is safe in file names.
    topic_id = str(found.topic_id).translate(URL_SAFE)
    return Topic(found.name, topic_id, partitions, found.is_internal or is_reserved(found.name))


def _text(entry: ConfigEntry) -> str:
    """Kafka does not tell sensitive values."""
    return "" if entry.value is None else str(entry.value)
