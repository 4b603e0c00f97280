"""References between schemas: resolved, counted, and protected from deletes."""

import json

from confluent_kafka.schema_registry import Schema

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, referring, refused
from tests.integration.registry.test_serializers import ADDRESS, CUSTOMER, ORDER, register_order


def test_a_referenced_version_cannot_be_deleted(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    order_id = client.register_schema(subject, register_order(client, subject))
    customer_id = client.get_latest_version(f"{subject}-customer").schema_id
    assert customer_id is not None
    assert client.get_referenced_by(f"{subject}-customer", 1) == [order_id]
    assert client.get_referenced_by(f"{subject}-address", "latest") == sorted([customer_id, order_id])
    assert client.get_referenced_by(subject, 1) == []
    with refused(422, 42206, str(order_id), "Delete those first"):
        client.delete_subject(f"{subject}-customer")
    with refused(422, 42206):
        client.delete_version(f"{subject}-address", 1)
    assert client.get_versions(f"{subject}-customer") == [1]
    client.delete_subject(subject)
    assert client.get_referenced_by(f"{subject}-customer", 1) == []
    client.delete_subject(f"{subject}-customer")
    # For good only after the referrer: by its id, the soft-deleted order is still read.
    with refused(422, 42206, str(order_id)):
        client.delete_subject(f"{subject}-customer", permanent=True)
    client.delete_subject(subject, permanent=True)
    assert client.delete_subject(f"{subject}-customer", permanent=True) == [1]
    client.delete_subject(f"{subject}-address")
    assert client.delete_subject(f"{subject}-address", permanent=True) == [1]


def test_a_reference_must_lead_somewhere(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    with refused(422, 42201, "geo.Address", "nowhere", "version 1"):
        client.register_schema(subject, referring(CUSTOMER, [("geo.Address", "nowhere", 1)]))
    with refused(422, 42201, "nowhere", "latest"):
        client.register_schema(subject, referring(CUSTOMER, [("geo.Address", "nowhere", -1)]))
    client.register_schema(f"{subject}-address", Schema(ADDRESS, "AVRO"))
    with refused(422, 42201, "version 2"):
        client.register_schema(subject, referring(CUSTOMER, [("geo.Address", f"{subject}-address", 2)]))
    # Without the reference the name means nothing.
    with refused(422, 42201, "geo.Address"):
        client.register_schema(subject, Schema(CUSTOMER, "AVRO"))


def test_a_reference_to_the_latest_is_kept_as_a_number(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    client.register_schema(f"{subject}-address", Schema(ADDRESS, "AVRO"))
    latest = referring(CUSTOMER, [("geo.Address", f"{subject}-address", -1)])
    client.register_schema(subject, latest)
    pinned = client.get_latest_version(subject).schema.references
    assert pinned == referring(CUSTOMER, [("geo.Address", f"{subject}-address", 1)]).references
    assert shared_registry.new_client().lookup_schema(subject, latest).version == 1


def test_compatibility_looks_into_references(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    address = f"{subject}-address"
    client.register_schema(address, Schema(ADDRESS, "AVRO"))
    client.register_schema(subject, referring(CUSTOMER, [("geo.Address", address, 1)]))
    client.set_compatibility(address, "NONE")
    client.register_schema(address, avro(field("city", "int"), name="Address", namespace="geo"))
    added = (field("city"), field("zip", default=""))
    client.register_schema(address, avro(*added, name="Address", namespace="geo"))
    with refused(409, 409, "reader type: INT"):
        client.register_schema(subject, referring(CUSTOMER, [("geo.Address", address, 2)]))
    assert client.register_schema(subject, referring(CUSTOMER, [("geo.Address", address, 3)]))
    assert client.get_versions(subject) == [1, 2]


def test_two_versions_of_one_type_do_not_mix(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    order = register_order(client, subject)
    added = (field("city"), field("zip", default=""))
    client.register_schema(f"{subject}-address", avro(*added, name="Address", namespace="geo"))
    assert order.references is not None
    mixed = [(str(r.name), str(r.subject), 2 if r.name == "geo.Address" else 1) for r in order.references]
    with refused(422, 42201, "geo.Address"):
        client.register_schema(subject, referring(ORDER, mixed))


def test_format_resolved_is_self_contained(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    order_id = client.register_schema(subject, register_order(client, subject))
    text = shared_registry.new_client().get_schema(order_id, fmt="resolved").schema_str
    # Confluent's registry accepts what stands alone; so does ours, without any reference.
    assert client.register_schema(f"{subject}-alone", Schema(text, "AVRO")) != order_id
    resolved = json.loads(str(text))
    assert resolved["fields"][2] == field("to", "geo.Address")


def test_json_and_protobuf_references_are_kept(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(f"{subject}-part", Schema('{"type":"string"}', "JSON"))
    whole = referring('{"$ref":"part.json"}', [("part.json", f"{subject}-part", 1)], "JSON")
    schema_id = client.register_schema(subject, whole)
    assert shared_registry.new_client().get_schema(schema_id).references == whole.references
    assert client.get_referenced_by(f"{subject}-part", 1) == [schema_id]
    with refused(422, 42201):
        client.register_schema(subject, referring("{}", [("part.json", "nowhere", 1)], "JSON"))


def test_a_record_may_use_a_type_of_its_reference_many_times(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    client.register_schema(f"{subject}-address", Schema(ADDRESS, "AVRO"))
    text = record_text(*(field(f"a{n}", ["null", "geo.Address"], default=None) for n in range(5)))
    assert client.register_schema(subject, referring(text, [("geo.Address", f"{subject}-address", 1)]))
