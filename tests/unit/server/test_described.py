"""Values of all kinds for every route of the API's description, as each role: answered, never with a 500."""

import base64
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, cast

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.store import Statements, Store

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Of each route by role and way.
EXAMPLES = 25 if SOAK else 1
# What fits the description, what does not, and what does about things that are there.
FITTING, UNFITTING, KNOWN = "fitting", "unfitting", "known"
GRANTS = {
    "stranger": "admin:elsewhere:*",
    "reader": "reader:local:shop.*",
    "writer": "writer:local:shop.*",
    "admin": "admin:local:shop.*",
    "admin-of-all": "admin",
}
TOPIC, STATEMENT = "shop.orders", "of-orders"
ROOT = "http://127.0.0.1:8080"
# They wait for a driver, or ask a store at an address of the values' choice.
WAITING = {("post", "/api/v1/queries/changes"), ("post", "/api/v1/queries"), ("post", "/api/v1/storage")}
# Each failure counts, and in the end this address gets in no more.
COUNTING = {("post", "/api/v1/session")}
ENDLESS = {("get", "/api/v1/live")}
# Neither Kafka nor a driver is here, and the answer says so.
AWAY = 503


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('described') / 'control.db'}")
    yield store
    store.close()


@pytest.fixture(scope="module")
def client(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = load_settings(
        environment={"HEADGATE_AUTH__REQUIRED": "true"}, data=tmp_path_factory.mktemp("server") / "data"
    )
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    with pytest.MonkeyPatch.context() as patch:
        # Nobody is there to be waited for.
        for module in ("headgate.server.app", "headgate.server.api.records"):
            patch.setattr(f"{module}.Topics", partial(Topics, timeout=0.1))
            patch.setattr(f"{module}.Offsets", partial(Offsets, timeout=0.1))
        app = create_app(runtime, store)
        with TestClient(app, base_url=ROOT, raise_server_exceptions=False) as client:
            yield client


def login(store: Store, role: str) -> dict[str, str]:
    made, secret = Credentials(store.engine).create(role, [Grant.parse(GRANTS[role])])
    shown = base64.b64encode(f"{made.client_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {shown}"}


def put_back(store: Store) -> None:
    """The table and the statement, as they were before requests were made."""
    for table in store.tables():
        store.remove_table(table.spec.topic)
    store.enable_table(TableSpec(TOPIC))
    statements = Statements(store.engine)
    for record in statements.all():
        statements.remove(record.id)
    output = {"output": {"topic": TOPIC}, "tables": {TOPIC: {}}, "views": {}}
    statements.create(STATEMENT, "insert", "INSERT …", {"tables": output})


def cases(operation: Any, way: str) -> Any:
    if way != KNOWN:
        mode = GenerationMode.NEGATIVE if way == UNFITTING else GenerationMode.POSITIVE
        return operation.as_strategy(generation_mode=mode)
    named = {"topic": TOPIC, "name": STATEMENT if "statements" in operation.path else TOPIC}
    parts = {part.name: named.get(part.name, "1") for part in operation.path_parameters}
    return operation.as_strategy(path_parameters=parts)


def ways(operation: Any) -> Iterator[str]:
    yield FITTING
    if operation.path_parameters:
        yield KNOWN
    if operation.body or operation.query:
        yield UNFITTING


def send(client: TestClient, case: Any, headers: dict[str, str]) -> Any:
    sent = case.as_transport_kwargs(base_url=ROOT)
    content = {"json": sent["json"]} if "json" in sent else {"content": sent.get("data")}
    flat: list[tuple[str, Any]] = [
        (str(name), str(value))
        for name, values in (sent["params"] or {}).items()
        for value in (values if isinstance(values, list) else [values])
    ]
    kind = {name: value for name, value in sent["headers"].items() if name.lower() == "content-type"}
    return client.request(sent["method"], sent["url"], params=flat, headers={**kind, **headers}, **content)


def ask_each(client: TestClient, operation: Any, way: str, headers: dict[str, str]) -> int:
    """How many requests were made; all were answered."""
    asked = 0

    @given(case=cases(operation, way))
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        nonlocal asked
        answer = send(client, case, headers)
        asked += 1
        assert answer.status_code < 500 or answer.status_code == AWAY, (case.as_curl_command(), answer.text)

    # Of the few that were drawn none may be what was asked for.
    with suppress(Unsatisfiable):
        ask()
    return asked


@pytest.mark.parametrize("role", GRANTS)
def test_whatever_is_asked_is_answered_without_a_500(client: TestClient, store: Store, role: str) -> None:
    headers = login(store, role)
    description = client.get("/api/v1/openapi.json", headers=headers).json()
    asked: list[str] = []
    for result in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = cast(Any, result).ok()
        if (
            not operation.path.startswith("/api/v1/")
            or (operation.method, operation.path) in WAITING | COUNTING | ENDLESS
        ):
            continue
        put_back(store)
        for way in ways(operation):
            asked += [f"{operation.label} {way}"] * ask_each(client, operation, way, headers)
    assert len({name.rpartition(" ")[0] for name in asked}) > 40
    assert len([name for name in asked if name.endswith(f" {UNFITTING}")]) > 10
