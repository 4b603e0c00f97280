"""What somebody has typed becomes the bytes of a key or a value, by the schema that is registered for it."""

import json
import struct
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import jsonschema_rs
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass

from headgate.errors import InvalidRequest, UnsupportedSchema
from headgate.kafka.readable import HEADER, MAGIC
from headgate.registry.client import RegisteredSchema
from headgate.registry.schemas import SchemaType
from headgate.server.messages.avro_values import encode_avro
from headgate.server.messages.protobuf import FIRST, message_type_at

# Behind the schema id: the message is of the file's first type.
FIRST_TYPE = b"\0"


def parse_exact(text: str, part: str) -> Any:
    """JSON with its numbers as they are written."""
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise InvalidRequest(f"The {part} is no JSON: {error}.") from error


def encode_plain(value: Any, text: str | None) -> bytes:
    """Text as it is, anything else as JSON."""
    if text is not None:
        return text.encode()
    return value.encode() if isinstance(value, str) else _json_text(value).encode()


def encode_hex(value: Any, part: str) -> bytes:
    if isinstance(value, str):
        try:
            return bytes.fromhex(value)
        except ValueError:
            pass
    raise InvalidRequest(f"The {part} is not in hex.", "Write two digits for each byte: 00ff.")


def encode_with(schema: RegisteredSchema, value: Any, text: str | None, part: str) -> bytes:
    """With the wire prefix of the schema. Refuses a value that does not fit, and names the field."""
    prefix = struct.pack(">BI", MAGIC, schema.id)
    assert len(prefix) == HEADER
    match schema.type:
        case SchemaType.AVRO:
            return prefix + encode_avro(schema.text, value, part)
        case SchemaType.JSON:
            return prefix + _checked_json(schema, value, text, part).encode()
        case SchemaType.PROTOBUF:
            return prefix + FIRST_TYPE + _protobuf(schema, value, part)


def _checked_json(schema: RegisteredSchema, value: Any, text: str | None, part: str) -> str:
    references = tuple((one.name, one.text) for one in schema.references)
    problem = next(_validator(schema.id, schema.text, references).iter_errors(_floats(value)), None)
    if problem is not None:
        path = ".".join(map(str, problem.instance_path))
        where = f"Field '{path}' of the {part}" if path else f"The {part}"
        raise InvalidRequest(f"{where} does not fit its schema: {problem.message}.")
    return text if text is not None else _json_text(value)


@lru_cache(maxsize=64)
def _validator(schema_id: int, text: str, references: Sequence[tuple[str, str]]) -> Any:
    named = {name: json.loads(reference) for name, reference in references}

    def retrieve(address: str) -> Any:
        """Only what was registered as a reference: no address is opened."""
        found = next(
            (one for name, one in named.items() if address == name or address.endswith(f"/{name}")), None
        )
        if found is None:
            raise LookupError(f"'{address}' is not among its references")
        return found

    try:
        return jsonschema_rs.validator_for(json.loads(text), retriever=retrieve)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise UnsupportedSchema(
            f"Schema {schema_id} cannot be used to check a value: {error}", "Send the value as plain text."
        ) from error


def _protobuf(schema: RegisteredSchema, value: Any, part: str) -> bytes:
    made = GetMessageClass(message_type_at(schema, FIRST))()
    try:
        ParseDict(_floats(value), made)
    except (ParseError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"The {part} does not fit its schema: {error}") from error
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def _floats(value: Any) -> Any:
    """With numbers as checkers know them."""
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {key: _floats(item) for key, item in value.items()}
        case list():
            return [_floats(item) for item in value]
        case _:
            return value


def _json_text(value: Any) -> str:
    return json.dumps(_floats(value), ensure_ascii=False, separators=(",", ":"))
