"""Which Protobuf schemas may follow which, by Confluent's rules.

Fields are known by their numbers, messages by their names. The package, the messages, a number's type, the
members of a oneof and what is required stay as they are; the rest may change.
"""

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from headgate.decode.protos import MalformedProto, compiled
from headgate.registry.refusals import invalid_schema
from headgate.registry.schemas import ResolvedSchema

_FD = FieldDescriptor
# Types whose bytes are read alike: a number may change to another type of its group.
_GROUPS: Mapping[int, str] = {
    _FD.TYPE_INT32: "varint",
    _FD.TYPE_INT64: "varint",
    _FD.TYPE_UINT32: "varint",
    _FD.TYPE_UINT64: "varint",
    _FD.TYPE_BOOL: "varint",
    _FD.TYPE_ENUM: "varint",
    _FD.TYPE_SINT32: "zigzag",
    _FD.TYPE_SINT64: "zigzag",
    _FD.TYPE_STRING: "text or bytes",
    _FD.TYPE_BYTES: "text or bytes",
    _FD.TYPE_FIXED32: "fixed32",
    _FD.TYPE_SFIXED32: "fixed32",
    _FD.TYPE_FIXED64: "fixed64",
    _FD.TYPE_SFIXED64: "fixed64",
    _FD.TYPE_FLOAT: "float",
    _FD.TYPE_DOUBLE: "double",
}


class ProtobufCompatibility:
    """The compiler, and the comparison of what it makes of two schemas."""

    def validate(self, resolved: ResolvedSchema) -> None:
        """Refuses what the compiler does not accept, with its message."""
        _file(resolved)

    def problems(self, reader: ResolvedSchema, writer: ResolvedSchema) -> list[str]:
        """Why `reader` cannot read what `writer` wrote; nothing when it can."""
        return list(_Comparison().files(_file(writer), _file(reader)))


def content(resolved: ResolvedSchema) -> FileDescriptorProto | None:
    """Equal for text and descriptor, and for two spellings of either, that say the same: the descriptor
    without what compilers add or leave out as they like. None for what does not compile."""
    try:
        file = compiled(resolved.schema.text, resolved.named).main
    except MalformedProto:
        return None
    file.ClearField("name")
    file.ClearField("source_code_info")
    if file.syntax == "proto2":
        file.ClearField("syntax")
    for message in file.message_type:
        _drop_json_names(message)
    for field in file.extension:
        field.ClearField("json_name")
    return file


def _drop_json_names(message: DescriptorProto) -> None:
    """Those that are made of the field's name anyway."""
    for field in message.field:
        words = field.name.split("_")
        if field.json_name == words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:]):
            field.ClearField("json_name")
    for nested in message.nested_type:
        _drop_json_names(nested)


def _file(resolved: ResolvedSchema) -> FileDescriptor:
    try:
        return compiled(resolved.schema.text, resolved.named).file()
    except MalformedProto as error:
        raise invalid_schema(str(error)) from error


