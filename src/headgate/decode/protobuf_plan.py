"""A message type becomes a plan: the kinds of its fields, and a plain twin of it for the columnar decoder.

The twin has the same field numbers and nothing to interpret: every field is optional, text is bytes, an enum
is a number, a map is a list of entries. So the decoder gives what the bytes say, NULL where they say nothing.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Wire
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from headgate.decode.protobuf_types import (
    Constant,
    Date,
    Json,
    Kind,
    Marker,
    Number38,
    Part,
    Record,
    Text,
    Timestamp,
    Wrapped,
    number_kind,
)
from headgate.errors import UnsupportedSchema

_GOOGLE = "google.protobuf."
_WRAPPERS = {
    f"{_GOOGLE}{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_JSON = {f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue")}
_DECIMAL = "confluent.type.Decimal"
# Names that Iceberg keeps for columns of its own.
_RESERVED = {
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
}
TWIN = "twin.proto"


def plan(descriptor: Descriptor) -> Record:
    """How records of this type are read. What has no exact table type is refused with the field's path."""
    return _record(descriptor, "", ())


def _record(descriptor: Descriptor, path: str, above: Sequence[str]) -> Record:
    name = descriptor.full_name
    if name in above:
        raise _refused(path, f"the recursive type {name}")
    if not descriptor.fields:
        raise _refused(path, f"the type {name}, which has no fields,")
    seen: dict[str, str] = {}
    parts = []
    for field in descriptor.fields:
        where = f"{path}.{field.name}".lstrip(".")
        lower = field.name.lower()
        if lower in seen:
            raise _refused(where, f"a name that differs only by case from '{seen[lower]}'")
        if not path and lower in _RESERVED:
            raise _refused(where, "a name that Iceberg keeps for itself")
        seen[lower] = field.name
        parts.append(_part(field, where, (*above, name)))
    return Record(name, parts)


def _part(field: FieldDescriptor, path: str, above: Sequence[str]) -> Part:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        key, value = message.fields_by_number[1], message.fields_by_number[2]
        kinds = _kind(value, f"{path}{{}}", above), _kind(key, f"{path}{{}}", above)
        return Part(field.name, field.number, kinds[0], path, repeated=True, key=kinds[1])
    oneof = field.containing_oneof
    repeated = field.is_repeated
    return Part(
        field.name,
        field.number,
        _kind(field, f"{path}[]" if repeated else path, above),
        path,
        implicit=not repeated and not field.has_presence,
        required=field.is_required,
        repeated=repeated,
        oneof=None if oneof is None else oneof.name,
    )


def _kind(field: FieldDescriptor, path: str, above: Sequence[str]) -> Kind:
    match field.type:
        case FieldDescriptor.TYPE_GROUP:
            raise _refused(path, "a group")
        case FieldDescriptor.TYPE_MESSAGE:
            assert field.message_type is not None
            return _message_kind(field, field.message_type, path, above)
        case FieldDescriptor.TYPE_ENUM:
            assert field.enum_type is not None
            return Constant(field.enum_type, path)
        case FieldDescriptor.TYPE_STRING:
            return Text(path)
    return number_kind(Wire.Type.ValueType(field.type))


def _message_kind(field: FieldDescriptor, message: Descriptor, path: str, above: Sequence[str]) -> Kind:
    name = message.full_name
    match name:
        case "google.protobuf.Timestamp":
            return Timestamp(path)
        case "google.protobuf.Empty":
            return Marker()
        case "google.type.Date":
            return Date(path)
        case _ if name == _DECIMAL:
            return _decimal(field, message, path, above)
        case _ if name in _WRAPPERS:
            return Wrapped(_kind(message.fields_by_number[1], path, above))
        case _ if name in _JSON:
            return Json(GetMessageClass(message), path)
    return _record(message, path, above)


def _decimal(field: FieldDescriptor, message: Descriptor, path: str, above: Sequence[str]) -> Kind:
    """A column where the schema says how many digits there are; else the message as it is."""
    params = _params(field)
    if not {"precision", "scale"} & params.keys():
        return _record(message, path, above)
    try:
        precision, scale = int(params.get("precision", 38)), int(params.get("scale", 0))
    except ValueError:
        raise _refused(path, f"a decimal of the precision and scale {dict(params)},") from None
    if not 0 <= scale <= precision or not 0 < precision <= 38:
        raise _refused(path, f"a decimal({precision},{scale}),")
    return Number38(precision, scale, path)


def _refused(path: str, what: str) -> UnsupportedSchema:
    subject = f"Field '{path}'" if path else "The message"
    return UnsupportedSchema(
        f"{subject} has {what} which no table column holds exactly.",
        "Leave the field out or give it a type of docs/reference/types.md.",
    )


# -- options of Confluent's: a worker need not know all of Confluent's client to read them


def _params(field: FieldDescriptor) -> dict[str, str]:
    options = _options_type().FromString(field.GetOptions().SerializeToString())
    return dict(options.meta.params)


@lru_cache(maxsize=1)
def _options_type() -> Any:
    """FieldOptions, of which only `confluent.field_meta` is looked at."""
    file = FileDescriptorProto(name="options.proto", syntax="proto3")
    meta = file.message_type.add(name="Meta")
    entry = meta.nested_type.add(name="ParamsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, type=Wire.TYPE_STRING, label=Wire.LABEL_OPTIONAL)
    meta.field.add(
        name="params",
        number=2,
        type=Wire.TYPE_MESSAGE,
        label=Wire.LABEL_REPEATED,
        type_name=".Meta.ParamsEntry",
    )
    options = file.message_type.add(name="Options")
    options.field.add(
        name="meta", number=1088, type=Wire.TYPE_MESSAGE, label=Wire.LABEL_OPTIONAL, type_name=".Meta"
    )
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("Options"))


# -- the twin


def twin(record: Record) -> Descriptor:
    """The plain type that `record` is read as."""
    file = FileDescriptorProto(name=TWIN, syntax="proto2", package="twin")
    root = _twin_message(file, record.parts)
    pool = DescriptorPool()
    pool.Add(file)
    return pool.FindMessageTypeByName(f"twin.{root}")


def _twin_message(file: FileDescriptorProto, parts: Sequence[Part]) -> str:
    """Adds a message of these parts, in the order of their numbers: so they are written again."""
    message = file.message_type.add(name=f"M{len(file.message_type)}")
    for part in sorted(parts, key=lambda part: part.number):
        field = message.field.add(name=f"f{part.number}", number=part.number, type=part.kind.wire)
        field.label = Wire.LABEL_REPEATED if part.repeated else Wire.LABEL_OPTIONAL
        inner = part.entry if part.key is not None else part.kind.parts
        if inner:
            field.type = Wire.TYPE_MESSAGE
            field.type_name = f".twin.{_twin_message(file, inner)}"
        elif part.repeated and field.type not in (Wire.TYPE_BYTES, Wire.TYPE_MESSAGE):
            field.options.packed = True
    return message.name
