"""Who may use the server: on loopback, where tokens are asked for, and at the public door."""

import base64
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.testclient import TestClient

from headgate.access.limits import PER_CLIENT
from headgate.access.peers import PEER
from headgate.access.sessions import link_token
from headgate.config import Public, load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.server.app import create_app
from headgate.server.doors import PublicDoor
from headgate.server.origin import OwnOrigin
from headgate.server.public import _config
from headgate.store import Store
from tests.support.peers import PeerOf, own_peer

PATHS = [
    ("GET", "/metrics"),
    ("GET", "/api/v1/status"),
    ("GET", "/api/v1/openapi.json"),
    ("GET", "/api/v1/credentials"),
    ("POST", "/api/v1/credentials"),
    ("DELETE", "/api/v1/credentials/x"),
    ("POST", "/api/v1/query/start"),
    ("GET", "/registry/subjects"),
    ("GET", "/nowhere"),
    ("GET", "//api/v1/status"),
    ("GET", "/healthz/../api/v1/status"),
]


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[TestClient]:
    """A server that asks for a token on loopback too."""
    settings = load_settings(environment={"HEADGATE_AUTH__REQUIRED": "true"}, data=tmp_path / "data")
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    store = Store.open(settings.store_url)
    app = create_app(runtime, store)
    with TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False) as client:
        client.headers["X-Data"] = str(settings.data)
        yield client
    store.close()


@pytest.fixture
def operator(guarded: TestClient) -> dict[str, str]:
    key = secret(Path(guarded.headers["X-Data"]), "operator")
    return {"Authorization": f"Bearer {key}"}


def made(client: TestClient, headers: dict[str, str], name: str, **wanted: object) -> dict[str, str]:
    """A header by which the new client is known."""
    answer = client.post("/api/v1/credentials", json={"name": name, **wanted}, headers=headers)
    assert answer.status_code == 201, answer.text
    said = answer.json()
    shown = base64.b64encode(f"{said['client_id']}:{said['client_secret']}".encode()).decode()
    return {"Authorization": f"Basic {shown}"}


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_nothing_opens_without_a_token(guarded: TestClient, method: str, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Bearer None"}):
        answer = guarded.request(method, path, headers=headers)
        assert answer.status_code == 401, answer.text
        assert answer.json()["error"] == "NotAuthorized"
        assert answer.headers["www-authenticate"].startswith("Basic")


def test_whether_all_is_well_is_told_to_everybody(guarded: TestClient) -> None:
    assert guarded.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    ("role", "statuses"),
    [
        ("reader", {"/metrics": 200, "/api/v1/status": 200, "/api/v1/storage": 403}),
        ("writer", {"/metrics": 200, "/api/v1/status": 200, "/api/v1/storage": 403}),
        ("admin", {"/metrics": 200, "/api/v1/status": 200, "/api/v1/storage": 200}),
    ],
)
def test_what_a_role_opens(
    guarded: TestClient, operator: dict[str, str], role: str, statuses: dict[str, int]
) -> None:
    headers = made(guarded, operator, role, role=role)
    assert {path: guarded.get(path, headers=headers).status_code for path in statuses} == statuses
    creating = guarded.post("/api/v1/credentials", headers=headers, json={"name": "more", "role": "admin"})
    assert creating.status_code == (201 if role == "admin" else 403)


def test_an_admin_of_some_tables_is_none_of_everything(guarded: TestClient, operator: dict[str, str]) -> None:
    headers = made(guarded, operator, "narrow", role="admin", namespace="local")
    for path in ("/api/v1/credentials", "/api/v1/storage", "/api/v1/catalogs"):
        assert guarded.get(path, headers=headers).status_code == 403


def test_the_life_of_a_credential(guarded: TestClient, operator: dict[str, str]) -> None:
    wanted = {"role": "reader", "namespace": "local", "table": "shop.*", "grants": ["writer:sandbox"]}
    headers = made(guarded, operator, "notebook", **wanted)
    listed = guarded.get("/api/v1/credentials", headers=operator).json()
    assert [(one["name"], one["grants"]) for one in listed] == [
        ("notebook", ["reader:local:shop.*", "writer:sandbox:*"])
    ]
    assert not any("secret" in key for key in listed[0])
    again = guarded.post("/api/v1/credentials", json={"name": "notebook", "role": "reader"}, headers=operator)
    assert again.status_code == 409
    assert guarded.delete("/api/v1/credentials/notebook", headers=operator).status_code == 200
    assert guarded.get("/metrics", headers=headers).status_code == 401
    assert guarded.delete("/api/v1/credentials/notebook", headers=operator).status_code == 404
    kinds = [event["kind"] for event in guarded.get("/api/v1/events", headers=operator).json()]
    assert kinds[:2] == ["revoked", "created"]


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"role": "owner"},
        {"grants": ["owner:local:*"]},
        {"namespace": "local"},
        {"role": "reader", "namespace": ""},
        {"role": "reader", "secret": "mine"},
    ],
)
def test_what_makes_no_credential(
    guarded: TestClient, operator: dict[str, str], wanted: dict[str, object]
) -> None:
    answer = guarded.post("/api/v1/credentials", json={"name": "x", **wanted}, headers=operator)
    assert answer.status_code in (400, 422), answer.text
    assert guarded.get("/api/v1/credentials", headers=operator).json() == []


