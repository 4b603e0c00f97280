"""The query history by API: one's own queries, states that hold when the driver is gone, and comparisons."""

import os
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.store import Store
from headgate.store.queries import DRIVER_GONE, QueryHistory, QueryRecord, QueryState
from tests.unit.server.test_queries import QUERIES, login, seen

__all__ = ["seen"]

ORDERS = {"table": "local.orders", "snapshot_id": "41", "files": 2, "bytes": 2000}


def put(store: Store, query_id: str, owner: str, at: float, instance: str = "it", **more: Any) -> None:
    history = QueryHistory(store.engine)
    history.begin(QueryRecord(query_id, "lake", "SELECT 1", owner, owner.upper(), instance, started_at=at))
    if more:
        history.end(query_id, QueryState.FINISHED, at + 1, "", more.pop("tables", [ORDERS]), more)


def ids(client: TestClient, headers: dict[str, str] | None = None, **filters: Any) -> list[str]:
    answer = client.get(QUERIES, params=filters, headers=headers)
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()]


def test_one_sees_ones_own_and_an_admin_all(client: TestClient, store: Store) -> None:
    client_id, headers = login(store, "reader")
    put(store, "mine", client_id, 1.0, rows=1)
    put(store, "hers", "ada", 2.0, rows=1)
    assert ids(client) == ["hers", "mine"]
    assert ids(client, headers) == ["mine"]
    assert client.get(f"{QUERIES}/mine", headers=headers).json()["sql"] == "SELECT 1"
    hidden, absent = (client.get(f"{QUERIES}/{one}", headers=headers) for one in ("hers", "none"))
    assert (hidden.status_code, absent.status_code) == (404, 404)
    assert hidden.text.replace("hers", "none") == absent.text
    for pair in ("hers/compare/mine", "mine/compare/hers"):
        assert client.get(f"{QUERIES}/{pair}", headers=headers).status_code == 404
    assert client.delete(f"{QUERIES}/hers", headers=headers).status_code == 404


def test_queries_are_listed_page_by_page(client: TestClient, store: Store) -> None:
    for number in range(5):
        put(store, f"q{number}", "ada", float(number // 2), rows=number)
    first = ids(client, limit=2)
    rest = ids(client, limit=10, before=first[-1])
    assert [*first, *rest] == ["q4", "q3", "q2", "q1", "q0"]
    assert client.get(QUERIES, params={"before": "none"}).status_code == 404


def test_a_query_of_a_driver_that_is_gone_does_not_run(client: TestClient, store: Store) -> None:
    put(store, "lost", "ada", 1.0, instance="killed")
    (one,) = client.get(QUERIES).json()
    assert (one["state"], one["error"]) == ("failed", DRIVER_GONE)
    assert (ids(client, state="running"), ids(client, state="failed")) == ([], ["lost"])
    refused = client.delete(f"{QUERIES}/lost")
    assert (refused.status_code, "failed" in refused.json()["message"]) == (400, True)


def test_of_a_query_that_runs_the_rows_so_far_are_told(
    client: TestClient, store: Store, seen: list[Any]
) -> None:
    put(store, "one", "ada", 1.0)
    put(store, "other", "ada", 2.0, instance="an earlier one")
    shown = {one["id"]: (one["state"], one["rows"]) for one in client.get(QUERIES).json()}
    assert shown == {"one": ("running", 7), "other": ("failed", None)}
    assert client.delete(f"{QUERIES}/one").status_code == 204
    assert seen == [("delete", None)]
    store.beat("query", "it", os.getpid(), "stopped")
    assert client.get(f"{QUERIES}/one").json()["state"] == "failed"


def test_two_queries_side_by_side(client: TestClient, store: Store) -> None:
    put(store, "slow", "ada", 1.0, rows=10, bytes=4000, files=0, seconds=2.0)
    put(store, "fast", "ada", 2.0, rows=10, bytes=1000, files=3, seconds=0.5, tables=[])
    compared = client.get(f"{QUERIES}/slow/compare/fast").json()
    assert (compared["same_sql"], compared["same_snapshots"]) == (True, False)
    figures = compared["figures"]
    assert figures["bytes"] == {"a": 4000, "b": 1000, "difference": -3000, "ratio": 0.25}
    assert figures["seconds"] == {"a": 2.0, "b": 0.5, "difference": -1.5, "ratio": 0.25}
    assert figures["files"] == {"a": 0, "b": 3, "difference": 3, "ratio": None}
    assert figures["files_skipped"] == {"a": None, "b": None, "difference": None, "ratio": None}


@pytest.mark.parametrize("state", ["gone", ""])
def test_an_unknown_state_is_refused(client: TestClient, state: str) -> None:
    assert client.get(QUERIES, params={"state": state}).status_code == 422
