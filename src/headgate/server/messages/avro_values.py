"""JSON becomes the values that an Avro schema describes, or is refused with the name of the field."""

import json
import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from io import BytesIO
from typing import Any
from uuid import UUID

import fastavro

from headgate.errors import InvalidRequest

_WHOLE = {"int": 2**31, "long": 2**63}
_DIGITS = re.compile(r"-?\d{1,40}")
_BASE64 = "base64:"
_TEXTS: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
}
_MOMENTS = {"timestamp-millis": 1_000, "timestamp-micros": 1}
_LOCAL = {"local-timestamp-millis": 1_000, "local-timestamp-micros": 1}


class _Mismatch(Exception):
    """Where a value is not what the schema has there."""

    def __init__(self, path: str, wanted: str, value: Any) -> None:
        super().__init__(path)
        self.path, self.wanted, self.value = path, wanted, value


def encode_avro(text: str, value: Any, part: str) -> bytes:
    """The bytes of a key or a value behind their wire prefix. `text` is a schema that needs no others."""
    schema = _parsed(text)
    try:
        native = _Walk().value(schema, value, "")
    except _Mismatch as mismatch:
        raise _refused(mismatch, part) from mismatch
    out = BytesIO()
    try:
        fastavro.schemaless_writer(out, schema, native)
    except (ValueError, TypeError, OverflowError, struct.error) as error:
        raise InvalidRequest(f"The {part} does not fit its schema: {error}.") from error
    return out.getvalue()


def _refused(mismatch: _Mismatch, part: str) -> InvalidRequest:
    where = f"Field '{mismatch.path}' of the {part}" if mismatch.path else f"The {part}"
    if mismatch.value is _MISSING:
        return InvalidRequest(f"{where} is missing: it is {mismatch.wanted}, and has no default.")
    if mismatch.wanted == _UNKNOWN:
        return InvalidRequest(f"{where} is not in its schema.", "Leave it out, or register a schema with it.")
    shown = json.dumps(mismatch.value, ensure_ascii=False, default=str)
    shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
    return InvalidRequest(f"{where} is {shown}, and should be {mismatch.wanted}.")


_MISSING = object()
_UNKNOWN = "unknown"


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return fastavro.parse_schema(json.loads(text))


