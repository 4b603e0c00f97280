import json
from typing import Any

import fastavro
import pytest

from headgate.registry.avro import MalformedAvro, inlined, normalized


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields], **more}


def inline(root: Any, *dependencies: Any) -> Any:
    found = json.loads(inlined(json.dumps(root), [json.dumps(d) for d in dependencies]))
    fastavro.parse_schema(found)  # stands alone
    return found


ADDRESS = record("Address", ("city", "string"), namespace="geo")


def test_without_references_the_text_is_left_alone() -> None:
    text = '{ "type" : "record", "name":"A", "fields": [] }'
    assert inlined(text, []) is text


def test_a_type_is_defined_at_its_first_use_and_named_afterwards() -> None:
    root = record("Order", ("from", "geo.Address"), ("to", "geo.Address"), namespace="shop")
    assert inline(root, ADDRESS) == record(
        "Order", ("from", ADDRESS), ("to", "geo.Address"), namespace="shop"
    )


def test_references_of_references() -> None:
    customer = record("Customer", ("home", "geo.Address"), namespace="shop")
    root = record("Order", ("to", "geo.Address"), ("customer", "Customer"), namespace="shop")
    found = inline(root, ADDRESS, customer)
    assert [f["type"] for f in found["fields"]] == [ADDRESS, record("Customer", ("home", "geo.Address"))]


def test_a_nested_definition_is_used_before_the_type_around_it() -> None:
    country = {"type": "enum", "name": "Country", "symbols": ["CH"]}
    address = record("Address", ("country", country), ("city", "string"), namespace="geo")
    root = record("Order", ("country", "geo.Country"), ("to", "geo.Address"))
    first, second = (f["type"] for f in inline(root, address)["fields"])
    assert first == {**country, "namespace": "geo"}
    assert second["fields"][0]["type"] == "geo.Country"


@pytest.mark.parametrize(
    ("wrap", "unwrap"),
    [
        (lambda t: ["null", t], lambda t: t[1]),
        (lambda t: {"type": "array", "items": t}, lambda t: t["items"]),
        (lambda t: {"type": "map", "values": t}, lambda t: t["values"]),
        (
            lambda t: {"type": "array", "items": ["null", {"type": "map", "values": t}]},
            lambda t: t["items"][1]["values"],
        ),
    ],
)
def test_wherever_a_type_may_stand(wrap: Any, unwrap: Any) -> None:
    found = inline(record("A", ("x", wrap("geo.Address")), ("y", wrap("geo.Address"))), ADDRESS)
    assert unwrap(found["fields"][0]["type"]) == ADDRESS
    assert unwrap(found["fields"][1]["type"]) == "geo.Address"


def test_a_schema_that_is_only_a_name_or_a_union_of_names() -> None:
    other = record("Other", namespace="geo")
    assert inline("geo.Address", ADDRESS) == ADDRESS
    assert inline(["geo.Address", "geo.Other"], ADDRESS, other) == [ADDRESS, other]


def test_short_names_keep_the_namespace_that_they_came_from() -> None:
    inner = record("Inner", namespace="far")
    outer = record("Outer", ("inner", "Inner"), namespace="far")
    found = inline(record("Root", ("outer", "far.Outer"), namespace="near"), inner, outer)
    assert found["fields"][0]["type"] == record("Outer", ("inner", record("Inner")), namespace="far")


def test_a_type_outside_of_all_namespaces_stays_there() -> None:
    found = inline(record("Root", ("x", "Bare"), namespace="near"), record("Bare"))
    assert found["fields"][0]["type"] == record("Bare", namespace="")


def test_a_dotted_name_beats_the_namespace_beside_it() -> None:
    found = inline(record("Root", ("x", "a.b.C")), record("a.b.C", namespace="ignored"))
    assert found["fields"][0]["type"] == record("C", namespace="a.b")


def test_types_that_contain_themselves() -> None:
    tree = record("Tree", ("left", ["null", "Tree"]), ("right", ["null", "t.Tree"]), namespace="t")
    found = inline(record("Root", ("tree", "t.Tree")), tree)
    assert (
        found["fields"][0]["type"]["fields"]
        == record("Tree", ("left", ["null", "t.Tree"]), ("right", ["null", "t.Tree"]))["fields"]
    )


def test_attributes_survive() -> None:
    fixed = {"type": "fixed", "name": "Md5", "size": 16, "logicalType": "x", "aliases": ["Hash"]}
    root = {
        "type": "record",
        "name": "Root",
        "doc": "d",
        "fields": [
            {"name": "h", "type": "Md5", "default": "a", "order": "ignore", "doc": "f", "own": {"a": 1}}
        ],
    }
    found = inline(root, fixed)
    assert found["doc"] == "d"
    assert found["fields"][0] == {**root["fields"][0], "type": fixed}  # type: ignore[dict-item]


def test_unknown_names_are_said() -> None:
    with pytest.raises(MalformedAvro, match=r"'geo\.Nowhere'"):
        inlined('["geo.Address", "geo.Nowhere"]', [json.dumps(ADDRESS)])


@pytest.mark.parametrize(
    "bad", ["{", "1", '{"type":"record","fields":[]}', '{"type":"enum","name":1}', "[" * 100_000]
)
def test_what_is_not_avro(bad: str) -> None:
    with pytest.raises(MalformedAvro):
        inlined(bad, [json.dumps(ADDRESS)])


def test_malformed_fields_and_namespaces() -> None:
    malformed: list[dict[str, Any]] = [
        {"fields": {}},
        {"fields": ["x"]},
        {"fields": [{"name": "x"}]},
        {"namespace": 3},
    ]
    for bad in malformed:
        with pytest.raises(MalformedAvro):
            normalized({"type": "record", "name": "A", **bad})


def deep(levels: int) -> Any:
    found: Any = "int"
    for _ in range(levels):
        found = {"type": "array", "items": found}
    return found


def test_a_deep_schema_is_refused_not_crashed_on() -> None:
    with pytest.raises(MalformedAvro, match="deep"):
        normalized(deep(100_000))


def test_spellings_of_one_schema_have_one_normal_form() -> None:
    spellings: list[Any] = [
        record("B", ("x", "string"), ("y", record("C")), ("z", "C"), namespace="a"),
        record("a.B", ("x", {"type": "string"}), ("y", record("a.C")), ("z", "a.C")),
        record("a.B", ("x", "string"), ("y", {"type": record("C", namespace="a")}), ("z", {"type": "C"})),
    ]
    forms = {json.dumps(normalized(s), sort_keys=True) for s in spellings}
    assert len(forms) == 1
    other = record("B", ("x", "string"), ("y", record("C")), ("z", "C"), namespace="b")
    assert json.dumps(normalized(other), sort_keys=True) not in forms


def test_names_from_references_are_left_as_they_are_spelled() -> None:
    schema = record("A", ("x", "geo.Address"), namespace="n")
    assert normalized(schema) == schema
