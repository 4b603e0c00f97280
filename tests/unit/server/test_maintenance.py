"""Maintenance is asked for, and what cannot be is refused before the engine hears of it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.model import TableSpec
from headgate.store import Store


@pytest.mark.parametrize(
    ("kind", "body", "arguments"),
    [
        ("compact", None, {}),
        ("compact", {"all": True}, {"all": True}),
        ("expire", {"older_than": "0s", "keep_last": 1}, {"older_than": "0s", "keep_last": 1}),
        ("clean", {"older_than": "2h"}, {"older_than": "2h", "force": False}),
        ("clean", {"older_than": "0s", "force": True}, {"older_than": "0s", "force": True}),
        ("erase", {"where": "id = 1"}, {"where": "id = 1"}),
    ],
)
def test_it_is_written_down_for_the_engine(
    client: TestClient, store: Store, kind: str, body: Any, arguments: dict[str, Any]
) -> None:
    store.enable_table(TableSpec("orders"))
    answer = client.post(f"/api/v1/tables/orders/{kind}", json=body)
    assert answer.status_code == 202
    request = store.request(answer.json()["request"])
    assert (request.kind, dict(request.arguments), request.state) == (kind, arguments, "waiting")
    store.answer(request, "done", {"rows": 1})
    # What was to be erased is not kept in the request either.
    assert store.request(request.id).arguments == {}


@pytest.mark.parametrize(
    ("kind", "body", "code", "said"),
    [
        ("expire", {"older_than": "soon"}, 400, "not a duration"),
        ("expire", {"keep_last": 0}, 422, "keep_last"),
        ("clean", {"older_than": "5m"}, 400, "commit under way"),
        ("erase", {}, 422, "where"),
        ("erase", {"where": ""}, 422, "where"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: TestClient, store: Store, kind: str, body: Any, code: int, said: str
) -> None:
    store.enable_table(TableSpec("orders"))
    answer = client.post(f"/api/v1/tables/orders/{kind}", json=body)
    assert answer.status_code == code
    assert said in answer.json()["message"]
    assert store.waiting() == {}


@pytest.mark.parametrize(("desired", "said"), [("suspended", "resume"), ("purged", "being disabled")])
def test_a_table_that_the_engine_leaves_alone(
    client: TestClient, store: Store, desired: str, said: str
) -> None:
    store.enable_table(TableSpec("orders"))
    store.set_desired("orders", desired)
    answer = client.post("/api/v1/tables/orders/compact").json()
    assert said in answer["message"] + answer["remedy"]


def test_a_suspended_table_can_be_verified(client: TestClient, store: Store) -> None:
    store.enable_table(TableSpec("orders"))
    store.set_desired("orders", "suspended")
    answer = client.post("/api/v1/tables/orders/verify", json={"deep": True})
    assert answer.status_code == 202
    assert store.request(answer.json()["request"]).kind == "verify"
    store.set_desired("orders", "purged")
    assert client.post("/api/v1/tables/orders/verify").status_code == 400


def test_a_table_that_is_not_there(client: TestClient) -> None:
    assert client.post("/api/v1/tables/nobody/compact").status_code == 404
