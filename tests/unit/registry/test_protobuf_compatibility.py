"""Confluent's rules, case by case: what the new schema may not do with what the old one wrote."""

import pytest

from headgate.registry.protobuf_compatibility import ProtobufCompatibility
from headgate.registry.refusals import Refusal
from headgate.registry.schemas import ResolvedSchema, Schema, SchemaType
from tests.unit.decode.protobuf_samples import base64_of

HEAD = 'syntax = "proto3"; package shop; '


def resolved(text: str, *named: tuple[str, str]) -> ResolvedSchema:
    return ResolvedSchema(Schema(text, SchemaType.PROTOBUF), tuple(t for _, t in named), named)


def problems(old: str, new: str) -> list[str]:
    """Of the new schema as the reader of the old one's records."""
    return ProtobufCompatibility().problems(reader=resolved(new), writer=resolved(old))


def kinds(old: str, new: str) -> list[str]:
    return [problem.partition(":")[0] for problem in problems(old, new)]


def message(fields: str, rest: str = "") -> str:
    return f"{HEAD} {rest} message A {{ {fields} }}"


ENUM = "enum E { ZERO = 0; ONE = 1; }"
INNER = "message B { int32 x = 1; }"

COMPATIBLE = {
    "field added": ("int32 a = 1;", "int32 a = 1; string b = 2;"),
    "field removed": ("int32 a = 1; string b = 2;", "int32 a = 1;"),
    "field renamed": ("int32 a = 1;", "int32 amount = 1;"),
    "varint types": ("int32 a = 1; uint64 b = 2; bool c = 3;", "int64 a = 1; uint32 b = 2; int32 c = 3;"),
    "zigzag types": ("sint32 a = 1;", "sint64 a = 1;"),
    "text and bytes": ("string a = 1; bytes b = 2;", "bytes a = 1; string b = 2;"),
    "fixed32": ("fixed32 a = 1;", "sfixed32 a = 1;"),
    "fixed64": ("sfixed64 a = 1;", "fixed64 a = 1;"),
    "text to a list": ("string a = 1;", "repeated string a = 1;"),
    "presence": ("int32 a = 1;", "optional int32 a = 1;"),
    "one field into a new oneof": ("int32 a = 1;", "oneof o { int32 a = 1; }"),
    "one field into a new oneof with new ones": ("int32 a = 1;", "oneof o { int32 a = 1; int32 b = 2; }"),
    "field out of a oneof": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; } int32 b = 2;",
    ),
    "member added": ("oneof o { int32 a = 1; }", "oneof o { int32 a = 1; int32 b = 2; }"),
    "oneof renamed": ("oneof o { int32 a = 1; int32 b = 2; }", "oneof p { int32 a = 1; int32 b = 2; }"),
    "oneof removed": ("oneof o { int32 a = 1; }", "int32 c = 3;"),
    "map's types in their groups": ("map<int32, string> m = 1;", "map<int64, bytes> m = 1;"),
    "nested message added": ("int32 a = 1;", "int32 a = 1; message N { int32 x = 1; }"),
}


@pytest.mark.parametrize(("old", "new"), COMPATIBLE.values(), ids=COMPATIBLE.keys())
def test_compatible(old: str, new: str) -> None:
    assert problems(message(old), message(new)) == []


