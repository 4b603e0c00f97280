"""The formats that records can be written in. A scenario says its schemas in Avro; others follow."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headgate.datagen.avro import compile_key, compile_schema, wire_header
from headgate.datagen.json_text import compile_json, compile_json_key, json_schema
from headgate.datagen.protobuf import FIRST_MESSAGE, compile_protobuf, proto_text
from headgate.datagen.scenario import Schema

Encode = Callable[[dict[str, Any]], bytes]
EncodeKey = Callable[[bytes], bytes]


class Format(StrEnum):
    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as registries take it."""

    type: str
    text: str


def registered_schema(kind: Format, schema: Schema) -> RegisteredSchema:
    match kind:
        case Format.AVRO:
            return RegisteredSchema("AVRO", json.dumps(schema))
        case Format.JSON:
            return RegisteredSchema("JSON", json.dumps(json_schema(schema)))
        case Format.PROTOBUF:
            return RegisteredSchema("PROTOBUF", proto_text(schema))


def wire_prefix(kind: Format, schema_id: int) -> bytes:
    """What stands before a value in Confluent wire format."""
    prefix = wire_header(schema_id)
    return prefix + FIRST_MESSAGE if kind is Format.PROTOBUF else prefix


def value_encoder(kind: Format, schema: Schema) -> Encode:
    """What makes of a value the bytes behind its wire prefix."""
    match kind:
        case Format.AVRO:
            return compile_schema(schema)
        case Format.JSON:
            return compile_json(schema)
        case Format.PROTOBUF:
            return compile_protobuf(schema)


def key_encoder(kind: Format, schema: Schema, schema_id: int) -> EncodeKey:
    """What makes of a key that is text one with a schema, wire prefix included."""
    if kind is Format.AVRO:
        return compile_key(schema, schema_id)
    if kind is Format.JSON:
        return compile_json_key(schema, schema_id)
    raise ValueError("Keys with a schema are in topics of change events, which are never Protobuf.")