class _Comparison:
    """Of an old file with a new one. Types that are met again, in a field of their own type, are not."""

    def __init__(self) -> None:
        self._met: set[tuple[str, str]] = set()

    def files(self, old: FileDescriptor, new: FileDescriptor) -> Iterator[str]:
        if old.package != new.package:
            yield f"PACKAGE_CHANGED: the package '{old.package}' became '{new.package}'"
        yield from self._types(old.message_types_by_name, new.message_types_by_name)

    def _types(self, old: Mapping[str, Descriptor], new: Mapping[str, Descriptor]) -> Iterator[str]:
        for name, message in old.items():
            if _is_map(message):
                continue
            if name not in new:
                yield f"MESSAGE_REMOVED: there is no message {_local(message)} any more"
            else:
                yield from self._messages(message, new[name])

    def _messages(self, old: Descriptor, new: Descriptor) -> Iterator[str]:
        if (old.full_name, new.full_name) in self._met:
            return
        self._met.add((old.full_name, new.full_name))
        yield from self._oneofs(old, new)
        for number in sorted({*old.fields_by_number, *new.fields_by_number}):
            before, after = old.fields_by_number.get(number), new.fields_by_number.get(number)
            if before is None and after is not None and after.is_required:
                yield f"REQUIRED_FIELD_ADDED: {_named(after)} is required and new"
            elif after is None and before is not None and before.is_required:
                yield f"REQUIRED_FIELD_REMOVED: {_named(before)} was required and is gone"
            elif before is not None and after is not None:
                yield from self._fields(before, after)
        yield from self._types(old.nested_types_by_name, new.nested_types_by_name)

    def _oneofs(self, old: Descriptor, new: Descriptor) -> Iterator[str]:
        """A oneof keeps its members. A new one may take in one field that stood alone, and no other."""
        before, after = _oneofs(old), _oneofs(new)
        members = {number for numbers in before.values() for number in numbers}
        for name, numbers in after.items():
            moved = [n for n in numbers if n in old.fields_by_number and n not in members]
            if len(moved) > 1:
                where = f"{len(moved)} fields of {_local(new)} went into oneof '{name}'"
                yield f"MULTIPLE_FIELDS_MOVED_TO_ONEOF: {where}"
            elif moved and any(number in members for number in numbers):
                field = _named(new.fields_by_number[moved[0]])
                yield f"FIELD_MOVED_TO_EXISTING_ONEOF: {field} went into oneof '{name}', which had members"
        for name, numbers in before.items():
            for number in numbers:
                if name in after and number not in new.fields_by_number:
                    field = _named(old.fields_by_number[number])
                    yield f"ONEOF_FIELD_REMOVED: {field} is gone from oneof '{name}'"

    def _fields(self, old: FieldDescriptor, new: FieldDescriptor) -> Iterator[str]:
        if new.is_required and not old.is_required:
            yield f"REQUIRED_FIELD_ADDED: {_named(new)} became required"
        yield from self._kinds(old, new, _named(new))

    def _kinds(self, old: FieldDescriptor, new: FieldDescriptor, where: str) -> Iterator[str]:
        if _kind(old) != _kind(new):
            yield f"FIELD_KIND_CHANGED: {where} was a {_kind(old)} and became a {_kind(new)}"
        elif _kind(old) == "map":
            (old_key, old_value), (new_key, new_value) = _entry(old), _entry(new)
            yield from self._kinds(old_key, new_key, f"the key of {where}")
            yield from self._kinds(old_value, new_value, f"the value of {where}")
        elif old.message_type is not None and new.message_type is not None:
            yield from self._named_types(old.message_type, new.message_type, where)
        elif _GROUPS[old.type] != _GROUPS[new.type]:
            yield f"FIELD_SCALAR_KIND_CHANGED: {where} was {_type(old)} and became {_type(new)}"
        elif old.is_repeated != new.is_repeated and _GROUPS[old.type] != "text or bytes":
            became = "repeated" if new.is_repeated else "single"
            yield f"FIELD_NUMERIC_LABEL_CHANGED: {where} is a number and became {became}"

    def _named_types(self, old: Descriptor, new: Descriptor, where: str) -> Iterator[str]:
        if _local(old) != _local(new):
            yield f"FIELD_NAMED_TYPE_CHANGED: {where} was {_local(old)} and became {_local(new)}"
        else:
            yield from self._messages(old, new)


def _oneofs(message: Descriptor) -> dict[str, list[int]]:
    """By name, the numbers of the members; without those that the compiler makes of `optional`."""
    text = DescriptorProto()
    message.CopyToProto(text)
    made = {text.oneof_decl[field.oneof_index].name for field in text.field if field.proto3_optional}
    return {
        oneof.name: [field.number for field in oneof.fields]
        for oneof in message.oneofs
        if oneof.name not in made
    }


def _is_map(message: Descriptor) -> bool:
    return bool(message.GetOptions().map_entry)


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is None:
        return "scalar"
    return "map" if _is_map(field.message_type) else "message"


def _entry(field: FieldDescriptor) -> tuple[FieldDescriptor, FieldDescriptor]:
    assert field.message_type is not None
    fields = field.message_type.fields_by_number
    return fields[1], fields[2]


def _local(message: Descriptor) -> str:
    """The name inside its package."""
    package = message.file.package
    return message.full_name.removeprefix(f"{package}.") if package else message.full_name


def _named(field: FieldDescriptor) -> str:
    owner = field.containing_type
    inside = "" if owner is None else f" of {_local(owner)}"
    return f"field {field.number} ('{field.name}'){inside}"


def _type(field: FieldDescriptor) -> str:
    if field.enum_type is not None:
        return f"enum {field.enum_type.name}"
    return next(
        name.removeprefix("TYPE_").lower()
        for name, number in vars(FieldDescriptor).items()
        if name.startswith("TYPE_") and number == field.type
    )
