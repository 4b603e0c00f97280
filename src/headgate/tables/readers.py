"""Which reader reads what: by a registered schema's type, or by the format that the table's owner says."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.decode.json_plain import (
    BytesReader,
    ConnectJsonReader,
    JsonReader,
    JsonTextReader,
    StringReader,
    parse_columns,
)
from headgate.decode.json_schema import JsonSchemaReader
from headgate.decode.protobuf import FIRST_MESSAGE_LONG, ProtobufReader, message_frames, parse_indexes
from headgate.decode.reader import Reader
from headgate.errors import UnsupportedSchema
from headgate.model import RecordFormat
from headgate.tables.frames import PREFIX_LENGTH, Frame, header_name

V = TypeVar("V")


class Reference(Protocol):
    """A schema that another one refers to."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...


class Schema(Protocol):
    """A registered schema with all that it refers to."""

    @property
    def id(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def references(self) -> Sequence[Reference]: ...


class OneOf(Reader):
    """One of the record types of a topic: a struct column of its own, beside those of the other types."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._column = (reader.record_name or "value").rpartition(".")[2]
        self.type = t.StructType([t.StructField(self._column, reader.type)])
        self.record_name = reader.record_name
        self.former_names = MappingProxyType(self._inside(reader.former_names))
        self.field_numbers = MappingProxyType(self._inside(reader.field_numbers))

    def raw(self, body: Column) -> Column:
        return self._reader.raw(body)

    def is_exact(self, raw: Column, body: Column) -> Column:
        return self._reader.is_exact(raw, body)

    def value(self, raw: Column) -> Column:
        return f.struct(self._reader.value(raw).alias(self._column))

    def problem(self, raw: Column, body: Column) -> Column | None:
        return self._reader.problem(raw, body)

    def _inside(self, found: Mapping[str, V]) -> dict[str, V]:
        return {f"{self._column}.{path}": value for path, value in found.items()}


def registered_reader(schema: Schema, indexes: bytes | None, part: str) -> Reader:
    """`indexes` is what follows the schema id: in Protobuf, which message of the file it is."""
    references = [(reference.name, reference.text) for reference in schema.references]
    match schema.type:
        case "AVRO":
            return AvroReader(schema.text, part)
        case "JSON":
            return JsonSchemaReader(schema.text, references, part)
        case "PROTOBUF":
            path = (0,) if indexes is None else parse_indexes(indexes)[0]
            return ProtobufReader(schema.text, references, path, part)
    raise UnsupportedSchema(f"Schema {schema.id} is of type {schema.type}.", "Use AVRO, JSON or PROTOBUF.")


def message_marks(schema: Schema) -> list[bytes]:
    """What may follow the id of a Protobuf schema: the indexes of each of its message types."""
    references = [(reference.name, reference.text) for reference in schema.references]
    # The first message may be named in two ways.
    return [*message_frames(schema.text, references).values(), FIRST_MESSAGE_LONG]


def frame_of(data: bytes, headers: Sequence[tuple[str, bytes | None]], part: str) -> Frame | None:
    """Which schema a message names, if any."""
    header = next((value for name, value in reversed(headers) if name == header_name(part)), None)
    if header is not None:
        return Frame(True, header)
    return Frame(False, data[:PREFIX_LENGTH]) if data[:1] == b"\x00" and len(data) >= PREFIX_LENGTH else None


def plain_reader(kind: RecordFormat, columns: str | None, part: str) -> Reader:
    """For messages that name no schema. `columns`: declared ones, or the schema that Connect wrote along."""
    match kind:
        case RecordFormat.JSON:
            return JsonReader(parse_columns(columns or ""))
        case RecordFormat.JSON_TEXT:
            return JsonTextReader(part, "string")
        case RecordFormat.JSON_VARIANT:
            return JsonTextReader(part, "variant")
        case RecordFormat.STRING:
            return StringReader(part)
        case RecordFormat.BYTES:
            return BytesReader(part)
        case RecordFormat.CONNECT_JSON:
            return ConnectJsonReader(json.loads(columns or "null"))
        case _:
            raise AssertionError(f"{kind} is read by schema id")


def connect_schema(data: bytes) -> str | None:
    """The schema that a message of Connect's JSON converter carries."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    schema = found.get("schema") if isinstance(found, dict) else None
    return json.dumps(schema) if isinstance(schema, dict) else None
