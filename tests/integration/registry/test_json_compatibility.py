"""JSON Schemas that may and may not follow each other, through Confluent's client."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import referring, refused

INT, STR = {"type": "integer"}, {"type": "string"}


def of(properties: dict[str, Any], **more: Any) -> Schema:
    return Schema(json.dumps({"type": "object", "properties": properties, **more}), "JSON")


# Old, new, and whether BACKWARD, FORWARD and FULL accept it.
CASES = {
    "open": (of({"a": INT}), of({"a": INT, "b": STR}), (False, True, False)),
    "closed": (
        of({"a": INT}, additionalProperties=False),
        of({"a": INT, "b": STR}, additionalProperties=False),
        (True, False, False),
    ),
    "partially open": (
        of({"a": INT}, additionalProperties=STR),
        of({"a": INT, "b": STR}, additionalProperties=STR),
        (True, True, True),
    ),
    "widened": (of({"a": INT}), of({"a": {"type": "number"}}), (True, False, False)),
    "described": (of({"a": INT}), of({"a": INT}, description="an A"), (True, True, True)),
}


@pytest.mark.parametrize(("old", "new", "accepted"), CASES.values(), ids=CASES.keys())
def test_one_step(
    shared_registry: RunningRegistry, subject: str, old: Schema, new: Schema, accepted: tuple[bool, ...]
) -> None:
    client = shared_registry.client
    for level, expected in zip(("BACKWARD", "FORWARD", "FULL"), accepted, strict=True):
        one = f"{subject}-{level}"
        client.set_compatibility(one, level)
        client.register_schema(one, old)
        assert client.test_compatibility(one, new) is expected, level
        if expected:
            client.register_schema(one, new)
        else:
            with refused(409, 409, one, "version 1"):
                client.register_schema(one, new)
        assert client.get_versions(one) == ([1, 2] if expected else [1])


def test_what_is_wrong_is_said(shared_registry: RunningRegistry, subject: str) -> None:
    shared_registry.client.register_schema(subject, of({"a": INT}))
    new = of({"a": INT, "b": STR})
    with refused(409, 409, "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL at #/properties/b"):
        shared_registry.client.register_schema(subject, new)
    url = f"/compatibility/subjects/{subject}/versions/latest"
    found = shared_registry.http.post(url, json=new.to_dict(), params={"verbose": True}).json()
    assert found["is_compatible"] is False
    assert len(found["messages"]) == 1
    assert "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL at #/properties/b" in found["messages"][0]


def test_a_reference_to_another_version_is_compared(shared_registry: RunningRegistry, subject: str) -> None:
    client, part = shared_registry.client, f"{subject}-part"
    client.set_compatibility(part, "NONE")
    client.register_schema(part, Schema('{"type": "integer"}', "JSON"))
    client.register_schema(part, Schema('{"type": "number"}', "JSON"))
    client.register_schema(part, Schema('{"type": "string"}', "JSON"))
    text = '{"type": "object", "properties": {"p": {"$ref": "part.json"}}}'

    def whole(version: int) -> Schema:
        return referring(text, [("part.json", part, version)], "JSON")

    client.register_schema(subject, whole(1))
    assert client.test_compatibility(subject, whole(2)) is True
    assert client.test_compatibility(subject, whole(3)) is False
    with refused(409, 409, "TYPE_CHANGED at #/properties/p: integer became string"):
        client.register_schema(subject, whole(3))


@pytest.mark.parametrize("text", ["{", "[1]", "5", "null", '"object"'])
def test_what_is_no_schema_is_refused(shared_registry: RunningRegistry, subject: str, text: str) -> None:
    client = shared_registry.client
    with refused(422, 42201):
        client.register_schema(subject, Schema(text, "JSON"))
    client.register_schema(subject, Schema("true", "JSON"))
    with refused(422, 42201):
        client.test_compatibility(subject, Schema(text, "JSON"))
