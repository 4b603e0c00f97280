"""The engine's client, against the embedded registry and against registries that fail."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroSerializer
from fastapi import FastAPI, Response

from headgate.embedded.ports import LOOPBACK, free_port
from headgate.errors import ConfigError, HeadgateError, NotFound, RegistryUnavailable, UnsupportedSchema
from headgate.registry.client import ReferencedSchema, SchemaSource
from tests.integration.registry.running import RunningApp, RunningRegistry
from tests.integration.registry.samples import avro, field, record_text, referring
from tests.integration.registry.test_serializers import ORDER_VALUE, register_order, value_of


def asking(source: SchemaSource) -> list[Callable[[], object]]:
    return [lambda: source.schema(1), lambda: source.latest("a")]


def test_a_schema_is_found_by_id_and_remembered(own_registry: RunningRegistry) -> None:
    schema_id = own_registry.client.register_schema("a", avro(field("a")))
    with SchemaSource(own_registry.url) as source:
        found = source.schema(schema_id)
        assert (found.id, found.type, found.text) == (schema_id, "AVRO", record_text(field("a")))
        own_registry.client.delete_subject("a")
        own_registry.client.delete_subject("a", permanent=True)
        assert source.schema(schema_id) is found
    with (
        SchemaSource(own_registry.url) as source,
        pytest.raises(NotFound, match=f"id {schema_id} .*registry.url"),
    ):
        source.schema(schema_id)


def test_the_latest_is_asked_for_each_time(shared_registry: RunningRegistry, subject: str) -> None:
    with SchemaSource(shared_registry.url) as source:
        assert source.latest(subject) is None
        first = shared_registry.client.register_schema(subject, avro(field("a")))
        found = source.latest(subject)
        assert found is not None
        assert found.id == first
        second = shared_registry.client.register_schema(subject, avro(field("a"), field("b", default="")))
        found = source.latest(subject)
        assert found is not None
        assert found.id == second
        shared_registry.client.delete_subject(subject)
        assert source.latest(subject) is None


def test_avro_references_are_put_inline(shared_registry: RunningRegistry, subject: str) -> None:
    topic = subject.removesuffix("-value")
    order = register_order(shared_registry.client, topic)
    sent: Any = AvroSerializer(shared_registry.client, order)(ORDER_VALUE, value_of(topic))
    with SchemaSource(shared_registry.url) as source:
        found = source.schema(int.from_bytes(sent[1:5], "big"))
        assert found == source.latest(subject)
    assert found.references == ()
    # Decodes what Confluent's serializer wrote, with nothing but this one text.
    schema = fastavro.parse_schema(json.loads(found.text))
    assert fastavro.schemaless_reader(io.BytesIO(sent[5:]), schema, None) == ORDER_VALUE
    assert found.text.count('"city"') == 1
    assert shared_registry.client.register_schema(f"{subject}-alone", Schema(found.text, "AVRO"))


def test_references_of_other_types_come_alongside(shared_registry: RunningRegistry, subject: str) -> None:
    client = shared_registry.client
    leaf, part = '{"type":"string","title":"leaf"}', '{"$ref":"leaf.json"}'
    client.register_schema(f"{subject}-leaf", Schema(leaf, "JSON"))
    client.register_schema(f"{subject}-part", referring(part, [("leaf.json", f"{subject}-leaf", 1)], "JSON"))
    whole = referring('{"$ref":"part.json"}', [("part.json", f"{subject}-part", 1)], "JSON")
    schema_id = client.register_schema(subject, whole)
    client.delete_subject(subject)
    client.delete_subject(f"{subject}-part")
    with SchemaSource(shared_registry.url) as source:
        found = source.schema(schema_id)
    assert found.type == "JSON"
    assert found.references == (ReferencedSchema("leaf.json", leaf), ReferencedSchema("part.json", part))


def test_nobody_answers(shared_registry: RunningRegistry) -> None:
    url = f"http://user:secret@{LOOPBACK}:{free_port()}/registry"
    with SchemaSource(url) as source:
        for ask in asking(source):
            with pytest.raises(RegistryUnavailable, match="does not answer") as caught:
                ask()
            assert caught.value.transient
            assert "secret" not in str(caught.value)


@pytest.fixture
def failing() -> Iterator[tuple[FastAPI, str]]:
    app = FastAPI()
    running = RunningApp(app, "/")
    yield app, running.address
    running.close()


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, '{"error_code":50001,"message":"store"}', RegistryUnavailable),
        (503, "<html>down</html>", RegistryUnavailable),
        (504, "", RegistryUnavailable),
        (429, '{"error_code":429,"message":"slow down"}', RegistryUnavailable),
        (408, "", RegistryUnavailable),
        (401, '{"error_code":401,"message":"Unauthorized"}', ConfigError),
        (403, '{"error_code":40301,"message":"Forbidden"}', ConfigError),
        (404, "<html>not here</html>", NotFound),
        (404, '{"detail":"Not Found"}', NotFound),
        (422, '{"error_code":42202,"message":"odd"}', ConfigError),
        (200, "<html>a website</html>", ConfigError),
    ],
)
def test_what_an_answer_means(
    failing: tuple[FastAPI, str], status: int, body: str, error: type[HeadgateError]
) -> None:
    app, address = failing

    @app.get("/{path:path}")
    def answer(path: str) -> Response:
        return Response(body, status)

    with SchemaSource(address) as source:
        for ask in asking(source):
            with pytest.raises(error) as caught:
                ask()
            assert type(caught.value) is error
            assert caught.value.remedy


def test_schemas_that_cannot_be_used(failing: tuple[FastAPI, str]) -> None:
    app, address = failing
    reference = {"name": "geo.Address", "subject": "address", "version": 1}
    schemas: dict[int, dict[str, Any]] = {
        1: {"schema": "x", "schemaType": "THRIFT"},
        2: {"schema": '["geo.Address","geo.Missing"]', "references": [reference]},
        3: {"schema": '"a.B"', "references": [{**reference, "subject": "gone"}]},
    }

    @app.get("/schemas/ids/{schema_id}")
    def schema(schema_id: int) -> dict[str, Any]:
        return schemas[schema_id]

    @app.get("/subjects/address/versions/1")
    def version() -> dict[str, Any]:
        text = record_text(field("city"), name="Address", namespace="geo")
        return {"subject": "address", "version": 1, "id": 9, "schema": text}

    @app.get("/subjects/gone/versions/1")
    def gone() -> Response:
        return Response('{"error_code":40401,"message":"gone"}', 404)

    with SchemaSource(address) as source:
        with pytest.raises(UnsupportedSchema, match="THRIFT"):
            source.schema(1)
        with pytest.raises(UnsupportedSchema, match=r"geo\.Missing"):
            source.schema(2)
        with pytest.raises(NotFound, match="refers to subject 'gone' version 1"):
            source.schema(3)
