"""Queries by API: what is refused before a driver is wanted, and what a driver's door gives is passed on."""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.testclient import TestClient

from headgate.adhoc.app import Door
from headgate.embedded.runtime import Runtime
from headgate.embedded.secrets import secret
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
    for answer in (client.get(f"{QUERIES}/x/rows"), client.delete(f"{QUERIES}/x")):
        assert (answer.status_code, answer.json()["error"]) == (503, "ServerUnavailable")


@pytest.fixture
def seen(runtime: Runtime, store: Store) -> Iterator[list[Any]]:
    """What a door was asked. It knows one query, `one`, and breaks off another, `torn`."""
    asked: list[Any] = []
    app = FastAPI()

    @app.post("/queries", status_code=201)
    async def start(request: Request) -> dict[str, Any]:
        asked.append((request.headers["authorization"], await request.json()))
        return {"id": "one"}

    @app.get("/queries/{name}/rows")
    async def rows(name: str) -> Any:
        if name not in ("one", "torn"):
            told = {"error": "NotFound", "message": f"There is no query '{name}'.", "remedy": ""}
            return JSONResponse(told, 404)

        async def lines() -> Any:
            yield b'{"op":"insert","row":{"n":1}}\n'
            if name == "torn":
                raise OSError("gone")
            yield b'{"op":"end","state":"Completed"}\n'

        return StreamingResponse(lines())

    with Door(app, "127.0.0.1") as door:
        store.beat("query", "it", os.getpid(), "ready")
        assert store.keep("query", "it", "ready", {"queries": door.address})
        yield asked


def test_what_a_driver_gives_is_passed_on(client: TestClient, seen: list[Any], runtime: Runtime) -> None:
    made = client.post(QUERIES, json={"sql": "SELECT n FROM lake.local.a"})
    assert made.status_code == 201
    assert made.json() == {"id": "one", "kind": "lake", "columns": None, "key": None, "warnings": []}
    ((token, asked),) = seen
    assert token == f"Bearer {secret(runtime.data, 'connect')}"
    assert (asked["kind"], asked["sql"]) == ("lake", "SELECT n FROM lake.local.a")
    answer = client.get(f"{QUERIES}/one/rows")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["op"] for line in answer.text.splitlines()] == ["insert", "end"]
    assert client.get(f"{QUERIES}/other/rows").json()["error"] == "NotFound"


def test_a_driver_that_breaks_off_is_an_error_to_its_reader(client: TestClient, seen: list[Any]) -> None:
    lines = [json.loads(line) for line in client.get(f"{QUERIES}/torn/rows").text.splitlines() if line]
    assert [line["op"] for line in lines] == ["insert", "error"]
    assert lines[1]["error"] == "ServerUnavailable"
