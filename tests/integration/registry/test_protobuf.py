"""Protobuf schemas in the registry: Confluent's serializers, both forms of a schema, references, refusals."""

import base64
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from headgate.decode.protobuf import message_frames, parse_indexes
from headgate.decode.protobuf_batch import Decoder
from headgate.decode.protos import compiled, message_paths
from headgate.registry.client import SchemaSource
from tests.integration.registry.running import RunningRegistry
from tests.integration.registry.samples import referring, refused
from tests.unit.decode.protobuf_samples import base64_of, message_class

MONEY = 'syntax = "proto3"; package money; message Money { string currency = 1; int64 units = 2; }'
ITEM = """
syntax = "proto3"; package shop; import "common/money.proto";
message Item { string name = 1; money.Money price = 2; }
"""
ORDER = """
syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import "common/money.proto";
import "item.proto";
message Header { string source = 1; message Trace { uint64 id = 1; } }
message Order {
  int64 id = 1; google.protobuf.Timestamp at = 2; google.type.Date due = 3; repeated Item items = 4;
  money.Money total = 5; optional string note = 6;
}
"""
REFERENCES = [("common/money.proto", MONEY), ("item.proto", ITEM)]


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def order() -> Any:
    kind = message_class(ORDER, "shop.Order", REFERENCES)
    sent = kind(id=7, note="", items=[{"name": "pen", "price": {"currency": "CHF", "units": 2}}])
    sent.at.seconds = 5
    sent.due.year, sent.due.month, sent.due.day = 2024, 2, 29
    return sent


def serialize(registry: RunningRegistry, topic: str, message: Any) -> bytes:
    sent = ProtobufSerializer(type(message), registry.client)(message, value_of(topic))
    assert sent is not None
    return bytes(sent)


def read(registry: RunningRegistry, sent: bytes) -> tuple[str, Any]:
    """As tables are read: by the schema id, the message indexes, and the schema with its references."""
    with SchemaSource(registry.url) as schemas:
        schema = schemas.schema(int.from_bytes(sent[1:5], "big"))
    references = [(reference.name, reference.text) for reference in schema.references]
    path, length = parse_indexes(sent[5:])
    assert sent[5 : 5 + length] == message_frames(schema.text, references)[path]
    protos = compiled(schema.text, references)
    name = dict(message_paths(protos.main))[path]
    [found] = Decoder(protos.files, name).decode(pa.array([sent[5 + length :]], pa.binary())).to_pylist()
    assert found["problem"] is None
    return name, found["record"]


def test_a_serializer_registers_what_a_deserializer_and_a_table_read(
    shared_registry: RunningRegistry, subject: str
) -> None:
    topic = subject.removesuffix("-value")
    sent = serialize(shared_registry, topic, order())
    registered = shared_registry.new_client().get_latest_version(subject)
    assert [reference.name for reference in registered.schema.references or []] == [
        "common/money.proto",
        "item.proto",
    ]
    conf = {"use.latest.version": True}
    for deserialize in (
        ProtobufDeserializer(type(order()), {}, shared_registry.new_client()),
        ProtobufDeserializer(type(order()), conf, shared_registry.new_client()),
    ):
        assert deserialize(sent, value_of(topic)) == order()
    name, record = read(shared_registry, sent)
    assert name == "shop.Order"
    assert record["items"] == [{"name": "pen", "price": {"currency": "CHF", "units": 2}}]
    assert (record["id"], record["note"], record["total"]) == (7, "", None)
    assert record["due"].isoformat() == "2024-02-29"


@pytest.mark.parametrize("name", ["shop.Header", "shop.Header.Trace", "shop.Order"])
def test_every_message_type_of_a_file(shared_registry: RunningRegistry, subject: str, name: str) -> None:
    topic = subject.removesuffix("-value")
    kind = message_class(ORDER, name, REFERENCES)
    sent = serialize(shared_registry, topic, kind())
    assert ProtobufDeserializer(kind, {}, shared_registry.new_client())(sent, value_of(topic)) == kind()
    assert read(shared_registry, sent)[0] == name


def register_texts(registry: RunningRegistry, subject: str) -> int:
    """As the Java client does it: .proto text, and references by import path."""
    client = registry.client
    client.register_schema(f"{subject}-money", Schema(MONEY, "PROTOBUF"))
    money = ("common/money.proto", f"{subject}-money", 1)
    client.register_schema(f"{subject}-item", referring(ITEM, [money], "PROTOBUF"))
    whole = referring(ORDER, [money, ("item.proto", f"{subject}-item", 1)], "PROTOBUF")
    return int(client.register_schema(subject, whole))


def test_text_is_served_as_it_is_and_as_a_descriptor(shared_registry: RunningRegistry, subject: str) -> None:
    schema_id = register_texts(shared_registry, subject)
    http = shared_registry.http
    assert http.get(f"/schemas/ids/{schema_id}").json()["schema"] == ORDER
    for path in (
        f"/schemas/ids/{schema_id}",
        f"/subjects/{subject}/versions/1",
        f"/subjects/{subject}/versions/latest",
    ):
        served = http.get(path, params={"format": "serialized"}).json()["schema"]
        file = FileDescriptorProto.FromString(base64.b64decode(served))
        assert [message.name for message in file.message_type] == ["Header", "Order"]
        assert file.package == "shop"
    plain = http.get(f"/schemas/ids/{schema_id}/schema", params={"format": "serialized"})
    assert plain.json() == served


