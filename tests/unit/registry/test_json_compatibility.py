"""JSON Schema, case by case: what may follow what, each way, and what is said of what may not."""

import json
import os
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.registry.json_compatibility import JsonCompatibility
from headgate.registry.refusals import Refusal
from headgate.registry.schemas import ResolvedSchema, Schema, SchemaType

Named = tuple[tuple[str, Any], ...]


def resolved(schema: Any, named: Named = ()) -> ResolvedSchema:
    texts = tuple((name, json.dumps(document)) for name, document in named)
    return ResolvedSchema(Schema(json.dumps(schema), SchemaType.JSON), tuple(t for _, t in texts), texts)


def problems(old: Any, new: Any, old_named: Named = (), new_named: Named = ()) -> list[str]:
    """Of the new schema as the reader of the old one's records."""
    reader, writer = resolved(new, new_named), resolved(old, old_named)
    return JsonCompatibility().problems(reader=reader, writer=writer)


def codes(found: list[str]) -> list[str]:
    return [problem.partition(" at ")[0] for problem in found]


INT, NUM, STR = {"type": "integer"}, {"type": "number"}, {"type": "string"}
NULL, BOOL, OBJ = {"type": "null"}, {"type": "boolean"}, {"type": "object"}


def of(kind: str, **keywords: Any) -> dict[str, Any]:
    return {"type": kind, **{k.replace("dollar_", "$"): v for k, v in keywords.items()}}


def objects(required: list[str] | None = None, more: Any = None, **properties: Any) -> dict[str, Any]:
    found = of("object", properties=properties)
    if required is not None:
        found["required"] = required
    if more is not None:
        found["additionalProperties"] = more
    return found


def arrays(**keywords: Any) -> dict[str, Any]:
    return of("array", **keywords)


A = {"a": INT}
CAT = objects(["cat"], more=False, cat=STR)
DOG = objects(["dog"], more=False, dog=STR)
BIRD = objects(["bird"], more=False, bird=STR)
TREE = {"$ref": "#/$defs/n", "$defs": {"n": objects(v=INT, next={"$ref": "#/$defs/n"})}}
BIG_TREE = {"$ref": "#/$defs/m", "$defs": {"m": objects(v=NUM, next={"$ref": "#/$defs/m"})}}

OPEN = "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"
CLOSED = "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
ADDED = "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
REMOVED = "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
REQUIRED = "REQUIRED_ATTRIBUTE_ADDED"
NEW_REQUIRED = "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"
OK = ""

