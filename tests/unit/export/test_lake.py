"""Tags in the catalog: set once, whatever is answered; not set on what is gone."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import unquote

import pytest

from headgate.errors import CatalogUnavailable, InvalidRequest, NotFound, TransientError
from headgate.export import lake
from headgate.export.lake import CatalogTables
from headgate.export.sql import TableName

SALES, OTHER = TableName(("local",), "sales"), TableName(("local",), "other")
TAG = "headgate-export-0123456789abcdef"
OLD_SECONDS = 90_000


class Catalog(HTTPServer):
    """One table; `answers` are given to commits, in turn, after they took effect or instead of it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        made = round((time.time() - OLD_SECONDS) * 1000)
        self.table: dict[str, Any] = {
            "table-uuid": "u1",
            "current-snapshot-id": 2**62,
            "snapshots": [{"snapshot-id": 2**62, "timestamp-ms": made}],
            "refs": {},
        }
        self.answers: list[tuple[bool, int]] = []
        self.code = 200

    def commit(self, body: dict[str, Any]) -> int:
        takes_effect, code = self.answers.pop(0) if self.answers else (True, 200)
        (update,) = body["updates"]
        held = self.table["refs"].get(update["ref-name"])
        asserted = body["requirements"][1]["snapshot-id"]
        if asserted != (None if held is None else held["snapshot-id"]):
            return 409
        if takes_effect and update["action"] == "set-snapshot-ref":
            self.table["refs"][update["ref-name"]] = update
        elif takes_effect:
            del self.table["refs"][update["ref-name"]]
        return code


class _Asked(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        catalog: Any = self.server
        assert self.headers["Authorization"] == "Bearer key"
        is_there = unquote(self.path) == "/v1/namespaces/local/tables/sales"
        self._send(catalog.code if is_there else 404, {"metadata": catalog.table})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        catalog: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(catalog.commit(body), {"error": {"message": "no"}})

    def _send(self, code: int, body: dict[str, Any]) -> None:
        self.send_response(code)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    monkeypatch.setattr(lake, "LOOK_SECONDS", 0.001)
    with Catalog() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def tables(catalog: Catalog) -> CatalogTables:
    return CatalogTables(f"http://127.0.0.1:{catalog.server_port}/", "key")


def test_a_tag_holds_a_snapshot_for_so_long_from_now(catalog: Catalog, tables: CatalogTables) -> None:
    snapshot = tables.snapshot(SALES)
    assert snapshot == 2**62
    assert tables.hold(SALES, TAG, snapshot, 3_600)
    set_by = catalog.table["refs"][TAG]
    # Its age counts from when the snapshot was made.
    assert 3_590 < set_by["max-ref-age-ms"] / 1000 - OLD_SECONDS < 3_700
    assert tables.hold(SALES, TAG, snapshot, 3_600)
    assert not tables.hold(SALES, TAG, 17, 3_600)
    tables.release(SALES, TAG)
    tables.release(SALES, TAG)
    assert catalog.table["refs"] == {}


@pytest.mark.parametrize(
    "answers", [[(True, 503)], [(False, 503)], [(False, 409)], [(False, 400), (True, 500)]]
)
def test_what_became_of_a_commit_is_seen_at_the_next_look(
    catalog: Catalog, tables: CatalogTables, answers: list[tuple[bool, int]]
) -> None:
    catalog.answers = list(answers)
    assert tables.hold(SALES, TAG, 2**62, 60)
    assert set(catalog.table["refs"]) == {TAG}
    catalog.answers = list(answers)
    tables.release(SALES, TAG)
    assert catalog.table["refs"] == {}


def test_what_cannot_be_held_is_an_error(catalog: Catalog, tables: CatalogTables) -> None:
    assert not tables.hold(SALES, TAG, 4, 60)
    catalog.answers = [(False, 403)]
    with pytest.raises(InvalidRequest, match="takes no tag"):
        tables.hold(SALES, TAG, 2**62, 60)
    catalog.answers = [(False, 503)] * 5
    with pytest.raises(TransientError, match="does not take the tag"):
        tables.hold(SALES, TAG, 2**62, 60)
    with pytest.raises(NotFound, match=r"no table 'local\.other'"):
        tables.snapshot(OTHER)
    tables.release(OTHER, TAG)
    catalog.table["current-snapshot-id"] = None
    with pytest.raises(TransientError, match="no rows yet"):
        tables.snapshot(SALES)


def test_a_catalog_that_does_not_know_is_not_taken_for_one_that_has_no_table(
    catalog: Catalog, tables: CatalogTables
) -> None:
    assert (tables.exists(SALES), tables.exists(OTHER)) == (True, False)
    catalog.code = 503
    with pytest.raises(CatalogUnavailable):
        tables.exists(SALES)
