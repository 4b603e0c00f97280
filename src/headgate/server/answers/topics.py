"""Kafka's topics, their schemas and their messages."""

from typing import Literal

from pydantic import JsonValue

from headgate.model import TableState
from headgate.server.answers.positions import ReachAnswer
from headgate.server.answers.shape import Shape


class TopicAnswer(Shape):
    """A topic."""

    name: str
    id: str
    partitions: list[int]
    internal: bool


class LatestSchemaAnswer(Shape):
    """The latest version of a subject."""

    subject: str
    version: int
    id: int
    type: str


class ListedTopicAnswer(TopicAnswer):
    """A topic in a list; `table` is the state of its table. Null is what is not known, or not there."""

    records: int | None
    rate: float | None
    value_schema: LatestSchemaAnswer | None
    key_schema: LatestSchemaAnswer | None
    table: TableState | None


class ShownTopicAnswer(TopicAnswer):
    """One topic, with what was set on it, and from where to where its partitions reach."""

    config: dict[str, str]
    offsets: list[ReachAnswer]


class SchemaReferenceAnswer(Shape):
    """What a schema calls a version of another subject by."""

    name: str
    subject: str
    version: int


class SchemaVersionAnswer(Shape):
    """A version of a subject, as it was registered."""

    version: int
    id: int
    type: str
    text: str
    references: list[SchemaReferenceAnswer]


class SubjectAnswer(Shape):
    """A subject with its versions, the newest first; of very many the oldest are only counted, in `total`."""

    subject: str
    compatibility: str | None
    total: int
    versions: list[SchemaVersionAnswer]


class TopicSchemasAnswer(Shape):
    """The subjects of a topic's keys and values; null is what is not there."""

    key: SubjectAnswer | None
    value: SubjectAnswer | None


class HeaderAnswer(Shape):
    """A header: its text, or what it holds in hex."""

    name: str
    text: str | None
    hex: str | None


PartFormat = Literal["avro", "json", "protobuf", "text", "bytes", "none"]


class MessageAnswer(Shape):
    """A record as people read it. Whole numbers that JavaScript would round are texts; what cannot be decoded
    is in hex, and `error` says why."""

    partition: int
    offset: int
    timestamp: str | None
    key: JsonValue
    value: JsonValue
    headers: list[HeaderAnswer]
    key_format: PartFormat
    value_format: PartFormat
    key_schema_id: int | None
    value_schema_id: int | None
    bytes: int
    error: str | None


class MessagesAnswer(Shape):
    """A page of records. `next` and `previous` go on where it ends and where it begins; `looked_at` are the
    records that a filter was held against."""

    messages: list[MessageAnswer]
    next: str | None
    previous: str | None
    looked_at: int
    is_whole: bool


class ProducedAnswer(Shape):
    """Where a record was written."""

    partition: int
    offset: int
    key_schema_id: int | None
    value_schema_id: int | None
    bytes: int
