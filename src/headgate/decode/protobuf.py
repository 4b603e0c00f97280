"""Protobuf messages become columns, in Arrow batches: Spark has no expression for them here."""

from collections.abc import Sequence
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.functions import arrow_udf

from headgate.decode.protobuf_batch import PROBLEM, RECORD, decode
from headgate.decode.protobuf_plan import plan
from headgate.decode.protobuf_types import Kind
from headgate.decode.protos import MalformedProto, Protos, compiled, message_paths
from headgate.decode.reader import Reader
from headgate.errors import UnsupportedSchema

#: How the first message type of a file is marked, mostly; a count and an index mean the same.
FIRST_MESSAGE = b"\x00"
FIRST_MESSAGE_LONG = b"\x02\x00"


class ProtobufReader(Reader):
    """Reads messages of the type at `indexes` in the schema's file.

    `schema_text` and the texts of `references` (import path, text) are .proto text or base64 descriptors.
    A message always has fields, so there is no use for the name of a single `column`.
    """

    def __init__(
        self,
        schema_text: str,
        references: Sequence[tuple[str, str]] = (),
        indexes: tuple[int, ...] = (0,),
        column: str = "value",
    ) -> None:
        protos = _protos(schema_text, references)
        name = dict(message_paths(protos.main)).get(indexes)
        if name is None:
            raise UnsupportedSchema(
                f"The Protobuf schema has no message type at the indexes {list(indexes)}.",
                "Check that the producer registered the file that it writes messages of.",
            )
        record = plan(protos.pool().FindMessageTypeByName(name))
        assert isinstance(record.spark, t.StructType)
        self.record_name = name
        self.type = record.spark
        self.field_numbers = MappingProxyType(_numbers(record, ""))
        self._files = protos.files

    def raw(self, body: Column) -> Column:
        files, name = self._files, str(self.record_name)

        def read(body: pa.Array) -> pa.Array:
            return decode(files, name, body)

        answer = t.StructType([t.StructField(PROBLEM, t.StringType()), t.StructField(RECORD, self.type)])
        # The stubs do not know that the kind of function is taken from its hints.
        found: Column = arrow_udf(read, answer)(body)  # type: ignore[call-overload]
        return found

    def is_exact(self, raw: Column, body: Column) -> Column:
        return f.coalesce(raw[RECORD].isNotNull() & raw[PROBLEM].isNull(), f.lit(False))

    def value(self, raw: Column) -> Column:
        return raw[RECORD]

    def problem(self, raw: Column, body: Column) -> Column | None:
        return raw[PROBLEM]


def message_frames(
    schema_text: str, references: Sequence[tuple[str, str]] = ()
) -> dict[tuple[int, ...], bytes]:
    """Each message type of the file by its path, and the bytes that Confluent's serializers put between the
    schema id and a message of it. The first type can also be marked as FIRST_MESSAGE_LONG."""
    protos = _protos(schema_text, references)
    return {path: index_bytes(path) for path, _ in message_paths(protos.main)}


def index_bytes(path: tuple[int, ...]) -> bytes:
    if path == (0,):
        return FIRST_MESSAGE
    return b"".join(_varint(2 * number) for number in (len(path), *path))


def parse_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """The path of the message type, and how many bytes it takes; ValueError when there is none.

    A count of zero is the first type, (0,); so is the long form, a count of one and a zero.
    """
    count, at = _read_varint(data, 0)
    if count == 0:
        return (0,), at
    # A path is as deep as messages are nested, and an index takes a byte at least.
    if not 0 < count <= len(data) - at:
        raise ValueError(f"{count} is not a number of message indexes")
    path = []
    for _ in range(count):
        index, at = _read_varint(data, at)
        if index < 0:
            raise ValueError(f"{index} is not an index of a message")
        path.append(index)
    return tuple(path), at


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of 32 bits, as Kafka writes them."""
    value = 0
    for place, byte in enumerate(data[at : at + 5]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at + place + 1
    raise ValueError("the message indexes are cut")


def _protos(schema_text: str, references: Sequence[tuple[str, str]]) -> Protos:
    try:
        return compiled(schema_text, references)
    except MalformedProto as error:
        raise UnsupportedSchema(
            f"The Protobuf schema cannot be used: {error}.", "Register it again, with all that it imports."
        ) from error


def _numbers(kind: Kind, path: str) -> dict[str, int]:
    """By path, as tables name columns, the numbers of fields that are columns."""
    found: dict[str, int] = {}
    if not isinstance(kind.spark, t.StructType):
        return found
    for part in kind.parts:
        here = f"{path}{part.name}"
        found[here] = part.number
        inside = "{}" if part.key is not None else "[]" if part.repeated else ""
        found |= _numbers(part.kind, f"{here}{inside}.")
    return found
