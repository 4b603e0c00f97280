"""The protocol itself, below what Confluent's client shows: content types, error bodies, odd requests."""

from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from headgate.jvm import Jvm
from headgate.registry.compatibility import AvroCompatibility
from headgate.registry.routes import registry_router
from headgate.registry.service import RegistryService
from tests.integration.registry.running import RunningApp, RunningRegistry
from tests.integration.registry.samples import avro, field

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
A = avro(field("a"))


def assert_refused(answer: httpx.Response, status: int, code: int, *said: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert set(answer.json()) == {"error_code", "message"}
    assert answer.json()["error_code"] == code
    for words in said:
        assert words in answer.json()["message"]


def test_answers_have_the_registrys_content_type(shared_registry: RunningRegistry, subject: str) -> None:
    answer = shared_registry.http.get("/")
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"] == MEDIA_TYPE
    url = f"/subjects/{subject}/versions"
    for sent_as in (MEDIA_TYPE, "application/json", "application/vnd.schemaregistry+json"):
        answer = shared_registry.http.post(
            url,
            content=httpx.Request("POST", "http://x", json=A.to_dict()).content,
            headers={"Content-Type": sent_as},
        )
        assert answer.status_code == 200
        assert answer.headers["content-type"] == MEDIA_TYPE


def test_the_bare_schema_is_served(shared_registry: RunningRegistry, subject: str) -> None:
    schema_id = shared_registry.client.register_schema(subject, A)
    for url in (f"/schemas/ids/{schema_id}/schema", f"/subjects/{subject}/versions/1/schema"):
        assert shared_registry.http.get(url).json() == A.schema_str


def test_the_highest_id_is_told(own_registry: RunningRegistry) -> None:
    first = own_registry.client.register_schema("a", A)
    own_registry.client.register_schema("b", avro(field("b")))
    found = own_registry.http.get(
        f"/schemas/ids/{first}", params={"fetchMaxId": "true", "subject": "a"}
    ).json()
    assert found["maxId"] == 2
    assert "maxId" not in own_registry.http.get(f"/schemas/ids/{first}").json()


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        (b"{", 400, 400, "not JSON"),
        (b"\xff\xfe", 400, 400, ""),
        (b"[]", 422, 422, ""),
        (b"", 422, 422, ""),
        (b"null", 422, 422, ""),
        (b"{}", 422, 42201, "empty"),
        (b'{"schema": null}', 422, 42201, "empty"),
        (b'{"schema": {"type": "string"}}', 422, 42201, "string"),
        (b'{"schema": "\\ud800"}', 422, 422, "Unicode"),
        (b'{"schema": "\\"string\\"", "metadata": {"properties": {"a": "\\udfff"}}}', 422, 422, "Unicode"),
        (
            b'{"schema": "\\"string\\"", "metadata": {"properties": {"a": 1}}}',
            422,
            422,
            "metadata.properties",
        ),
        (
            b'{"schema": "\\"string\\"", "ruleSet": {"domainRules": [{"params": {"a": NaN}}]}}',
            422,
            422,
            "ruleSet",
        ),
        (b'{"schema": "{\\"type\\":\\"string\\",\\"x\\":NaN}"}', 422, 42201, "NaN"),
        (b'{"schema": "{\\"type\\":\\"string\\",\\"x\\":1e999}"}', 422, 42201, ""),
        (b'{"schema": "\\"string\\"", "schemaType": "THRIFT"}', 422, 42201, "THRIFT"),
        (b'{"schema": "\\"string\\"", "references": [{"name": "a"}]}', 422, 422, "subject"),
        (b'{"schema": "\\"string\\"", "references": [{"name":"a","subject":"b","version":0}]}', 422, 422, ""),
        (b'{"schema": "\\"string\\"", "refrences": []}', 422, 422, "refrences"),
        (b'{"schema": "\\"string\\"", "id": "x"}', 422, 422, "id"),
    ],
)
def test_bad_bodies(
    shared_registry: RunningRegistry, subject: str, body: bytes, status: int, code: int, said: str
) -> None:
    headers = {"Content-Type": MEDIA_TYPE}
    shared_registry.client.register_schema(subject, A)
    for url in (
        f"/subjects/{subject}/versions",
        f"/subjects/{subject}",
        f"/compatibility/subjects/{subject}/versions/latest",
    ):
        answer = shared_registry.http.post(url, content=body, headers=headers)
        assert_refused(answer, status, code, said)


def test_unknown_properties_are_for_clients_that_ask(shared_registry: RunningRegistry, subject: str) -> None:
    headers = {"Confluent-Accept-Unknown-Properties": "true"}
    body: dict[str, Any] = {**A.to_dict(), "newer": 1}
    answer = shared_registry.http.post(f"/subjects/{subject}/versions", json=body, headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("url", "body"), [("/mode", {}), ("/mode/a", {"mode": 1}), ("/config", {"compatibility": []})]
)
def test_bad_settings(shared_registry: RunningRegistry, url: str, body: dict[str, Any]) -> None:
    assert_refused(shared_registry.http.put(url, json=body), 422, 422)


def test_a_body_that_is_not_said_to_be_json(shared_registry: RunningRegistry, subject: str) -> None:
    url = f"/subjects/{subject}/versions"
    for headers in (
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {},
    ):
        answer = shared_registry.http.post(url, content=b'{"schema":"\\"string\\""}', headers=headers)
        assert_refused(answer, 415, 415, MEDIA_TYPE)