INCOMPATIBLE = {
    "number to text": ("int32 a = 1;", "string a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "varint to zigzag": ("int32 a = 1;", "sint32 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "varint to fixed": ("int64 a = 1;", "fixed64 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "fixed32 to fixed64": ("fixed32 a = 1;", "fixed64 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "float to double": ("float a = 1;", "double a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "float to fixed32": ("float a = 1;", "fixed32 a = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "number reused": ("int32 a = 1; string b = 2;", "string b = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "list of numbers": ("int32 a = 1;", "repeated int32 a = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
    "single number": ("repeated double a = 1;", "double a = 1;", "FIELD_NUMERIC_LABEL_CHANGED"),
    "scalar to message": ("string a = 1;", "B a = 1;", "FIELD_KIND_CHANGED"),
    "message to scalar": ("B a = 1;", "bytes a = 1;", "FIELD_KIND_CHANGED"),
    "map to list": ("map<string, int32> a = 1;", "repeated B a = 1;", "FIELD_KIND_CHANGED"),
    "another message": ("B a = 1;", "C a = 1;", "FIELD_NAMED_TYPE_CHANGED"),
    "map's key": ("map<int32, string> m = 1;", "map<string, string> m = 1;", "FIELD_SCALAR_KIND_CHANGED"),
    "map's value": ("map<int32, string> m = 1;", "map<int32, B> m = 1;", "FIELD_KIND_CHANGED"),
    "two fields into a oneof": (
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
    ),
    "a field into a oneof that is there": (
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "FIELD_MOVED_TO_EXISTING_ONEOF",
    ),
    "member removed": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        "ONEOF_FIELD_REMOVED",
    ),
    "member's type": ("oneof o { int32 a = 1; }", "oneof o { string a = 1; }", "FIELD_SCALAR_KIND_CHANGED"),
    "type on the way into a oneof": (
        "int32 a = 1;",
        "oneof o { string a = 1; }",
        "FIELD_SCALAR_KIND_CHANGED",
    ),
    "nested message removed": ("message N { int32 x = 1; } N n = 1;", "int32 b = 2;", "MESSAGE_REMOVED"),
}


@pytest.mark.parametrize(("old", "new", "kind"), INCOMPATIBLE.values(), ids=INCOMPATIBLE.keys())
def test_incompatible(old: str, new: str, kind: str) -> None:
    others = f"{INNER} message C {{ int32 x = 1; }}"
    assert kinds(message(old, others), message(new, others)) == [kind]


def test_an_enum_is_a_number_and_its_constants_may_change() -> None:
    old = message("E e = 1; int32 i = 2;", ENUM)
    assert problems(old, message("E e = 1; int32 i = 2;", "enum E { ZERO = 0; TWO = 2; UNO = 1; }")) == []
    assert problems(old, message("int32 e = 1; E i = 2;", ENUM)) == []
    assert problems(old, message("int64 e = 1; int32 i = 2;")) == []
    assert kinds(old, message("string e = 1; int32 i = 2;", ENUM)) == ["FIELD_SCALAR_KIND_CHANGED"]


def test_messages_are_known_by_name() -> None:
    old = f"{HEAD} message A {{ int32 x = 1; }} message B {{ int32 y = 1; }}"
    moved = f"{HEAD} message B {{ int32 y = 1; }} message A {{ int32 x = 1; }}"
    more = f"{old} message C {{ int32 z = 1; }}"
    renamed = f"{HEAD} message A {{ int32 x = 1; }} message Bee {{ int32 y = 1; }}"
    assert problems(old, moved) == []
    assert problems(old, more) == []
    assert problems(more, old) == ["MESSAGE_REMOVED: there is no message C any more"]
    assert kinds(old, renamed) == ["MESSAGE_REMOVED"]


def test_the_package_stays() -> None:
    text = "message A { int32 x = 1; }"
    assert kinds(HEAD + text, f'syntax = "proto3"; package store; {text}') == ["PACKAGE_CHANGED"]


def test_a_change_deep_inside_is_found_once() -> None:
    def nested(kind: str) -> str:
        first = "message A { repeated B b = 1; map<string, B> m = 2; }"
        return f"{HEAD} {first} message B {{ {kind} x = 1; A up = 2; }}"

    assert problems(nested("int32"), nested("int64")) == []
    assert problems(nested("int32"), nested("string")) == [
        "FIELD_SCALAR_KIND_CHANGED: field 1 ('x') of B was int32 and became string"
    ]


def test_required_fields_neither_come_nor_go() -> None:
    head = 'syntax = "proto2"; message A { optional int32 a = 1; '
    none, required = head + "}", head + "required int32 b = 2; }"
    optional = head + "optional int32 b = 2; }"
    assert kinds(none, required) == ["REQUIRED_FIELD_ADDED"]
    assert kinds(required, none) == ["REQUIRED_FIELD_REMOVED"]
    assert kinds(optional, required) == ["REQUIRED_FIELD_ADDED"]
    assert problems(required, optional) == []
    assert kinds(optional, head + "repeated int32 b = 2; }") == ["FIELD_NUMERIC_LABEL_CHANGED"]


def test_types_of_references_are_compared() -> None:
    def money(kind: str) -> tuple[str, str]:
        return ("money.proto", f'syntax = "proto3"; package m; message Money {{ {kind} units = 1; }}')

    text = f'{HEAD} import "money.proto"; message A {{ m.Money price = 1; }}'
    rules = ProtobufCompatibility()
    old = resolved(text, money("int64"))
    assert rules.problems(reader=resolved(text, money("int32")), writer=old) == []
    found = rules.problems(reader=resolved(text, money("string")), writer=old)
    assert found == ["FIELD_SCALAR_KIND_CHANGED: field 1 ('units') of Money was int64 and became string"]


def test_a_descriptor_is_compared_with_text() -> None:
    old, new = message("int32 a = 1;"), message("string a = 1;")
    assert problems(base64_of(old), old) == []
    assert kinds(base64_of(old), new) == ["FIELD_SCALAR_KIND_CHANGED"]


def test_what_does_not_compile_is_refused_with_the_compilers_words() -> None:
    rules = ProtobufCompatibility()
    with pytest.raises(Refusal, match="Field number 1 has already been used") as refused:
        rules.validate(resolved(message("int32 a = 1; int32 b = 1;")))
    assert refused.value.code == 42201
    for nonsense in ("nonsense", "{}", "message", f'{HEAD} import "nowhere.proto";'):
        with pytest.raises(Refusal):
            rules.validate(resolved(nonsense))
    rules.validate(
        resolved(message("google.protobuf.Timestamp t = 1;", 'import "google/protobuf/timestamp.proto";'))
    )
