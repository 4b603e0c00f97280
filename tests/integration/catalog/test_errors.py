"""Every failure has the status and the body of the spec, wherever the router is mounted."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router
from headgate.jvm import Jvm
from headgate.store import Store
from tests.integration.catalog.raw import SCHEMA, RawTable, view
from tests.integration.catalog.serving import Doors, Service
from tests.support.peers import own_peer

VIEW = view("v")


def assert_error(answer: Any, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "code", "stack"}
    assert (error["code"], error["type"], error["stack"]) == (status, kind, [])
    assert error["message"]


@pytest.fixture(scope="module")
def filled(service: Service) -> Service:
    RawTable(service, "db", "t").create()
    service.post("/namespaces/db/views", VIEW)
    return service


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/namespaces/none", None, 404, "NoSuchNamespaceException"),
        ("GET", "/namespaces?parent=none", None, 404, "NoSuchNamespaceException"),
        ("DELETE", "/namespaces/none", None, 404, "NoSuchNamespaceException"),
        ("DELETE", "/namespaces/db", None, 409, "NamespaceNotEmptyException"),
        ("POST", "/namespaces", {"namespace": ["db"]}, 409, "AlreadyExistsException"),
        ("POST", "/namespaces", {"namespace": []}, 400, "BadRequestException"),
        ("POST", "/namespaces", {"namespace": "db"}, 400, "BadRequestException"),
        ("POST", "/namespaces", {"namespace": ["x"], "properties": [7]}, 400, "BadRequestException"),
        (
            "POST",
            "/namespaces/db/properties",
            {"updates": {"a": "b"}, "removals": ["a"]},
            422,
            "UnprocessableEntityException",
        ),
        ("POST", "/namespaces/none/properties", {"updates": {"a": "b"}}, 404, "NoSuchNamespaceException"),
        ("GET", "/namespaces/none/tables", None, 404, "NoSuchNamespaceException"),
        ("GET", "/namespaces/db/tables?pageSize=none", None, 400, "BadRequestException"),
        ("GET", "/namespaces/db/tables?pageSize=1&pageToken=x", None, 400, "NumberFormatException"),
        ("GET", "/namespaces/db/tables/none", None, 404, "NoSuchTableException"),
        ("GET", "/namespaces/db/tables/v", None, 404, "NoSuchTableException"),
        ("GET", "/namespaces/db/tables/t?snapshots=some", None, 400, "BadRequestException"),
        ("DELETE", "/namespaces/db/tables/none", None, 404, "NoSuchTableException"),
        ("DELETE", "/namespaces/db/tables/t?purgeRequested=maybe", None, 400, "BadRequestException"),
        ("POST", "/namespaces/db/tables", {"name": "t", "schema": SCHEMA}, 409, "AlreadyExistsException"),
        ("POST", "/namespaces/db/tables", {"name": "v", "schema": SCHEMA}, 409, "AlreadyExistsException"),
        ("POST", "/namespaces/none/tables", {"name": "t", "schema": SCHEMA}, 404, "NoSuchNamespaceException"),
        ("POST", "/namespaces/db/tables", {"name": "x"}, 400, "IllegalArgumentException"),
        ("POST", "/namespaces/db/tables", {"schema": SCHEMA}, 400, "IllegalArgumentException"),
        (
            "POST",
            "/namespaces/db/tables",
            {"name": "x", "schema": {"type": "fog"}},
            400,
            "BadRequestException",
        ),
        (
            "POST",
            "/namespaces/db/tables",
            {"name": "x", "schema": SCHEMA, "properties": {"format-version": "99"}},
            400,
            "IllegalArgumentException",
        ),
        (
            "POST",
            "/tables/rename",
            {
                "source": {"namespace": ["db"], "name": "none"},
                "destination": {"namespace": ["db"], "name": "x"},
            },
            404,
            "NoSuchTableException",
        ),
        (
            "POST",
            "/tables/rename",
            {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "v"}},
            409,
            "AlreadyExistsException",
        ),
        (
            "POST",
            "/tables/rename",
            {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["x"], "name": "t"}},
            404,
            "NoSuchNamespaceException",
        ),
        ("POST", "/tables/rename", {}, 400, "BadRequestException"),
        ("POST", "/namespaces/db/register", {"name": "x"}, 400, "BadRequestException"),
        ("POST", "/namespaces/db/tables/t", {"identifier": 7}, 400, "BadRequestException"),
        (
            "POST",
            "/namespaces/db/tables/t",
            {"identifier": {"namespace": ["db"], "name": "x"}, "requirements": [], "updates": []},
            400,
            "BadRequestException",
        ),
        ("POST", "/namespaces/db/tables/t/metrics", {}, 400, "BadRequestException"),
        ("GET", "/namespaces/db/views/none", None, 404, "NoSuchViewException"),
        ("GET", "/namespaces/db/views/t", None, 404, "NoSuchViewException"),
        ("DELETE", "/namespaces/db/views/none", None, 404, "NoSuchViewException"),
        ("POST", "/namespaces/db/views", VIEW, 409, "AlreadyExistsException"),
        ("POST", "/namespaces/db/views", {**VIEW, "name": "t"}, 409, "AlreadyExistsException"),
        ("POST", "/namespaces/db/views", {**VIEW, "name": ".."}, 400, "BadRequestException"),
        (
            "POST",
            "/namespaces/db/views",
            {**VIEW, "name": "w", "location": "file:///etc"},
            400,
            "BadRequestException",
        ),
        (
            "POST",
            "/namespaces/db/views/v",
            {"requirements": [], "updates": [{"action": "set-location", "location": "file:///etc"}]},
            400,
            "BadRequestException",
        ),
        (
            "POST",
            "/namespaces/db/views/v",
            {"requirements": [{"type": "assert-view-uuid", "uuid": "x"}], "updates": []},
            409,
            "CommitFailedException",
        ),
        ("POST", "/namespaces/db/register-view", {"name": "w"}, 400, "BadRequestException"),
        (
            "POST",
            "/namespaces/db/register-view",
            {"name": "w", "metadata-location": "file:///etc/passwd"},
            400,
            "BadRequestException",
        ),
        ("GET", "/nothing/here", None, 404, "NoSuchEndpointException"),
        ("PUT", "/namespaces/db/tables/t", {}, 404, "NoSuchEndpointException"),
        ("POST", "/namespaces/db/tables/t/plan", {}, 404, "NoSuchEndpointException"),
    ],
)
def test_errors(filled: Service, method: str, path: str, body: Any, status: int, kind: str) -> None:
    assert_error(filled.http.request(method, path, json=body), status, kind)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"a":', b"[" * 100_000])
def test_malformed_bodies(filled: Service, content: bytes) -> None:
    for path in ("/namespaces", "/namespaces/db/tables/t", "/transactions/commit"):
        assert_error(filled.http.post(path, content=content), 400, "BadRequestException")


@pytest.mark.parametrize(
    "path", ["/namespaces/none", "/namespaces/db/tables/none", "/namespaces/db/views/none"]
)
def test_heads_have_no_body(filled: Service, path: str) -> None:
    answer = filled.http.head(path)
    assert (answer.status_code, answer.content) == (404, b"")


def test_reports_of_metrics_are_taken(filled: Service) -> None:
    report = {
        "report-type": "commit-report",
        "table-name": "t",
        "snapshot-id": 1,
        "sequence-number": 1,
        "operation": "append",
        "metrics": {},
        "metadata": {},
    }
    filled.post("/namespaces/db/tables/t/metrics", report, 204)


def test_lists_come_in_pages(service: Service) -> None:
    service.post("/namespaces", {"namespace": ["paged"]})
    names = [f"t{number}" for number in range(5)]
    for name in names:
        RawTable(service, "paged", name).create()
        service.post("/namespaces", {"namespace": ["paged", name]})
        service.post("/namespaces/paged/views", {**VIEW, "name": f"v{name}"})
    for path, key in (
        ("/namespaces/paged/tables", "identifiers"),
        ("/namespaces/paged/views", "identifiers"),
        ("/namespaces?parent=paged", "namespaces"),
    ):
        found: list[Any] = []
        pages, token = 0, ""
        while token is not None:
            answer = service.http.get(
                path, params={"pageSize": 2, "pageToken": token} | dict(httpx.URL(path).params)
            )
            found += answer.json()[key]
            token = answer.json().get("next-page-token")
            pages += 1
        assert (pages, len(found)) == (3, 5)
        assert found == service.get(path)[key]


def test_the_configuration_advertises_what_there_is(service: Service) -> None:
    for warehouse in ("", "?warehouse=anything"):
        config = service.get(f"/config{warehouse}")
        assert "POST /v1/{prefix}/transactions/commit" in config["endpoints"]
        assert "GET /v1/{prefix}/namespaces/{namespace}/views/{view}" in config["endpoints"]
        assert not any("plan" in endpoint or "{rest" in endpoint for endpoint in config["endpoints"])
    for endpoint in config["endpoints"]:
        method, path = endpoint.replace("/{prefix}", "").replace("{namespace}", "no").split(" ")
        url = f"{service.uri}{path}".replace("{table}", "no").replace("{view}", "no")
        answer = service.http.request(method, url, json={})
        assert answer.status_code < 500
        assert "NoSuchEndpoint" not in answer.text


@pytest.fixture(params=["included", "mounted", "bare"])
def mounted(jvm: Jvm, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TestClient]:
    with (
        EmbeddedCatalog(jvm, tmp_path / "catalog.db", (tmp_path / "warehouse").as_uri()) as catalog,
        closing(Store.open(f"sqlite:///{tmp_path / 'control.db'}")) as store,
    ):
        gate = Doors.of(store).gate
        app = FastAPI()
        match request.param:
            case "included":
                app.include_router(catalog_router(catalog, gate), prefix="/somewhere")
            case "mounted":
                inner = FastAPI()
                inner.include_router(catalog_router(catalog, gate))
                app.mount("/somewhere", inner)
            case "bare":
                app.include_router(catalog_router(catalog, gate))
        root = "" if request.param == "bare" else "/somewhere"
        with TestClient(app, base_url=f"http://testserver{root}") as client:
            client.app_state[PEER] = own_peer()
            yield client


def test_names_and_errors_are_the_same_wherever_the_router_is(mounted: TestClient) -> None:
    root = str(mounted.base_url).rstrip("/")
    assert mounted.post(f"{root}/v1/namespaces", json={"namespace": ["a/b"]}).status_code == 200
    assert mounted.get(f"{root}/v1/namespaces/a%2Fb").json()["namespace"] == ["a/b"]
    assert_error(mounted.get(f"{root}/v1/namespaces/a/b"), 404, "NoSuchEndpointException")
    assert_error(mounted.get(f"{root}/v1/namespaces/a"), 404, "NoSuchNamespaceException")
    assert_error(mounted.post(f"{root}/v1/namespaces", content=b"{"), 400, "BadRequestException")
