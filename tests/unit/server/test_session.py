"""A browser's session: in with a credential, with its rights as they are, and out."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.limits import PER_CLIENT
from headgate.access.peers import PEER
from headgate.access.roles import Grant
from headgate.access.sessions import MOST_OF_ONE, link_token
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.server.doors import PublicDoor
from headgate.store import Store
from headgate.store.audit import Audit, AuditFilter
from tests.support.peers import PeerOf

CONSOLE = {"X-Headgate-Console": "1"}
HERE, THERE = "http://127.0.0.1:8080", "https://lake.example"
Browsers = Callable[[str], TestClient]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    environment = {"HEADGATE_AUTH__REQUIRED": "true", "HEADGATE_PUBLIC__HOST": "127.0.0.1"}
    settings = load_settings(environment=environment, data=tmp_path / "data")
    store = Store.open(settings.store_url)
    store.enable_table(TableSpec("shop.orders"))
    store.enable_table(TableSpec("hr.salaries"))
    app = create_app(Runtime.of(settings, server_port=8080, connect_port=1, broker_port=1), store)
    app.state.store, app.state.key = store, secret(settings.data, "operator")
    yield app
    store.close()


@pytest.fixture
def store(app: FastAPI) -> Store:
    found: Store = app.state.store
    return found


@pytest.fixture
def browsers(app: FastAPI) -> Iterator[Browsers]:
    """A browser at one of the two doors."""
    with ExitStack() as opened:

        def browser(root: str) -> TestClient:
            door = PublicDoor(app) if root == THERE else app
            made = TestClient(door, base_url=root, raise_server_exceptions=False, follow_redirects=False)
            client = opened.enter_context(made)
            client.app_state[PEER] = PeerOf(1000)
            client.headers.update(CONSOLE)
            return client

        yield browser


def login(store: Store, name: str = "ada", *grants: str) -> dict[str, str]:
    given = [Grant.parse(text) for text in grants or ("writer:local:shop.*", "reader:sandbox")]
    made, key = Credentials(store.engine).create(name, given)
    return {"client_id": made.client_id, "client_secret": key}


@pytest.mark.parametrize("root", [HERE, THERE])
def test_credential_signs_a_browser_in_at_both_doors(browsers: Browsers, store: Store, root: str) -> None:
    browser, shown = browsers(root), login(store)
    assert browser.get("/api/v1/session").status_code == 401
    signed_in = browser.post("/api/v1/session", json=shown)
    said = signed_in.json()
    assert signed_in.status_code == 200, said
    assert said.pop("expires_at") > 1_700_000_000
    assert said == {
        "name": "ada",
        "roles": [
            {"role": "reader", "namespace": "sandbox", "table": "*"},
            {"role": "writer", "namespace": "local", "table": "shop.*"},
        ],
        "is_admin": False,
        "by": "credential",
    }
    assert browser.get("/api/v1/session").json() == signed_in.json()
    assert [one["topic"] for one in browser.get("/api/v1/tables").json()] == ["shop.orders"]
    cookie = signed_in.headers["set-cookie"]
    assert re.match(
        r"headgate-session-\d+=[\w-]{43}; HttpOnly; Max-Age=43200; Path=/; SameSite=strict", cookie
    )
    assert cookie.endswith("; Secure") is (root == THERE)
    assert signed_in.headers["cache-control"] == "no-store"
    assert shown["client_secret"] not in cookie + signed_in.text


def test_session_may_what_its_credential_may(browsers: Browsers, store: Store) -> None:
    browser = browsers(THERE)
    browser.post("/api/v1/session", json=login(store))
    assert browser.post("/api/v1/tables/shop.orders/suspend").status_code == 202
    assert browser.get("/api/v1/tables/hr.salaries").status_code == 404
    assert browser.get("/api/v1/credentials").status_code == 403


def test_session_ends_with_its_credential(browsers: Browsers, store: Store) -> None:
    browser = browsers(HERE)
    browser.post("/api/v1/session", json=login(store))
    Credentials(store.engine).revoke("ada")
    answer = browser.get("/api/v1/tables")
    assert (answer.status_code, answer.json()["message"]) == (401, "The credential was revoked.")
    assert "www-authenticate" not in answer.headers
    login(store)
    assert browser.get("/api/v1/tables").status_code == 401, "another credential of the name is another"


def test_sign_out_ends_the_session_for_good(browsers: Browsers, store: Store) -> None:
    browser = browsers(THERE)
    browser.post("/api/v1/session", json=login(store))
    cookies = dict(browser.cookies)
    signed_out = browser.delete("/api/v1/session")
    assert signed_out.status_code == 204
    assert "Max-Age=0" in signed_out.headers["set-cookie"]
    assert not browser.cookies
    assert browser.get("/api/v1/session").status_code == 401
    browser.cookies.update(cookies)
    assert browser.get("/api/v1/session").status_code == 401


def test_browser_of_an_ended_session_signs_in_again(client: TestClient, store: Store) -> None:
    """At the loopback door too, where this user's browser without a cookie needs nothing."""
    assert client.get("/api/v1/session").json()["by"] == "local"
    client.headers.update(CONSOLE)
    for _ in range(2):
        client.cookies.set("headgate-session-8080", "of-the-server-before", domain="127.0.0.1", path="/")
        for path in ("/api/v1/tables", "/api/v1/live", "/registry/subjects", "/metrics"):
            answer = client.get(path)
            assert (answer.status_code, "set-cookie" in answer.headers) == (401, False), path
        session = "/api/v1/session"
        for method, path in (("GET", session), ("DELETE", session), ("POST", "/sign-out")):
            answer = client.request(method, path, headers={"Cookie": "headgate-session-8080=unknown"})
            assert (answer.status_code, answer.json()["message"]) == (401, "The browser's session has ended.")
            cookie = answer.headers["set-cookie"]
            assert re.match(r'headgate-session-8080=""; .*Max-Age=0; Path=/; SameSite=strict$', cookie)
        assert not client.cookies
    shown = login(store)
    client.cookies.set("headgate-session-8080", "of-the-server-before", domain="127.0.0.1", path="/")
    assert client.post("/api/v1/session", json=shown).status_code == 200
    assert client.get("/api/v1/session").json()["name"] == "ada"
    Credentials(store.engine).revoke("ada")
    revoked = client.get("/api/v1/session")
    assert (revoked.status_code, "set-cookie" in revoked.headers) == (401, False)


