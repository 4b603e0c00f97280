"""Queries by API: what is refused before a driver is wanted, and what a driver's door gives is passed on."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.testclient import TestClient

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Principal
from headgate.adhoc.app import Door
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import QUERY_KEY, secret
from headgate.errors import NotAuthorized
from headgate.model import TableSpec
from headgate.server import standing
from headgate.server.api.records import bounded
from headgate.server.app import create_app
from headgate.statements.asking import Caller
from headgate.store import Store

QUERIES = "/api/v1/queries"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"sql": "SHOW TABLES"}, "A query is a SELECT"),
        ({"sql": "SELECT 1; SELECT 2"}, "Expected one statement"),
        ({"sql": "SELECT * FROM lake.local.a, b"}, "not read together"),
        ({"sql": "SELECT * FROM lake.local.a", "settings": {"sql.odd": "1"}}, "sql.odd"),
        ({"sql": "SELECT * FROM lake.local.a", "settings": {"sql.snapshot.mode": "x"}}, "cannot be 'x'"),
    ],
)
def test_what_is_refused_starts_nothing(
    client: TestClient, store: Store, body: dict[str, Any], said: str
) -> None:
    answer = client.post(QUERIES, json=body)
    assert answer.status_code == 400
    assert said in f"{answer.json()['message']} {answer.json()['remedy']}"
    assert not store.process("query").wanted


def test_without_a_driver_there_is_nothing(client: TestClient) -> None:
    assert client.get(QUERIES).json() == []
    answer = client.get(f"{QUERIES}/x/rows")
    assert (answer.status_code, answer.json()["error"]) == (503, "ServerUnavailable")
    for answer in (client.get(f"{QUERIES}/x"), client.delete(f"{QUERIES}/x")):
        assert (answer.status_code, answer.json()["error"]) == (404, "NotFound")


def test_lake_of_a_catalog_that_knows_no_grants_is_for_who_reads_everything(tmp_path: Path) -> None:
    """It is read with Headgate's own rights, so nothing would hold a narrow grant there."""
    settings = load_settings(
        environment={"HEADGATE_AUTH__REQUIRED": "true", "HEADGATE_CATALOG__URI": "http://127.0.0.1:1"},
        data=tmp_path / "data",
    )
    store = Store.open(settings.store_url)
    app = create_app(Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1), store)
    made, key = Credentials(store.engine).create("narrow", [Grant.parse("reader:local:shop.*")])
    with TestClient(app, base_url="http://127.0.0.1:8080") as http:
        http.auth = (made.client_id, key)
        for sql, lake in (("SELECT * FROM lake.local.`hr.salaries`", False), ("SELECT 1", True)):
            answer = http.post(QUERIES, json={"sql": sql, "lake": lake})
            assert (answer.status_code, answer.json()["error"]) == (403, "NotAllowed")
    assert not store.process("query").wanted
    store.close()


@pytest.fixture
def seen(runtime: Runtime, store: Store) -> Iterator[list[Any]]:
    """What a door was asked. It knows one query, `one`, and breaks off another, `torn`."""
    asked: list[Any] = []
    app = FastAPI()

    @app.post("/queries", status_code=201)
    async def start(request: Request) -> dict[str, Any]:
        asked.append((request.headers["authorization"], await request.json()))
        return {"id": "one"}

    @app.get("/queries")
    async def listed() -> list[dict[str, Any]]:
        return [{"id": "one", "rows": 7}]

    @app.delete("/queries/{name}", status_code=204)
    async def cancel(name: str, owner: str | None = None) -> None:
        asked.append(("delete", owner))

    @app.get("/queries/{name}/rows")
    async def rows(name: str, owner: str | None = None) -> Any:
        if name == "one":
            asked.append(("rows", owner))
        if name not in ("one", "torn", "live"):
            told = {"error": "NotFound", "message": f"There is no query '{name}'.", "remedy": ""}
            return JSONResponse(told, 404)

        async def lines() -> Any:
            yield b'{"op":"insert","row":{"n":1}}\n'
            if name == "live":
                Credentials(store.engine).revoke("leaving")
                await anyio.sleep(0.1)
                yield b'{"op":"insert","row":{"n":2}}\n'
            if name == "torn":
                raise OSError("gone")
            yield b'{"op":"end","state":"Completed"}\n'

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    with Door(app, "127.0.0.1") as door:
        store.beat("query", "it", os.getpid(), "ready")
        assert store.keep("query", "it", "ready", {"queries": door.address})
        yield asked


def test_what_a_driver_gives_is_passed_on(client: TestClient, seen: list[Any], runtime: Runtime) -> None:
    made = client.post(QUERIES, json={"sql": "SELECT n FROM lake.local.a"})
    assert made.status_code == 201
    assert made.json() == {"id": "one", "kind": "lake", "columns": None, "key": None, "warnings": []}
    token, asked = seen[0]
    assert token == f"Bearer {secret(runtime.data, QUERY_KEY)}"
    assert (asked["kind"], asked["sql"]) == ("lake", "SELECT n FROM lake.local.a")
    answer = client.get(f"{QUERIES}/one/rows")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["op"] for line in answer.text.splitlines()] == ["insert", "end"]
    assert client.get(f"{QUERIES}/other/rows").json()["error"] == "NotFound"