def test_bad_parameters(shared_registry: RunningRegistry, subject: str) -> None:
    http = shared_registry.http
    assert_refused(http.get("/schemas/ids/abc"), 422, 422, "schema_id")
    assert_refused(http.get("/subjects", params={"deleted": "perhaps"}), 422, 422, "deleted")
    assert_refused(http.get(f"/subjects/{subject}/metadata", params={"key": "a"}), 422, 422)
    assert_refused(http.delete("/subjects/%00"), 422, 42208)
    assert_refused(http.post("/subjects//versions", json=A.to_dict()), 422, 42208)


def test_a_form_that_cannot_be_given_is_refused(shared_registry: RunningRegistry, subject: str) -> None:
    schema_id = shared_registry.client.register_schema(subject, A)
    answer = shared_registry.http.get(f"/schemas/ids/{schema_id}", params={"format": "serialized"})
    assert_refused(answer, 422, 422, "serialized", "AVRO")
    proto = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message A {}'}
    shared_registry.http.post(f"/subjects/{subject}-p/versions", json=proto)
    answer = shared_registry.http.get(f"/subjects/{subject}-p/versions/1", params={"format": "resolved"})
    assert_refused(answer, 422, 422, "resolved", "PROTOBUF")


def test_contexts_are_refused_by_name(shared_registry: RunningRegistry) -> None:
    http = shared_registry.http
    context = ":.staging:a"
    encoded = "%3A.staging%3Aa"
    asked = [
        http.get("/contexts"),
        http.get("/contexts/.staging/subjects"),
        http.post("/contexts/.staging/subjects/a/versions", json=A.to_dict()),
        http.get("/subjects", params={"subjectPrefix": context}),
        http.get(f"/subjects/{encoded}/versions"),
        http.post(f"/subjects/{encoded}/versions", json=A.to_dict()),
        http.put(f"/config/{encoded}", json={"compatibility": "NONE"}),
        http.put(f"/mode/{encoded}", json={"mode": "READONLY"}),
        http.get("/schemas/ids/1", params={"subject": context}),
    ]
    for answer in asked:
        assert_refused(answer, 422, 42208, "contexts are not supported")


def test_a_reference_into_a_context_is_refused(shared_registry: RunningRegistry, subject: str) -> None:
    reference = {"name": "a.B", "subject": ":.staging:a", "version": 1}
    body = {**A.to_dict(), "references": [reference]}
    answer = shared_registry.http.post(f"/subjects/{subject}/versions", json=body)
    assert_refused(answer, 422, 42208, "contexts are not supported")


def test_there_are_no_associations(shared_registry: RunningRegistry) -> None:
    assert shared_registry.client.get_associations_by_resource_name("orders/a", "-", "topic", ["value"]) == []


def test_errors_are_the_registrys_wherever_it_is_mounted(own_registry: RunningRegistry, jvm: Jvm) -> None:
    service = RegistryService(own_registry.engine, AvroCompatibility(jvm))
    inner = FastAPI()
    inner.include_router(registry_router(service))
    outer = FastAPI()
    outer.mount("/deep/down", inner)
    running = RunningApp(outer, "/deep/down/")
    try:
        with httpx.Client(base_url=running.address + "/deep/down") as http:
            assert_refused(http.get("/subjects/a%2Fb/versions"), 404, 40401, "'a/b'")
            assert_refused(http.post("/subjects/a/versions", json={}), 422, 42201)
            assert http.post("/subjects/a%2Fb/versions", json=A.to_dict()).status_code == 200
            assert http.get("/subjects/a%2Fb/versions").json() == [1]
    finally:
        running.close()


def test_the_routes_describe_themselves(own_registry: RunningRegistry, jvm: Jvm) -> None:
    app = FastAPI()
    service = RegistryService(own_registry.engine, AvroCompatibility(jvm))
    app.include_router(registry_router(service), prefix="/registry")
    paths = app.openapi()["paths"]
    assert set(paths["/registry/subjects/{subject}/versions"]) == {"get", "post"}
    assert set(paths["/registry/config/{subject}"]) == {"get", "put", "delete"}


def test_a_database_that_fails_is_said_so(own_registry: RunningRegistry) -> None:
    with own_registry.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE registry_versions")
    answer = own_registry.http.get("/subjects")
    assert_refused(answer, 500, 50001, "data store")
    assert "registry_versions" not in answer.text


def test_a_jvm_that_is_gone_is_no_verdict(own_registry: RunningRegistry, jars: Any) -> None:
    jvm = Jvm(jars)
    service = RegistryService(own_registry.engine, AvroCompatibility(jvm))
    app = FastAPI()
    app.include_router(registry_router(service))
    running = RunningApp(app, "/")
    try:
        with httpx.Client(base_url=running.address, timeout=30) as http:
            assert http.post("/subjects/a/versions", json=A.to_dict()).status_code == 200
            jvm.close()
            assert_refused(
                http.post("/subjects/b/versions", json=avro(field("b")).to_dict()), 503, 503, "JVM"
            )
            assert http.get("/subjects").json() == ["a"]
    finally:
        running.close()
