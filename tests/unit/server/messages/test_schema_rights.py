"""Messages are decoded by the schemas that the registry would show whoever reads them, and by no others."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import cast

import pytest
import uvicorn
from fastapi import FastAPI

from headgate.access.roles import Grant, Principal
from headgate.access.topics import TopicRights, all_rights
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.registry.client import SchemaSource
from headgate.registry.compatibility import AvroCompatibility
from headgate.registry.routes import registry_router
from headgate.registry.schemas import Reference, Schema, SchemaType
from headgate.registry.service import RegistryService
from headgate.server.api.topics import described_subject
from headgate.server.messages.decoding import MessageReader, Part
from headgate.server.messages.schema_rights import KEPT_SECONDS, SchemaRights
from headgate.store import Store

ABSENT = 99


def rights(*grants: str) -> TopicRights:
    return TopicRights(Principal("'ada'", tuple(map(Grant.parse, grants))), "local")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryService]:
    """Nothing of Avro is compared here: there is no JVM behind it."""
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('registry')}/control.db")
    yield RegistryService(store.engine, cast(AvroCompatibility, None))
    store.close()


@pytest.fixture(scope="module")
def source(service: RegistryService) -> Iterator[SchemaSource]:
    app = FastAPI()
    app.include_router(registry_router(service))
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, LOOPBACK, port, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    with SchemaSource(f"http://{LOOPBACK}:{port}") as source:
        yield source
    server.should_exit = True
    thread.join(10)


def registered(service: RegistryService, subject: str, field: str) -> int:
    text = json.dumps({"type": "object", "properties": {field: {"type": "integer"}}})
    return service.register(subject, Schema(text, SchemaType.JSON)).id


def read(source: SchemaSource, schema_id: int, seen: TopicRights) -> Part:
    data = b"\0" + schema_id.to_bytes(4, "big") + b'{"n":7}'
    return MessageReader(source, SchemaRights(source, seen).sees).read(data)


def test_schema_of_another_topic_decodes_nothing(service: RegistryService, source: SchemaSource) -> None:
    schema_id = registered(service, "hr.salaries-value", "euros")
    hidden = read(source, schema_id, rights("writer:local:shop.*"))
    assert (hidden.format, hidden.schema_id) == ("bytes", None)
    assert hidden.content == (b"\0" + schema_id.to_bytes(4, "big") + b'{"n":7}').hex()
    absent = read(source, ABSENT, rights("writer:local:shop.*"))
    assert str(hidden.error).replace(str(schema_id), str(ABSENT)) == absent.error, "it tells which there are"
    assert "euros" not in str(hidden.error)
    for grants in (("reader:local:hr.*",), ("reader",)):
        assert read(source, schema_id, rights(*grants)).content == {"n": 7}
    assert read(source, schema_id, all_rights()).content == {"n": 7}


def test_schema_that_is_under_a_subject_of_ones_own_too_decodes(
    service: RegistryService, source: SchemaSource
) -> None:
    schema_id = registered(service, "hr.persons-value", "shared")
    seen = rights("reader:local:shop.*")
    assert read(source, schema_id, seen).error is not None
    assert registered(service, "shop.persons-key", "shared") == schema_id
    assert read(source, schema_id, seen).content == {"n": 7}
    service.delete_subject("shop.persons-key")
    assert read(source, schema_id, seen).content == {"n": 7}, "as the registry shows it"


def test_the_registry_is_asked_once_for_many_messages(service: RegistryService, source: SchemaSource) -> None:
    schema_id = registered(service, "shop.orders-value", "order")
    now = 0.0
    seen = SchemaRights(source, rights("reader:local:shop.*"), clock=lambda: now)
    assert seen.sees(schema_id)
    service.delete_subject("shop.orders-value")
    service.delete_subject("shop.orders-value", permanent=True)
    assert seen.sees(schema_id)
    now = KEPT_SECONDS
    assert not seen.sees(schema_id)


def test_references_to_subjects_of_others_are_hidden(service: RegistryService, source: SchemaSource) -> None:
    for subject in ("hr.address-value", "shop.address-value"):
        registered(service, subject, subject[:2])
    references = (Reference("theirs", "hr.address-value", 1), Reference("ours", "shop.address-value", 1))
    schema = Schema('{"type": "object"}', SchemaType.JSON, references)
    service.register("shop.bills-value", schema)

    def names(seen: TopicRights) -> list[str]:
        shown = described_subject(source, "shop.bills-value", seen)
        assert shown is not None
        return [one["subject"] for one in shown["versions"][0]["references"]]

    assert names(rights("reader:local:shop.*")) == ["shop.address-value"]
    assert names(rights("reader:local:*")) == ["hr.address-value", "shop.address-value"]
