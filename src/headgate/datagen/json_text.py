"""JSON by JSON Schema. Each schema becomes the source of a Python function per record type, compiled once."""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

from headgate.datagen.avro import Encoder, wire_header
from headgate.datagen.scenario import Schema
from headgate.datagen.times import date_text, instant_text

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def json_schema(schema: Schema) -> Schema:
    """The JSON Schema of a record. It refuses keys that it does not name: to such a schema registries let
    fields be added."""
    return {"$schema": "http://json-schema.org/draft-07/schema#", **_Converter().record(schema)}


class _Converter:
    def __init__(self) -> None:
        self._records: dict[str, Schema] = {}

    def record(self, schema: Schema) -> Schema:
        made: Schema = {
            "type": "object",
            "title": schema["name"],
            "properties": {field["name"]: self._property(field) for field in schema["fields"]},
            "required": [field["name"] for field in schema["fields"] if not isinstance(field["type"], list)],
            "additionalProperties": False,
        }
        if "doc" in schema:
            made["description"] = schema["doc"]
        self._records[schema["name"]] = made
        return made

    def _property(self, field: Schema) -> Schema:
        kind = field["type"]
        if isinstance(kind, list):
            return {"oneOf": [{"type": "null"}, self._type(kind[1])]}
        return self._type(kind)

    def _type(self, schema: Any) -> Schema:
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        match kind, logical:
            case str(), None if kind in self._records:
                return self._records[kind]
            case "record", _:
                return self.record(schema)
            case "enum", _:
                return {"type": "string", "enum": schema["symbols"]}
            case "array", _:
                return {"type": "array", "items": self._type(schema["items"])}
            case "map", _:
                return {"type": "object", "additionalProperties": self._type(schema["values"])}
            case "bytes", "decimal":
                digits = {
                    "scale": str(schema["scale"]),
                    "connect.decimal.precision": str(schema["precision"]),
                }
                return {"type": "number", "title": CONNECT_DECIMAL, "connect.parameters": digits}
            case "int", "date":
                return {"type": "string", "format": "date"}
            case "long", "timestamp-millis" | "timestamp-micros":
                return {"type": "string", "format": "date-time"}
            case "int" | "long", None:
                return {"type": "integer", "connect.type": "int32" if kind == "int" else "int64"}
            case "float" | "double", None:
                return {"type": "number", "connect.type": "float32" if kind == "float" else "float64"}
            case "string" | "boolean", None:
                return {"type": kind}
        raise ValueError(f"No JSON Schema is made for {schema}.")


def compile_json(schema: Schema) -> Encoder:
    """An encoder for a record's schema."""
    source = _Source()
    top = source.record(schema)
    names = source.names
    exec("\n".join(source.functions), names)  # noqa: S102  made from our own schemas, never from input
    to_text: Callable[[dict[str, Any]], str] = names[top]
    return lambda value: to_text(value).encode()


def compile_json_key(schema: Schema, schema_id: int) -> Callable[[bytes], bytes]:
    """What encodes a key of one column, given as text."""
    [field] = schema["fields"]
    before = wire_header(schema_id) + f"{{{quoted(field['name'])}:".encode()
    if field["type"] == "string":
        return lambda text: before + quoted(text.decode()).encode() + b"}"
    return lambda text: before + text + b"}"


@lru_cache(maxsize=1 << 16)
def decimal_text(number: Decimal) -> str:
    return f"{number:f}"


class _Source:
    """Python source, as it is written. `names` is what its functions refer to."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self.names: dict[str, Any] = {
            "quoted": quoted,
            "decimal": decimal_text,
            "instant": instant_text,
            "date": date_text,
        }
        self._given = 0
        # The functions of records, by the records' names.
        self._records: dict[str, str] = {}

    def record(self, schema: Schema) -> str:
        """The name of a function from a record to its text."""
        name = self._name(schema["name"])
        self._records[schema["name"]] = name
        parts = []
        lines = [f"def {name}(record):"]
        for number, field in enumerate(schema["fields"]):
            value = self._name("value")
            lines.append(f"    {value} = record[{field['name']!r}]")
            parts.append(repr(f"{',' if number else '{'}{quoted(field['name'])}:"))
            parts.append(self._expression(field["type"], value))
        lines.append(f"    return ''.join(({', '.join(parts)}, '}}'))")
        self.functions.append("\n".join(lines))
        return name

    def _expression(self, schema: Any, value: str) -> str:
        """An expression whose text is the JSON of the variable `value`."""
        if isinstance(schema, list):
            return f"('null' if {value} is None else {self._expression(schema[1], value)})"
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = schema.get("logicalType") if isinstance(schema, dict) else None
        match kind, logical:
            case str(), None if kind in self._records:
                return f"{self._records[kind]}({value})"
            case "record", _:
                return f"{self.record(schema)}({value})"
            case "array", _:
                item = self._name("item")
                items = f"[{self._expression(schema['items'], item)} for {item} in {value}]"
                return f"'[' + ','.join({items}) + ']'"
            case "map", _:
                key, item = self._name("key"), self._name("item")
                pair = f"quoted({key}) + ':' + {self._expression(schema['values'], item)}"
                return f"'{{' + ','.join([{pair} for {key}, {item} in {value}.items()]) + '}}'"
            case "bytes", "decimal":
                return f"decimal({value})"
            case "int", "date":
                return f"date({value})"
            case "long", "timestamp-millis":
                return f"instant({value} * 1000)"
            case "long", "timestamp-micros":
                return f"instant({value})"
            case (("string" | "enum"), _):
                return f"quoted({value})"
            case "boolean", _:
                return f"('true' if {value} else 'false')"
            case (("int" | "long" | "float" | "double"), None):
                return f"repr({value})"
        raise ValueError(f"No encoder is made for {schema}.")

    def _name(self, stem: str) -> str:
        self._given += 1
        return f"{stem}_{self._given}"
