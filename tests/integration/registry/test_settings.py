"""/config and /mode: levels, modes, and what each mode lets through."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import ConfigCompatibilityLevel, Metadata, Schema, ServerConfig

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, refused

A = avro(field("a"))
AB = avro(field("a"), field("b", default=""))


def test_levels_of_the_registry_and_of_a_subject(own_registry: RunningRegistry) -> None:
    client = own_registry.client
    assert client.get_compatibility() == "BACKWARD"
    answer: Any = client.set_compatibility(level="full_transitive")
    assert answer == {"compatibility": "FULL_TRANSITIVE"}
    assert client.get_compatibility() == "FULL_TRANSITIVE"
    with refused(404, 40408, "defaultToGlobal"):
        client.get_compatibility("a")
    asked = own_registry.http.get("/config/a", params={"defaultToGlobal": "true"})
    assert asked.json() == {"compatibilityLevel": "FULL_TRANSITIVE"}
    client.set_compatibility("a", "NONE")
    assert client.get_compatibility("a") == "NONE"
    assert client.delete_config("a").compatibility_level == ConfigCompatibilityLevel.NONE
    with refused(404, 40401):
        client.delete_config("a")
    assert client.delete_config().compatibility_level == ConfigCompatibilityLevel.FULL_TRANSITIVE
    assert client.get_compatibility() == "BACKWARD"


def test_an_unknown_level_is_refused(shared_registry: RunningRegistry, subject: str) -> None:
    with refused(422, 42203, "SIDEWAYS"):
        shared_registry.client.set_compatibility(subject, "SIDEWAYS")
    assert shared_registry.http.put(f"/config/{subject}", json={}).json()["error_code"] == 42203
    with refused(404, 40408):
        shared_registry.client.get_compatibility(subject)


def test_settings_keep_what_a_later_request_does_not_name(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    client.set_config(subject, ServerConfig(compatibility_level=ConfigCompatibilityLevel.FULL))
    client.set_config(subject, ServerConfig(compatibility_group="major"))
    found = client.get_config(subject)
    assert found.compatibility_level == ConfigCompatibilityLevel.FULL
    assert found.compatibility_group == "major"


def test_settings_that_would_not_be_acted_on_are_refused(
    shared_registry: RunningRegistry, subject: str
) -> None:
    metadata = Metadata(None, None, [])
    with refused(422, 422, "defaultMetadata"):
        shared_registry.client.set_config(subject, ServerConfig(default_metadata=metadata))
    sent = shared_registry.http.put(f"/config/{subject}", json={"compatibility": "FULL", "alias": "x"})
    assert sent.status_code == 422
    assert "alias" in sent.json()["message"]
    with refused(404, 40408):
        shared_registry.client.get_compatibility(subject)


def test_normalize_may_be_configured(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    assert shared_registry.http.put(f"/config/{subject}", json={"normalize": True}).status_code == 200
    first = client.register_schema(subject, Schema('{"type":"record","name":"a.B","fields":[]}', "AVRO"))
    other = Schema('{"type":"record","name":"B","namespace":"a","fields":[]}', "AVRO")
    assert client.register_schema(subject, other) == first
    assert client.get_versions(subject) == [1]


def test_read_only_refuses_all_writes(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(subject, A)
    assert client.update_mode(subject, "READONLY") == "READONLY"
    writes: list[Callable[[], object]] = [
        lambda: client.register_schema(subject, AB),
        lambda: client.delete_subject(subject),
        lambda: client.delete_version(subject, 1),
        lambda: client.set_compatibility(subject, "NONE"),
        lambda: client.delete_config(subject),
    ]
    for write in writes:
        with refused(422, 42205, "read-only"):
            write()
    # What is registered already changes nothing: producers go on.
    assert shared_registry.new_client().register_schema(subject, A) == schema_id
    assert client.get_versions(subject) == [1]
    assert client.delete_mode(subject) == "READONLY"
    client.register_schema(subject, AB)


def test_the_mode_of_the_registry_is_that_of_subjects_without_one(own_registry: RunningRegistry) -> None:
    client = own_registry.client
    assert client.get_global_mode() == "READWRITE"
    assert client.update_global_mode("READONLY") == "READONLY"
    with refused(404, 40409):
        client.get_mode("a")
    asked = own_registry.http.get("/mode/a", params={"defaultToGlobal": "true"})
    assert asked.json() == {"mode": "READONLY"}
    with refused(422, 42205):
        client.register_schema("a", A)
    with refused(422, 42205):
        client.set_compatibility(level="NONE")
    client.update_mode("b", "READWRITE")
    client.register_schema("b", A)
    client.update_global_mode("READONLY_OVERRIDE")
    with refused(422, 42205):
        client.register_schema("b", AB)
    assert own_registry.http.delete("/mode").json() == {"mode": "READONLY_OVERRIDE"}
    client.register_schema("b", AB)
    with refused(404, 40401):
        client.delete_mode("a")


def test_an_unknown_mode_is_refused(shared_registry: RunningRegistry, subject: str) -> None:
    with refused(422, 42204, "WRITEONLY"):
        shared_registry.client.update_mode(subject, "WRITEONLY")
    with refused(404, 40409):
        shared_registry.client.get_mode(subject)


def imported(registry: RunningRegistry, subject: str, schema: Schema, **named: int) -> tuple[int, int]:
    """Status and error code, or id, of an import. Confluent's client cannot name an id."""
    answer = registry.http.post(f"/subjects/{subject}/versions", json={**schema.to_dict(), **named})
    body = answer.json()
    return answer.status_code, body.get("error_code", body.get("id"))


