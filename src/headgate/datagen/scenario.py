"""What a scenario is."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

Schema = dict[str, Any]

#: The value of a record that has none: in a topic of change events it follows a delete.
TOMBSTONE: dict[str, Any] = {}


class Record(NamedTuple):
    """One record as a scenario makes it, before it is encoded.

    The value has what Avro holds: Decimal for decimals, integers for times (milli- or microseconds since
    1970, as the schema says) and for dates (days since 1970). The key is text, whatever it is encoded as.
    """

    topic: str
    key: bytes
    value: dict[str, Any]
    timestamp_ms: int
    #: Of the schemas: 1 for those that they change into on the way.
    version: int = 0


class Scenario(Protocol):
    """A family of topics and the records in them. No I/O: the same seed gives the same records anywhere."""

    name: str
    #: The topic that a limit counts.
    counted: str

    @property
    def schemas(self) -> Mapping[str, Schema]:
        """The Avro schema of each topic's values."""

    @property
    def key_schemas(self) -> Mapping[str, Schema]:
        """The Avro schema of each topic's keys, a record of one column; keys of other topics are text."""

    def later_schemas(self, renames: bool = True) -> Mapping[str, Schema]:
        """The Avro schemas that they change into; `renames`: also where that is a field's name."""

    def records(self, limit: int | None = None) -> Iterator[Record]:
        """From the beginning, in the order they are to be written. Without a limit, endless."""

    def encode(self, record: Record, schema_id: int) -> bytes:
        """The record's value in Confluent wire format; of a tombstone nothing."""
