"""Rows from the driver's door: whole, or an error that says whether it may pass."""

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pyarrow as pa
import pytest

from headgate.config import Settings
from headgate.errors import InvalidRequest, ServerUnavailable, TransientError
from headgate.export.rows import LAST_WORD, QueryRows
from headgate.store import Store

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])
ROWS = [{"id": number, "text": "x" * 50} for number in range(5_000)]
COMPLETED = {"op": "end", "state": "Completed", "rows": len(ROWS)}


class Door(HTTPServer):
    """A driver that answers each query with the same bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.answer = b""
        self.asked: list[dict[str, Any]] = []
        self.shown: list[str] = []


class _Asked(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        door: Any = self.server
        door.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        door.shown.append(self.headers["Authorization"])
        self._send(b'{"id": "q1"}')

    def do_GET(self) -> None:
        door: Any = self.server
        assert self.path == "/queries/q1/rows"
        self._send(door.answer)

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def door() -> Iterator[Door]:
    with Door() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def rows(settings: Settings, door: Door) -> Iterator[QueryRows]:
    store = Store.open(settings.store_url)
    store.beat("query", "one", os.getpid(), "ready", {"queries": f"http://127.0.0.1:{door.server_port}"})
    yield QueryRows(store, "token of the door", "key of the catalog", threading.Event())
    store.close()


def stream_of(end: dict[str, Any] | None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        for start in range(0, len(ROWS), 1_000):
            stream.write_batch(pa.RecordBatch.from_pylist(ROWS[start : start + 1_000], schema=SCHEMA))
        if end is not None:
            nothing = pa.RecordBatch.from_pylist([], schema=SCHEMA)
            stream.write_batch(nothing, custom_metadata={LAST_WORD: json.dumps(end).encode()})
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def read(rows: QueryRows) -> list[dict[str, Any]]:
    with rows.batches("SELECT 1", "Europe/Oslo", "export weekly") as (schema, batches):
        assert schema == SCHEMA
        return [row for batch in batches for row in batch.to_pylist()]


def test_all_rows_come_and_the_driver_is_told_whose_rights_they_take(rows: QueryRows, door: Door) -> None:
    door.answer = stream_of(COMPLETED)
    assert read(rows) == ROWS
    (asked,) = door.asked
    assert (asked["kind"], asked["sql"], asked["zone"], asked["form"]) == (
        "lake",
        "SELECT 1",
        "Europe/Oslo",
        "arrow",
    )
    assert (asked["caller"]["name"], asked["caller"]["token"]) == ("export weekly", "key of the catalog")
    assert door.shown == ["Bearer token of the door"]
    assert rows.shape("SELECT 1", "UTC", "export weekly") == SCHEMA


def test_rows_that_end_before_their_end_are_an_error(rows: QueryRows, door: Door) -> None:
    whole = stream_of(COMPLETED)
    for cut in (whole[: len(whole) // 2], stream_of(None), whole[:10], b""):
        door.answer = cut
        with pytest.raises(ServerUnavailable):
            read(rows)
    door.answer = stream_of({**COMPLETED, "state": "Stopped"})
    with pytest.raises(ServerUnavailable, match="stopped"):
        read(rows)


def test_what_spark_does_not_understand_stays_and_what_fails_later_may_pass(
    rows: QueryRows, door: Door
) -> None:
    said = {"op": "error", "error": "InvalidRequest", "remedy": "", "message": "[UNRESOLVED_COLUMN] no `a`"}
    door.answer = stream_of(said)
    with pytest.raises(InvalidRequest, match="UNRESOLVED_COLUMN"):
        rows.shape("SELECT a", "UTC", "export weekly")
    with pytest.raises(TransientError, match="UNRESOLVED_COLUMN"):
        read(rows)
    door.answer = stream_of({**said, "message": "Connection refused"})
    with pytest.raises(TransientError, match="refused"):
        rows.shape("SELECT a", "UTC", "export weekly")


def test_a_driver_that_does_not_come_is_waited_for_no_longer_than_the_process(settings: Settings) -> None:
    store = Store.open(settings.store_url)
    stop = threading.Event()
    stop.set()
    with pytest.raises(ServerUnavailable, match="not ready"):
        QueryRows(store, "", "", stop).shape("SELECT 1", "UTC", "export weekly")
    assert store.process("query").wanted
    store.close()
