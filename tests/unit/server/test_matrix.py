"""Role by route by table: what each may do, for every route that the OpenAPI description has."""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Role
from headgate.config import load_settings
from headgate.datagen import GeneratorSpec
from headgate.embedded.runtime import Runtime
from headgate.model import OnError, TableSpec
from headgate.server.access import RULE, check_declared
from headgate.server.app import create_app
from headgate.store import Generators, Statements, Store

# A table that some grants cover and others do not, and a statement that reads it and writes its like.
SEEN, HIDDEN, ABSENT = "shop.orders", "hr.salaries", "hr.nobody"
ROLES = (Role.READER, Role.WRITER, Role.ADMIN)
# A body of each route that takes one which names nothing that is there; the route's own answer is then told
# from one of the rights.
BODIES: dict[str, Any] = {
    "POST /api/v1/tables": {"topic": "{}"},
    "POST /api/v1/topics": {"name": "{}"},
    "POST /api/v1/generators": {"scenario": "sales", "prefix": "{}"},
    "POST /api/v1/sql": {"sql": "CREATE TABLE `{}` (a INT)"},
    "POST /api/v1/queries": {"sql": "SELECT a FROM `{}`"},
    "POST /api/v1/queries/changes": {"topic": "{}"},
    "POST /api/v1/tables/{topic}/erase": {"where": "a = 1"},
    "POST /api/v1/statements/{name}/reset": {"from": "earliest", "dry_run": True},
    "PATCH /api/v1/tables/{topic}": {"freshness": "20s"},
}


@dataclass(frozen=True)
class Route:
    """An operation of the description, with the rule that it declares."""

    method: str
    path: str
    role: Role
    about: str

    @property
    def key(self) -> str:
        return f"{self.method} {self.path}"

    def __str__(self) -> str:
        return self.key


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    settings = load_settings(
        environment={"HEADGATE_AUTH__REQUIRED": "true", "HEADGATE_KAFKA__BOOTSTRAP": "127.0.0.1:1"},
        data=tmp_path_factory.mktemp("matrix") / "data",
    )
    store = Store.open(settings.store_url)
    for topic in (SEEN, HIDDEN):
        store.enable_table(TableSpec(topic))
        output = {"output": {"topic": topic}, "tables": {topic: {}}, "views": {}}
        made = GeneratorSpec("orders", prefix=f"{topic.partition('.')[0]}.")
        Generators(store.engine).start(f"of-{topic}", made.to_dict())
        Statements(store.engine).create(f"of-{topic}", "insert", "INSERT …", {"tables": output})
    yield store
    store.close()


