"""Which columns a JSON Schema has."""

import json
from typing import Any

import pytest

from headgate.decode.json_schema import JsonSchemaReader
from headgate.errors import UnsupportedSchema

TEXT = {"type": "string"}
T = {"$ref": "#/$defs/t"}


def columns(schema: Any, *references: tuple[str, Any]) -> str:
    texts = [(name, json.dumps(reference)) for name, reference in references]
    return JsonSchemaReader(json.dumps(schema), texts).type.simpleString()


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def of(schema: Any) -> str:
    """The type of one column."""
    return columns(obj(v=schema)).removeprefix("struct<v:").removesuffix(">")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, "string"),
        ({"type": "integer"}, "bigint"),
        ({"type": "number"}, "double"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "null"}, "string"),
        ({"type": ["null", "integer"]}, "bigint"),
        ({"type": ["integer", "number"]}, "double"),
        ({"type": ["string", "integer"]}, "string"),
        ({"type": "integer", "connect.type": "int16"}, "int"),
        ({"type": "number", "connect.type": "float32"}, "float"),
        ({"type": "string", "connect.type": "bytes"}, "binary"),
        ({"type": "string", "format": "date"}, "date"),
        ({"type": "string", "format": "date-time"}, "timestamp"),
        ({"type": "string", "format": "time"}, "string"),
        ({"type": "string", "format": "uuid"}, "string"),
        ({"type": "string", "contentEncoding": "base64"}, "binary"),
        ({"type": "string", "contentEncoding": "quoted-printable"}, "string"),
        ({"const": "a"}, "string"),
        ({"enum": ["a", None]}, "string"),
        ({"enum": [1, 2]}, "bigint"),
        ({"enum": [1, 2.5]}, "double"),
        ({"enum": [True]}, "boolean"),
        ({"enum": ["a", 1]}, "string"),
        (True, "string"),
        ({}, "string"),
        ({"type": "array"}, "array<string>"),
        ({"type": "array", "items": {"type": "integer"}}, "array<bigint>"),
        ({"items": {"type": "array", "items": TEXT}}, "array<array<string>>"),
        ({"type": "array", "items": [TEXT, {"type": "integer"}]}, "string"),
        ({"type": "array", "prefixItems": [TEXT]}, "string"),
        ({"type": "object"}, "string"),
        ({"type": "object", "properties": {}}, "string"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map<string,bigint>"),
        ({"type": "object", "additionalProperties": True}, "string"),
        (
            {"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": False},
            "map<string,string>",
        ),
        ({"type": "object", "patternProperties": {"^x": TEXT}}, "string"),
        (obj(a=TEXT, b=False), "struct<a:string>"),
        ({"properties": {"a": TEXT}}, "struct<a:string>"),
        ({"oneOf": [{"type": "null"}, obj(a=TEXT)]}, "struct<a:string>"),
        ({"anyOf": [TEXT, {"type": "null"}], "default": None, "title": "V"}, "string"),
        ({"oneOf": [obj(a=TEXT), obj(b=TEXT)]}, "string"),
        ({"oneOf": [TEXT, {"type": "string", "maxLength": 5}]}, "string"),
        ({**obj(a=TEXT), "anyOf": [{"required": ["a"]}, {"minProperties": 1}]}, "struct<a:string>"),
        ({**obj(a=TEXT), "oneOf": [obj(b=TEXT), obj(c=TEXT)]}, "string"),
        ({"allOf": [obj(a=TEXT), obj(b={"type": "integer"})]}, "struct<a:string,b:bigint>"),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "bigint"),
        ({"allOf": [TEXT, {"type": "integer"}]}, "string"),
        ({**obj(a=TEXT), "if": {}, "then": obj(z=TEXT)}, "struct<a:string>"),
        ({"type": "integer", "title": "io.debezium.time.Date", "connect.type": "int32"}, "date"),
        ({"type": "integer", "title": "io.debezium.time.MicroTimestamp"}, "timestamp_ntz"),
        ({"type": "integer", "title": "A title"}, "bigint"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert of(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (TEXT, "struct<value:string>"),
        (True, "struct<value:string>"),
        ({"type": "array", "items": TEXT}, "struct<value:array<string>>"),
        ({"type": "object", "additionalProperties": TEXT}, "struct<value:map<string,string>>"),
        ({"oneOf": [obj(a=TEXT), {"type": "null"}]}, "struct<a:string>"),
    ],
)
def test_what_a_document_is(schema: Any, expected: str) -> None:
    assert columns(schema) == expected


