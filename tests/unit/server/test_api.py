"""The control API on the control state. What needs Kafka is among the integration tests."""

import time
from typing import Any

import pytest
from fastapi import APIRouter, Response
from fastapi.testclient import TestClient

from headgate import __version__
from headgate.access.peers import PEER
from headgate.embedded.runtime import Runtime
from headgate.model import TableSpec, TableState
from headgate.server.app import create_app
from headgate.store import Store
from tests.support.peers import own_peer

DETAIL = {
    "position": {"cluster": "c", "topic": "t", "offsets": {"0": 5, "1": 7}},
    "lag": 3,
    "rows": 12,
    "behind_since": None,
}


@pytest.fixture
def orders(store: Store) -> Store:
    store.enable_table(TableSpec("orders.eu"))
    store.report("orders.eu", TableState.RUNNING, "", DETAIL)
    return store


def test_status_says_it_all(client: TestClient, orders: Store, runtime: Runtime) -> None:
    orders.beat("engine", "one", 42, "ready")

    found = client.get("/api/v1/status").json()

    assert (found["version"], found["cluster"]) == (__version__, "local")
    assert found["addresses"] == runtime.addresses
    assert found["statements"] == []
    (table,) = found["tables"]
    assert (table["topic"], table["state"], table["lag"], table["rows"]) == ("orders.eu", "Running", 3, 12)
    assert table["position"] == DETAIL["position"]
    assert table["freshness"] == 0
    processes = {process["name"]: process for process in found["processes"]}
    assert list(processes) == ["broker", "server", "engine", "query", "export"]
    assert (processes["engine"]["state"], processes["engine"]["pid"]) == ("ready", 42)
    assert 0 <= processes["engine"]["beat_age"] < 10
    assert processes["query"]["state"] == "stopped"


def test_freshness_is_how_long_a_record_has_waited(client: TestClient, orders: Store) -> None:
    orders.report("orders.eu", TableState.RUNNING, "", {"behind_since": time.time() - 20})
    assert client.get("/api/v1/tables").json()[0]["freshness"] == pytest.approx(20, abs=5)

    orders.report("orders.eu", TableState.PENDING, "", {})
    assert client.get("/api/v1/tables").json()[0]["freshness"] is None


