"""Bodies that are too long, or nest too deep, are refused with the name of the setting."""

import time

import pytest
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.catalog.oauth import token_router
from headgate.config import Limits, Settings
from headgate.embedded.runtime import Runtime
from headgate.server.app import create_app
from headgate.server.doors import gate_of
from headgate.server.limits import depth_of
from headgate.store import Store
from tests.support.peers import PeerOf

LIMITS = Limits()


@pytest.mark.parametrize("path", ["/api/v1/sql", "/registry/subjects/a/versions", "/iceberg/v1/namespaces"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long(client: TestClient, path: str, chunked: bool) -> None:
    piece = b"x" * 65_536
    pieces = [piece] * (LIMITS.body_bytes // len(piece) + 1)
    answer = client.post(path, content=iter(pieces) if chunked else b"".join(pieces))
    assert answer.status_code == 413
    assert "limits.body_bytes" in answer.text


@pytest.mark.parametrize(
    ("body", "is_refused"),
    [
        (b'{"sql": ' + b"[" * 200 + b"]" * 200 + b"}", True),
        (b'{"sql": ' + b'{"a":' * 100_000, True),
        (b'{"sql": "' + b"[" * 5000 + b'"}', False),
        (b'{"sql": "\\"' + b"[" * 5000 + b'"}', False),
        (b'{"sql": ' + b"[]," * 5000 + b"1}", False),
    ],
)
def test_a_body_that_nests_too_deep(client: TestClient, body: bytes, is_refused: bool) -> None:
    answer = client.post("/api/v1/sql", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code == 413) is is_refused
    assert ("limits.json_depth" in answer.text) is is_refused
    assert answer.status_code < 500


def test_brackets_in_strings_are_no_depth() -> None:
    assert depth_of(b'[{"a]": "[[["}, []]') == 2
    assert depth_of(b"]]]]") <= 0
    assert depth_of(b"") == 0
    assert depth_of(b'["[[[\\') == 1, "a string without its end"


def test_depth_of_a_body_is_known_at_once_whatever_the_body_is(client: TestClient) -> None:
    """Who has no credential may send these: the catalog reads a body before it asks who it is from."""
    for body in (b'"\\', b'"', b"[],", b'"a', b"\\"):
        hostile = b"[" * LIMITS.json_depth + b"{" + body * (LIMITS.body_bytes // len(body) // 2)
        started = time.monotonic()
        answer = client.post("/iceberg/v1/namespaces", content=hostile)
        assert time.monotonic() - started < 20, body
        assert answer.status_code == 413


@pytest.mark.parametrize("chunked", [False, True])
def test_long_body_of_a_stranger_is_not_read(client: TestClient, chunked: bool) -> None:
    client.app_state[PEER] = PeerOf(12_345)
    pieces = [b"x" * 65_536] * 2
    answer = client.post("/iceberg/v1/namespaces", content=iter(pieces) if chunked else b"".join(pieces))
    assert answer.status_code == 401
    assert answer.json()["error"]["type"] == "NotAuthorizedException"


@pytest.mark.parametrize("path", ["/healthz", "/sign-in", "/", "/assets/a.js", "/exports/files/a"])
def test_long_body_to_what_is_open_is_not_read(client: TestClient, path: str) -> None:
    """Nobody is asked there who they are, and nothing takes a body."""
    client.app_state[PEER] = PeerOf(12_345)
    for content in (b"x" * 70_000, iter([b"x"])):
        answer = client.request("GET", path, content=content)
        assert (answer.status_code, answer.json()["error"]) == (413, "LimitReached")


@pytest.mark.parametrize("chunked", [False, True])
def test_form_that_asks_for_a_token_is_short(settings: Settings, chunked: bool) -> None:
    """It comes of whoever asks, and is not what the limits of others are for."""
    runtime = Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)
    store = Store.open(settings.store_url)
    gate = gate_of(runtime, store)
    app = create_app(runtime, store, mounts={"/iceberg": token_router(gate)}, gate=gate)
    form = b"grant_type=client_credentials&client_id=x&client_secret="
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        for length, status in ((100, 401), (70_000, 413)):
            sent = form + b"x" * length
            content = iter([sent[:50], sent[50:]]) if chunked else sent
            kind = {"Content-Type": "application/x-www-form-urlencoded"}
            answer = client.post("/iceberg/v1/oauth/tokens", content=content, headers=kind)
            assert (answer.status_code, "error_description" in answer.json()) == (status, True)
    store.close()


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        (r"\ud893", True),
        (r"\uDC93", True),
        (r"\udf93\ud893", True),
        (r"\ud893\ud893\udf93", True),
        (r"\\\ud893", True),
        (r"\ud893\udf93", False),
        (r"\\ud893", False),
        (r"\u00e9 \n", False),
    ],
)
def test_half_of_a_character_is_refused(client: TestClient, text: str, is_refused: bool) -> None:
    """No database takes it: a list that holds one could not be shown any more."""
    grants = f'{{"name": "odd", "role": "reader", "table": "{text}"}}'.encode()
    for path in ("/api/v1/credentials", "/registry/subjects/a/versions", "/iceberg/v1/namespaces"):
        answer = client.post(path, content=grants, headers={"Content-Type": "application/json"})
        assert ("half of a character" in answer.text) is is_refused, (path, answer.text)
        assert (answer.status_code == 400) is is_refused or path != "/api/v1/credentials", answer.text
    assert client.get("/api/v1/credentials").status_code == 200


def test_a_body_at_the_limit_arrives_whole(client: TestClient) -> None:
    text = "SELECT '" + "x" * 900_000 + "'"
    answer = client.post("/api/v1/sql", json={"sql": text})
    assert answer.status_code != 413
