"""Whether the bytes of one message say nothing but what its schema has: a strict look at the wire format.

Parsers are lenient: they keep or drop fields that they do not know, cut numbers that are too long for their
field, and drop values that an enum lacks. Here each of these is a flaw: producers write by the schema that
they name.
"""

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

VARINT, FIXED64, BYTES, GROUP_START, GROUP_END, FIXED32 = range(6)
_FD = FieldDescriptor
_WIRE_TYPES = {
    _FD.TYPE_DOUBLE: FIXED64,
    _FD.TYPE_FIXED64: FIXED64,
    _FD.TYPE_SFIXED64: FIXED64,
    _FD.TYPE_FLOAT: FIXED32,
    _FD.TYPE_FIXED32: FIXED32,
    _FD.TYPE_SFIXED32: FIXED32,
    _FD.TYPE_STRING: BYTES,
    _FD.TYPE_BYTES: BYTES,
    _FD.TYPE_MESSAGE: BYTES,
    _FD.TYPE_GROUP: GROUP_START,
}
_WIDTHS = {FIXED64: 8, FIXED32: 4}


#: Google's parsers do not go deeper.
MAX_DEPTH = 100


class Flaw(Exception):
    """What is wrong, as a text that completes 'the record …'."""


def check(data: bytes, descriptor: Descriptor) -> None:
    """Raises the first Flaw."""
    _message(data, 0, len(data), descriptor, "", 0)


def _message(data: bytes, at: int, end: int, descriptor: Descriptor, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise Flaw(f"is nested too deeply in field '{path.partition('.')[0]}'")
    while at < end:
        key, at = _varint(data, at, end)
        field = descriptor.fields_by_number.get(key >> 3)
        if field is None:
            inside = f" in '{path}'" if path else ""
            raise Flaw(f"has field number {key >> 3}{inside}, which {descriptor.full_name} lacks")
        at = _field(data, at, end, field, key & 7, f"{path}.{field.name}".lstrip("."), depth)


def _field(
    data: bytes, at: int, end: int, field: FieldDescriptor, wire_type: int, path: str, depth: int
) -> int:
    wanted = _WIRE_TYPES.get(field.type, VARINT)
    packed = wire_type == BYTES and wanted != BYTES and field.is_repeated and wanted != GROUP_START
    if wire_type != wanted and not packed:
        raise Flaw(f"has another type than the schema's in field '{path}'")
    if wire_type == VARINT:
        value, at = _varint(data, at, end)
        _check_number(value, field, path)
        return at
    if wire_type in _WIDTHS:
        return _step(at, _WIDTHS[wire_type], end)
    if wire_type == GROUP_START:
        raise Flaw(f"has a group in field '{path}'")
    length, at = _varint(data, at, end)
    stop = _step(at, length, end)
    if packed:
        _packed(data, at, stop, field, path)
    elif field.type == _FD.TYPE_MESSAGE:
        assert field.message_type is not None
        _message(data, at, stop, field.message_type, path, depth + 1)
    elif field.type == _FD.TYPE_STRING:
        _check_text(data[at:stop], path)
    return stop


def _packed(data: bytes, at: int, end: int, field: FieldDescriptor, path: str) -> None:
    width = _WIDTHS.get(_WIRE_TYPES.get(field.type, VARINT))
    if width is not None:
        if (end - at) % width:
            raise Flaw(f"is cut in field '{path}'")
        return
    while at < end:
        value, at = _varint(data, at, end)
        _check_number(value, field, path)


def _check_number(value: int, field: FieldDescriptor, path: str) -> None:
    signed = value - 2**64 if value >= 2**63 else value
    match field.type:
        case _FD.TYPE_INT32:
            fits = -(2**31) <= signed < 2**31
        case _FD.TYPE_UINT32 | _FD.TYPE_SINT32:
            fits = value < 2**32
        case _FD.TYPE_BOOL:
            fits = value < 2
        case _FD.TYPE_ENUM:
            assert field.enum_type is not None
            if signed not in field.enum_type.values_by_number:
                raise Flaw(unknown_constant(signed, field.enum_type, path))
            fits = True
        case _:
            fits = True
    if not fits:
        raise Flaw(f"has a number in field '{path}' that is too long for its type")


def unknown_constant(number: int, enum: EnumDescriptor, path: str) -> str:
    return f"has {number} in field '{path}', which enum {enum.full_name} lacks"


def bad_text(path: str) -> str:
    return f"has text in field '{path}' that is not UTF-8"


def _check_text(data: bytes, path: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Flaw(bad_text(path)) from error


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 2**64:
                raise Flaw("has a number that is too long")
            return value, at
        shift += 7
        if shift >= 70:
            break
    raise Flaw("is cut in a number")


def _step(at: int, length: int, end: int) -> int:
    if at + length > end:
        raise Flaw("is cut")
    return at + length