def test_a_process_that_fell_silent_is_not_taken_at_its_word(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.beat("engine", "one", 42, "ready")
    monkeypatch.setattr("headgate.server.overview.SILENT_SECONDS", -1.0)

    processes = {p["name"]: p["state"] for p in client.get("/api/v1/status").json()["processes"]}

    assert (processes["engine"], processes["query"]) == ("silent", "stopped")


def test_a_table_is_shown_with_spec_and_events(client: TestClient, orders: Store) -> None:
    found = client.get("/api/v1/tables/orders.eu").json()

    assert found["spec"]["topic"] == "orders.eu"
    assert (found["desired"], found["from"]) == ("enabled", "earliest")
    assert found["detail"] == DETAIL
    assert [event["kind"] for event in found["events"]] == ["Running", "enabled"]


@pytest.mark.parametrize(
    ("method", "path", "desired"),
    [
        ("POST", "/suspend", "suspended"),
        ("POST", "/resume", "enabled"),
        ("DELETE", "", "disabled"),
        ("DELETE", "?purge=true", "purged"),
    ],
)
def test_what_is_wanted_is_written_down_for_the_engine(
    client: TestClient, orders: Store, method: str, path: str, desired: str
) -> None:
    answer = client.request(method, f"/api/v1/tables/orders.eu{path}")

    assert answer.status_code == 202
    assert answer.json()["desired"] == orders.table("orders.eu").desired == desired


def test_a_sync_gives_the_token_that_the_engine_gets(client: TestClient, orders: Store) -> None:
    answer = client.post("/api/v1/tables/orders.eu/sync")

    assert answer.status_code == 202
    assert answer.json()["token"] == orders.table("orders.eu").sync_request


@pytest.mark.parametrize(
    ("desired", "action", "said"),
    [
        ("suspended", "sync", "does not catch up"),
        ("disabled", "sync", "is being disabled"),
        ("purged", "resume", "is being disabled"),
        ("purged", "suspend", "is being disabled"),
    ],
)
def test_what_cannot_be_now_is_refused(
    client: TestClient, orders: Store, desired: str, action: str, said: str
) -> None:
    orders.set_desired("orders.eu", desired)

    answer = client.post(f"/api/v1/tables/orders.eu/{action}")

    assert answer.status_code == 400
    assert said in answer.json()["message"]
    assert orders.table("orders.eu").desired == desired


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("DELETE", ""), ("POST", "/suspend"), ("POST", "/resume"), ("POST", "/sync")],
)
def test_a_table_that_is_not_there_is_404_with_a_remedy(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, f"/api/v1/tables/nope{path}")

    assert answer.status_code == 404
    assert answer.json() == {
        "error": "NotFound",
        "message": "There is no table for topic 'nope'.",
        "remedy": "Make one: `headgate table enable nope`.",
    }


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "topic"),
        ({"topic": ""}, "topic"),
        ({"topic": "a", "formats": []}, "formats"),
        ({"topic": "a", "formats": "iceberg"}, "formats"),
        ({"topic": "a", "flush_bytes": 0}, "flush_bytes"),
        ({"topic": "a", "fromm": "latest"}, "fromm"),
    ],
)
def test_a_body_that_is_not_understood_is_422_with_the_path(
    client: TestClient, body: dict[str, Any], path: str
) -> None:
    answer = client.post("/api/v1/tables", json=body)

    assert answer.status_code == 422
    assert answer.json()["error"] == "InvalidRequest"
    assert answer.json()["message"].startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("formats", ["iceberg", "hudi"], "The format 'hudi' is not supported."),
        ("mode", "merge", "The mode 'merge' is not supported."),
        ("on_error", "ignore", "The error policy 'ignore' is not supported."),
        ("from", "yesterday", "'yesterday' is not a place to start from."),
        ("freshness", "soon", "'soon' is not a duration."),
        ("freshness", "100ms", "too small"),
    ],
)
def test_what_is_not_supported_yet_is_refused(
    client: TestClient, store: Store, field: str, value: object, said: str
) -> None:
    answer = client.post("/api/v1/tables", json={"topic": "orders", field: value})

    assert answer.status_code == 400
    assert said in answer.json()["message"]
    assert answer.json()["remedy"]
    assert store.tables() == []


def test_events_by_subject_and_number(client: TestClient, store: Store) -> None:
    for number in range(3):
        store.log("engine", "restarted", str(number))
    store.log("broker", "restarted", "x")

    assert [e["message"] for e in client.get("/api/v1/events?subject=engine&limit=2").json()] == ["2", "1"]
    assert len(client.get("/api/v1/events").json()) == 4
    assert client.get("/api/v1/events?limit=0").status_code == 422


def test_events_are_paged_and_searched(client: TestClient, store: Store) -> None:
    for subject, kind, message in (
        ("orders", "Running", "100 %"),
        ("engine", "started", "1000"),
        ("x", "y", ""),
    ):
        store.log(subject, kind, message)
    newest = client.get("/api/v1/events?limit=1").json()[0]
    older = client.get(f"/api/v1/events?before={newest['id']}").json()
    assert [event["subject"] for event in older] == ["engine", "orders"]
    for text, subjects in {"ENGINE": ["engine"], "run": ["orders"], "0 %": ["orders"], "_": []}.items():
        found = client.get("/api/v1/events", params={"text": text}).json()
        assert [event["subject"] for event in found] == subjects, text


def test_the_query_driver_is_asked_for(client: TestClient, store: Store, runtime: Runtime) -> None:
    assert client.get("/api/v1/query").json() == {
        "state": "stopped",
        "wanted": False,
        "spark_connect": None,
    }

    started = client.post("/api/v1/query/start").json()

    assert (started["state"], started["wanted"]) == ("starting", True)
    assert store.process("query").wanted
    store.beat("query", "one", 1, "ready")
    assert client.get("/api/v1/query").json()["state"] == "ready"


def test_every_route_of_the_api_has_a_tag_and_a_summary(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]

    operations = [operation for path in paths.values() for operation in path.values()]
    assert len(operations) >= 15
    assert all(operation["tags"] and operation["summary"] for operation in operations)


