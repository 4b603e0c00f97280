"""Messages as people read them: decoded by the schemas that they name, their numbers exact in a browser."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from headgate.decode.protos import MalformedProto
from headgate.errors import NotFound, UnsupportedSchema
from headgate.kafka.offsets import size_of
from headgate.kafka.readable import HEADER, MAGIC, MALFORMED, Reader, WriterSchema, exact, moment
from headgate.registry.client import RegisteredSchema, SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.server.messages.protobuf import message_type_at, read_indexes

# Whole numbers up to there are exact in JavaScript.
LARGEST_EXACT = 2**53 - 1


class Undecodable(Exception):
    """Why bytes cannot be decoded, as a text that completes 'the value …'."""


@dataclass(frozen=True)
class Part:
    """A key or a value: its content, in which format it was read, by which schema, and what is wrong."""

    content: Any
    format: str
    schema_id: int | None = None
    error: str | None = None


class MessageReader:
    """Reads with the schemas of a registry. Raises RegistryUnavailable while that does not answer.

    `sees` tells whether whoever reads may see a schema: where not, a message that names it is not decoded.
    """

    def __init__(self, schemas: SchemaSource, sees: Callable[[int], bool]) -> None:
        self._schemas = schemas
        self._sees = sees
        # Avro, and what has no schema, is read as records are everywhere else.
        self._reader = Reader(self._writer_schema)

    def shown(self, message: Message) -> dict[str, Any]:
        key, value = self.read(_bytes(message.key())), self.read(_bytes(message.value()))
        errors = [f"the {name} {part.error}" for name, part in (("key", key), ("value", value)) if part.error]
        return {
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": moment(*message.timestamp()),
            "key": key.content,
            "value": value.content,
            "headers": _headers(message),
            "key_format": key.format,
            "value_format": value.format,
            "key_schema_id": key.schema_id,
            "value_schema_id": value.schema_id,
            "bytes": size_of(message),
            "error": "; ".join(errors) or None,
        }

    def read(self, data: bytes | None) -> Part:
        if data is None or len(data) < HEADER or data[0] != MAGIC:
            found = self._reader.read(data)
            # The reader writes bytes in base64, which nobody can read.
            content = data.hex() if found.format == "bytes" and data is not None else found.content
            return Part(browser_exact(content), found.format)
        schema_id = int.from_bytes(data[1:HEADER], "big")
        if not self._sees(schema_id):
            # Whether there is such a schema is not told either.
            return Part(
                data.hex(), "bytes", None, f"names schema {schema_id}, which is under no subject that you see"
            )
        try:
            content, kind = self._by_schema(schema_id, data)
        except NotFound:
            return Part(
                data.hex(), "bytes", None, f"names schema {schema_id}, which the registry does not have"
            )
        except (Undecodable, UnsupportedSchema, MalformedProto) as error:
            return Part(data.hex(), "bytes", schema_id, f"cannot be decoded by schema {schema_id}: {error}")
        return Part(browser_exact(content), kind, schema_id)

    def _by_schema(self, schema_id: int, data: bytes) -> tuple[Any, str]:
        schema = self._schemas.schema(schema_id)
        try:
            match schema.type:
                case SchemaType.AVRO:
                    return exact(self._reader.decode_avro(schema_id, schema.text, data)), "avro"
                case SchemaType.JSON:
                    return self._reader.decode_json(data[HEADER:]), "json"
                case SchemaType.PROTOBUF:
                    return _protobuf(schema, data[HEADER:]), "protobuf"
        except MALFORMED as error:
            raise Undecodable(f"{type(error).__name__}: {error}".rstrip(": ")) from error

    def _writer_schema(self, schema_id: int) -> WriterSchema:
        schema = self._schemas.schema(schema_id)
        return WriterSchema(schema.type.value, schema.text)


def browser_exact(value: Any) -> Any:
    """The value with whole numbers that JavaScript would round as texts."""
    match value:
        case bool():
            return value
        case int() if abs(value) > LARGEST_EXACT:
            return str(value)
        case dict():
            return {key: browser_exact(item) for key, item in value.items()}
        case list():
            return [browser_exact(item) for item in value]
        case _:
            return value


def _protobuf(schema: RegisteredSchema, data: bytes) -> Mapping[str, Any]:
    try:
        indexes, length = read_indexes(data)
        made = GetMessageClass(message_type_at(schema, indexes))()
        made.ParseFromString(data[length:])
    except (DecodeError, ValueError) as error:
        raise Undecodable(str(error)) from error
    return MessageToDict(made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def _headers(message: Message) -> list[dict[str, str | None]]:
    pairs: list[tuple[str, str | bytes | None]] = list(message.headers() or ())  # type: ignore[arg-type]
    return [_header(name, content) for name, content in pairs]


def _header(name: str, content: str | bytes | None) -> dict[str, str | None]:
    if content is None or isinstance(content, str):
        return {"name": name, "text": content, "hex": None}
    try:
        return {"name": name, "text": content.decode(), "hex": None}
    except UnicodeDecodeError:
        return {"name": name, "text": None, "hex": content.hex()}


def _bytes(part: str | bytes | None) -> bytes | None:
    """confluent_kafka declares both, and gives bytes."""
    return part.encode() if isinstance(part, str) else part
