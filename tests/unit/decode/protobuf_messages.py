"""Random messages, of any type, whose values are all ones that a table holds."""

from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Fd
from hypothesis import strategies as st

_INTS = {
    **dict.fromkeys((Fd.TYPE_INT32, Fd.TYPE_SINT32, Fd.TYPE_SFIXED32), st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys((Fd.TYPE_INT64, Fd.TYPE_SINT64, Fd.TYPE_SFIXED64), st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys((Fd.TYPE_UINT32, Fd.TYPE_FIXED32), st.integers(0, 2**32 - 1)),
    **dict.fromkeys((Fd.TYPE_UINT64, Fd.TYPE_FIXED64), st.integers(0, 2**64 - 1)),
}
_SCALARS: dict[int, st.SearchStrategy[Any]] = {
    **_INTS,
    Fd.TYPE_FLOAT: st.floats(width=32),
    Fd.TYPE_DOUBLE: st.floats(),
    Fd.TYPE_BOOL: st.booleans(),
    Fd.TYPE_STRING: st.text(max_size=8),
    Fd.TYPE_BYTES: st.binary(max_size=8),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def messages(draw: st.DrawFn, kind: Any) -> Any:
    """A message of the class `kind`."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if draw(st.booleans()):
            _fill(draw, message, field)
    return message


def _fill(draw: st.DrawFn, message: Any, field: Any) -> None:
    entry = field.message_type
    found = getattr(message, field.name)
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_number[1], entry.fields_by_number[2]
        for k in draw(st.lists(_SCALARS[key.type], max_size=3)):
            if value.message_type is not None:
                _fill_message(draw, found[k], value)
            else:
                found[k] = draw(_scalar(value))
    elif field.is_repeated:
        for _ in range(draw(st.integers(0, 3))):
            if entry is not None:
                _fill_message(draw, found.add(), field)
            else:
                found.append(draw(_scalar(field)))
    elif entry is not None:
        found.SetInParent()
        _fill_message(draw, found, field)
    else:
        setattr(message, field.name, draw(_scalar(field)))


def _scalar(field: Any) -> st.SearchStrategy[Any]:
    if field.type == Fd.TYPE_ENUM:
        return st.sampled_from(sorted(field.enum_type.values_by_number))
    return _SCALARS[field.type]


def _fill_message(draw: st.DrawFn, message: Any, field: Any) -> None:
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            message.seconds = draw(st.integers(-62_135_596_800, 253_402_300_799))
            message.nanos = draw(st.integers(0, 999_999)) * 1000
        case "google.type.Date":
            day = draw(st.dates())
            message.year, message.month, message.day = day.year, day.month, day.day
        case "google.protobuf.Struct":
            message.update(draw(st.dictionaries(st.text(max_size=3), JSON, max_size=3)))
        case "google.protobuf.ListValue":
            message.extend(draw(st.lists(JSON, max_size=3)))
        case "google.protobuf.Value":
            message.struct_value.update({"v": draw(JSON)})
        case "confluent.type.Decimal" if "precision" in str(field.GetOptions()):
            unscaled = draw(st.integers(-(10**10) + 1, 10**10 - 1))
            message.value = unscaled.to_bytes(6, "big", signed=True)
            message.precision, message.scale = 10, 2
        case _:
            for inner in message.DESCRIPTOR.fields:
                if draw(st.booleans()):
                    _fill(draw, message, inner)


SCALARS = [
    "int32",
    "sint32",
    "sfixed32",
    "uint32",
    "fixed32",
    "int64",
    "sint64",
    "sfixed64",
    "uint64",
    "fixed64",
    "float",
    "double",
    "bool",
    "string",
    "bytes",
]
KEYS = [name for name in SCALARS if name not in ("float", "double", "bytes")]
KNOWN = ("google.protobuf.Timestamp", "google.protobuf.Int64Value", "google.protobuf.StringValue")


@st.composite
def schemas(draw: st.DrawFn, syntax: str) -> str:
    """A file whose first message is `t.M0`; messages refer to later ones, so that none is recursive."""
    count = draw(st.integers(1, 3))
    head = f'syntax = "{syntax}"; package t; import "google/protobuf/timestamp.proto";'
    parts = [head, 'import "google/protobuf/wrappers.proto"; enum E { ZERO = 0; ONE = 1; MANY = 300; }']
    for index in range(count):
        types = [*SCALARS, "E", *KNOWN, *(f"M{i}" for i in range(index + 1, count))]
        numbers = draw(
            st.lists(st.integers(1, 40) | st.integers(1, 18_999), min_size=1, max_size=8, unique=True)
        )
        fields = [_declared(draw, syntax, number, types) for number in numbers]
        parts.append(f"message M{index} {{ {' '.join(fields)} }}")
    return "\n".join(parts)


def _declared(draw: st.DrawFn, syntax: str, number: int, types: list[str]) -> str:
    kind = draw(st.sampled_from(types))
    plain = "optional " if syntax == "proto2" else ""
    packed = " [packed = true]" if draw(st.booleans()) and kind in set(SCALARS) - {"string", "bytes"} else ""
    forms = [
        f"{plain}{kind} f{number} = {number};",
        f"optional {kind} f{number} = {number};",
        f"repeated {kind} f{number} = {number}{packed};",
        f"map<{draw(st.sampled_from(KEYS))}, {kind}> f{number} = {number};",
        f"oneof o{number} {{ {kind} f{number} = {number}; }}",
    ]
    return draw(st.sampled_from(forms))
