"""What a table must have of a message, said a second time: field by field, from Google's own object."""

import math
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Fd

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WRAPPERS = {"Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes"}


def expected(message: Any) -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: Any) -> Any:
    value = getattr(message, field.name)
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, inner = entry.fields_by_number[1], entry.fields_by_number[2]
        return {_one(k, key, False): _one(value[k], inner, False) for k in value}
    if field.is_repeated:
        return [_one(item, field, False) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(value, field, "precision" in str(field.GetOptions()))


def _one(value: Any, field: Any, sized: bool) -> Any:
    if field.type == Fd.TYPE_ENUM:
        return field.enum_type.values_by_number[value].name
    if field.type in (Fd.TYPE_UINT64, Fd.TYPE_FIXED64):
        return Decimal(value)
    if field.type == Fd.TYPE_FLOAT:
        return same_float(value)
    if field.type == Fd.TYPE_DOUBLE:
        return same_float(value)
    return _message(value, sized) if field.message_type is not None else value


def _message(value: Any, sized: bool) -> Any:
    name = value.DESCRIPTOR.full_name
    short = name.removeprefix("google.protobuf.")
    if name != short and short.removesuffix("Value") in WRAPPERS:
        return _one(value.value, value.DESCRIPTOR.fields_by_name["value"], False)
    match name:
        case "google.protobuf.Timestamp":
            return EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
        case "google.type.Date":
            return date(value.year, value.month, value.day)
        case "google.protobuf.Empty":
            return True
        case "confluent.type.Decimal" if sized:
            return Decimal(int.from_bytes(value.value, "big", signed=True)).scaleb(-value.scale)
        case "google.protobuf.Struct" | "google.protobuf.Value" | "google.protobuf.ListValue":
            return Json(_json(value))
    return expected(value)


class Json:
    """JSON text is as good as any that reads as this value."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _json(value: Any) -> Any:
    name = value.DESCRIPTOR.name
    if name == "Struct":
        return {key: _json(value.fields[key]) for key in value.fields}
    if name == "ListValue":
        return [_json(item) for item in value.values]
    which = value.WhichOneof("kind")
    found = getattr(value, which)
    if which in ("struct_value", "list_value"):
        return _json(found)
    return None if which == "null_value" else found


def same_float(value: float) -> Any:
    """Something that is equal for the same value: NaN too, and -0.0 is not 0.0."""
    return "nan" if math.isnan(value) else struct.pack("<d", value).hex()


def comparable(read: Any, wanted: Any) -> Any:
    """`read` with floats, maps and JSON in the form that `wanted` has them in."""
    import json

    if isinstance(wanted, Json):
        return Json if read is not None and json.loads(read) == wanted.value else read
    if isinstance(read, float):
        return same_float(read)
    if isinstance(wanted, dict) and read is not None:
        pairs = dict(read) if isinstance(read, list) else _as_dict(read)
        return {key: comparable(value, wanted.get(key)) for key, value in pairs.items()}
    if isinstance(wanted, list) and read is not None:
        return (
            [comparable(a, b) for a, b in zip(read, wanted, strict=True)]
            if len(read) == len(wanted)
            else read
        )
    return bytes(read) if isinstance(read, bytearray) else read


def _as_dict(read: Any) -> dict[Any, Any]:
    return read if isinstance(read, dict) else read.asDict()


def assert_same(read: Any, wanted: Any) -> None:
    assert comparable(read, wanted) == _shown(wanted)


def _shown(wanted: Any) -> Any:
    if isinstance(wanted, Json):
        return Json
    if isinstance(wanted, dict):
        return {key: _shown(value) for key, value in wanted.items()}
    return [_shown(value) for value in wanted] if isinstance(wanted, list) else wanted