# Old, new, the code when the new one reads the old one's, the code when the old one reads the new one's.
CASES: dict[str, tuple[Any, Any, str, str]] = {
    # Objects, and how open they are.
    "optional property, open": (objects(a=INT), objects(a=INT, b=STR), OPEN, OK),
    "property of any value, open": (objects(a=INT), objects(a=INT, b={}), OK, OK),
    "optional property, closed": (objects(more=False, a=INT), objects(more=False, a=INT, b=STR), OK, CLOSED),
    "open becomes closed": (objects(a=INT), objects(more=False, a=INT), "ADDITIONAL_PROPERTIES_REMOVED", OK),
    "closed becomes open with a property": (objects(more=False, a=INT), objects(a=INT, b=STR), OK, CLOSED),
    "required property, closed": (
        objects(more=False, a=INT),
        objects(["b"], more=False, a=INT, b=STR),
        NEW_REQUIRED,
        CLOSED,
    ),
    "required property with a default, closed": (
        objects(more=False, a=INT),
        objects(["b"], more=False, a=INT, b=of("string", default="")),
        OK,
        CLOSED,
    ),
    "property that may not be": (objects(more=False, a=INT, b=False), objects(more=False, a=INT), OK, OK),
    "covered by additional": (objects(more=STR, a=INT), objects(more=STR, a=INT, b=STR), OK, OK),
    "not covered by additional": (objects(more=STR, a=INT), objects(more=STR, a=INT, b=INT), ADDED, REMOVED),
    "wider than additional": (objects(more=INT, a=INT), objects(more=INT, a=INT, b=NUM), OK, REMOVED),
    "covered by a pattern": (
        {**objects(more=False, a=INT), "patternProperties": {"^s_": STR}},
        {**objects(more=False, a=INT, s_x=STR), "patternProperties": {"^s_": STR}},
        OK,
        OK,
    ),
    "not covered by a pattern": (
        {**objects(more=False, a=INT), "patternProperties": {"^s_": STR}},
        {**objects(more=False, a=INT, s_x=INT), "patternProperties": {"^s_": {}}},
        ADDED,
        REMOVED,
    ),
    "pattern's schema widened": (
        of("object", patternProperties={"^s_": INT}),
        of("object", patternProperties={"^s_": NUM}),
        OK,
        "TYPE_NARROWED",
    ),
    "pattern added": (OBJ, of("object", patternProperties={"^s_": INT}), "PATTERN_PROPERTY_ADDED", OK),
    "pattern added, closed": (
        objects(more=False),
        {**objects(more=False), "patternProperties": {"^s_": INT}},
        OK,
        "PATTERN_PROPERTY_REMOVED",
    ),
    "additional narrowed": (
        OBJ,
        of("object", additionalProperties=STR),
        "ADDITIONAL_PROPERTIES_NARROWED",
        OK,
    ),
    "additional widened": (objects(more=INT), objects(more=NUM), OK, "TYPE_NARROWED"),
    "unevaluated is additional": (
        objects(a=INT),
        {**objects(a=INT), "unevaluatedProperties": False},
        "ADDITIONAL_PROPERTIES_REMOVED",
        OK,
    ),
    "unevaluated beside allOf": (
        {"allOf": [objects(a=INT)]},
        {"allOf": [objects(a=INT)], "unevaluatedProperties": False},
        "UNEVALUATED_PROPERTIES_REMOVED",
        OK,
    ),
    "required": (objects(a=INT), objects(["a"], a=INT), REQUIRED, OK),
    "required with a default": (objects(a=INT), objects(["a"], a=of("integer", default=0)), OK, OK),
    "required and not named": (OBJ, of("object", required=["z"]), REQUIRED, OK),
    "property's type": (objects(a=INT), objects(a=STR), "TYPE_CHANGED", "TYPE_CHANGED"),
    "property inside": (objects(o=objects(a=INT)), objects(o=objects(a=NUM)), OK, "TYPE_NARROWED"),
    "minProperties": (
        of("object", minProperties=1),
        of("object", minProperties=2),
        "MIN_PROPERTIES_INCREASED",
        OK,
    ),
    "minProperties that are required": (
        objects(["a"], a=INT),
        {**objects(["a"], a=INT), "minProperties": 1},
        OK,
        OK,
    ),
    "maxProperties": (OBJ, of("object", maxProperties=2), "MAX_PROPERTIES_ADDED", OK),
    "maxProperties less": (
        of("object", maxProperties=3),
        of("object", maxProperties=2),
        "MAX_PROPERTIES_DECREASED",
        OK,
    ),
    "propertyNames": (OBJ, of("object", propertyNames={"maxLength": 3}), "MAX_LENGTH_ADDED", OK),
    "propertyNames of a closed object": (
        objects(more=False, ab=INT),
        {**objects(more=False, ab=INT), "propertyNames": {"maxLength": 3}},
        OK,
        OK,
    ),
    "dependency": (OBJ, of("object", dependencies={"a": ["b"]}), "DEPENDENCY_ARRAY_ADDED", OK),
    "dependency extended": (
        of("object", dependentRequired={"a": ["b"]}),
        of("object", dependentRequired={"a": ["b", "c"]}),
        "DEPENDENCY_ARRAY_EXTENDED",
        OK,
    ),
    "dependency changed": (
        of("object", dependencies={"a": ["b"]}),
        of("object", dependencies={"a": ["c"]}),
        "DEPENDENCY_ARRAY_CHANGED",
        "DEPENDENCY_ARRAY_CHANGED",
    ),
    "dependency in another spelling": (
        of("object", dependencies={"a": ["b"]}),
        of("object", dependentRequired={"a": ["b"]}),
        OK,
        OK,
    ),
    "dependency on a schema": (
        OBJ,
        of("object", dependentSchemas={"a": objects(b=INT)}),
        "DEPENDENCY_SCHEMA_ADDED",
        OK,
    ),
    "dependency's schema": (
        of("object", dependencies={"a": objects(b=INT)}),
        of("object", dependencies={"a": objects(b=NUM)}),
        OK,
        "TYPE_NARROWED",
    ),
    # Types and values.
    "integer to number": (INT, NUM, OK, "TYPE_NARROWED"),
    "type changed": (INT, STR, "TYPE_CHANGED", "TYPE_CHANGED"),
    "type list extended": (STR, {"type": ["string", "null"]}, OK, "TYPE_NARROWED"),
    "type list changed": (
        {"type": ["string", "null"]},
        {"type": ["string", "integer"]},
        "TYPE_NARROWED",
        "TYPE_NARROWED",
    ),
    "type removed": (STR, {}, OK, "TYPE_NARROWED"),
    "true": (STR, True, OK, "TYPE_NARROWED"),
    "false": (STR, False, "TYPE_CHANGED", OK),
    "true and empty": (True, {}, OK, OK),
    "enum extended": ({"enum": ["a", "b"]}, {"enum": ["b", "a", "c"]}, OK, "ENUM_ARRAY_NARROWED"),
    "enum changed": ({"enum": ["a", "b"]}, {"enum": ["a", "c"]}, "ENUM_ARRAY_CHANGED", "ENUM_ARRAY_CHANGED"),
    "enum of a type": (of("string", enum=["a"]), STR, OK, "ENUM_ARRAY_ADDED"),
    "enum and its type": ({"enum": ["a", 1]}, STR, "TYPE_NARROWED", "ENUM_ARRAY_ADDED"),
    "const to enum": ({"const": 1}, {"enum": [1.0, 2]}, OK, "ENUM_ARRAY_NARROWED"),
    "const changed": ({"const": 1}, {"const": True}, "ENUM_ARRAY_CHANGED", "ENUM_ARRAY_CHANGED"),
    "booleans are two": (BOOL, {"enum": [True, False]}, OK, OK),
    # Numbers.
    "minimum": (NUM, of("number", minimum=0), "MINIMUM_ADDED", OK),
    "minimum more": (of("number", minimum=0), of("number", minimum=1), "MINIMUM_INCREASED", OK),
    "maximum": (NUM, of("number", maximum=9), "MAXIMUM_ADDED", OK),
    "maximum less": (of("number", maximum=9.5), of("number", maximum=9), "MAXIMUM_DECREASED", OK),
    "exclusive minimum": (
        of("number", minimum=1),
        of("number", exclusiveMinimum=1),
        "EXCLUSIVE_MINIMUM_INCREASED",
        OK,
    ),
    "exclusive maximum": (NUM, of("number", exclusiveMaximum=1), "EXCLUSIVE_MAXIMUM_ADDED", OK),
    "exclusive maximum less": (
        of("number", exclusiveMaximum=5),
        of("number", exclusiveMaximum=4),
        "EXCLUSIVE_MAXIMUM_DECREASED",
        OK,
    ),
    "exclusive in draft 4": (
        of("number", minimum=1, exclusiveMinimum=True),
        of("number", exclusiveMinimum=1),
        OK,
        OK,
    ),
    "exclusive of integers": (of("integer", exclusiveMinimum=0), of("integer", minimum=1), OK, OK),
    "enum within limits": ({"enum": [1, 2]}, of("number", minimum=1, maximum=2), OK, "ENUM_ARRAY_ADDED"),
    "multipleOf": (NUM, of("number", multipleOf=2), "MULTIPLE_OF_ADDED", OK),
    "multipleOf of integers": (INT, of("number", multipleOf=0.5), OK, "TYPE_NARROWED"),
    "multipleOf expanded": (
        of("number", multipleOf=2),
        of("number", multipleOf=4),
        "MULTIPLE_OF_EXPANDED",
        OK,
    ),
    "multipleOf changed": (
        of("number", multipleOf=2),
        of("number", multipleOf=3),
        "MULTIPLE_OF_CHANGED",
        "MULTIPLE_OF_CHANGED",
    ),
    "multipleOf of cents": (
        of("number", multipleOf=0.1),
        of("number", multipleOf=0.01),
        OK,
        "MULTIPLE_OF_EXPANDED",
    ),
    # Strings.
    "minLength": (STR, of("string", minLength=1), "MIN_LENGTH_ADDED", OK),
    "minLength more": (of("string", minLength=1), of("string", minLength=2), "MIN_LENGTH_INCREASED", OK),
    "minLength of nothing": (STR, of("string", minLength=0), OK, OK),
    "maxLength": (STR, of("string", maxLength=5), "MAX_LENGTH_ADDED", OK),
    "maxLength less": (of("string", maxLength=5), of("string", maxLength=4), "MAX_LENGTH_DECREASED", OK),
    "pattern": (STR, of("string", pattern="^a"), "PATTERN_ADDED", OK),
    "pattern changed": (
        of("string", pattern="^a"),
        of("string", pattern="^b"),
        "PATTERN_CHANGED",
        "PATTERN_CHANGED",
    ),
    "enum fits the pattern": ({"enum": ["ab", "ac"]}, of("string", pattern="^a"), OK, "ENUM_ARRAY_ADDED"),
    "limits of other types": (INT, {"maxLength": 3, "type": ["integer", "string"]}, OK, "TYPE_NARROWED"),
    # Arrays.
    "items": (arrays(items=INT), arrays(items=NUM), OK, "TYPE_NARROWED"),
    "items added": (arrays(), arrays(items=INT), "TYPE_NARROWED", OK),
    "minItems": (arrays(), arrays(minItems=1), "MIN_ITEMS_ADDED", OK),
    "minItems more": (arrays(minItems=1), arrays(minItems=2), "MIN_ITEMS_INCREASED", OK),
    "maxItems": (arrays(), arrays(maxItems=1), "MAX_ITEMS_ADDED", OK),
    "maxItems less": (arrays(maxItems=2), arrays(maxItems=1), "MAX_ITEMS_DECREASED", OK),
    "uniqueItems": (arrays(), arrays(uniqueItems=True), "UNIQUE_ITEMS_ADDED", OK),
    "item, open": (arrays(items=[INT]), arrays(items=[INT, STR]), "ITEM_ADDED_TO_OPEN_CONTENT_MODEL", OK),
    "item of any value, open": (arrays(prefixItems=[INT]), arrays(prefixItems=[INT, True]), OK, OK),
    "item, closed": (
        arrays(items=[INT], additionalItems=False),
        arrays(items=[INT, STR], additionalItems=False),
        OK,
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    "item, closed, of 2020-12": (
        arrays(prefixItems=[INT], items=False),
        arrays(prefixItems=[INT, STR], items=False),
        OK,
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    ),
    "item, covered": (
        arrays(prefixItems=[INT], items=STR),
        arrays(prefixItems=[INT, STR], items=STR),
        OK,
        OK,
    ),
    "item, not covered": (
        arrays(items=[INT], additionalItems=STR),
        arrays(items=[INT, INT], additionalItems=STR),
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    ),
    "item changed": (arrays(items=[INT, INT]), arrays(items=[INT, NUM]), OK, "TYPE_NARROWED"),
    "tuple in another spelling": (
        arrays(items=[INT], additionalItems=STR),
        arrays(prefixItems=[INT], items=STR),
        OK,
        OK,
    ),
    "additionalItems removed": (
        arrays(items=[INT]),
        arrays(items=[INT], additionalItems=False),
        "ADDITIONAL_ITEMS_REMOVED",
        OK,
    ),
    "additionalItems narrowed": (
        arrays(items=[INT]),
        arrays(items=[INT], additionalItems=STR),
        "ADDITIONAL_ITEMS_NARROWED",
        OK,
    ),
    "contains": (arrays(), arrays(contains=INT), "CONTAINS_ADDED", OK),
    "contains widened": (arrays(contains=INT), arrays(contains=NUM), OK, "CONTAINS_NARROWED"),
    "maxContains": (arrays(contains=INT), arrays(contains=INT, maxContains=2), "MAX_CONTAINS_NARROWED", OK),
    # Schemas made of schemas.
    "sum extended": ({"oneOf": [CAT, DOG]}, {"oneOf": [DOG, CAT, BIRD]}, OK, "SUM_TYPE_NARROWED"),
    "sum's part changed": (
        {"anyOf": [CAT, DOG]},
        {"anyOf": [CAT, BIRD]},
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    ),
    "sum's part widened": (
        {"oneOf": [NULL, INT]},
        {"oneOf": [NULL, NUM]},
        OK,
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
    ),
    "oneOf to anyOf": ({"oneOf": [CAT, DOG]}, {"anyOf": [CAT, DOG]}, OK, "COMBINED_TYPE_CHANGED"),
    "oneOf to anyOf of apart types": ({"oneOf": [NULL, STR]}, {"anyOf": [STR, NULL]}, OK, OK),
    "one to a sum": (STR, {"oneOf": [NULL, STR]}, OK, "TYPE_CHANGED"),
    "one to a sum that matches twice": (INT, {"oneOf": [INT, NUM]}, "COMBINED_TYPE_CHANGED", "TYPE_NARROWED"),
    "one to a sum without it": (BOOL, {"oneOf": [NULL, STR]}, "TYPE_CHANGED", "TYPE_CHANGED"),
    "type list to a sum": ({"type": ["null", "string"]}, {"oneOf": [NULL, STR]}, OK, OK),
    "enum to a sum": ({"enum": ["a", "b"]}, {"oneOf": [{"const": "a"}, {"const": "b"}]}, OK, OK),
    "sum of one": ({"oneOf": [STR]}, STR, OK, OK),
    "product extended": (
        {"allOf": [objects(a=INT)]},
        {"allOf": [objects(a=INT), objects(["b"], b=STR)]},
        "PRODUCT_TYPE_EXTENDED",
        OK,
    ),
    "product's part widened": (
        {"allOf": [objects(a=INT), OBJ]},
        {"allOf": [objects(a=NUM), OBJ]},
        OK,
        "TYPE_NARROWED",
    ),
    "product put together": ({"allOf": [objects(a=INT), objects(b=STR)]}, objects(a=INT, b=STR), OK, OK),
    "product to oneOf": (
        {"allOf": [objects(a=INT), objects(b=STR)]},
        {"oneOf": [objects(a=INT), objects(b=STR)]},
        "COMBINED_TYPE_CHANGED",
        "PRODUCT_TYPE_EXTENDED",
    ),
    "product to anyOf": (
        {"allOf": [INT, of("number", minimum=1)]},
        {"anyOf": [INT, STR]},
        OK,
        "PRODUCT_TYPE_EXTENDED",
    ),
    "not added": ({}, {"not": STR}, "NOT_TYPE_EXTENDED", OK),
    "not narrowed": ({"not": NUM}, {"not": INT}, OK, "NOT_TYPE_EXTENDED"),
    "not of another type": (INT, {"not": STR, "type": "integer"}, OK, OK),
    "condition added": (
        OBJ,
        of("object", **{"if": objects(["k"]), "then": objects(["v"])}),
        REQUIRED,
        OK,
    ),
    "condition's then widened": (
        of("object", **{"if": {"required": ["k"]}, "then": objects(v=INT)}),
        of("object", **{"if": {"required": ["k"]}, "then": objects(v=NUM)}),
        OK,
        "TYPE_NARROWED",
    ),
    # References.
    "reference put inline": ({"$ref": "#/$defs/x", "$defs": {"x": objects(a=INT)}}, objects(a=INT), OK, OK),
    "reference's target": (
        {"$ref": "#/definitions/x~1y", "definitions": {"x/y": INT}},
        {"$ref": "#/definitions/x~1y", "definitions": {"x/y": NUM}},
        OK,
        "TYPE_NARROWED",
    ),
    "anchor": ({"$ref": "#x", "$defs": {"q": {"$anchor": "x", **INT}}}, INT, OK, OK),
    "recursive": (TREE, BIG_TREE, OK, "TYPE_NARROWED"),
    "recursive through the root": (
        objects(v=INT, kids=arrays(items={"$ref": "#"})),
        objects(v=STR, kids=arrays(items={"$ref": "#"})),
        "TYPE_CHANGED",
        "TYPE_CHANGED",
    ),
    "a reference to itself": ({"$ref": "#"}, {"$ref": "#", "title": "x"}, OK, OK),
    "reference to nowhere": (INT, {"$ref": "missing.json"}, "REFERENCE_NOT_FOUND", "TYPE_NARROWED"),
    "reference to nowhere, both": ({"$ref": "x.json"}, {"$ref": "x.json", "title": "t"}, OK, OK),
    # What does not count.
    "annotations": (
        objects(a=INT),
        {**objects(a={**INT, "format": "int32", "title": "A"}), "description": "d", "connect.name": "n"},
        OK,
        OK,
    ),
    "default changed": (objects(a=of("integer", default=1)), objects(a=of("integer", default=2)), OK, OK),
    "keywords of the wrong kind": (
        objects(a=INT),
        {**objects(a=INT), "minProperties": "x", "anyOf": 3},
        OK,
        OK,
    ),
    "a property called title": (objects(title=INT), objects(title=STR), "TYPE_CHANGED", "TYPE_CHANGED"),
}


@pytest.mark.parametrize(("old", "new", "backward", "forward"), CASES.values(), ids=CASES.keys())
def test_case(old: Any, new: Any, backward: str, forward: str) -> None:
    for found, expected in ((problems(old, new), backward), (problems(new, old), forward)):
        if expected:
            assert expected in codes(found), found
        else:
            assert found == []
    assert problems(old, old) == []
    assert problems(new, new) == []


def test_every_schema_follows_itself_in_other_words() -> None:
    """Apart from the words for word comparison: a title more, on every level."""
    for old, new, _, _ in CASES.values():
        for schema in (old, new):
            if isinstance(schema, dict):
                assert problems(schema, {**schema, "title": "t"}) == []


def test_what_is_said_names_the_place() -> None:
    old = of("object", properties={"a/b": arrays(items=objects(more=False, c=INT, d=STR))})
    new = of("object", properties={"a/b": arrays(items=objects(["c"], more=False, c=STR))})
    assert problems(old, new) == [
        "REQUIRED_ATTRIBUTE_ADDED at #/properties/a~1b/items/required/c: 'c' is required and has no default",
        "TYPE_CHANGED at #/properties/a~1b/items/properties/c: integer became string",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL at #/properties/a~1b/items/properties/d: "
        "nothing else than what is named may be",
    ]


def test_references_are_followed_across_schemas() -> None:
    whole = objects(o={"$ref": "shop/part.json#/$defs/p"})
    part = {"$defs": {"p": objects(x={"$ref": "leaf.json"})}}
    old = (("leaf.json", INT), ("shop/part.json", part))
    new = (("leaf.json", NUM), ("shop/part.json", part))
    assert problems(whole, whole, old, old) == []
    assert problems(whole, whole, old, new) == []
    assert problems(whole, whole, new, old) == [
        "TYPE_NARROWED at #/properties/o/properties/x: number became integer"
    ]
    inline = objects(o=objects(x=INT))
    assert problems(inline, whole, (), old) == []
    assert problems(whole, inline, old, ()) == []


def test_references_are_found_by_their_ids() -> None:
    root = {"$id": "http://shop.example/order.json", **objects(p={"$ref": "part.json"}, q={"$ref": "#q"})}
    root["$defs"] = {"q": {"$anchor": "q", **STR}}
    named = (("http://shop.example/part.json", {"$id": "http://shop.example/part.json", **INT}),)
    assert problems(root, objects(p=INT, q=STR), named) == []
    assert codes(problems(objects(p=NUM, q=STR), root, (), named)) == ["TYPE_NARROWED"]


def test_schemas_that_refer_to_each_other_end() -> None:
    def pair(leaf: Any) -> Any:
        return {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": objects(b={"$ref": "#/$defs/b"}, c={"anyOf": [NULL, {"$ref": "#/$defs/a"}]}),
                "b": {"oneOf": [{"$ref": "#/$defs/a"}, leaf]},
            },
        }

    assert problems(pair(INT), pair(NUM)) == []
    assert problems(pair(NUM), pair(INT)) != []