@pytest.mark.parametrize("method", ["POST", "DELETE", "PATCH", "PUT"])
def test_cookie_alone_changes_nothing(browsers: Browsers, store: Store, method: str) -> None:
    """What another page has a browser send has the cookie at most, and none of the console's headers."""
    browser = browsers(THERE)
    browser.post("/api/v1/session", json=login(store))
    del browser.headers["X-Headgate-Console"]
    for path in ("/api/v1/tables/shop.orders/suspend", "/api/v1/session/", "/registry/subjects/x"):
        answer = browser.request(method, path)
        assert answer.status_code == 403, (path, answer.text)
    assert store.table("shop.orders").desired == "enabled"
    assert browser.get("/api/v1/session").status_code == 200


def test_wrong_secrets_are_not_tried_at_speed(browsers: Browsers, store: Store) -> None:
    browser, shown = browsers(THERE), login(store)
    for _ in range(PER_CLIENT):
        wrong = browser.post("/api/v1/session", json={**shown, "client_secret": "wrong"})
        assert (wrong.status_code, wrong.json()["error"]) == (401, "NotAuthorized")
        assert "www-authenticate" not in wrong.headers
        assert "set-cookie" not in wrong.headers
    stopped = browser.post("/api/v1/session", json=shown)
    assert (stopped.status_code, stopped.json()["error"]) == (429, "TooManyFailures")
    assert int(stopped.headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"client_id": "x"}',
        b'{"client_id": 1, "client_secret": 2}',
        b"[" * 100,
        b'{"a":"\\ud800"}',
    ],
)
def test_what_is_no_credential_signs_nobody_in(browsers: Browsers, body: bytes) -> None:
    answer = browsers(THERE).post(
        "/api/v1/session", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)


def test_what_was_sent_is_not_repeated(browsers: Browsers) -> None:
    for wrong in ({"client_id": "x", "client_secret": ["canary"]}, {"client_id": "x", "secret": "canary"}):
        answer = browsers(THERE).post("/api/v1/session", json=wrong)
        assert (answer.status_code, "canary" in answer.text) == (422, False)


def test_long_body_of_a_stranger_is_not_read(browsers: Browsers) -> None:
    answer = browsers(THERE).post("/api/v1/session", content=b"x" * 100_000)
    assert (answer.status_code, answer.json()["error"]) == (413, "LimitReached")


