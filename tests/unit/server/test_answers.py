"""The description of the API has the shape of each answer, and answers are held against it."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.model import TableSpec
from headgate.server import overview
from headgate.store import Store
from scripts.openapi import description
from tests.support.answers import NotAsDescribed

# Streams, and files of text.
OF_LINES = {"/api/v1/apply", "/api/v1/queries/{query_id}/rows", "/api/v1/topics/{name}/records"}
EVENTS = {"/api/v1/topics/{name}/messages/live", "/api/v1/live"}


def test_every_answer_has_a_shape() -> None:
    found = description()
    without = [
        f"{method} {path}"
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
        for code, answer in operation["responses"].items()
        if code.startswith("2") and code != "204" and path not in OF_LINES | EVENTS
        if "$ref" not in json.dumps(answer.get("content", {}).get("application/json", {}))
        # Documents of others: IAM's policies, files of desired state, and files of exports.
        and not path.endswith(("/policy", "/dump", "/file"))
    ]
    assert without == []


def test_the_description_is_the_same_each_time() -> None:
    assert json.dumps(description(), sort_keys=True) == json.dumps(description(), sort_keys=True)


def test_a_shape_is_all_that_stands_beside_a_reference() -> None:
    def check(node: Any) -> None:
        if isinstance(node, dict):
            assert "$ref" not in node or len(node) == 1, node
            for inner in node.values():
                check(inner)
        elif isinstance(node, list):
            for inner in node:
                check(inner)

    for operations in description()["paths"].values():
        for operation in operations.values():
            check(operation["responses"])


@pytest.mark.parametrize("change", [{"surprise": 1}, {"lag": "none"}, {"state": "Confused"}])
def test_an_answer_that_drifts_from_its_shape_fails_the_test_that_reads_it(
    client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    store.enable_table(TableSpec("orders"))
    assert client.get("/api/v1/tables").json()[0]["topic"] == "orders"
    table = overview.table
    monkeypatch.setattr(overview, "table", lambda record: table(record) | change)
    with pytest.raises(NotAsDescribed, match="GET /api/v1/tables answered 200 otherwise than described"):
        client.get("/api/v1/tables")
