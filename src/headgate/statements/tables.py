"""Every topic with a schema is a table: its columns, its key, and whether its records are rows or changes."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as t

from headgate.decode.connect import is_envelope
from headgate.decode.debezium import ChangeReader
from headgate.decode.reader import Reader
from headgate.kafka.topics import Topics, is_reserved
from headgate.registry.client import SchemaSource
from headgate.statements.record_keys import seen_key
from headgate.statements.runnable import Changelog
from headgate.statements.topics import DELETED_COLUMN
from headgate.tables.readers import registered_reader


@dataclass(frozen=True)
class TopicTable:
    """A topic as the newest of its schemas tells it."""

    name: str
    columns: t.StructType
    primary_key: tuple[str, ...] = ()
    changelog: Changelog = "append"
    #: The columns of a row where values are change events; None where they are rows.
    after: t.StructType | None = None

    @property
    def has_events(self) -> bool:
        """Whether its values are change events, and not rows."""
        return self.after is not None


class TopicTables:
    """The topics of a cluster as tables. Each look asks Kafka and the registry anew."""

    def __init__(self, topics: Topics, schemas: SchemaSource) -> None:
        self._topics = topics
        self._schemas = schemas

    def names(self) -> list[str]:
        """All topics; whether one has a schema is known when it is looked at."""
        return [topic.name for topic in self._topics.list()]

    def get(self, name: str) -> TopicTable | None:
        """None where there is no such topic, it is Headgate's own, or nothing tells what its values are.

        Records are changes of rows where the key has a schema, and the topic is compacted, holds Debezium's
        events, or rows that say whether they were deleted. Events without a key are rows that
        have the columns of an envelope.
        """
        if is_reserved(name) or name not in self._topics.describe_many([name]):
            return None
        value, key = self._reader(name, "value"), self._reader(name, "key")
        if value is None:
            return None
        after = ChangeReader(value).type if is_envelope(value.type) else None
        if key is None or not self._are_changes(name, value):
            own = [] if key is None else _others(key.type, value.type)
            return TopicTable(name, t.StructType([*value.type.fields, *own]), after=after)
        row = value.type if after is None else after
        columns = t.StructType([*row.fields, *_others(key.type, row)])
        return TopicTable(name, columns, tuple(key.type.names), "upsert", after)

    def record_key(self, name: str, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of which the keys of a topic's records are; none where nothing tells."""
        key = self._reader(name, "key")
        if key is not None:
            names = tuple(key.type.names)
            return names if set(names) <= set(columns) else ()
        return seen_key(self._topics.access, name, self._schemas, columns)

    def _reader(self, name: str, part: str) -> Reader | None:
        schema = self._schemas.latest(f"{name}-{part}")
        return None if schema is None else registered_reader(schema, None, part)

    def _are_changes(self, name: str, value: Reader) -> bool:
        if is_envelope(value.type) or DELETED_COLUMN in value.type.names:
            return True
        return "compact" in self._topics.config(name).get("cleanup.policy", "")


def _others(found: t.StructType, known: t.StructType) -> list[t.StructField]:
    names = {name.lower() for name in known.names}
    return [field for field in found.fields if field.name.lower() not in names]