def test_what_is_shared_is_compared_once() -> None:
    """Each level refers to the next twice: as a tree it would have 2**40 leaves."""

    def layers(leaf: Any) -> Any:
        defs = {
            str(n): objects(a={"$ref": f"#/$defs/{n + 1}"}, b={"$ref": f"#/$defs/{n + 1}"}) for n in range(40)
        }
        return {"$ref": "#/$defs/0", "$defs": {**defs, "40": leaf}}

    began = time.monotonic()
    assert problems(layers(INT), layers(NUM)) == []
    assert time.monotonic() - began < 5


def test_more_alternatives_than_can_be_compared_are_refused() -> None:
    """Whatever is chosen, there are as many properties as the new schema asks for; the proof takes all."""

    def choices(count: int) -> Any:
        return of(
            "object", allOf=[{"anyOf": [{"required": [f"{n}-{m}"]} for m in range(3)]} for n in range(count)]
        )

    assert problems(choices(3), of("object", minProperties=3)) == []
    assert codes(problems(choices(3), of("object", minProperties=4))) != []
    assert codes(problems(choices(12), of("object", minProperties=12))) == ["COMPARISON_TOO_LARGE"]


@pytest.mark.parametrize("text", ["{", "[1]", "5", '"string"', "null", '{"minimum": NaN}', ""])
def test_what_is_no_schema_is_refused(text: str) -> None:
    no_schema = ResolvedSchema(Schema(text, SchemaType.JSON))
    with pytest.raises(Refusal) as caught:
        JsonCompatibility().validate(no_schema)
    assert caught.value.code == 42201
    JsonCompatibility().validate(ResolvedSchema(Schema("true", SchemaType.JSON)))