def test_import_keeps_the_ids_and_versions_of_another_registry(own_registry: RunningRegistry) -> None:
    client = own_registry.client
    assert imported(own_registry, "a", A, id=100) == (422, 42205)
    assert imported(own_registry, "a", A, version=3) == (422, 42205)
    client.register_schema("before", avro(field("z")))
    with refused(422, 42205, "force"):
        client.update_global_mode("IMPORT")
    client.update_mode("a", "IMPORT")
    assert imported(own_registry, "a", A, id=100, version=3) == (200, 100)
    assert imported(own_registry, "a", A, id=100, version=3) == (200, 100)
    # Incompatible with what is there, and taken: its own registry has judged it.
    assert imported(own_registry, "a", avro(field("q")), id=50) == (200, 50)
    assert client.get_versions("a") == [3, 4]
    assert imported(own_registry, "a", AB, id=100) == (422, 42205)
    assert imported(own_registry, "a", AB, id=101, version=3) == (422, 42205)
    assert imported(own_registry, "a", AB) == (422, 42205)
    assert imported(own_registry, "a", AB, version=9) == (422, 42205)
    with refused(422, 42205, "force"):
        client.update_mode("a", "IMPORT")
    client.update_mode("a", "READWRITE")
    client.set_compatibility("a", "NONE")
    # Ids go on after the highest that was ever used.
    assert client.register_schema("a", AB) == 101
    assert client.get_versions("a") == [3, 4, 5]


def test_import_may_use_up_all_ids(own_registry: RunningRegistry) -> None:
    own_registry.client.update_global_mode("IMPORT")
    highest = 2**31 - 1
    assert imported(own_registry, "a", A, id=highest) == (200, highest)
    assert imported(own_registry, "a", AB, id=highest + 1) == (422, 422)
    own_registry.client.update_global_mode("READWRITE")
    with refused(422, 42205, "used up"):
        own_registry.client.register_schema("b", avro(field("one_more")))


@pytest.mark.parametrize("named", [{"id": -1}, {"version": 0}, {"id": -1, "version": -1}])
def test_no_id_and_no_version_may_be_said_in_numbers(
    shared_registry: RunningRegistry, subject: str, named: dict[str, int]
) -> None:
    assert imported(shared_registry, subject, A, **named)[0] == 200
