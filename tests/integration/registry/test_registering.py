"""Registering and reading back, with Confluent's own client."""

import json
import uuid

import pytest
from confluent_kafka.schema_registry import Metadata, MetadataProperties, MetadataTags, RuleSet, Schema
from confluent_kafka.schema_registry.schema_registry_client import Rule, RuleKind, RuleMode

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, refused, unique


def tagged(schema: Schema, **properties: str) -> Schema:
    metadata = Metadata(MetadataTags({}), MetadataProperties(properties), [])
    return Schema(schema.schema_str, schema.schema_type, [], metadata)


def test_what_is_registered_is_read_back_as_it_was_given(
    shared_registry: RunningRegistry, subject: str
) -> None:
    text = json.dumps(json.loads(record_text(field("what_is_registered"))), indent=4)
    schema_id = shared_registry.client.register_schema(subject, Schema(text, "AVRO"))
    client = shared_registry.new_client()
    assert client.get_schema(schema_id).schema_str == text
    latest = client.get_latest_version(subject)
    assert (latest.subject, latest.version, latest.schema_id) == (subject, 1, schema_id)
    assert latest.schema.schema_str == text
    assert client.get_version(subject, 1).schema.schema_type == "AVRO"
    assert client.get_versions(subject) == [1]
    assert subject in client.get_subjects()


def test_registering_again_gives_the_same_id_and_no_version(
    shared_registry: RunningRegistry, subject: str
) -> None:
    text = record_text(field("again"))
    spaced = json.dumps(json.loads(text), indent=2)
    turned = json.dumps(dict(reversed(json.loads(text).items())))
    ids = {
        shared_registry.new_client().register_schema(subject, Schema(t, "AVRO"))
        for t in (text, spaced, turned, text)
    }
    assert len(ids) == 1
    assert shared_registry.client.get_versions(subject) == [1]


