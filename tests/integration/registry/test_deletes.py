"""Soft deletes, hard deletes, and what is left of a schema after each."""

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, refused, unique

A = avro(field("a"))
AB = avro(field("a"), field("b", default=""))


def test_a_soft_deleted_version_is_out_of_sight_but_readable(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(subject, unique(subject))
    client.register_schema(subject, avro(field("more", default="")))
    assert client.delete_version(subject, 1) == 1
    assert client.get_versions(subject) == [2]
    assert client.get_versions(subject, deleted=True) == [1, 2]
    assert client.get_versions(subject, deleted_only=True) == [1]
    fresh = shared_registry.new_client()
    with refused(404, 40402):
        fresh.get_version(subject, 1)
    assert fresh.get_version(subject, 1, deleted=True).schema_id == schema_id
    assert fresh.get_schema(schema_id).schema_str == unique(subject).schema_str
    fresh = shared_registry.new_client()
    with refused(404, 40403):
        fresh.lookup_schema(subject, unique(subject))
    assert fresh.lookup_schema(subject, unique(subject), deleted=True).version == 1
    assert fresh.get_subjects_by_schema_id(schema_id) == []
    assert fresh.get_subjects_by_schema_id(schema_id, deleted=True) == [subject]
    with refused(404, 40406, "permanent=true"):
        fresh.delete_version(subject, 1)


def test_a_hard_delete_needs_a_soft_one_first(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(subject, unique(subject))
    with refused(404, 40407):
        client.delete_version(subject, 1, permanent=True)
    with refused(404, 40405):
        client.delete_subject(subject, permanent=True)
    client.delete_version(subject, 1)
    assert client.delete_version(subject, 1, permanent=True) == 1
    fresh = shared_registry.new_client()
    with refused(404, 40403):
        fresh.get_schema(schema_id)
    with refused(404, 40403):
        fresh.get_subjects_by_schema_id(schema_id)
    with refused(404, 40401):
        fresh.get_versions(subject, deleted=True)


def test_a_subject_is_deleted_softly_and_then_for_good(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    client.register_schema(subject, A)
    client.register_schema(subject, AB)
    assert client.delete_subject(subject) == [1, 2]
    assert subject not in client.get_subjects()
    assert subject in client.get_subjects(deleted=True)
    assert subject in client.get_subjects(deleted_only=True)
    with refused(404, 40401):
        client.get_versions(subject)
    with refused(404, 40404):
        client.delete_subject(subject)
    assert client.delete_subject(subject, permanent=True) == [1, 2]
    assert subject not in client.get_subjects(deleted=True)
    with refused(404, 40401):
        client.delete_subject(subject, permanent=True)
    with refused(404, 40401):
        client.delete_version(subject, 1)


def test_a_schema_stays_while_another_subject_has_it(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(f"{subject}-a", unique(subject))
    client.register_schema(f"{subject}-b", unique(subject))
    client.delete_subject(f"{subject}-a")
    client.delete_subject(f"{subject}-a", permanent=True)
    assert shared_registry.new_client().get_schema(schema_id).schema_str == unique(subject).schema_str
    assert client.get_subjects_by_schema_id(schema_id) == [f"{subject}-b"]


def test_a_schema_registered_after_a_soft_delete_is_a_new_version_of_the_same_id(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(subject, unique(subject))
    client.delete_subject(subject)
    assert shared_registry.new_client().register_schema(subject, unique(subject)) == schema_id
    assert client.get_versions(subject) == [2]
    assert client.get_versions(subject, deleted=True) == [1, 2]


def test_a_delete_takes_the_subjects_settings_with_it(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, A)
    client.register_schema(subject, AB)
    client.set_compatibility(subject, "FULL")
    client.update_mode(subject, "READWRITE")
    client.delete_version(subject, 1)
    assert client.get_compatibility(subject) == "FULL"
    client.delete_version(subject, 2)
    with refused(404, 40408):
        client.get_compatibility(subject)
    with refused(404, 40409):
        client.get_mode(subject)


def test_latest_in_a_delete_is_the_latest_that_lives(shared_registry: RunningRegistry, subject: str) -> None:
    http = shared_registry.http
    shared_registry.client.register_schema(subject, A)
    shared_registry.client.register_schema(subject, AB)
    assert http.delete(f"/subjects/{subject}/versions/latest").json() == 2
    assert http.delete(f"/subjects/{subject}/versions/latest").json() == 1
    assert http.delete(f"/subjects/{subject}/versions/latest").status_code == 404