# What is called compatible is so, value by value: schemas of a small world, against a plain validator.


def accepts(schema: Any, value: Any) -> bool:
    if isinstance(schema, bool):
        return schema
    return all(_holds(schema, key, value) for key in schema)


def _is(value: Any, name: str) -> bool:
    if name == "integer":
        return isinstance(value, int | float) and not isinstance(value, bool) and value == int(value)
    if name == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    types = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict}
    return isinstance(value, types[name])


def _holds(schema: dict[str, Any], key: str, value: Any) -> bool:
    said = schema[key]
    if key == "type":
        return any(_is(value, name) for name in ([said] if isinstance(said, str) else said))
    if key == "enum":
        return json.dumps(value) in [json.dumps(v) for v in said]
    if key in ("allOf", "anyOf", "oneOf"):
        matching = sum(accepts(branch, value) for branch in said)
        return {"allOf": matching == len(said), "anyOf": matching > 0, "oneOf": matching == 1}[key]
    if key == "not":
        return not accepts(said, value)
    if _is(value, "number"):
        limits = {"minimum": value >= said, "exclusiveMaximum": value < said} if _is(said, "number") else {}
        return bool(limits.get(key, key != "multipleOf" or value % said == 0))
    if isinstance(value, str):
        return key != "maxLength" or len(value) <= said
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        if key == "prefixItems":
            return all(map(accepts, said, value))
        if key == "items":
            return all(accepts(said, item) for item in value[len(first) :])
        return key != "minItems" or len(value) >= said
    if isinstance(value, dict):
        return _holds_of_object(schema, key, value)
    return True


