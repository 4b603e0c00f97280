"""Of which column the keys of a topic are, where they have no schema: as its newest records show."""

from collections.abc import Mapping, Sequence
from typing import Any

from headgate.kafka.client import Where
from headgate.kafka.offsets import Offsets
from headgate.kafka.readable import Reader, WriterSchema
from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource

# How many records of each partition are looked at.
NEWEST = 25
# What serializers of whole numbers write.
_LENGTHS = (4, 8)


def seen_key(where: Where, name: str, schemas: SchemaSource, columns: Sequence[str]) -> tuple[str, ...]:
    """The columns whose value is the key in every record that was looked at; none without records, and where
    a record has another key."""

    def schema_of(schema_id: int) -> WriterSchema:
        found = schemas.schema(schema_id)
        return WriterSchema(found.type.value, found.text)

    reader, left, read = Reader(schema_of), list(columns), 0
    for message in committed_records(where, name, _newest(where, name), idle_seconds=None):
        row = reader.read(_bytes(message.value())).content
        if row is None:
            continue
        if not isinstance(row, dict):
            return ()
        read += 1
        left = matching(_bytes(message.key()), row, left)
        if not left:
            return ()
    return tuple(left) if read else ()


def matching(key: bytes | None, row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    """The columns whose value is this key: as text, or as the bytes of a whole number."""
    if key is None:
        return []
    return [column for column in columns if key in _written(row.get(column))]


def _written(value: Any) -> list[bytes]:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return []
    found = [str(value).encode()]
    if isinstance(value, int):
        found += [
            value.to_bytes(length, "big", signed=True)
            for length in _LENGTHS
            if -(1 << (8 * length - 1)) <= value < 1 << (8 * length - 1)
        ]
    return found


def _newest(where: Where, name: str) -> dict[int, int]:
    topic = Topics(where).describe(name)
    offsets = Offsets(where)
    firsts = offsets.earliest([topic]).get(name, {})
    ends = offsets.stable_ends([topic]).get(name, {})
    return {p: max(firsts.get(p, 0), end - NEWEST) for p, end in ends.items()}


def _bytes(part: str | bytes | None) -> bytes | None:
    """confluent_kafka declares both, and gives bytes."""
    return part.encode() if isinstance(part, str) else part