@pytest.fixture(scope="module")
def client(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = load_settings(
        environment={"HEADGATE_AUTH__REQUIRED": "true"}, data=tmp_path_factory.mktemp("server") / "data"
    )
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    app = create_app(runtime, store)
    with TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def routes(client: TestClient, store: Store) -> list[Route]:
    """Every operation of the control API."""
    paths = client.get("/api/v1/openapi.json", headers=login(store, Grant(Role.READER))).json()["paths"]
    return [
        Route(method.upper(), path, Role.parse(rule["role"]), rule["about"])
        for path, methods in paths.items()
        if path.startswith("/api/v1/")
        for method, operation in methods.items()
        for rule in [operation[RULE]]
        if rule["about"] != "open"
    ]


def login(store: Store, *grants: Grant) -> dict[str, str]:
    name = re.sub(r"[^A-Za-z0-9_.@-]", "-", "-".join(map(str, grants)))
    live = {one.name: one for one in Credentials(store.engine).list()}
    if name in live:
        Credentials(store.engine).revoke(name)
    made, secret = Credentials(store.engine).create(name, grants)
    shown = base64.b64encode(f"{made.client_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {shown}"}


def asked(client: TestClient, route: Route, topic: str, headers: dict[str, str]) -> Any:
    """A route's answer about a topic, or about the statement that writes it."""
    named = f"of-{topic}" if route.about == "statement" else topic
    path = (
        re.sub(r"\{(topic|name)\}", named, route.path)
        .replace("{generator}", f"of-{topic}")
        .replace("{query_id}", "none")
        .replace("{other_id}", "none")
        .replace("{request_id}", "none")
    )
    body = BODIES.get(route.key)
    sent = (
        None
        if body is None
        else {key: value.format(topic) if isinstance(value, str) else value for key, value in body.items()}
    )
    return client.request(route.method, path, json=sent, headers=headers)


def test_a_route_without_a_rule_is_refused() -> None:
    router = APIRouter()

    @router.get("/forgotten")
    def forgotten() -> None: ...

    with pytest.raises(AssertionError, match="does not say who may use it"):
        check_declared([router])


def test_one_route_asks_itself_who_it_is(client: TestClient, store: Store) -> None:
    paths = client.get("/api/v1/openapi.json", headers=login(store, Grant(Role.READER))).json()["paths"]
    described = [
        (method, path, operation.get(RULE))
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]
    is_open = [(method, path) for method, path, rule in described if rule and rule["about"] == "open"]
    assert is_open == [("post", "/api/v1/session")]


def test_what_takes_more_than_a_role_has_is_refused(
    client: TestClient, store: Store, routes: list[Route]
) -> None:
    assert len(routes) > 40
    for role in ROLES:
        headers = login(store, Grant(role, "local", "shop.*"))
        for route in routes:
            if route.about == "everything" or (route.role > role and route.about != "body"):
                answer = asked(client, route, SEEN, headers)
                assert (answer.status_code, answer.json()["error"]) == (403, "NotAllowed"), (role, route)


def test_what_one_may_not_see_is_as_if_it_were_not(
    client: TestClient, store: Store, routes: list[Route]
) -> None:
    for role in ROLES:
        headers = login(store, Grant(role, "local", "shop.*"))
        for route in routes:
            if route.about in ("table", "topic", "statement", "generator"):
                hidden, absent = (asked(client, route, topic, headers) for topic in (HIDDEN, ABSENT))
                assert (hidden.status_code, absent.status_code) == (404, 404), (role, route)
                assert hidden.text.replace(HIDDEN, ABSENT) == absent.text, (role, route)


def test_nothing_of_others_is_in_any_list(client: TestClient, store: Store, routes: list[Route]) -> None:
    store.log(HIDDEN, "noted", "payday")
    store.log(f"statement of-{HIDDEN}", "noted", "payday")
    for role in ROLES:
        headers = login(store, Grant(role, "local", "shop.*"))
        paths = [route.path for route in routes if route.about == "seen" and route.method == "GET"]
        assert {"/api/v1/status", "/api/v1/tables", "/api/v1/statements", "/api/v1/events"} <= set(paths)
        for path in [*paths, "/metrics"]:
            # One asks Kafka (see the integration tests), the other does not end (see test_live.py).
            if path not in ("/api/v1/topics", "/api/v1/live"):
                answer = client.get(path, headers=headers)
                assert answer.status_code == 200, (role, path)
                assert HIDDEN not in answer.text, (role, path)
        assert SEEN in client.get("/api/v1/tables", headers=headers).text


def test_what_a_role_may_is_done(client: TestClient, store: Store, routes: list[Route]) -> None:
    """As far as the control state goes: what is asked of Kafka is among the integration tests."""
    for role in ROLES:
        headers = login(store, Grant(role, "local", "shop.*"))
        for route in routes:
            if (
                route.about in ("table", "statement", "generator")
                and route.role <= role
                and route.method != "DELETE"
            ):
                answer = asked(client, route, SEEN, headers)
                assert answer.status_code not in (401, 403, 405), (role, route, answer.text)
                if "{request_id}" not in route.path:
                    assert answer.status_code != 404, (role, route, answer.text)


def test_an_admin_of_everything_may_use_every_route_that_is_no_question_of_topics(
    client: TestClient, store: Store, routes: list[Route]
) -> None:
    headers = login(store, Grant(Role.ADMIN))
    for route in routes:
        if route.about == "everything":
            answer = asked(client, route, SEEN, headers)
            # 503: what needs Kafka was let through, and nobody answers there.
            assert answer.status_code in (200, 404, 422, 503), (route, answer.text)


@pytest.mark.parametrize("role", [Role.READER, Role.WRITER])
def test_nothing_is_made_under_names_that_a_role_does_not_cover(
    client: TestClient, store: Store, routes: list[Route], role: Role
) -> None:
    headers = login(store, Grant(role, "local", "shop.*"))
    makers = ("POST /api/v1/tables", "POST /api/v1/topics", "POST /api/v1/sql", "POST /api/v1/generators")
    assert {route.key for route in routes if route.about == "body"} == set(BODIES) - {
        key for key in BODIES if "{" in key
    }
    for route in routes:
        if route.key in makers:
            for topic in (HIDDEN, ABSENT, *((SEEN,) if role is Role.READER else ())):
                answer = asked(client, route, topic, headers)
                assert (answer.status_code, answer.json()["error"]) == (403, "NotAllowed"), (route, topic)


def test_what_gives_records_up_takes_an_admin_of_the_table(client: TestClient, store: Store) -> None:
    writer, admin = (login(store, Grant(role, "local", "shop.*")) for role in (Role.WRITER, Role.ADMIN))
    for method, path, body in (
        ("DELETE", f"/api/v1/tables/{SEEN}?purge=true", None),
        ("POST", f"/api/v1/tables/{SEEN}/resume", {"accept": "lost"}),
    ):
        assert client.request(method, path, json=body, headers=writer).status_code == 403
    assert store.table(SEEN).desired == "enabled"
    resumed = client.post(f"/api/v1/tables/{SEEN}/resume", json={"accept": "lost"}, headers=admin)
    assert resumed.status_code == 202


def test_dead_letters_take_a_writer_of_their_own_name(client: TestClient, store: Store) -> None:
    headers = login(store, Grant(Role.WRITER, "local", "shop.*"))
    wanted = {"on_error": "log", "dead_letters": "hr.dead"}
    for answer in (
        client.patch(f"/api/v1/tables/{SEEN}", json=wanted, headers=headers),
        client.post("/api/v1/tables", json={"topic": "shop.more", **wanted}, headers=headers),
    ):
        assert (answer.status_code, "hr.dead" in answer.json()["message"]) == (403, True)


def test_whose_dead_letters_a_name_holds_is_not_told(client: TestClient, store: Store) -> None:
    store.enable_table(TableSpec("hr.bonuses", on_error=OnError.LOG, dead_letters="shop.dead"))
    headers = login(store, Grant(Role.WRITER, "local", "shop.*"))
    answer = client.post("/api/v1/tables", json={"topic": "shop.dead"}, headers=headers)
    assert (answer.status_code, "hr." in answer.text) == (400, False)
    store.remove_table("hr.bonuses")


def test_a_credential_that_opens_nothing_here_sees_nothing(client: TestClient, store: Store) -> None:
    headers = login(store, Grant(Role.ADMIN, "sandbox"))
    for path in ("tables", "statements", "events"):
        assert client.get(f"/api/v1/{path}", headers=headers).json() == []
    assert client.get(f"/api/v1/tables/{SEEN}", headers=headers).status_code == 404
