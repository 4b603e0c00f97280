"""Confluent's serializers and deserializers against the registry, as producers and consumers use them."""

from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, referring, refused

ADDRESS = record_text(field("city"), name="Address", namespace="geo")
CUSTOMER = record_text(field("home", "geo.Address"), field("work", "geo.Address"), name="Customer")
ORDER = record_text(field("id", "long"), field("customer", "shop.Customer"), field("to", "geo.Address"))
ORDER_VALUE = {
    "id": 7,
    "customer": {"home": {"city": "Bern"}, "work": {"city": "Basel"}},
    "to": {"city": "Bern"},
}


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def register_order(client: SchemaRegistryClient, prefix: str) -> Schema:
    """Order refers to Customer and Address, Customer to Address."""
    address = (f"{prefix}-address", 1)
    client.register_schema(address[0], Schema(ADDRESS, "AVRO"))
    customer = referring(CUSTOMER, [("geo.Address", *address)])
    client.register_schema(f"{prefix}-customer", customer)
    return referring(ORDER, [("shop.Customer", f"{prefix}-customer", 1), ("geo.Address", *address)])


def test_avro_round_trip_registers_by_itself(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    serialize = AvroSerializer(shared_registry.client, record_text(field("name"), field("n", "int")))
    sent = serialize({"name": "a", "n": 1}, value_of(topic))
    assert sent is not None
    registered = shared_registry.client.get_latest_version(subject)
    assert sent[0] == 0
    assert int.from_bytes(sent[1:5], "big") == registered.schema_id
    read: Any = AvroDeserializer(shared_registry.new_client())(sent, value_of(topic))
    assert read == {"name": "a", "n": 1}


def test_avro_key_and_value_have_subjects_of_their_own(
    shared_registry: RunningRegistry, subject: str
) -> None:
    topic = subject.removesuffix("-value")
    serialize = AvroSerializer(shared_registry.client, '"string"')
    serialize("k", SerializationContext(topic, MessageField.KEY))
    assert shared_registry.client.get_versions(f"{topic}-key") == [1]
    with refused(404, 40401):
        shared_registry.client.get_versions(subject)


def test_avro_without_auto_register_needs_the_schema_there(
    shared_registry: RunningRegistry, subject: str
) -> None:
    topic = subject.removesuffix("-value")
    conf = {"auto.register.schemas": False}
    text = record_text(field("must_be_there"))
    with refused(404, 40401):
        AvroSerializer(shared_registry.client, text, conf=conf)({"must_be_there": "a"}, value_of(topic))
    shared_registry.client.register_schema(subject, Schema(text, "AVRO"))
    sent = AvroSerializer(shared_registry.client, text, conf=conf)({"must_be_there": "a"}, value_of(topic))
    assert AvroDeserializer(shared_registry.new_client())(sent, value_of(topic)) == {"must_be_there": "a"}


def test_avro_uses_the_latest_version(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    shared_registry.client.register_schema(subject, avro(field("a")))
    newer = shared_registry.client.register_schema(subject, avro(field("a"), field("b", default="none")))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    sent = AvroSerializer(shared_registry.client, conf=conf)({"a": "x", "b": "y"}, value_of(topic))
    assert sent is not None
    assert int.from_bytes(sent[1:5], "big") == newer
    assert AvroDeserializer(shared_registry.new_client())(sent, value_of(topic)) == {"a": "x", "b": "y"}


def test_avro_evolution_is_resolved_by_the_reader(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    old = AvroSerializer(shared_registry.client, record_text(field("a")))({"a": "x"}, value_of(topic))
    new_text = record_text(field("a"), field("b", default="none"))
    AvroSerializer(shared_registry.client, new_text)({"a": "x", "b": "y"}, value_of(topic))
    read: Any = AvroDeserializer(shared_registry.new_client(), new_text)(old, value_of(topic))
    assert read == {"a": "x", "b": "none"}
    conf = {"use.latest.version": True}
    read = AvroDeserializer(shared_registry.new_client(), conf=conf)(old, value_of(topic))
    assert read == {"a": "x", "b": "none"}


def test_avro_refuses_an_incompatible_producer(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    AvroSerializer(shared_registry.client, record_text(field("a")))({"a": "x"}, value_of(topic))
    with refused(409, 409, "READER_FIELD_MISSING_DEFAULT_VALUE", "b"):
        AvroSerializer(shared_registry.client, record_text(field("b")))({"b": "x"}, value_of(topic))
    assert shared_registry.client.get_versions(subject) == [1]


def test_avro_references_to_references(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    order = register_order(shared_registry.client, topic)
    serialize = AvroSerializer(shared_registry.client, order)
    sent = serialize(ORDER_VALUE, value_of(topic))
    assert AvroDeserializer(shared_registry.new_client())(sent, value_of(topic)) == ORDER_VALUE
    registered = shared_registry.new_client().get_latest_version(subject)
    assert registered.schema.references == order.references


def test_protobuf_round_trip(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    file = descriptor_pb2.FileDescriptorProto(name="reading.proto", package="meter", syntax="proto3")
    message = file.message_type.add(name="Reading")
    field = descriptor_pb2.FieldDescriptorProto
    one = field.LABEL_OPTIONAL
    message.field.add(name="meter", number=1, type=field.TYPE_STRING, label=one)
    message.field.add(name="value", number=2, type=field.TYPE_DOUBLE, label=one)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    reading: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("meter.Reading"))
    serialize = ProtobufSerializer(reading, shared_registry.client, {"use.deprecated.format": False})
    sent = serialize(reading(meter="m1", value=2.5), value_of(topic))
    deserialize = ProtobufDeserializer(
        reading, {"use.deprecated.format": False}, shared_registry.new_client()
    )
    assert deserialize(sent, value_of(topic)) == reading(meter="m1", value=2.5)
    assert shared_registry.new_client().get_latest_version(subject).schema.schema_type == "PROTOBUF"


def test_a_deserializer_finds_soft_deleted_schemas(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    text = record_text(field("soft_deleted"))
    sent = AvroSerializer(shared_registry.client, text)({"soft_deleted": "x"}, value_of(topic))
    shared_registry.client.delete_subject(subject)
    read: Any = AvroDeserializer(shared_registry.new_client())(sent, value_of(topic))
    assert read == {"soft_deleted": "x"}
    shared_registry.client.delete_subject(subject, permanent=True)
    with refused(404, 40403):
        AvroDeserializer(shared_registry.new_client())(sent, value_of(topic))
