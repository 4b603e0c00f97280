"""GUIDs: schemas that are named in a record's header, by Confluent's own serializers."""

import uuid
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headgate.errors import NotFound
from headgate.jvm import Jvm
from headgate.registry.client import SchemaSource
from headgate.registry.schemas import SchemaType
from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, unique

IN_HEADER = {"schema.id.serializer": header_schema_id_serializer}
FROM_EITHER = {"schema.id.deserializer": dual_schema_id_deserializer}


def context(topic: str, part: MessageField, headers: list[tuple[str, Any]]) -> SerializationContext:
    return SerializationContext(topic, part, headers)


@pytest.mark.parametrize(
    ("part", "name"), [(MessageField.VALUE, "__value_schema_id"), (MessageField.KEY, "__key_schema_id")]
)
def test_avro_with_the_guid_in_a_header(
    shared_registry: RunningRegistry, subject: str, part: MessageField, name: str
) -> None:
    topic = f"{subject}-{name}"
    text = record_text(field("a"), field(name))
    headers: list[tuple[str, Any]] = []
    sent: Any = AvroSerializer(shared_registry.client, text, conf=IN_HEADER)(
        {"a": "xxxxx", name: "y"}, context(topic, part, headers)
    )
    assert [header for header, _ in headers] == [name]
    carried = headers[0][1]
    assert len(carried) == 17
    assert carried[0] == 1
    # The value is bare Avro: two texts, with their lengths.
    assert sent == b"\x0axxxxx\x02y"
    fresh = shared_registry.new_client()
    read: Any = AvroDeserializer(fresh, conf=FROM_EITHER)(sent, context(topic, part, headers))
    assert read == {"a": "xxxxx", name: "y"}

    guid = str(uuid.UUID(bytes=carried[1:]))
    with SchemaSource(shared_registry.url) as source:
        found = source.schema_by_guid(guid)
        assert found.type is SchemaType.AVRO
        assert found == source.schema(found.id)
        assert source.schema_by_guid(guid.upper()) is found


def test_every_reply_has_the_same_guid(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    registered = client.register_schema_full_response(subject, unique(subject))
    guid = registered.guid
    fresh = shared_registry.new_client()
    assert fresh.get_latest_version(subject).guid == guid
    assert fresh.get_version(subject, 1).guid == guid
    assert fresh.lookup_schema(subject, unique(subject)).guid == guid
    http = shared_registry.http
    assert http.get(f"/schemas/ids/{registered.schema_id}").json()["guid"] == guid
    assert http.get(f"/schemas/guids/{guid}").json()["id"] == registered.schema_id
    assert http.get(f"/schemas/guids/{guid}/ids").json() == [{"context": ".", "id": registered.schema_id}]
    # By any subject, and as often as it is registered.
    assert client.register_schema_full_response(f"{subject}-too", unique(subject)).guid == guid
    assert client.register_schema_full_response(f"{subject}-other", avro(field("other"))).guid != guid


def test_a_guid_outlives_the_server(jvm: Jvm, tmp_path: Any) -> None:
    with RunningRegistry(tmp_path / "control.db", jvm) as registry:
        guid = registry.client.register_schema_full_response("a-value", avro(field("outlives"))).guid
        registry.client.delete_subject("a-value")
    with RunningRegistry(tmp_path / "control.db", jvm) as again, SchemaSource(again.url) as source:
        # Records carry it for as long as they are kept: a soft-deleted schema is found, too.
        assert "outlives" in source.schema_by_guid(str(guid)).text
        again.client.delete_subject("a-value", permanent=True)
        with SchemaSource(again.url) as fresh, pytest.raises(NotFound, match=str(guid)):
            fresh.schema_by_guid(str(guid))
        # What is known is known for good.
        assert source.schema_by_guid(str(guid))


def test_a_schema_with_references_is_put_together(shared_registry: RunningRegistry, subject: str) -> None:
    client: SchemaRegistryClient = shared_registry.client
    item = '{"type":"record","name":"GuidItem","namespace":"shop","fields":[{"name":"x","type":"int"}]}'
    client.register_schema(f"{subject}-item", Schema(item, "AVRO"))
    text = '{"type":"record","name":"shop.GuidOrder","fields":[{"name":"i","type":"shop.GuidItem"}]}'
    reference = SchemaReference("shop.GuidItem", f"{subject}-item", 1)
    guid = client.register_schema_full_response(subject, Schema(text, "AVRO", [reference])).guid
    with SchemaSource(shared_registry.url) as source:
        assert '"GuidItem"' in source.schema_by_guid(str(guid)).text
