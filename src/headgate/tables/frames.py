"""How a record says which schema it was written with: in front of its value, or in a header."""

from dataclasses import dataclass
from uuid import UUID

# One magic byte, four bytes of schema id.
PREFIX_LENGTH = 5
ID_MAGIC = 0
GUID_MAGIC = 1
GUID_LENGTH = 16


@dataclass(frozen=True, order=True)
class Frame:
    """The bytes that all records of one schema (and message type) have: the beginning of the value, or the
    whole of the header."""

    in_header: bool
    mark: bytes

    @property
    def schema_id(self) -> int | None:
        """None when the schema is named by its GUID."""
        if len(self.mark) < PREFIX_LENGTH or self.mark[0] != ID_MAGIC:
            return None
        return int.from_bytes(self.mark[1:PREFIX_LENGTH], "big")

    @property
    def guid(self) -> str | None:
        if len(self.mark) < 1 + GUID_LENGTH or self.mark[0] != GUID_MAGIC:
            return None
        return str(UUID(bytes=self.mark[1 : 1 + GUID_LENGTH]))

    @property
    def rest(self) -> bytes:
        """What follows the id: the message indexes of Protobuf."""
        length = PREFIX_LENGTH if self.schema_id is not None else 1 + GUID_LENGTH
        return self.mark[length:]

    def __str__(self) -> str:
        return f"schema {self.schema_id if self.schema_id is not None else self.guid}"


def prefix_frame(schema_id: int, indexes: bytes = b"") -> Frame:
    return Frame(False, bytes([ID_MAGIC]) + schema_id.to_bytes(4, "big") + indexes)


def header_name(part: str) -> str:
    """Where Confluent's serializers put the id of the key's or the value's schema."""
    return f"__{part}_schema_id"
