"""Protobuf messages. Each schema becomes the source of one Python function per message type, compiled once.

A field's number is its place among the fields: new ones come at the end, and a renamed one keeps its place.
"""

import struct
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from headgate.datagen.avro import CONTINUED, LAST, TABLE, Encoder
from headgate.datagen.scenario import Schema

#: Behind the schema id: the message is of the file's first type.
FIRST_MESSAGE = b"\0"

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
_SCALARS = {
    "string": "string",
    "int": "int32",
    "long": "int64",
    "boolean": "bool",
    "float": "float",
    "double": "double",
}
_DECIMAL = "confluent/meta.proto", "confluent/type/decimal.proto"
_TIMESTAMP = "google/protobuf/timestamp.proto"
_DATE = "google/type/date.proto"


def proto_text(schema: Schema) -> str:
    """The text of the file whose first message is the record."""
    imports: set[str] = set()
    message = "\n".join(_message(schema, imports))
    lines = ['syntax = "proto3";', ""]
    if "namespace" in schema:
        lines += [f"package {schema['namespace']};", ""]
    lines += [f'import "{name}";' for name in sorted(imports)]
    return "\n".join([*lines, "", message, ""])


def _message(schema: Schema, imports: set[str]) -> Iterator[str]:
    yield f"message {schema['name']} {{"
    for number, field in enumerate(schema["fields"], 1):
        for nested in _nested(field["type"]):
            lines = _enum(nested) if nested["type"] == "enum" else _message(nested, imports)
            yield from (f"  {line}" for line in lines)
        kind, options = _field_type(field["type"], imports)
        yield f"  {kind} {field['name']} = {number}{options};"
    yield "}"


def _enum(schema: Schema) -> Iterator[str]:
    yield f"enum {schema['name']} {{"
    yield from (f"  {symbol} = {number};" for number, symbol in enumerate(schema["symbols"]))
    yield "}"


def _nested(schema: Any) -> Iterator[Schema]:
    """The records and enums that a field's type defines."""
    match schema:
        case list():
            yield from _nested(schema[1])
        case {"type": "record" | "enum"}:
            yield schema
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            yield from _nested(inner)


def _field_type(schema: Any, imports: set[str]) -> tuple[str, str]:
    """A field's type as a file has it, and its options."""
    if isinstance(schema, list):
        kind, options = _field_type(schema[1], imports)
        return f"optional {kind}", options
    kind = schema if isinstance(schema, str) else schema["type"]
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    match kind, logical:
        case (("record" | "enum"), _):
            return str(schema["name"]), ""
        case "array", _:
            return f"repeated {_field_type(schema['items'], imports)[0]}", ""
        case "map", _:
            return f"map<string, {_field_type(schema['values'], imports)[0]}>", ""
        case "bytes", "decimal":
            imports.update(_DECIMAL)
            digits = ", ".join(
                f'{{key: "{name}", value: "{schema[name]}"}}' for name in ("precision", "scale")
            )
            return "confluent.type.Decimal", f" [(confluent.field_meta) = {{params: [{digits}]}}]"
        case "int", "date":
            imports.add(_DATE)
            return "google.type.Date", ""
        case "long", "timestamp-millis" | "timestamp-micros":
            imports.add(_TIMESTAMP)
            return "google.protobuf.Timestamp", ""
        case _, None if kind in _SCALARS:
            return _SCALARS[kind], ""
    raise ValueError(f"No Protobuf type is made for {schema}.")


def compile_protobuf(schema: Schema) -> Encoder:
    """An encoder for a record's schema."""
    source = _Source()
    top = source.record(schema)
    names = source.names
    exec("\n".join(source.functions), names)  # noqa: S102  made from our own schemas, never from input
    encoder: Encoder = names[top]
    return encoder


def encode_varint(number: int) -> bytes:
    """Negative numbers are those of 64 bits with the same bits."""
    if 0 <= number < TABLE:
        return LAST[number]
    number &= 0xFFFF_FFFF_FFFF_FFFF
    out = b""
    while number >= TABLE:
        out += CONTINUED[number & 0x3FFF]
        number >>= 14
    return out + LAST[number]


def _tag(number: int, wire_type: int) -> bytes:
    return encode_varint(number << 3 | wire_type)


def _number(tag: bytes, value: int) -> bytes:
    """A number as the field of a message of ours: none where it is 0."""
    return tag + encode_varint(value) if value else b""