def test_the_same_schema_has_one_id_under_all_subjects(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    one = client.register_schema(f"{subject}-a", unique(subject))
    assert client.register_schema(f"{subject}-b", unique(subject)) == one
    assert client.register_schema(f"{subject}-c", avro(field("another_one"))) != one
    assert client.get_subjects_by_schema_id(one) == [f"{subject}-a", f"{subject}-b"]
    places = [(v.subject, v.version) for v in client.get_schema_versions(one)]
    assert places == [(f"{subject}-a", 1), (f"{subject}-b", 1)]
    assert client.get_subjects_by_schema_id(one, subject_name=f"{subject}-b") == [f"{subject}-b"]
    assert client.get_subjects_by_schema_id(one, offset=1, limit=1) == [f"{subject}-b"]


def test_metadata_and_rules_are_part_of_the_identity(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    plain = unique(subject)
    rule = Rule("r", "", RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "true", None, None, False)
    ruled = Schema(plain.schema_str, "AVRO", [], None, RuleSet(None, [rule]))
    ids = [
        client.register_schema(f"{subject}-plain", plain),
        client.register_schema(f"{subject}-tagged", tagged(plain, team="a")),
        client.register_schema(f"{subject}-other", tagged(plain, team="b")),
        client.register_schema(f"{subject}-ruled", ruled),
    ]
    assert len(set(ids)) == 4
    fresh = shared_registry.new_client()
    found = fresh.get_schema(ids[3])
    assert found.rule_set is not None
    assert found.rule_set.domain_rules == [rule]
    assert fresh.get_schema(ids[1]).metadata == tagged(plain, team="a").metadata


def test_a_plain_schema_finds_the_version_that_has_metadata(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    first = client.register_schema(subject, tagged(unique(subject), team="a"))
    assert shared_registry.new_client().register_schema(subject, unique(subject)) == first
    assert shared_registry.new_client().lookup_schema(subject, unique(subject)).version == 1
    # A changed schema that says nothing of metadata keeps the subject's.
    fields = json.loads(str(unique(subject).schema_str))["fields"]
    client.register_schema(subject, avro(*fields, field("b", default="")))
    latest = client.get_latest_version(subject)
    assert latest.version == 2
    assert latest.schema.metadata is not None
    assert latest.schema.metadata.properties == MetadataProperties({"team": "a"})


def test_latest_with_metadata(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, tagged(unique(subject), **{"major version": "1/a"}))
    client.register_schema(subject, tagged(unique(subject), **{"major version": "2"}))
    assert client.get_latest_with_metadata(subject, {"major version": "1/a"}).version == 1
    assert client.get_latest_with_metadata(subject, {"major version": "2"}).version == 2
    with refused(404, 40403):
        client.get_latest_with_metadata(subject, {"major version": "3"})


def test_lookup(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schema_id = client.register_schema(subject, unique(subject))
    respelled = Schema(json.dumps(json.loads(str(unique(subject).schema_str)), indent=1), "AVRO")
    found = client.lookup_schema(subject, respelled)
    assert (found.schema_id, found.version, found.subject) == (schema_id, 1, subject)
    with refused(404, 40403):
        client.lookup_schema(subject, avro(field("never_registered")))
    with refused(404, 40401, "no-such-subject"):
        client.lookup_schema("no-such-subject", unique(subject))


def test_normalize_ignores_how_names_are_spelled(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    nested = {"type": "record", "name": "Item", "fields": [field("x")]}
    short = avro(field("item", nested), field(subject.replace("-", "_").replace(".", "_")))
    full = json.loads(str(short.schema_str))
    full["name"] = "shop." + full["name"]
    del full["namespace"]
    full["fields"][0]["type"].update(name="Item", namespace="shop", fields=[field("x", {"type": "string"})])
    spelled = Schema(json.dumps(full), "AVRO")
    first = client.register_schema(subject, short)
    assert shared_registry.new_client().register_schema(subject, spelled, normalize_schemas=True) == first
    assert shared_registry.new_client().lookup_schema(subject, spelled, normalize_schemas=True).version == 1
    with refused(404, 40403):
        shared_registry.new_client().lookup_schema(subject, spelled)


def test_schemas_have_a_guid_of_their_content(shared_registry: RunningRegistry, subject: str) -> None:
    registered = shared_registry.client.register_schema_full_response(subject, unique(subject))
    guid = str(registered.guid)
    assert uuid.UUID(guid)
    assert shared_registry.new_client().get_schema_by_guid(guid).schema_str == unique(subject).schema_str
    with refused(404, 40403):
        shared_registry.client.get_schema_by_guid(str(uuid.uuid4()))


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "a/versions",
        "a/versions/1",
        "a.b",
        "ä ö+ü",
        "a%2Fb",
        "100%",
        "a?b#c",
        ":a",
        "x:.y",
        "a'b\"c",
        "...",
    ],
)
def test_subjects_may_have_any_characters(shared_registry: RunningRegistry, subject: str, name: str) -> None:
    client = shared_registry.client
    odd = f"{name}//{subject}/{name}"
    schema_id = client.register_schema(odd, avro(field("odd_subject")))
    assert client.get_versions(odd) == [1]
    assert client.get_latest_version(odd).schema_id == schema_id
    assert client.get_latest_version(odd).subject == odd
    assert odd in client.get_subjects(subject_prefix=f"{name}//{subject}")
    client.set_compatibility(odd, "FULL")
    assert client.get_compatibility(odd) == "FULL"
    client.update_mode(odd, "READWRITE")
    assert client.get_mode(odd) == "READWRITE"
    assert client.test_compatibility(odd, avro(field("odd_subject")))
    assert client.lookup_schema(odd, avro(field("odd_subject"))).version == 1
    assert client.delete_version(odd, 1) == 1
    assert client.delete_subject(odd, permanent=True) == [1]


def test_a_subject_that_looks_like_a_path_is_not_mistaken(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    inner = client.register_schema(subject, avro(field("inner")))
    outer = client.register_schema(f"{subject}/versions/1", avro(field("outer")))
    assert client.get_version(subject, 1).schema_id == inner
    assert client.get_version(f"{subject}/versions/1", 1).schema_id == outer
    client.delete_subject(f"{subject}/versions/1")
    assert client.get_versions(subject) == [1]


def test_invalid_avro_is_refused_with_the_parsers_words(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    bad = [
        ('{"type":"record","name":"A","fields":[{"name":"x","type":"Missing"}]}', "Missing"),
        (
            '{"type":"record","name":"A","fields":[{"name":"x","type":"int","default":"s"}]}',
            "Invalid default",
        ),
        ('{"type":"record","name":"A b","fields":[]}', "A b"),
        ('{"type":"record"}', "name"),
        ('{"type":', "not JSON"),
        ("record A {}", "not JSON"),
        ('{"type":"array","items":' * 5000 + '"int"' + "}" * 5000, ""),
        ('{"type":"array","items":' * 900 + '"int"' + "}" * 900 + "x", ""),
        ("  ", "empty"),
    ]
    for text, said in bad:
        with refused(422, 42201, said):
            client.register_schema(subject, Schema(text, "AVRO"))
    with refused(404, 40401):
        client.get_versions(subject)


def test_deep_nesting_is_no_accident(shared_registry: RunningRegistry, subject: str) -> None:
    deep = Schema('{"type":"array","items":' * 300 + '"int"' + "}" * 300, "AVRO")
    schema_id = shared_registry.client.register_schema(subject, deep, normalize_schemas=True)
    assert shared_registry.new_client().lookup_schema(subject, deep).schema_id == schema_id


def test_json_and_protobuf_are_stored_and_served(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schemas = {
        "JSON": '{"type":"object","properties":{"a":{"type":"string"}}}',
        "PROTOBUF": 'syntax = "proto3"; message A { string a = 1; }',
    }
    for kind, text in schemas.items():
        schema_id = client.register_schema(f"{subject}-{kind}", Schema(text, kind))
        found = shared_registry.new_client().get_schema(schema_id)
        assert (found.schema_type, found.schema_str) == (kind, text)
        assert client.lookup_schema(f"{subject}-{kind}", Schema(text, kind)).schema_id == schema_id
    with refused(422, 42201):
        client.register_schema(subject, Schema("{", "JSON"))
    with refused(422, 42201):
        client.register_schema(subject, Schema("[1]", "JSON"))
    with refused(422, 42201, "XML"):
        client.register_schema(subject, Schema("<a/>", "XML"))
    assert client.get_schema_types() == ["AVRO", "JSON", "PROTOBUF"]


def test_versions_are_named_by_number_or_latest(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, avro(field("a")))
    client.register_schema(subject, avro(field("a"), field("b", default="")))
    assert [client.get_version(subject, v).version for v in (1, 2, "latest", -1)] == [1, 2, 2, 2]
    with refused(404, 40402, "3"):
        client.get_version(subject, 3)
    for wrong in ("first", 0, -2, 2**31, "9" * 5000, "1.0"):
        with refused(422, 42202):
            client.get_version(subject, wrong)  # type: ignore[arg-type]
    with refused(404, 40401, "no-such-subject"):
        client.get_version("no-such-subject", 1)
    with refused(404, 40403, "999999"):
        client.get_schema(999999)


def test_pages_and_prefixes(own_registry: RunningRegistry) -> None:
    client = own_registry.client
    for name in ("b-value", "a-value", "B-value"):
        client.register_schema(name, unique(name))
        client.register_schema(name, avro(field("more", ["null", "string"], default=None)))
    assert client.get_subjects() == ["B-value", "a-value", "b-value"]
    assert client.get_subjects(subject_prefix="b") == ["b-value"]
    assert client.get_subjects(subject_prefix=":*:") == ["B-value", "a-value", "b-value"]
    assert client.get_subjects(offset=1, limit=1) == ["a-value"]
    assert client.get_versions("a-value", offset=1) == [2]
    listed = own_registry.http.get("/schemas", params={"subjectPrefix": "a"}).json()
    assert [(v["subject"], v["version"]) for v in listed] == [("a-value", 1), ("a-value", 2)]
    latest = own_registry.http.get("/schemas", params={"latestOnly": "true"}).json()
    assert [(v["subject"], v["version"]) for v in latest] == [("B-value", 2), ("a-value", 2), ("b-value", 2)]
