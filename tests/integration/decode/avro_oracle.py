"""A second reading of Avro bytes, in plain Python: what the columns must be, or that the bytes are wrong.

Days are numbers of days, timestamps are numbers of microseconds: Python's own end with the year 9999.
"""

import struct
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

EXACT = Context(prec=100)
MICROS = {
    "timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1000,
    "local-timestamp-micros": 1,
    "time-millis": 1000,
}


class Wrong(Exception):
    """No message of the schema."""


def columns_of(schema: dict[str, Any], body: bytes) -> dict[str, Any]:
    """The columns of a message whose schema is a record."""
    source = _Source(body)
    found: dict[str, Any] = _value(schema, source)
    if source.at != len(body):
        raise Wrong("bytes after the end")
    return found


class _Source:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self._body):
            raise Wrong(f"{count} bytes")
        self.at += count
        return self._body[self.at - count : self.at]

    def number(self, most: int = 10) -> int:
        found = shift = 0
        for _ in range(most):
            octet = self.take(1)[0]
            found |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                found &= 0xFFFF_FFFF_FFFF_FFFF if most == 10 else 0xFFFF_FFFF
                return (found >> 1) ^ -(found & 1)
        raise Wrong("a number without end")

    def items(self) -> Any:
        while (count := self.number()) != 0:
            if count < 0:
                count = -count
                self.number()
            yield from range(count)


def _value(schema: Any, source: _Source) -> Any:
    if isinstance(schema, list):
        return _union(schema, source)
    kind, logical = (schema, None) if isinstance(schema, str) else (schema["type"], schema.get("logicalType"))
    match kind:
        case "null":
            return None
        case "boolean":
            octet = source.take(1)[0]
            if octet > 1:
                raise Wrong("boolean")
            return octet == 1
        case "int":
            number = source.number()
            if not -(2**31) <= number < 2**31:
                raise Wrong("int")
            return number * MICROS.get(str(logical), 1)
        case "long":
            number = source.number() * MICROS.get(str(logical), 1)
            if not -(2**63) <= number < 2**63:
                raise Wrong("timestamp")
            return number
        case "float":
            return struct.unpack("<f", source.take(4))[0]
        case "double":
            return struct.unpack("<d", source.take(8))[0]
        case "bytes":
            return _octets(schema, source.take(source.number()))
        case "string":
            return _text(source)
        case "fixed":
            return _octets(schema, source.take(schema["size"]))
        case "enum":
            number = source.number()
            if not 0 <= number < len(schema["symbols"]):
                raise Wrong("symbol")
            return schema["symbols"][number]
        case "array":
            return [_value(schema["items"], source) for _ in source.items()]
        case "map":
            entries = [(_text(source), _value(schema["values"], source)) for _ in source.items()]
            if len(dict(entries)) < len(entries):
                raise Wrong("a key twice")
            return entries
    return {field["name"]: _value(field["type"], source) for field in schema["fields"]}


def _text(source: _Source) -> str:
    try:
        return source.take(source.number()).decode()
    except UnicodeDecodeError as error:
        raise Wrong("text") from error


def _octets(schema: Any, octets: bytes) -> Any:
    match None if isinstance(schema, str) else schema.get("logicalType"):
        case "decimal":
            number = int.from_bytes(octets, "big", signed=True)
            if not octets or abs(number) >= 10 ** schema["precision"]:
                raise Wrong("decimal")
            return Decimal(number).scaleb(-schema["scale"], EXACT)
        case "uuid":
            return str(UUID(bytes=octets))
        case "duration":
            months, days, millis = struct.unpack("<3I", octets)
            return {"months": months, "days": days, "millis": millis}
    return octets


def _union(branches: list[Any], source: _Source) -> Any:
    number = source.number(5)
    if not 0 <= number < len(branches):
        raise Wrong("branch")
    value = _value(branches[number], source)
    real = [branch for branch in branches if branch != "null"]
    if len(real) == 1 or branches[number] == "null" or sorted(map(str, real)) in WIDENED:
        return value
    return {**{name_of(branch): None for branch in real}, name_of(branches[number]): value}


WIDENED = (["int", "long"], ["double", "float"])


def name_of(branch: Any) -> str:
    return branch if isinstance(branch, str) else str(branch.get("name", branch["type"]))