def test_secrets_are_not_tried_at_speed(guarded: TestClient, operator: dict[str, str]) -> None:
    right = made(guarded, operator, "reader", role="reader")
    client_id = base64.b64decode(right["Authorization"].split()[1]).decode().partition(":")[0]
    wrong = {"Authorization": f"Basic {base64.b64encode(f'{client_id}:x'.encode()).decode()}"}
    for _ in range(PER_CLIENT):
        assert guarded.get("/metrics", headers=wrong).status_code == 401
    stopped = guarded.get("/metrics", headers=right)
    assert (stopped.status_code, stopped.json()["error"]) == (429, "TooManyFailures")
    assert int(stopped.headers["retry-after"]) >= 1


def test_on_loopback_the_servers_own_user_may(client: TestClient) -> None:
    """As long as nothing is shown; what is shown is checked."""
    assert client.get("/api/v1/status").status_code == 200
    assert client.get("/api/v1/status", headers={"Authorization": "Bearer x"}).status_code == 401


@pytest.mark.parametrize("peer", [PeerOf(None), PeerOf(12_345), None])
@pytest.mark.parametrize(("method", "path"), PATHS)
def test_on_loopback_other_users_need_a_credential(
    client: TestClient, peer: PeerOf | None, method: str, path: str
) -> None:
    client.app_state[PEER] = peer
    answer = client.request(method, path)
    assert answer.status_code == 401, answer.text
    assert "credentials create" in answer.json()["remedy"]


def test_link_signs_a_browser_in_once(guarded: TestClient) -> None:
    token = link_token(secret(Path(guarded.headers["X-Data"]), "operator"))
    assert guarded.get("/api/v1/status").status_code == 401
    signed_in = guarded.get("/sign-in", params={"token": token}, follow_redirects=False)
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/")
    cookie = signed_in.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert token not in cookie
    assert guarded.get("/api/v1/status").status_code == 200
    assert guarded.get("/sign-in", params={"token": token}).status_code == 401
    foreign = {"Origin": "http://elsewhere.example"}
    assert guarded.post("/sign-out", headers=foreign).status_code == 403
    assert guarded.post("/sign-out").status_code == 204
    assert guarded.get("/api/v1/status").status_code == 401


def test_links_sign_nobody_in_at_the_public_door(runtime: Runtime, store: Store) -> None:
    token = link_token(secret(runtime.data, "operator"))
    with TestClient(PublicDoor(create_app(runtime, store)), base_url="https://lake.example") as public:
        assert public.get("/sign-in", params={"token": token}).status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:8080"},
        {"Origin": "http://127.0.0.1:8081"},
        {"Host": "elsewhere.example"},
        {"Host": "127.0.0.1:8080, elsewhere.example"},
        {"Host": ""},
    ],
)
def test_other_origins_and_hosts_are_refused_on_every_kind_of_route(
    client: TestClient, headers: dict[str, str]
) -> None:
    for path in ("/", "/healthz", "/sign-in?token=x", "/api/v1/status", "/iceberg/v1/config", "/nowhere"):
        assert client.get(path, headers={**headers, "Accept": "text/event-stream"}).status_code == 403, path