class _Walk:
    """Goes through a schema and a value side by side, and remembers the types that have names."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def value(self, schema: Any, value: Any, path: str) -> Any:
        match schema:
            case list():
                return self._union(schema, value, path)
            case str() if schema in self._named:
                return self.value(self._named[schema], value, path)
            case str():
                return _primitive(schema, None, value, path)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.value(kind, value, path)
        if "name" in schema:
            self._named[schema["name"]] = schema
        match kind:
            case "record" | "error":
                return self._record(schema, value, path)
            case "array":
                if not isinstance(value, list):
                    raise _Mismatch(path, "a list", value)
                return [self.value(schema["items"], one, f"{path}[{n}]") for n, one in enumerate(value)]
            case "map":
                if not isinstance(value, dict):
                    raise _Mismatch(path, "an object", value)
                return {
                    key: self.value(schema["values"], one, _inside(path, key)) for key, one in value.items()
                }
            case "enum":
                if value not in schema["symbols"]:
                    raise _Mismatch(path, f"one of {', '.join(schema['symbols'][:20])}", value)
                return value
            case "fixed" if schema.get("logicalType") == "decimal":
                return _decimal(schema, value, path)
            case "fixed":
                found = _bytes(value, path)
                if len(found) != schema["size"]:
                    raise _Mismatch(path, f"{schema['size']} bytes", value)
                return found
        return _primitive(kind, schema, value, path)

    def _record(self, schema: Any, value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Mismatch(path, f"an object with the fields of {schema['name']}", value)
        names = [field["name"] for field in schema["fields"]]
        for name in value:
            if name not in names:
                raise _Mismatch(_inside(path, name), _UNKNOWN, value[name])
        found = {}
        for field in schema["fields"]:
            inner = _inside(path, field["name"])
            if field["name"] in value:
                found[field["name"]] = self.value(field["type"], value[field["name"]], inner)
            elif "default" in field:
                found[field["name"]] = self._default(field["type"], field["default"], inner)
            else:
                raise _Mismatch(inner, _noun(field["type"]), _MISSING)
        return found

    def _default(self, schema: Any, default: Any, path: str) -> Any:
        """As schemas write defaults: bytes as a text of code points, times as numbers."""
        first = schema[0] if isinstance(schema, list) else schema
        if default is None:
            return None
        kind = first["type"] if isinstance(first, dict) else first
        if kind in ("bytes", "fixed"):
            raw = str(default).encode("iso-8859-1")
            if isinstance(first, dict) and first.get("logicalType") == "decimal":
                unscaled = int.from_bytes(raw, "big", signed=True)
                return Decimal(unscaled).scaleb(-int(first.get("scale", 0)))
            return raw
        if kind in ("int", "long"):
            return default
        return self.value(first, default, path)

    def _union(self, branches: list[Any], value: Any, path: str) -> Any:
        """The first branch that the value fits; of one that could be meant, its own mismatch is told."""
        if value is None and "null" in branches:
            return None
        real = [branch for branch in branches if branch != "null"]
        mismatches = []
        for branch in real:
            try:
                found = self.value(branch, value, path)
            except _Mismatch as mismatch:
                mismatches.append(mismatch)
            else:
                return self._tagged(branch, found, len(real))
        if len(mismatches) == 1:
            raise mismatches[0]
        raise _Mismatch(path, " or ".join(_noun(branch) for branch in branches), value)

    def _tagged(self, branch: Any, found: Any, branches: int) -> Any:
        """Of several branches, the writer is told which one it is: it would guess."""
        resolved = self._named.get(branch, branch) if isinstance(branch, str) else branch
        name = resolved.get("name") if isinstance(resolved, dict) else None
        return (name, found) if branches > 1 and name is not None else found


def _primitive(kind: str, schema: Any, value: Any, path: str) -> Any:
    logical = (schema or {}).get("logicalType")
    match kind:
        case "null" if value is None:
            return None
        case "boolean" if isinstance(value, bool):
            return value
        case "int" | "long":
            return _whole(kind, logical, value, path)
        case "float" | "double":
            return _real(kind, value, path)
        case "string" if isinstance(value, str):
            return _uuid(value, path) if logical == "uuid" else value
        case "bytes" if logical == "decimal":
            return _decimal(schema, value, path)
        case "bytes":
            return _bytes(value, path)
    raise _Mismatch(path, _noun(kind if schema is None else schema), value)


def _whole(kind: str, logical: str | None, value: Any, path: str) -> Any:
    """A number, or its digits; of a time also its text."""
    if isinstance(value, str) and logical is not None and logical in _TEXTS:
        try:
            return _TEXTS[logical](value)
        except ValueError as error:
            raise _Mismatch(path, _noun({"type": kind, "logicalType": logical}), value) from error
    if isinstance(value, str) and (logical in _MOMENTS or logical in _LOCAL):
        try:
            at = datetime.fromisoformat(value)
        except ValueError as error:
            raise _Mismatch(path, _noun({"type": kind, "logicalType": logical}), value) from error
        if logical in _LOCAL:
            return at.replace(tzinfo=None)
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    number = value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
    if isinstance(value, Decimal | float) and value == int(value):
        number = int(value)
    most = _WHOLE[kind]
    if not isinstance(number, int) or isinstance(number, bool) or not -most <= number < most:
        raise _Mismatch(
            path, _noun(kind if logical is None else {"type": kind, "logicalType": logical}), value
        )
    return number


def _real(kind: str, value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise _Mismatch(path, _noun(kind), value)
    try:
        number = float(value)
    except (ValueError, OverflowError) as error:
        raise _Mismatch(path, _noun(kind), value) from error
    return number


def _decimal(schema: Any, value: Any, path: str) -> Decimal:
    precision, scale = int(schema["precision"]), int(schema.get("scale", 0))
    wanted = f"a decimal of {precision} digits, {scale} of them behind the point"
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal | float):
        raise _Mismatch(path, wanted, value)
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation as error:
        raise _Mismatch(path, wanted, value) from error
    if not number.is_finite():
        raise _Mismatch(path, wanted, value)
    unscaled = number.scaleb(scale)
    if unscaled != unscaled.to_integral_value() or abs(unscaled) >= Decimal(10) ** precision:
        raise _Mismatch(path, wanted, value)
    return number


def _bytes(value: Any, path: str) -> bytes:
    """As messages show them: base64 behind its name."""
    if isinstance(value, str) and value.startswith(_BASE64):
        try:
            return b64decode(value.removeprefix(_BASE64), validate=True)
        except ValueError as error:
            raise _Mismatch(path, _noun("bytes"), value) from error
    raise _Mismatch(path, _noun("bytes"), value)


def _uuid(value: str, path: str) -> UUID:
    try:
        return UUID(value)
    except ValueError as error:
        raise _Mismatch(path, "a UUID", value) from error


_NOUNS = {
    "null": "null",
    "boolean": "true or false",
    "int": "a whole number of 32 bits",
    "long": "a whole number of 64 bits",
    "float": "a number",
    "double": "a number",
    "string": "a text",
    "bytes": "bytes, written as base64:…",
    "array": "a list",
    "map": "an object",
    "date": "a date such as 2026-11-19",
    "time-millis": "a time such as 12:30:00.000",
    "time-micros": "a time such as 12:30:00.000000",
    "timestamp-millis": "a time such as 2026-11-19T12:30:00Z",
    "timestamp-micros": "a time such as 2026-11-19T12:30:00Z",
    "local-timestamp-millis": "a time such as 2026-11-19T12:30:00",
    "local-timestamp-micros": "a time such as 2026-11-19T12:30:00",
    "decimal": "a decimal",
    "uuid": "a UUID",
}


def _noun(schema: Any) -> str:
    """What a schema asks for, in words."""
    if isinstance(schema, list):
        return " or ".join(_noun(branch) for branch in schema)
    if isinstance(schema, str):
        return _NOUNS.get(schema, schema)
    if (logical := schema.get("logicalType")) in _NOUNS:
        return _NOUNS[logical]
    kind = schema["type"]
    if kind == "enum":
        return f"one of {', '.join(schema['symbols'][:20])}"
    if kind in ("record", "fixed"):
        return f"a {schema.get('name', kind)}"
    return _noun(kind)


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