@lru_cache(maxsize=1 << 16)
def encode_decimal(number: Decimal, precision: int, scale: int) -> bytes:
    unscaled = int(number.scaleb(scale))
    content = unscaled.to_bytes((unscaled.bit_length() >> 3) + 1, "big", signed=True)
    value = _tag(1, LENGTH) + encode_varint(len(content)) + content
    return value + _number(_tag(2, VARINT), precision) + _number(_tag(3, VARINT), scale)


@lru_cache(maxsize=1 << 12)
def encode_date(days: int) -> bytes:
    day = date(1970, 1, 1) + timedelta(days=days)
    parts = enumerate((day.year, day.month, day.day), 1)
    return b"".join(_number(_tag(number, VARINT), value) for number, value in parts)


def encode_timestamp(at_us: int) -> bytes:
    seconds, micros = divmod(at_us, 1_000_000)
    return _number(b"\x08", seconds) + _number(b"\x10", micros * 1000)


class _Source:
    """Python source, as it is written. `names` is what its functions refer to."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.names: dict[str, Any] = {
            "varint": encode_varint,
            "decimal": encode_decimal,
            "date": encode_date,
            "timestamp": encode_timestamp,
            "single": struct.Struct("<f").pack,
            "double": struct.Struct("<d").pack,
        }
        self._given = 0

    def record(self, schema: Schema) -> str:
        """The name of a function from a record to its bytes."""
        name = self._name(schema["name"])
        parts = []
        lines = [f"def {name}(record):"]
        for number, field in enumerate(schema["fields"], 1):
            value = self._name("value")
            lines.append(f"    {value} = record[{field['name']!r}]")
            parts.append(self._field(number, field["type"], value))
        lines.append(f"    return b''.join(({', '.join(parts)},))")
        self.functions.append("\n".join(lines))
        return name

    def _field(self, number: int, schema: Any, value: str) -> str:
        """An expression whose bytes are the field, with its tag; none where it has its type's default."""
        if isinstance(schema, list):
            wire_type, text = self._value(schema[1], value)
            return f"(b'' if {value} is None else {_tag(number, wire_type)!r} + {text})"
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "array":
            item = self._name("item")
            wire_type, text = self._value(schema["items"], item)
            return f"b''.join([{_tag(number, wire_type)!r} + {text} for {item} in {value}])"
        if kind == "map":
            key, item = self._name("key"), self._name("item")
            fields = f"{self._field(1, 'string', key)} + {self._field(2, schema['values'], item)}"
            entry = self._sized(fields)
            tag = _tag(number, LENGTH)
            return f"b''.join([{tag!r} + {entry} for {key}, {item} in {value}.items()])"
        wire_type, text = self._value(schema, value)
        tagged = f"{_tag(number, wire_type)!r} + {text}"
        is_message = kind == "record" or (isinstance(schema, dict) and "logicalType" in schema)
        if is_message:
            return tagged
        if kind == "enum":
            first = schema["symbols"][0]
            return f"({tagged} if {value} != {first!r} else b'')"
        return f"({tagged} if {value} else b'')"

    def _value(self, schema: Any, value: str) -> tuple[int, str]:
        """The wire type of a value that is no list or map, and an expression whose bytes it is."""
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        match kind, logical:
            case "record", _:
                return LENGTH, self._sized(f"{self.record(schema)}({value})")
            case "enum", _:
                symbols = self._name(schema["name"])
                self.names[symbols] = {text: encode_varint(i) for i, text in enumerate(schema["symbols"])}
                return VARINT, f"{symbols}[{value}]"
            case "bytes", "decimal":
                return LENGTH, self._sized(f"decimal({value}, {schema['precision']}, {schema['scale']})")
            case "int", "date":
                return LENGTH, self._sized(f"date({value})")
            case "long", "timestamp-millis":
                return LENGTH, self._sized(f"timestamp({value} * 1000)")
            case "long", "timestamp-micros":
                return LENGTH, self._sized(f"timestamp({value})")
            case "string", None:
                return LENGTH, self._sized(f"{value}.encode()")
            case (("int" | "long"), None):
                return VARINT, f"varint({value})"
            case "boolean", None:
                return VARINT, f"(b'\\1' if {value} else b'\\0')"
            case "float", None:
                return FOUR_BYTES, f"single({value})"
            case "double", None:
                return EIGHT_BYTES, f"double({value})"
        raise ValueError(f"No encoder is made for {schema}.")

    def _sized(self, text: str) -> str:
        """An expression of the bytes of another with their length before them."""
        body = self._name("body")
        return f"varint(len({body} := {text})) + {body}"

    def _name(self, stem: str) -> str:
        self._given += 1
        return f"{stem}_{self._given}"