@pytest.mark.parametrize(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "image", 403),
        ("cross-site", "no-cors", "script", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("same-site", "no-cors", "empty", 403),
        ("same-site", "navigate", "document", 200),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_what_a_page_of_others_loads_without_naming_itself_is_refused(
    client: TestClient, site: str, mode: str, dest: str, status: int
) -> None:
    """Browsers name no origin for images, scripts and frames; they say that another page asks."""
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    for path in ("/", "/metrics", "/api/v1/status"):
        assert client.get(path, headers=headers).status_code == status, path


@pytest.mark.parametrize(
    "path", ["/api/v1/tables/a%00b", "/api/v1/events?subject=a%00b", "/iceberg/v1/namespaces/a%00b", "/%00"]
)
def test_zero_in_an_address_is_refused(client: TestClient, path: str) -> None:
    for method in ("GET", "POST"):
        answer = client.request(method, path)
        assert (answer.status_code, answer.json()["error"]) == (400, "InvalidRequest")
    assert not [one for one in client.get("/api/v1/audit").json() if "\0" in one["action"]]


def test_websocket_is_judged_by_origin_and_host() -> None:
    """As no route has one yet, an application of one WebSocket stands behind the same checks."""
    app = FastAPI()

    @app.websocket("/socket")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()

    opened = TestClient(OwnOrigin(app), base_url="http://127.0.0.1:8080")
    with opened.websocket_connect("ws://127.0.0.1:8080/socket", headers={"Origin": "http://127.0.0.1:8080"}):
        pass
    for headers in ({"Origin": "http://elsewhere.example"}, {"Host": "elsewhere.example"}):
        with (
            pytest.raises(WebSocketDisconnect),
            opened.websocket_connect("ws://127.0.0.1:8080/socket", headers=headers),
        ):
            pass


def test_the_public_door_knows_no_local_user(runtime: Runtime, store: Store) -> None:
    app = create_app(runtime, store)
    key = {"Authorization": f"Bearer {secret(runtime.data, 'operator')}"}
    with TestClient(app, base_url="http://127.0.0.1:8080") as local:
        local.app_state[PEER] = own_peer()
        assert local.get("/api/v1/status", headers=key).status_code == 200
        admin = made(local, {}, "admin", role="admin")
    with TestClient(PublicDoor(app), base_url="https://lake.example:8443") as public:
        assert public.get("/api/v1/status").status_code == 401
        assert public.get("/api/v1/status", headers=key).status_code == 401
        assert public.get("/api/v1/status", headers=admin).status_code == 200
        assert public.get("/healthz").status_code == 200
        # A page of another origin, in a browser that knows the secret.
        foreign = {**admin, "Origin": "https://elsewhere.example"}
        assert public.post("/api/v1/query/start", headers=foreign).status_code == 403
        own = {**admin, "Origin": "https://lake.example:8443"}
        assert public.post("/api/v1/query/start", headers=own).status_code == 202


def test_page_behind_a_proxy_has_the_origin_that_clients_call_it_by(tmp_path: Path) -> None:
    """The proxy speaks TLS, and the public door behind it does not."""
    public = {"HOST": "127.0.0.1", "URL": "https://Lake.example/"}
    environment = {f"HEADGATE_PUBLIC__{name}": value for name, value in public.items()}
    settings = load_settings(environment=environment, data=tmp_path / "data")
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    store = Store.open(settings.store_url)
    app = create_app(runtime, store)
    key = {"Authorization": f"Bearer {secret(runtime.data, 'operator')}"}
    with TestClient(app, base_url="http://127.0.0.1:8080") as local:
        admin = made(local, key, "admin", role="admin")
        own = {"Origin": "https://lake.example"}
        assert local.get("/healthz", headers=own).status_code == 403, "it is the public door's alone"
    with TestClient(PublicDoor(app), base_url="http://10.0.0.7:8443") as behind:
        assert behind.post("/api/v1/query/start", headers={**admin, **own}).status_code == 202
        for other in ("http://lake.example", "https://lake.example:8443", "https://elsewhere.example"):
            foreign = {**admin, "Origin": other}
            assert behind.post("/api/v1/query/start", headers=foreign).status_code == 403, other
    store.close()


def test_addresses_that_requests_name_themselves_are_not_believed() -> None:
    """Failures are counted by address, and the audit trail has it."""
    config = _config(Public(host="127.0.0.1"), FastAPI())
    assert config.proxy_headers is False


def test_a_secret_is_shown_once(
    guarded: TestClient, operator: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """A canary: in no other answer, in no log, in no file."""
    with caplog.at_level(logging.DEBUG):
        headers = made(guarded, operator, "canary", role="admin")
        canary = base64.b64decode(headers["Authorization"].split()[1]).decode().partition(":")[2]
        for _, path in PATHS:
            for shown in (headers, {"Authorization": f"Basic {canary}"}, {"Authorization": canary}):
                answer = guarded.get(path, headers=shown)
                assert canary not in answer.text
                assert canary not in str(answer.headers)
    assert canary not in caplog.text
    for file in Path(guarded.headers["X-Data"]).rglob("*"):
        if file.is_file():
            assert canary.encode() not in file.read_bytes(), file
