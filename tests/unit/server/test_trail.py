"""The audit trail: what is in it, who is, and what never is."""

import base64
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.server.doors import PublicDoor
from headgate.server.trail import STRANGERS, is_change, things_of
from headgate.store import Store
from headgate.store.audit import Audit, AuditEntry, AuditFilter

CANARY = "canary-4711"


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[TestClient]:
    settings = load_settings(environment={"HEADGATE_AUTH__REQUIRED": "true"}, data=tmp_path / "data")
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    store = Store.open(settings.store_url)
    store.enable_table(TableSpec("shop.orders"))
    broken = APIRouter()

    @broken.post("/broken")
    def fail() -> None:
        raise RuntimeError("this is a test")

    app = create_app(runtime, store, mounts={"": broken})
    with TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False) as client:
        client.headers["X-Data"] = str(settings.data)
        yield client
    store.close()


@pytest.fixture
def store(audited: TestClient) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{audited.headers['X-Data']}/control.db")
    yield store
    store.close()


@pytest.fixture
def operator(audited: TestClient) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret(Path(audited.headers['X-Data']), 'operator')}"}


def login(store: Store, name: str, *grants: str) -> tuple[str, dict[str, str]]:
    made, key = Credentials(store.engine).create(name, [Grant.parse(text) for text in grants])
    shown = base64.b64encode(f"{made.client_id}:{key}".encode()).decode()
    return made.client_id, {"Authorization": f"Basic {shown}"}


