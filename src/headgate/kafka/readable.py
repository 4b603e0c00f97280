"""Keys and values as people read them: Avro by its schema, JSON, text, and bytes when all else fails."""

import io
import json
import math
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from headgate.errors import NotFound

MAGIC = 0
HEADER = 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What fastavro raises for bytes that are not what their schema says.
MALFORMED = (EOFError, IndexError, KeyError, OverflowError, StopIteration, TypeError, ValueError)


@dataclass(frozen=True)
class WriterSchema:
    """A schema as the registry has it: its type (AVRO, JSON, PROTOBUF) and its text, self-contained."""

    type: str
    text: str


@dataclass(frozen=True)
class Readable:
    """`content` fits into JSON; `format` is avro, json, text, bytes or none."""

    content: Any
    format: str
    schema_id: int | None = None


class Reader:
    """Reads with the schemas that `schema_of` finds by their ids, or raises NotFound for."""

    def __init__(self, schema_of: Callable[[int], WriterSchema]) -> None:
        self._schema_of = schema_of
        self._parsed: dict[int, Any] = {}

    def read(self, data: bytes | None) -> Readable:
        if data is None:
            return Readable(None, "none")
        if len(data) >= HEADER and data[0] == MAGIC:
            found = self._by_schema(int.from_bytes(data[1:HEADER], "big"), data)
            if found is not None:
                return found
        return _without_schema(data)

    def record(self, message: Message) -> dict[str, Any]:
        """A whole record in JSON's types, nothing rounded."""
        key, value = self.read(_bytes(message.key())), self.read(_bytes(message.value()))
        record = {
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": moment(*message.timestamp()),
            "key": key.content,
            "value": value.content,
            "key_format": key.format,
            "value_format": value.format,
        }
        return record if value.schema_id is None else record | {"schema_id": value.schema_id}

    def _by_schema(self, schema_id: int, data: bytes) -> Readable | None:
        """None if the bytes only look as if they had a schema, or do not fit theirs."""
        try:
            schema = self._schema_of(schema_id)
        except NotFound:
            return None
        try:
            if schema.type == "AVRO":
                return Readable(exact(self.decode_avro(schema_id, schema.text, data)), "avro", schema_id)
            if schema.type == "JSON":
                return Readable(self.decode_json(data[HEADER:]), "json", schema_id)
        except MALFORMED:
            return None
        return Readable(_encoded(data), "bytes", schema_id)

    def decode_json(self, body: bytes) -> Any:
        """What stands behind the wire prefix; raises one of MALFORMED."""
        return _json(body.decode())

    def decode_avro(self, schema_id: int, text: str, data: bytes) -> Any:
        """Of bytes with their wire prefix; raises one of MALFORMED."""
        if schema_id not in self._parsed:
            self._parsed[schema_id] = fastavro.parse_schema(json.loads(text))
        stream = io.BytesIO(data)
        stream.seek(HEADER)
        found = fastavro.schemaless_reader(stream, self._parsed[schema_id], None)
        if stream.read(1):
            raise ValueError("There are bytes behind the value.")
        return found


def _without_schema(data: bytes) -> Readable:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return Readable(_encoded(data), "bytes")
    if text.lstrip().startswith(("{", "[")):
        try:
            return Readable(_json(text), "json")
        except json.JSONDecodeError:
            pass
    if any(ord(character) < 0x20 and character not in "\t\r\n" for character in text):
        return Readable(_encoded(data), "bytes")
    return Readable(text, "text")


def _json(text: str) -> Any:
    """Numbers that a float may not hold exactly become text, as they were written."""
    return json.loads(text, parse_float=_number)


def _number(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) and Decimal(repr(number)) == Decimal(text) else text


def exact(value: Any) -> Any:
    """The value with everything that JSON has no exact form for as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return format(value, "f")
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta() | UUID():
            return str(value)
        case bytes():
            return _encoded(value)
        case dict():
            return {str(key): exact(item) for key, item in value.items()}
        case list() | tuple():
            return [exact(item) for item in value]
        case _:
            raise TypeError(f"No readable form for {type(value).__name__}.")


def _bytes(part: str | bytes | None) -> bytes | None:
    """confluent_kafka declares both, and gives bytes."""
    return part.encode() if isinstance(part, str) else part


def moment(kind: int, milliseconds: int) -> str | None:
    """The time of a record, if it has one."""
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return None
    try:
        return str(exact(EPOCH + timedelta(milliseconds=milliseconds)))
    except OverflowError:
        # Any number can stand there; a calendar ends.
        return f"{milliseconds} ms"


def _encoded(data: bytes) -> str:
    return "base64:" + b64encode(data).decode()