def test_references() -> None:
    """By pointer, by anchor, by address and by name, from where each stands."""
    schema = {
        "$id": "https://a.example/x/order.json",
        "$defs": {
            "n": {"$id": "#n", "type": "integer"},
            "in": {"$id": "https://b.example/in.json", **obj(q={"$ref": "#/$defs/q"}), "$defs": {"q": TEXT}},
        },
        **obj(
            a={"$ref": "#/$defs/n"},
            b={"$ref": "#n"},
            c={"$ref": "https://b.example/in.json"},
            d={"$ref": "other.json#there", "description": "d"},
            e={"$ref": "by name"},
            f={"$ref": "./other.json#/$defs/a%20b"},
        ),
    }
    there = {"$defs": {"t": {"$anchor": "there", "type": "boolean"}, "a b": {"type": "number"}}}
    by_name = obj(x={"$ref": "#/properties/y"}, y=TEXT)
    found = columns(schema, ("https://a.example/x/other.json", there), ("by name", by_name))
    assert found == (
        "struct<a:bigint,b:bigint,c:struct<q:string>,d:boolean,e:struct<x:string,y:string>,f:double>"
    )


def test_the_same_definition_twice_is_no_recursion() -> None:
    schema = {"$defs": {"a": obj(x=TEXT)}, **obj(p={"$ref": "#/$defs/a"}, q={"$ref": "#/$defs/a"})}
    assert columns(schema) == "struct<p:struct<x:string>,q:struct<x:string>>"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (obj(child={"$ref": "#"}), "'child' has the recursive type '#'"),
        (
            {"$defs": {"t": obj(kids={"type": "array", "items": T})}, **obj(t=T)},
            r"'t\.kids\[\]' has the recursive type '#/\$defs/t'",
        ),
        (
            {"$defs": {"t": {"oneOf": [{"type": "null"}, obj(t=T)]}}, **obj(t=T)},
            r"'t\.t' has the recursive type",
        ),
        ({"$ref": "#"}, "recursive"),
        (obj(a={"$ref": "#/$defs/no"}), "'a' has a reference to '#/\\$defs/no', which is nowhere"),
        (obj(a={"$ref": "https://x.example/y"}), "which is nowhere"),
        (obj(a=obj(b=TEXT, B=TEXT)), r"'a\.B' has a name that differs only by case from 'b'"),
        (obj(_file=TEXT), "'_file' has a name that Iceberg keeps"),
        (obj(**{"": TEXT}), "an empty name"),
    ],
)
def test_what_is_refused(schema: Any, said: str) -> None:
    with pytest.raises(UnsupportedSchema, match=said) as caught:
        columns(schema)
    assert caught.value.remedy


def test_recursion_in_a_union_of_several_types_is_text() -> None:
    tree = {"oneOf": [TEXT, {"type": "integer"}, obj(left={"$ref": "#/$defs/tree"})]}
    assert columns({"$defs": {"tree": tree}, **obj(root={"$ref": "#/$defs/tree"})}) == "struct<root:string>"


def test_what_grows_without_end_is_refused() -> None:
    deep = TEXT
    for _ in range(100):
        deep = obj(a=deep)
    with pytest.raises(UnsupportedSchema, match="than a table can have"):
        columns(deep)
    doubling = {
        f"d{i}": obj(a={"$ref": f"#/$defs/d{i + 1}"}, b={"$ref": f"#/$defs/d{i + 1}"}) for i in range(30)
    }
    with pytest.raises(UnsupportedSchema, match="than a table can have"):
        columns({"$defs": {**doubling, "d30": TEXT}, **obj(x={"$ref": "#/$defs/d0"})})


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "[" * 100_000])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(UnsupportedSchema):
        JsonSchemaReader(text)
    with pytest.raises(UnsupportedSchema, match="'ref'"):
        JsonSchemaReader("{}", [("ref", text)])


def test_the_title_names_the_record() -> None:
    assert JsonSchemaReader(json.dumps({**obj(a=TEXT), "title": "Order"})).record_name == "Order"
    assert JsonSchemaReader(json.dumps(obj(a=TEXT))).record_name is None