def login(store: Store, *grants: str) -> tuple[str, dict[str, str]]:
    made, key = Credentials(store.engine).create("notebook", [Grant.parse(text) for text in grants])
    shown = base64.b64encode(f"{made.client_id}:{key}".encode()).decode()
    return made.client_id, {"Authorization": f"Basic {shown}"}


@pytest.mark.parametrize(
    ("grants", "section"),
    [(["reader:local:shop.*"], "reader"), (["reader", "writer:sandbox"], "writer"), (["admin:x"], "admin")],
)
def test_the_driver_is_told_who_asks_and_how_much_they_get(
    client: TestClient, seen: list[Any], store: Store, runtime: Runtime, grants: list[str], section: str
) -> None:
    client_id, headers = login(store, *grants)
    body = {"sql": "SELECT n FROM lake.local.a"}
    assert client.post(QUERIES, json=body, headers=headers).status_code == 201
    caller = seen[0][1]["caller"]
    token = caller.pop("token")
    most = getattr(runtime.settings.limits, section)
    assert caller == {
        "name": "'notebook'",
        "id": client_id,
        "rows": most.rows,
        "bytes": most.bytes,
        "seconds": most.seconds,
        "concurrent": most.concurrent,
        "scanned": most.scanned,
        "limits": f"limits.{section}",
    }
    assert token not in client.get("/api/v1/audit").text
    # It is theirs: it opens what they may see, until they are revoked.
    shown = {"Authorization": f"Bearer {token}"}
    assert client.get("/iceberg/v1/namespaces", headers=shown).status_code in (200, 404)
    assert headers["Authorization"].split()[1] not in json.dumps(seen[0][1])


def test_the_lake_is_asked_without_a_word_of_topics(client: TestClient, seen: list[Any]) -> None:
    made = client.post(QUERIES, json={"sql": "SELECT * FROM `shop.payments.snapshots`", "lake": True})
    assert (made.status_code, made.json()["kind"]) == (201, "lake")
    assert seen[0][1]["sql"] == "SELECT * FROM `shop.payments.snapshots`"


def test_a_comparison_takes_who_reads_the_table(client: TestClient, seen: list[Any], store: Store) -> None:
    for topic in ("shop.orders", "hr.salaries"):
        store.enable_table(TableSpec(topic))
    _, headers = login(store, "reader:local:shop.*")
    asked = client.post(f"{QUERIES}/changes", json={"topic": "shop.orders", "start": "1"}, headers=headers)
    assert (asked.status_code, asked.json()["kind"]) == (201, "changes")
    assert seen[0][1]["changes"] == {
        "topic": "shop.orders",
        "start": "1",
        "end": None,
        "summary": False,
        "key": [],
    }
    for topic in ("hr.salaries", "hr.nobody"):
        hidden = client.post(f"{QUERIES}/changes", json={"topic": topic}, headers=headers)
        assert hidden.status_code == 404
    assert len(seen) == 1


def test_queries_of_others_are_neither_read_nor_stopped(
    client: TestClient, seen: list[Any], store: Store
) -> None:
    """The driver knows whose they are; the server says who asks."""
    client_id, headers = login(store, "reader")
    client.get(f"{QUERIES}/one/rows", headers=headers)
    client.delete(f"{QUERIES}/one", headers=headers)
    client.get(f"{QUERIES}/one/rows")
    assert seen == [("rows", client_id), ("delete", client_id), ("rows", None)]


def test_a_driver_that_breaks_off_is_an_error_to_its_reader(client: TestClient, seen: list[Any]) -> None:
    lines = [json.loads(line) for line in client.get(f"{QUERIES}/torn/rows").text.splitlines() if line]
    assert [line["op"] for line in lines] == ["insert", "error"]
    assert lines[1]["error"] == "ServerUnavailable"


def test_rows_end_when_the_credential_of_who_reads_is_revoked(
    client: TestClient, seen: list[Any], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live query has no end of its own."""
    monkeypatch.setattr(standing, "LOOK_SECONDS", 0.05)
    made, key = Credentials(store.engine).create("leaving", [Grant.parse("reader:local:*")])
    shown = base64.b64encode(f"{made.client_id}:{key}".encode()).decode()
    answer = client.get(f"{QUERIES}/live/rows", headers={"Authorization": f"Basic {shown}"})
    first, last = [json.loads(line) for line in answer.text.splitlines() if line]
    assert first == {"op": "insert", "row": {"n": 1}}
    assert (last["op"], last["error"], "revoked" in last["message"]) == ("error", "NotAuthorized", True)


def test_records_end_when_the_credential_of_who_reads_is_revoked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "LOOK_SECONDS", 0.0)
    credentials = Credentials(store.engine)
    made, _ = credentials.create("leaving", [Grant.parse("reader:local:*")])

    def records() -> Iterator[dict[str, Any]]:
        yield {"n": 1}
        credentials.revoke("leaving")
        yield {"n": 2}

    def stands(caller: Principal) -> None:
        if credentials.is_revoked(caller.credential):
            raise NotAuthorized("The credential was revoked.")

    still = standing.Standing(stands, made.principal)
    lines = [json.loads(line) for line in bounded(records(), Caller("'leaving'", made.client_id), still)]
    assert [line["op"] for line in lines] == ["insert", "error"]
    assert lines[-1]["error"] == "NotAuthorized"
