"""Message types of Protobuf schemas, and how a record names the one that it is of."""

from collections.abc import Sequence
from functools import lru_cache

from google.protobuf.descriptor import Descriptor, FileDescriptor

from headgate.decode.protos import compiled
from headgate.registry.client import RegisteredSchema

# The first type of the file, as every producer of one type writes it.
FIRST = (0,)
LONGEST_PATH = 100


def message_type_at(schema: RegisteredSchema, indexes: Sequence[int]) -> Descriptor:
    """The type at a path of places: of the file, then of what is nested. Raises ValueError where none is."""
    file = _file(schema.text, tuple((one.name, one.text) for one in schema.references))
    types = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(types):
            raise ValueError(f"it names message type {list(indexes)}, which the schema does not have")
        found = types[index]
        types = list(found.nested_types)
    if found is None:
        raise ValueError("it names no message type")
    return found


@lru_cache(maxsize=64)
def _file(text: str, references: tuple[tuple[str, str], ...]) -> FileDescriptor:
    return compiled(text, references).file()


def read_indexes(data: bytes) -> tuple[Sequence[int], int]:
    """The path that stands before a message, and how many bytes it takes."""
    count, at = _zigzag(data, 0)
    if count == 0:
        return FIRST, at
    if not 0 < count <= LONGEST_PATH:
        raise ValueError(f"its message type has {count} places")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return indexes, at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("it ends before its message begins")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