def _holds_of_object(schema: dict[str, Any], key: str, value: dict[str, Any]) -> bool:
    said = schema[key]
    if key == "required":
        return set(said) <= value.keys()
    if key == "properties":
        return all(accepts(said[name], item) for name, item in value.items() if name in said)
    patterns = schema.get("patternProperties", {})
    if key == "patternProperties":
        return all(accepts(s, v) for p, s in said.items() for n, v in value.items() if re.search(p, n))
    if key == "additionalProperties":
        named = schema.get("properties", {})
        rest = [n for n in value if n not in named and not any(re.search(p, n) for p in patterns)]
        return all(accepts(said, value[name]) for name in rest)
    return key != "maxProperties" or len(value) <= said


SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 3, 1.5, "", "a", "bbb"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "ab", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    small = st.integers(0, 3)
    some = st.lists(inner, min_size=1, max_size=3)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "minimum": small,
        "exclusiveMaximum": small,
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "maxLength": small,
        "minItems": small,
        "items": inner,
        "prefixItems": some,
        "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
        "properties": st.dictionaries(st.sampled_from(["a", "b", "ab"]), inner, max_size=2),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
        "additionalProperties": inner,
        "maxProperties": small,
        "allOf": some,
        "anyOf": some,
        "not": inner,
    }
    return st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({key: keywords[key] for key in chosen})
    )


SCHEMAS = st.recursive(st.booleans() | st.builds(lambda t: {"type": t}, TYPES), larger, max_leaves=6)


def check_soundness(old: Any, changes: list[Any], values: list[Any]) -> None:
    for new in changes:
        if problems(old, new) == []:
            for value in values:
                assert accepts(new, value) or not accepts(old, value), (old, new, value)


@settings(max_examples=500 if os.environ.get("HEADGATE_SOAK") == "1" else 40, deadline=None)
@given(SCHEMAS, st.lists(SCHEMAS, min_size=3, max_size=6), st.lists(VALUES, min_size=10, max_size=20))
def test_what_is_called_compatible_accepts_what_was_accepted(
    old: Any, others: list[Any], values: list[Any]
) -> None:
    assert problems(old, old) == []
    changed = [{"anyOf": [old, *others]}, {"allOf": [old, others[0]]}]
    if isinstance(old, dict):
        changed += [{k: v for k, v in old.items() if k != key} for key in old]
        changed += [{**old, **other} for other in others if isinstance(other, dict)]
    assert problems(old, changed[0]) == []
    assert problems(changed[1], old) == []
    for one in changed:
        check_soundness(one, [old, *others], values)
    check_soundness(old, [*changed, *others], values)
