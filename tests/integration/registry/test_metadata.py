"""Metadata and rules of a schema: kept, served, and part of what it is."""

import json
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Metadata, MetadataProperties, MetadataTags, RuleSet, Schema
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.schema_registry_client import Rule, RuleKind, RuleMode, RuleParams
from confluent_kafka.serialization import MessageField, SerializationContext

from headgate.jvm import Jvm
from headgate.registry.client import SchemaSource
from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import field, record_text, unique

# Without tags: Confluent's client cannot hash the ones that it reads. They are sent by hand below.
METADATA = Metadata(MetadataTags({}), MetadataProperties({"owner": "ä", "team": "a"}), ["owner"])


def rule(name: str, kind: RuleKind, mode: RuleMode, expression: str) -> Rule:
    params = RuleParams({"encrypt.kek.name": "k"})
    return Rule(name, "doc", kind, mode, "CEL", ["PII"], params, expression, "NONE", "ERROR", True)


RULES = RuleSet(
    [rule("up", RuleKind.TRANSFORM, RuleMode.UPGRADE, "$")],
    [rule("check", RuleKind.CONDITION, RuleMode.WRITE, "size(message.a) > 0")],
)


def full(text: str | None, metadata: Metadata | None = METADATA, rules: RuleSet | None = RULES) -> Schema:
    return Schema(text, "AVRO", [], metadata, rules)


def parts(schema: Schema) -> tuple[object, ...]:
    """All of it. Rule sets themselves differ in what the client leaves empty."""
    rules = schema.rule_set
    assert rules is not None
    return schema.schema_str, schema.metadata, rules.migration_rules, rules.domain_rules


def test_all_of_it_comes_back_from_everywhere(jvm: Jvm, tmp_path: Path) -> None:
    sent = full(record_text(field("a")))
    with RunningRegistry(tmp_path / "control.db", jvm) as registry:
        registered = registry.client.register_schema_full_response("all-value", sent)
    with RunningRegistry(tmp_path / "control.db", jvm) as again:
        client = again.new_client()
        assert parts(client.get_schema(int(registered.schema_id or 0))) == parts(sent)
        assert parts(again.new_client().get_schema_by_guid(str(registered.guid))) == parts(sent)
        assert parts(client.get_latest_version("all-value").schema) == parts(sent)
        assert parts(client.get_version("all-value", 1).schema) == parts(sent)
        assert parts(client.lookup_schema("all-value", sent).schema) == parts(sent)


def test_other_metadata_or_other_rules_are_another_version(
    shared_registry: RunningRegistry, subject: str
) -> None:
    text = unique(subject).schema_str
    other_metadata = Metadata(METADATA.tags, MetadataProperties({"owner": "ä", "team": "b"}), ["owner"])
    other_rules = RuleSet(RULES.migration_rules, [rule("check", RuleKind.CONDITION, RuleMode.WRITE, "true")])
    variants = [full(text), full(text, other_metadata), full(text, other_metadata, other_rules)]
    found = [shared_registry.client.register_schema_full_response(subject, schema) for schema in variants]
    assert shared_registry.client.get_versions(subject) == [1, 2, 3]
    assert len({one.schema_id for one in found}) == len({one.guid for one in found}) == 3
    for version, schema in enumerate(variants, 1):
        assert shared_registry.new_client().lookup_schema(subject, schema).version == version
        found_now = shared_registry.new_client().get_version(subject, version).schema
        assert parts(found_now) == parts(schema)


def test_the_same_said_otherwise_is_the_same(shared_registry: RunningRegistry, subject: str) -> None:
    """Clients send empty lists or leave them out; what is a set has no order."""
    text = unique(subject).schema_str
    rules = {
        "domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]
    }
    bodies: list[dict[str, Any]] = [
        {"metadata": {"properties": {"a": "1"}, "sensitive": ["x", "y"]}, "ruleSet": rules},
        {
            "metadata": {"tags": {}, "properties": {"a": "1"}, "sensitive": ["y", "x"]},
            "ruleSet": {
                "migrationRules": [],
                "domainRules": [{**rules["domainRules"][0], "doc": None, "tags": [], "params": {}}],
            },
        },
    ]
    ids = set()
    for body in bodies:
        answer = shared_registry.http.post(f"/subjects/{subject}/versions", json={"schema": text, **body})
        assert answer.status_code == 200, answer.text
        ids.add((answer.json()["id"], answer.json()["guid"]))
    assert len(ids) == 1
    assert shared_registry.client.get_versions(subject) == [1]


def test_the_order_of_rules_matters(shared_registry: RunningRegistry, subject: str) -> None:
    text = unique(subject).schema_str
    one = rule("one", RuleKind.CONDITION, RuleMode.WRITE, "true")
    two = rule("two", RuleKind.CONDITION, RuleMode.WRITE, "true")
    client = shared_registry.client
    first = client.register_schema(subject, full(text, None, RuleSet(None, [one, two])))
    assert client.register_schema(subject, full(text, None, RuleSet(None, [two, one]))) != first


def test_serializers_work_with_a_schema_that_has_both(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    text = record_text(field("a"), field("ssn"))
    registered = shared_registry.client.register_schema(subject, full(text))
    where = SerializationContext(topic, MessageField.VALUE)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    # The rules are disabled: this client has no CEL. They travel all the same.
    sent: Any = AvroSerializer(shared_registry.new_client(), text, conf=conf)({"a": "x", "ssn": "1"}, where)
    assert sent[:5] == b"\x00" + registered.to_bytes(4, "big")
    assert AvroDeserializer(shared_registry.new_client())(sent, where) == {"a": "x", "ssn": "1"}


def test_tags_are_no_hindrance(shared_registry: RunningRegistry, subject: str) -> None:
    body = {"schema": unique(subject).schema_str, "metadata": {"tags": {"**.ssn": ["PII", "PRIVATE"]}}}
    sent = shared_registry.http.post(f"/subjects/{subject}/versions", json=body).json()
    with SchemaSource(shared_registry.url) as source:
        assert source.schema(sent["id"]) == source.schema_by_guid(sent["guid"])
        assert source.latest(subject) == source.schema(sent["id"])
    found = shared_registry.http.get(f"/schemas/ids/{sent['id']}").json()
    assert found["metadata"] == body["metadata"]


def test_what_is_kept_is_what_was_sent(shared_registry: RunningRegistry, subject: str) -> None:
    """Fields that we do not know of are kept, too: clients act on them."""
    body = {
        "schema": unique(subject).schema_str,
        "metadata": {"tags": {"a": ["T"]}, "properties": {"p": ""}, "sensitive": ["p"]},
        "ruleSet": {"domainRules": [{"name": "n", "newer": "words"}], "enableAt": "later"},
    }
    assert shared_registry.http.post(f"/subjects/{subject}/versions", json=body).status_code == 200
    found = shared_registry.http.get(f"/subjects/{subject}/versions/1").json()
    assert json.dumps(found["metadata"], sort_keys=True) == json.dumps(body["metadata"], sort_keys=True)
    assert found["ruleSet"] == body["ruleSet"]
