"""Iceberg's schemas as Delta's."""

import json
from typing import Any

import pytest

from headgate.delta.schema import conflict, delta_schema, may_conflict, names_of
from headgate.errors import UnsupportedSchema


def field(number: int, name: str, kind: Any = "int", **more: Any) -> dict[str, Any]:
    return {"id": number, "name": name, "required": False, "type": kind, **more}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def as_is(name: str) -> str:
    return name


@pytest.mark.parametrize(
    ("iceberg", "delta"),
    [
        ("boolean", "boolean"),
        ("int", "integer"),
        ("long", "long"),
        ("float", "float"),
        ("double", "double"),
        ("date", "date"),
        ("string", "string"),
        ("binary", "binary"),
        ("timestamptz", "timestamp"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(12, 2)", "decimal(12,2)"),
        ("variant", "variant"),
        ("uuid", "binary"),
        ("fixed[16]", "binary"),
        ("time", "long"),
    ],
)
def test_types(iceberg: str, delta: str) -> None:
    made = delta_schema(schema(field(1, "a", iceberg)), [], as_is)
    assert json.loads(made.text)["fields"][0]["type"] == delta
    assert bool(made.inexact) == (iceberg in ("uuid", "fixed[16]", "time"))


@pytest.mark.parametrize("kind", ["timestamp_ns", "timestamptz_ns", "geometry", "geography"])
def test_types_that_delta_lacks_are_refused_by_name(kind: str) -> None:
    with pytest.raises(UnsupportedSchema, match=f"'outer.inner' has the type {kind}"):
        delta_schema(schema(field(1, "outer", schema(field(2, "inner", kind)))), [], as_is)


def test_features_are_asked_for_where_they_are_needed() -> None:
    assert delta_schema(schema(field(1, "a")), [], as_is).features == frozenset()
    assert delta_schema(schema(field(1, "a", "timestamp")), [], as_is).features == {"timestampNtz"}
    assert delta_schema(schema(field(1, "a", "variant")), [], as_is).features == {"variantType"}


def test_columns_are_mapped_by_id_and_named_as_in_the_files() -> None:
    inner = {"type": "list", "element-id": 3, "element-required": True, "element": schema(field(4, "x y"))}
    made = delta_schema(
        schema(field(1, "a b", doc="said"), field(2, "l", inner)), [], lambda n: n.replace(" ", "_")
    )
    first, second = json.loads(made.text)["fields"]
    assert first["metadata"] == {
        "delta.columnMapping.id": 1,
        "delta.columnMapping.physicalName": "a_b",
        "comment": "said",
    }
    element = second["type"]["elementType"]["fields"][0]
    assert element["name"] == "x y"
    assert element["metadata"] == {
        "delta.columnMapping.id": 4,
        "delta.columnMapping.physicalName": "x_y",
    }
    assert second["type"]["containsNull"] is False
    assert made.last_id == 4
    # Statistics are of what is not in lists and maps.
    assert {number: leaf.path for number, leaf in made.leaves.items()} == {1: ("a_b",)}


def test_a_column_without_a_type_yet_is_not_there() -> None:
    made = delta_schema(schema(field(1, "a"), field(2, "b", "unknown")), [], as_is)
    assert [one["name"] for one in json.loads(made.text)["fields"]] == ["a"]


def test_wider_types_say_what_they_were() -> None:
    values = {"type": "map", "key-id": 3, "key": "string", "value-id": 4, "value-required": False}
    old = schema(field(1, "a", "int"), field(2, "m", {**values, "value": "float"}))
    new = schema(field(1, "a", "long"), field(2, "m", {**values, "value": "double"}))
    made = delta_schema(new, [old, new], as_is)
    one, two = json.loads(made.text)["fields"]
    assert one["metadata"]["delta.typeChanges"] == [{"fromType": "integer", "toType": "long"}]
    assert two["metadata"]["delta.typeChanges"] == [
        {"fromType": "float", "toType": "double", "fieldPath": "value"}
    ]
    assert made.features == {"typeWidening"}
    assert delta_schema(old, [old], as_is).features == frozenset()


A, B = field(1, "a"), field(2, "b")


@pytest.mark.parametrize(
    ("schemas", "expected"),
    [
        ([schema(A), schema(A, B)], False),
        ([schema(A, B), schema(A)], False),
        ([schema(A), schema(field(1, "z"))], True),
        ([schema(A, B), schema(A), schema(A, field(3, "b"))], True),
        ([schema(A, field(2, "b", **{"initial-default": 5}))], True),
        # The same name in two structs is two names.
        ([schema(field(1, "a", schema(field(3, "x"))), field(2, "b", schema(field(4, "x"))))], False),
        ([schema(field(1, "a", schema(field(3, "x")))), schema(field(1, "a", schema(field(3, "y"))))], True),
    ],
)
def test_whether_files_may_differ_in_their_names(schemas: list[dict[str, Any]], expected: bool) -> None:
    assert may_conflict(schemas, as_is) is expected


def test_what_a_file_holds_against_what_is_asked_for() -> None:
    held = names_of(schema(A, B), as_is)
    assert conflict(schema(A, B), as_is, held) is None
    assert conflict(schema(A), as_is, held) is None
    assert conflict(schema(A, B, field(3, "c")), as_is, held) is None
    assert conflict(schema(field(1, "z"), B), as_is, held) == "holds column 'z' under the name 'a'"
    assert conflict(schema(A, field(3, "b")), as_is, held) == "holds another column under the name 'b'"
    # Names that change places.
    swapped = schema(field(1, "b"), field(2, "a"))
    assert conflict(swapped, as_is, held) == "holds column 'b' under the name 'a'"
    defaulted = schema(A, B, field(3, "c", **{"initial-default": 5}))
    assert conflict(defaulted, as_is, held) == "lacks column 'c', whose value in older rows is a default"