def test_confluents_clients_use_what_was_registered_as_text(
    shared_registry: RunningRegistry, subject: str
) -> None:
    topic = subject.removesuffix("-value")
    schema_id = register_texts(shared_registry, subject)
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    sent = ProtobufSerializer(type(order()), shared_registry.new_client(), conf)(order(), value_of(topic))
    assert sent is not None
    assert int.from_bytes(sent[1:5], "big") == schema_id
    deserialize = ProtobufDeserializer(
        type(order()), {"use.latest.version": True}, shared_registry.new_client()
    )
    assert deserialize(sent, value_of(topic)) == order()
    assert read(shared_registry, bytes(sent))[0] == "shop.Order"


def test_text_and_its_descriptor_are_one_schema(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    schema_id = register_texts(shared_registry, subject)
    known = client.get_latest_version(subject).schema
    served = shared_registry.new_client().get_schema(schema_id, fmt="serialized").schema_str
    by_python = base64.b64encode(type(order()).DESCRIPTOR.file.serialized_pb).decode()
    for text in (str(served), by_python, ORDER.replace("\n", " ")):
        same = Schema(text, "PROTOBUF", known.references)
        assert shared_registry.new_client().lookup_schema(subject, same).schema_id == schema_id
        assert shared_registry.new_client().register_schema(subject, same) == schema_id
    other = Schema(ORDER.replace("note", "remark"), "PROTOBUF", known.references)
    with refused(404, 40403):
        client.lookup_schema(subject, other)
    assert client.register_schema(subject, other) != schema_id


def test_a_descriptor_is_served_as_it_was_sent(shared_registry: RunningRegistry, subject: str) -> None:
    sent = base64_of(MONEY)
    schema_id = shared_registry.client.register_schema(subject, Schema(sent, "PROTOBUF"))
    for form in ("", "serialized"):
        answer = shared_registry.http.get(f"/schemas/ids/{schema_id}", params={"format": form})
        assert answer.json()["schema"] == sent
    refused_form = shared_registry.http.get(f"/schemas/ids/{schema_id}", params={"format": "resolved"})
    assert refused_form.status_code == 422


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", ["Expected top-level statement"]),
        (
            'syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }',
            ["Field number 1 has already been used"],
        ),
        ('syntax = "proto3"; message A { Missing a = 1; }', ['"Missing" is not defined']),
        ('syntax = "proto3"; import "nowhere.proto";', ["nowhere.proto"]),
        ('syntax = "proto3"; import "../../../../etc/passwd";', ["etc/passwd"]),
    ],
)
def test_nonsense_is_refused_with_the_compilers_words(
    shared_registry: RunningRegistry, subject: str, text: str, said: Sequence[str]
) -> None:
    with refused(422, 42201, *said):
        shared_registry.client.register_schema(subject, Schema(text, "PROTOBUF"))
    with refused(404, 40401):
        shared_registry.client.get_versions(subject)


def test_names_of_references_cannot_leave_their_folder(
    shared_registry: RunningRegistry, subject: str
) -> None:
    client = shared_registry.client
    client.register_schema(f"{subject}-money", Schema(MONEY, "PROTOBUF"))
    for name in ("../money.proto", "/tmp/money.proto", "-I.proto", "a/../../money.proto", "a\\b.proto"):
        text = f'syntax = "proto3"; import "{name}"; message A {{ int32 a = 1; }}'
        with refused(422, 42201, "is not a path"):
            client.register_schema(subject, referring(text, [(name, f"{subject}-money", 1)], "PROTOBUF"))


def text_of(fields: str) -> Schema:
    return Schema(f'syntax = "proto3"; message A {{ {fields} }}', "PROTOBUF")


def test_incompatible_schemas_are_refused(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, text_of("int32 a = 1; string b = 2;"))
    assert client.test_compatibility(subject, text_of("int64 a = 1;")) is True
    assert client.test_compatibility(subject, text_of("string a = 1;")) is False
    with refused(409, 409, "FIELD_SCALAR_KIND_CHANGED", "field 1 ('a') of A", "version 1"):
        client.register_schema(subject, text_of("string a = 1;"))
    assert client.get_versions(subject) == [1]


def test_levels_say_which_way_is_looked(shared_registry: RunningRegistry, subject: str) -> None:
    """A message more is no trouble to the new schema, and is unknown to the old one."""
    client = shared_registry.client
    text = 'syntax = "proto3"; message A { int32 a = 1; }'
    more = Schema(f"{text} message B {{ int32 b = 1; }}", "PROTOBUF")
    client.register_schema(subject, Schema(text, "PROTOBUF"))
    for level, compatible in (("BACKWARD", True), ("FORWARD", False), ("FULL", False), ("NONE", True)):
        client.set_compatibility(subject, level)
        assert client.test_compatibility(subject, more) is compatible, level


def test_transitive_levels_look_at_all_versions(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    client.register_schema(subject, text_of("int32 a = 1; string b = 2;"))
    client.register_schema(subject, text_of("int32 a = 1;"))
    reused = text_of("int32 a = 1; int64 b = 2;")
    assert client.test_compatibility(subject, reused) is True
    client.set_compatibility(subject, "BACKWARD_TRANSITIVE")
    assert client.test_compatibility_all_versions(subject, reused) is False
    with refused(409, 409, "version 1", "field 2 ('b')"):
        client.register_schema(subject, reused)


def test_a_producer_with_an_incompatible_class_is_refused(
    shared_registry: RunningRegistry, subject: str
) -> None:
    topic = subject.removesuffix("-value")
    old = message_class('syntax = "proto3"; package p; message A { int32 a = 1; }', "p.A")
    new = message_class('syntax = "proto3"; package p; message A { string a = 1; }', "p.A")
    serialize(shared_registry, topic, old(a=1))
    with refused(409, 409, "FIELD_SCALAR_KIND_CHANGED"):
        serialize(shared_registry, topic, new(a="1"))