def trail(client: TestClient, operator: dict[str, str], **wanted: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/audit", params=wanted, headers=operator)
    assert answer.status_code == 200, answer.text
    entries: list[dict[str, Any]] = answer.json()
    return entries


def test_who_did_what_to_which_thing_from_where_with_which_credential(
    audited: TestClient, store: Store, operator: dict[str, str]
) -> None:
    client_id, headers = login(store, "etl", "writer:local:shop.*")
    before = time.time()
    assert audited.post("/api/v1/tables/shop.orders/suspend", headers=headers).status_code == 202
    (entry,) = trail(audited, operator)
    assert before <= entry.pop("at") <= time.time()
    assert entry == {
        "id": 1,
        "who": "'etl'",
        "credential": client_id,
        "address": "testclient",
        "door": "loopback",
        "action": "POST /api/v1/tables/shop.orders/suspend",
        "things": ["table shop.orders"],
        "status": 202,
    }


def test_reading_leaves_nothing_and_what_is_refused_does(
    audited: TestClient, store: Store, operator: dict[str, str]
) -> None:
    _, headers = login(store, "narrow", "reader:local:shop.*")
    for path in ("status", "tables", "tables/shop.orders", "events"):
        assert audited.get(f"/api/v1/{path}", headers=headers).status_code == 200
    assert trail(audited, operator) == []
    assert audited.get("/api/v1/tables/hr.salaries", headers=headers).status_code == 404
    assert audited.get("/api/v1/audit", headers=headers).status_code == 403
    assert audited.post("/api/v1/tables/shop.orders/erase", json={"where": "1"}, headers=headers).is_error
    assert audited.post("/api/v1/sql", json={"sql": "DROP VIEW v"}, headers=headers).is_error
    statuses = [(entry["status"], entry["things"]) for entry in trail(audited, operator, refused=True)]
    assert statuses[1:] == [(403, ["table shop.orders"]), (403, []), (404, ["table hr.salaries"])]


def test_a_request_that_breaks_is_in_it(audited: TestClient, operator: dict[str, str]) -> None:
    assert audited.post("/broken", headers=operator).status_code == 500
    (entry,) = _waited(audited, operator, 1)
    assert (entry["who"], entry["status"]) == ("a local user", 500)


def test_strangers_are_in_it_and_do_not_fill_it(audited: TestClient, operator: dict[str, str]) -> None:
    for _ in range(STRANGERS + 10):
        assert audited.delete("/api/v1/tables/shop.orders").status_code == 401
    entries = _waited(audited, operator, STRANGERS)
    assert {(entry["who"], entry["credential"], entry["status"]) for entry in entries} == {("", "", 401)}


def _waited(client: TestClient, operator: dict[str, str], count: int) -> list[dict[str, Any]]:
    """Those that are written a moment later."""
    deadline = time.monotonic() + 20
    while len(entries := trail(client, operator)) < count:
        assert time.monotonic() < deadline, entries
        time.sleep(0.02)
    time.sleep(0.1)
    return trail(client, operator) if len(entries) == count else entries


def test_the_public_door_is_named(audited: TestClient, store: Store, operator: dict[str, str]) -> None:
    _, headers = login(store, "far", "admin")
    with TestClient(PublicDoor(audited.app), base_url="https://lake.example:8443") as public:
        assert public.post("/api/v1/tables/shop.orders/suspend", headers=headers).status_code == 202
    assert [entry["door"] for entry in trail(audited, operator)] == ["public"]


def test_no_secret_and_no_data_is_in_it(
    audited: TestClient, store: Store, operator: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    _, headers = login(store, "etl", "admin")
    with caplog.at_level(logging.DEBUG):
        audited.post(
            "/api/v1/tables/shop.orders/erase", json={"where": f"name = '{CANARY}'"}, headers=headers
        )
        audited.post("/api/v1/sql", json={"sql": f"SELECT '{CANARY}'"}, headers=headers)
        audited.post("/api/v1/credentials", json={"name": "more", "role": CANARY}, headers=headers)
        audited.get("/api/v1/tables", params={"token": CANARY}, headers={"Authorization": f"Bearer {CANARY}"})
        audited.post("/api/v1/credentials", json={"name": "more", "role": "reader"}, headers=headers)
    entries = _waited(audited, operator, 5)
    assert len(entries) == 5
    said = str(Audit(store.engine).list(AuditFilter(), 100))
    secrets = [base64.b64decode(headers["Authorization"].split()[1]).decode().partition(":")[2]]
    for canary in (CANARY, *secrets, headers["Authorization"], operator["Authorization"].split()[1]):
        assert canary not in said
        assert not [
            one for one in caplog.records if one.name[:8] == "headgate" and canary in one.getMessage()
        ]


def test_filters(audited: TestClient, store: Store, operator: dict[str, str]) -> None:
    audit = Audit(store.engine)
    audit.add(
        AuditEntry(who, credential, "10.0.0.1", "public", f"POST /{number}", things, status, at=float(number))
        for number, (who, credential, things, status) in enumerate(
            [
                ("'etl'", "hg1", ("table shop.orders",), 202),
                ("'etl'", "hg1", ("table shop.orders2", "topic shop.100%"), 403),
                ("a local user", "local", ("table local.shop.orders",), 200),
            ]
        )
    )

    def found(**wanted: Any) -> list[str]:
        return [entry["action"] for entry in trail(audited, operator, **wanted)]

    assert found() == ["POST /2", "POST /1", "POST /0"]
    assert found(who="etl") == found(who="hg1") == ["POST /1", "POST /0"]
    assert found(about="shop.orders") == ["POST /2", "POST /0"]
    assert found(about="shop.100%") == found(about="topic shop.100%") == ["POST /1"]
    assert found(about="shop_orders") == []
    assert found(refused=True) == ["POST /1"]
    assert found(since=1, until=2) == ["POST /1"]
    assert found(limit=1) == ["POST /2"]
    assert found(before=2) == ["POST /0"]
    audit.forget(1.5)
    assert found() == ["POST /2"]


def test_changes_are_noted_whatever_things_are_called(audited: TestClient, operator: dict[str, str]) -> None:
    changes = [
        ("DELETE", "/registry/subjects/shop.orders-value"),
        ("DELETE", "/registry/compatibility/x"),
        ("DELETE", "/iceberg/v1/namespaces/shop/tables/metrics"),
        ("DELETE", "/iceberg/v1/namespaces/metrics"),
        ("POST", "/iceberg/v1/namespaces/shop/tables/metrics"),
        ("POST", "/iceberg/v1/namespaces/shop/tables/a%2Fmetrics"),
    ]
    for method, path in changes:
        audited.request(method, path, headers=operator)
    entries = _waited(audited, operator, len(changes))
    assert [entry["action"] for entry in reversed(entries)] == [f"{m} {unquote(p)}" for m, p in changes]


@pytest.mark.parametrize(
    "path",
    [
        "/registry/subjects/shop.orders-value",
        "/registry/subjects/a%2Fb",
        "/registry/compatibility/subjects/shop.orders-value/versions/latest",
        "/iceberg/v1/namespaces/shop/tables/orders/metrics",
        "/iceberg/v1/namespaces/shop/tables/metrics/metrics",
        "/api/v1/query/start",
    ],
)
def test_what_is_asked_by_post_and_changes_nothing_is_not_noted(path: str) -> None:
    assert not is_change("POST", path)


def test_a_link_to_a_file_is_not_in_it(audited: TestClient, operator: dict[str, str]) -> None:
    """Whoever has the link has the file: another page that loads it is refused, and noted without it."""
    loaded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    assert audited.get(f"/exports/files/{CANARY}", headers=loaded).status_code == 403
    (entry,) = _waited(audited, operator, 1)
    assert entry["action"] == "GET /exports/files/…"


@pytest.mark.parametrize(
    ("path", "things"),
    [
        ("/iceberg/v1/namespaces/local/tables/shop.orders", ["table local.shop.orders"]),
        ("/iceberg/v1/namespaces/a%1Fb/views/v%20w", ["view a.b.v w"]),
        ("/iceberg/v1/namespaces/local", ["namespace local"]),
        ("/registry/subjects/shop.orders-value/versions", ["subject shop.orders-value"]),
        ("/registry/config/shop.orders-value", ["subject shop.orders-value"]),
        ("/api/v1/credentials/etl", ["credential etl"]),
        ("/api/v1/catalogs/glue/retry", ["catalog glue"]),
        ("/api/v1/tables/shop.orders", []),
        ("/iceberg/v1/transactions/commit", []),
    ],
)
def test_things_of_paths(path: str, things: list[str]) -> None:
    assert things_of(path) == things


def test_a_credential_that_is_revoked_by_its_id_is_found_by_its_name(
    audited: TestClient, store: Store, operator: dict[str, str]
) -> None:
    client_id, _ = login(store, "etl", "reader")
    assert audited.delete(f"/api/v1/credentials/{client_id}", headers=operator).is_success
    (entry,) = trail(audited, operator, about="etl")
    assert set(entry["things"]) == {f"credential {client_id}", "credential etl"}