def test_a_table_is_altered(client: TestClient, orders: Store) -> None:
    answer = client.patch("/api/v1/tables/orders.eu", json={"freshness": "1m", "on_error": "log"})
    assert answer.status_code == 200
    spec = orders.table("orders.eu").spec
    assert (spec.freshness_seconds, spec.on_error.value) == (60, "log")
    assert answer.json()["dead_letters"] == {"name": "orders.eu.dlq", "exists": False}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"from": "latest"}, "cannot be altered: from"),
        ({"partition": ["week(a)"]}, "'week(a)' is not a partition field"),
        ({"on_error": "log", "dead_letters": "orders.eu"}, "cannot hold"),
    ],
)
def test_what_cannot_be_altered_is_refused(
    client: TestClient, orders: Store, wanted: dict[str, Any], said: str
) -> None:
    before = orders.table("orders.eu").spec
    answer = client.patch("/api/v1/tables/orders.eu", json=wanted)
    assert answer.status_code == 400
    assert said in answer.json()["message"]
    assert orders.table("orders.eu").spec == before


def test_dead_letters_are_no_table_of_their_own(client: TestClient, orders: Store) -> None:
    client.patch("/api/v1/tables/orders.eu", json={"on_error": "log"})
    answer = client.post("/api/v1/tables", json={"topic": "orders.eu.dlq"})
    assert answer.status_code == 400
    assert "holds the dead letters of table 'orders.eu'" in answer.json()["message"]


def test_a_replay_is_asked_for_where_there_are_dead_letters(client: TestClient, orders: Store) -> None:
    refused = client.post("/api/v1/tables/orders.eu/replay")
    assert refused.status_code == 400
    assert "keeps no dead letters" in refused.json()["message"]
    client.patch("/api/v1/tables/orders.eu", json={"on_error": "log"})
    asked = client.post("/api/v1/tables/orders.eu/replay").json()["request"]
    found = client.get(f"/api/v1/tables/orders.eu/requests/{asked}").json()
    assert (found["kind"], found["state"]) == ("replay", "waiting")
    assert orders.request(asked).asked_by
    assert client.get(f"/api/v1/tables/other/requests/{asked}").status_code == 404
    orders.suspend("orders.eu", "x", {})
    assert client.post("/api/v1/tables/orders.eu/replay").status_code == 400


def test_resuming_accepts_what_stopped_the_table(client: TestClient, orders: Store) -> None:
    orders.suspend("orders.eu", "the topic was created again", {})
    assert client.post("/api/v1/tables/orders.eu/resume", json={"accept": "all"}).status_code == 400
    assert orders.table("orders.eu").desired == "suspended"
    answer = client.post("/api/v1/tables/orders.eu/resume", json={"accept": "new-topic"}).json()
    (asked,) = orders.waiting()["orders.eu"]
    assert (answer["request"], asked.arguments["what"]) == (asked.id, "new-topic")
    assert asked.asked_by
    assert orders.table("orders.eu").desired == "enabled"


def test_the_catalog_is_looked_for_before_all_else(runtime: Runtime, store: Store) -> None:
    """Engines ask it with every batch, and routes are tried one after the other."""
    catalog = APIRouter()

    @catalog.get("/tables")
    def tables() -> Response:
        return Response("[]", headers={"From": "the catalog"}, media_type="application/json")

    app = create_app(runtime, store, mounts={"/api/v1": catalog})
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        client.app_state[PEER] = own_peer()
        assert client.get("/api/v1/tables").headers["From"] == "the catalog"


@pytest.mark.parametrize(("method", "path", "code"), [("GET", "nowhere", 404), ("PATCH", "status", 405)])
def test_an_address_that_is_no_route_is_answered_like_any_failure(
    client: TestClient, method: str, path: str, code: int
) -> None:
    answer = client.request(method, f"/api/v1/{path}")
    assert answer.status_code == code
    assert set(answer.json()) == {"error", "message", "remedy"}
    assert f"{method} /api/v1/{path}" in answer.json()["message"]


def test_an_address_that_is_no_route_of_the_catalog_has_the_form_that_its_clients_know(
    client: TestClient,
) -> None:
    assert set(client.get("/iceberg/v1/nowhere").json()) != {"error", "message", "remedy"}


def test_a_browser_at_an_address_of_nothing_gets_the_consoles_page(client: TestClient) -> None:
    answer = client.get("/nowhere", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert client.get("/nowhere").headers["content-type"] == "application/json"
