"""What may follow what, case by case, judged by Apache Avro's own rules."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, refused

ID = field("id", "long")
NOTE = field("note", "string")
OPTIONAL_NOTE = field("note", ["null", "string"], default=None)
NOTE_WITH_DEFAULT = field("note", "string", default="")
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
MORE_COLOURS = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN", "BLUE"]}
DEFAULT_COLOURS = {**COLOUR, "default": "RED"}
MORE_DEFAULT_COLOURS = {**MORE_COLOURS, "default": "RED"}

LEVELS = ("BACKWARD", "FORWARD", "FULL")
# Name, before, after, and whether each of BACKWARD, FORWARD and FULL accepts it.
CASES: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]], tuple[bool, bool, bool]]] = [
    ("add optional field", [ID], [ID, OPTIONAL_NOTE], (True, True, True)),
    ("add field with default", [ID], [ID, NOTE_WITH_DEFAULT], (True, True, True)),
    ("add required field", [ID], [ID, NOTE], (False, True, False)),
    ("remove optional field", [ID, OPTIONAL_NOTE], [ID], (True, True, True)),
    ("remove required field", [ID, NOTE], [ID], (True, False, False)),
    ("rename required field", [ID, NOTE], [ID, field("remark")], (False, False, False)),
    ("rename with alias", [ID, NOTE], [ID, field("remark", aliases=["note"])], (True, False, False)),
    ("int to long", [field("n", "int")], [field("n", "long")], (True, False, False)),
    ("long to int", [field("n", "long")], [field("n", "int")], (False, True, False)),
    ("long to double", [field("n", "long")], [field("n", "double")], (True, False, False)),
    ("string to int", [field("n", "string")], [field("n", "int")], (False, False, False)),
    ("string to bytes", [field("n", "string")], [field("n", "bytes")], (True, True, True)),
    ("required to optional", [ID, NOTE], [ID, OPTIONAL_NOTE], (True, False, False)),
    ("optional to required", [ID, OPTIONAL_NOTE], [ID, NOTE], (False, True, False)),
    ("add enum symbol", [field("c", COLOUR)], [field("c", MORE_COLOURS)], (True, False, False)),
    ("remove enum symbol", [field("c", MORE_COLOURS)], [field("c", COLOUR)], (False, True, False)),
    (
        "add symbol to enum with default",
        [field("c", DEFAULT_COLOURS)],
        [field("c", MORE_DEFAULT_COLOURS)],
        (True, True, True),
    ),
    (
        "add union branch",
        [field("n", ["null", "string"])],
        [field("n", ["null", "string", "int"])],
        (True, False, False),
    ),
    (
        "change in an array's item",
        [field("n", {"type": "array", "items": "int"})],
        [field("n", {"type": "array", "items": "string"})],
        (False, False, False),
    ),
    ("only the documentation", [ID], [field("id", "long", doc="the id")], (True, True, True)),
]


@pytest.mark.parametrize(("before", "after", "accepted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_one_step(
    shared_registry: RunningRegistry,
    subject: str,
    before: list[dict[str, Any]],
    after: list[dict[str, Any]],
    accepted: tuple[bool, bool, bool],
) -> None:
    client = shared_registry.client
    for level, expected in zip(LEVELS, accepted, strict=True):
        one = f"{subject}-{level}"
        client.set_compatibility(one, level)
        client.register_schema(one, avro(*before))
        assert client.test_compatibility(one, avro(*after)) is expected, level
        assert client.test_compatibility(one, avro(*after), version=1) is expected, level
        assert client.test_compatibility_all_versions(one, avro(*after)) is expected, level
        if expected:
            client.register_schema(one, avro(*after))
            assert client.get_versions(one) == [1, 2]
        else:
            with refused(409, 409, one):
                client.register_schema(one, avro(*after))
            assert client.get_versions(one) == [1]
    client.set_compatibility(subject, "NONE")
    client.register_schema(subject, avro(*before))
    assert client.test_compatibility(subject, avro(*after)) is True
    client.register_schema(subject, avro(*after))


# Each step is accepted by the plain level, the last one does not fit the first version.
CHAINS: list[tuple[str, list[list[dict[str, Any]]]]] = [
    ("BACKWARD", [[ID], [ID, NOTE_WITH_DEFAULT], [ID, NOTE]]),
    ("FORWARD", [[ID, NOTE], [ID, NOTE_WITH_DEFAULT], [ID]]),
    ("FULL", [[ID, NOTE], [ID, NOTE_WITH_DEFAULT], [ID]]),
    ("FULL", [[ID], [ID, NOTE_WITH_DEFAULT], [ID, NOTE]]),
]


@pytest.mark.parametrize(("level", "chain"), CHAINS, ids=["backward", "forward", "full-1", "full-2"])
def test_transitive_levels_look_at_all_versions(
    shared_registry: RunningRegistry, subject: str, level: str, chain: list[list[dict[str, Any]]]
) -> None:
    client = shared_registry.client
    plain, transitive = f"{subject}-plain", f"{subject}-transitive"
    client.set_compatibility(plain, level)
    client.set_compatibility(transitive, f"{level}_TRANSITIVE")
    for step in chain[:-1]:
        client.register_schema(plain, avro(*step))
        client.register_schema(transitive, avro(*step))
    last = avro(*chain[-1])
    assert client.test_compatibility_all_versions(plain, last) is True
    assert client.test_compatibility_all_versions(transitive, last) is False
    assert client.test_compatibility(transitive, last, version="latest") is True
    assert client.test_compatibility(transitive, last, version=1) is False
    client.register_schema(plain, last)
    with refused(409, 409, "version 1"):
        client.register_schema(transitive, last)
    # A soft-deleted version is compared with no more.
    client.delete_version(transitive, 1)
    client.register_schema(transitive, last)
    assert client.get_versions(transitive) == [2, 3]


def test_the_default_is_backward_and_a_subject_may_differ(own_registry: RunningRegistry) -> None:
    client = own_registry.client
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema("a-value", avro(ID))
    with refused(409, 409):
        client.register_schema("a-value", avro(ID, NOTE))
    client.set_compatibility(level="FORWARD")
    client.register_schema("a-value", avro(ID, NOTE))
    client.set_compatibility("a-value", "BACKWARD")
    with refused(409, 409):
        client.register_schema("a-value", avro(ID, NOTE, field("x")))
    client.delete_config("a-value")
    client.register_schema("a-value", avro(ID, NOTE, field("x")))


def test_messages_when_verbose(shared_registry: RunningRegistry, subject: str) -> None:
    shared_registry.client.register_schema(subject, avro(ID))
    url = f"/compatibility/subjects/{subject}/versions/latest"
    good, bad = avro(ID, NOTE_WITH_DEFAULT).to_dict(), avro(ID, NOTE).to_dict()
    assert shared_registry.http.post(url, json=bad).json() == {"is_compatible": False}
    found = shared_registry.http.post(url, json=bad, params={"verbose": True}).json()
    assert found["is_compatible"] is False
    assert [m for m in found["messages"] if "READER_FIELD_MISSING_DEFAULT_VALUE at /fields/1: note" in m]
    found = shared_registry.http.post(url, json=good, params={"verbose": True}).json()
    assert found == {"is_compatible": True, "messages": []}


def test_compatibility_with_what_is_not_there(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    assert client.test_compatibility(subject, avro(ID)) is True
    assert client.test_compatibility_all_versions(subject, avro(ID)) is True
    with refused(404, 40401):
        client.test_compatibility(subject, avro(ID), version=1)
    client.register_schema(subject, avro(ID))
    with refused(404, 40402):
        client.test_compatibility(subject, avro(ID), version=2)
    with refused(422, 42202):
        client.test_compatibility(subject, avro(ID), version="newest")
    with refused(422, 42201, "Missing"):
        client.test_compatibility(subject, avro(field("x", "Missing")))


def test_the_type_of_a_subject_does_not_change(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, avro(ID))
    json_schema = Schema('{"type":"object"}', "JSON")
    assert client.test_compatibility(subject, json_schema) is False
    with refused(409, 409, "AVRO to JSON"):
        client.register_schema(subject, json_schema)
    client.set_compatibility(subject, "NONE")
    client.register_schema(subject, json_schema)


def test_compatibility_groups_are_compared_apart(shared_registry: RunningRegistry, subject: str) -> None:
    def of_major(major: str, *fields: dict[str, Any]) -> dict[str, Any]:
        return {**avro(*fields).to_dict(), "metadata": {"properties": {"major": major}}}

    http = shared_registry.http
    assert http.put(f"/config/{subject}", json={"compatibilityGroup": "major"}).status_code == 200
    url = f"/subjects/{subject}/versions"
    assert http.post(url, json=of_major("1", ID)).status_code == 200
    assert http.post(url, json=of_major("1", ID, NOTE)).status_code == 409
    assert http.post(url, json=of_major("2", ID, NOTE)).status_code == 200
    assert http.post(url, json=of_major("2", ID, NOTE, field("x"))).status_code == 409
