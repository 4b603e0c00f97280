"""Dead letters, and how tables are read from elsewhere."""

from pydantic import JsonValue

from headgate.model import TableFormat
from headgate.server.answers.shape import Shape
from headgate.server.answers.topics import PartFormat


class PayloadAnswer(Shape):
    """A key or a value: its first bytes in hex, how many there are, and what can be read of it. `error` says
    why it cannot be."""

    hex: str
    bytes: int
    content: JsonValue
    format: PartFormat
    schema_id: int | None
    error: str | None


class DeadLetterAnswer(Shape):
    """A record that did not get into its table; where it was in the topic, and what is wrong with it."""

    partition: int
    offset: int
    timestamp: str | None
    failed_at: str | None
    schema_id: int | None
    error_class: str
    error_message: str
    key: PayloadAnswer | None
    value: PayloadAnswer | None


class DeadLettersAnswer(Shape):
    """A page of dead letters, the newest first; those that were replayed since are among them."""

    dead_letters: list[DeadLetterAnswer]
    topic: str
    next: str | None
    looked_at: int
    is_whole: bool


class ReadingCatalogAnswer(Shape):
    """The Iceberg catalog where a table can be read; `public_uri` is its address from elsewhere."""

    uri: str
    public_uri: str | None
    warehouse: str | None
    token_uri: str | None
    scope: str
    needs_credential: bool


class ReadingStorageAnswer(Shape):
    """How the place of a table is reached, where it is an object store."""

    region: str | None
    endpoint: str | None
    path_style: bool


class ReadingAnswer(Shape):
    """Names and addresses by which a table is read. `location` is null before its first records; a Delta
    reader opens it."""

    namespace: str
    table: str
    formats: list[TableFormat]
    format_version: int
    location: str | None
    storage: ReadingStorageAnswer | None
    catalog: ReadingCatalogAnswer
