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
    asked_by = request.asked_by
    assert asked_by
    assert dict(request.arguments) == {**arguments, "asked_by": asked_by}
    assert (request.kind, request.state) == (kind, "waiting")
    store.answer(request, "done", {"rows": 1})
    assert store.events("orders")[0]["message"] == f"rows: 1, asked by: {asked_by}"
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


def asked(client: TestClient, store: Store, method: str, path: str, body: Any = None) -> tuple[str, Any]:
    """The kind and the arguments of the request that it becomes; it says whose it is too."""
    if not store.tables():
        store.enable_table(TableSpec("orders"))
    answer = client.request(method, f"/api/v1/tables/orders/{path}", json=body)
    assert answer.status_code == 202, answer.json()
    request = store.request(answer.json()["request"])
    assert request.asked_by
    return request.kind, {key: said for key, said in request.arguments.items() if key != "asked_by"}


def test_a_rollback_is_planned_or_asked_for(client: TestClient, store: Store) -> None:
    kind, said = asked(client, store, "POST", "rollback", {"to": "7", "dry_run": True})
    assert (kind, said) == ("plan-rollback", {"to": "7", "dry_run": True})
    wanted = {"to": "7", "records": "keep-out"}
    assert asked(client, store, "POST", "rollback", wanted) == ("rollback", wanted | {"dry_run": False})


def test_a_rollback_must_say_what_becomes_of_the_records(client: TestClient, store: Store) -> None:
    store.enable_table(TableSpec("orders"))
    answer = client.post("/api/v1/tables/orders/rollback", json={"to": "7"})
    assert answer.status_code == 400
    assert "keep-out" in answer.json()["remedy"]
    assert client.post("/api/v1/tables/orders/rollback", json={"to": "7", "records": "x"}).status_code == 422
    assert store.waiting() == {}


def test_tags_are_made_and_removed(client: TestClient, store: Store) -> None:
    body = {"name": "end-of-day", "snapshot": "7", "keep": "30d"}
    assert asked(client, store, "POST", "tags", body) == ("tag", body)
    assert asked(client, store, "DELETE", "tags/end-of-day") == ("untag", {"name": "end-of-day"})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "main"}, "the table's own"),
        ({"name": "headgate-position"}, "the table's own"),
        ({"name": "123"}, "cannot be the name of a tag"),
        ({"name": "a/b"}, "cannot be the name of a tag"),
        ({"name": "x", "keep": "soon"}, "not a duration"),
    ],
)
def test_what_cannot_be_a_tag_is_refused(
    client: TestClient, store: Store, body: dict[str, Any], said: str
) -> None:
    store.enable_table(TableSpec("orders"))
    answer = client.post("/api/v1/tables/orders/tags", json=body)
    assert answer.status_code == 400
    assert said in answer.json()["message"]
    assert store.waiting() == {}