def test_page_of_another_origin_signs_nobody_in(browsers: Browsers, store: Store) -> None:
    foreign = {"Origin": "https://elsewhere.example"}
    assert browsers(THERE).post("/api/v1/session", json=login(store), headers=foreign).status_code == 403


def test_link_signs_in_on_the_machine_alone_and_lands_in_the_console(
    browsers: Browsers, app: FastAPI
) -> None:
    browser, token = browsers(HERE), link_token(app.state.key)
    page = {"Accept": "text/html,*/*;q=0.8"}
    landed = browser.get("/sign-in", params={"token": token}, headers=page)
    assert (landed.status_code, landed.headers["location"]) == (303, "/")
    assert browser.get("/").status_code == 200
    said = browser.get("/api/v1/session").json()
    assert (said["by"], said["is_admin"], said["roles"]) == (
        "link",
        True,
        [{"role": "admin", "namespace": "*", "table": "*"}],
    )
    again = browser.get("/sign-in", params={"token": token}, headers=page)
    assert (again.status_code, again.headers["location"]) == (303, "/sign-in?link=failed")
    assert browser.get(again.headers["location"]).headers["content-type"].startswith("text/html")
    cookies = dict(browser.cookies)
    public = browsers(THERE)
    for name in ("headgate-session-443", *cookies):
        public.cookies.set(name, next(iter(cookies.values())))
    assert public.get("/api/v1/session").status_code == 401


def test_signing_in_again_ends_the_session_before(browsers: Browsers, store: Store) -> None:
    browser, shown = browsers(HERE), login(store)
    browser.post("/api/v1/session", json=shown)
    before = dict(browser.cookies)
    browser.post("/api/v1/session", json=login(store, "bob", "reader"))
    assert browser.get("/api/v1/session").json()["name"] == "bob"
    browser.cookies.update(before)
    assert browser.get("/api/v1/session").status_code == 401


def test_one_credential_cannot_close_the_sessions_of_others(
    browsers: Browsers, store: Store, app: FastAPI
) -> None:
    first, ada = browsers(HERE), login(store)
    first.post("/api/v1/session", json=ada)
    busy, bob = browsers(HERE), login(store, "bob", "reader")
    for _ in range(MOST_OF_ONE + 1):
        busy.cookies.clear()
        busy.post("/api/v1/session", json=bob)
    assert first.get("/api/v1/session").status_code == 200


@pytest.mark.parametrize("header", ["Basic", "Bearer"])
def test_program_is_told_who_it_is(browsers: Browsers, store: Store, app: FastAPI, header: str) -> None:
    program, shown = browsers(HERE), login(store)
    if header == "Basic":
        said = program.get("/api/v1/session", auth=(shown["client_id"], shown["client_secret"])).json()
        assert (said["name"], said["by"], said["expires_at"]) == ("ada", "credential", None)
    else:
        key = {"Authorization": f"Bearer {app.state.key}"}
        said = program.get("/api/v1/session", headers=key).json()
        assert (said["name"], said["by"], said["is_admin"]) == ("a local user", "local", True)


def test_audit_trail_names_the_credential_of_a_session(
    browsers: Browsers, store: Store, app: FastAPI
) -> None:
    browser, shown = browsers(HERE), login(store)
    browser.post("/api/v1/session", json=shown)
    browser.post("/api/v1/tables/shop.orders/suspend")
    browser.delete("/api/v1/session")
    token = link_token(app.state.key)
    browser.get("/sign-in", params={"token": token})
    entries = waited(store, 4)
    assert [(one["who"], one["credential"], one["action"], one["status"]) for one in entries] == [
        ("'ada'", shown["client_id"], "POST /api/v1/session", 200),
        ("'ada'", shown["client_id"], "POST /api/v1/tables/shop.orders/suspend", 202),
        ("'ada'", shown["client_id"], "DELETE /api/v1/session", 204),
        ("a local user", "local", "GET /sign-in", 303),
    ]
    assert shown["client_secret"] not in str(entries)
    assert token not in str(entries)


def waited(store: Store, count: int) -> list[dict[str, Any]]:
    """The entries, oldest first; what is not of the API is written a moment later."""
    deadline = time.monotonic() + 20
    while len(entries := Audit(store.engine).list(AuditFilter(), 100)) < count:
        assert time.monotonic() < deadline, entries
        time.sleep(0.02)
    return list(reversed(entries))
