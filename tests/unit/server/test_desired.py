"""Desired state over the API, as far as it needs no Kafka."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from headgate.access import Grant, Role
from headgate.access.credentials import Credentials
from headgate.config import Settings
from headgate.storage import Place, Storages
from headgate.store import Store, Worlds

LAKE = {"uri": "s3://bucket/lake", "endpoint": "http://127.0.0.1:1", "region": "eu-central-1"}


def planned(client: TestClient, **body: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/plan", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_plan_is_made_of_yaml_and_of_things_alike(client: TestClient) -> None:
    text = (
        "world: w\nstorage:\n  lake: {uri: 's3://${BUCKET}/lake', "
        "endpoint: 'http://127.0.0.1:1', region: eu-central-1}"
    )
    by_yaml = planned(client, yaml=text, variables={"BUCKET": "bucket"})
    thing = {"kind": "storage", "name": "lake", "spec": LAKE, "at": "the text:3"}
    by_things = planned(client, world="w", resources=[thing])
    assert by_yaml == by_things
    (step,) = by_yaml["steps"]
    assert (step["action"], step["kind"], step["name"], step["at"]) == (
        "create",
        "storage",
        "lake",
        "the text:3",
    )


def test_a_mistake_is_a_400_with_its_place(client: TestClient) -> None:
    answer = client.post("/api/v1/plan", json={"yaml": "storage:\n  lake: {url: x}\n"})
    assert answer.status_code == 400
    assert answer.json()["message"] == "the text:2: nothing is known of 'storage.lake.url'."
    assert answer.json()["remedy"] == "Did you mean 'uri'?"


def test_an_apply_says_where_it_stopped_and_the_next_one_may_begin(client: TestClient, store: Store) -> None:
    body = {"world": "w", "resources": [{"kind": "storage", "name": "lake", "spec": LAKE}]}
    plan = planned(client, **body)
    for _ in range(2):
        answer = client.post("/api/v1/apply", json={**body, "plan": plan["id"]})
        events = [line for line in answer.text.splitlines() if line]
        assert '"op": "begun", "step": 0' in events[0]
        assert '"op": "stopped", "step": 0' in events[-1]
    # It is claimed, as it may have been made by half, and planned again.
    assert [one.world for one in Worlds(store.engine).all()] == ["w"]
    assert planned(client, **body)["steps"] == plan["steps"]


def test_another_plan_than_was_agreed_to_is_refused(client: TestClient) -> None:
    body = {"world": "w", "resources": [{"kind": "storage", "name": "lake", "spec": LAKE}]}
    answer = client.post("/api/v1/apply", json={**body, "plan": "0" * 16})
    assert answer.status_code == 400
    assert "What is there has changed since the plan was made" in answer.json()["message"]


def test_a_world_has_its_addresses_and_what_it_has_made(client: TestClient, store: Store) -> None:
    Worlds(store.engine).claim("topics", "raw", "w", {})
    (world,) = client.get("/api/v1/worlds").json()
    assert world == client.get("/api/v1/worlds/w").json()
    assert (world["world"], world["topics"], world["tables"]) == ("w", ["raw"], [])
    assert world["addresses"]["kafka"]


def test_nothing_is_destroyed_without_a_world(client: TestClient) -> None:
    answer = client.post("/api/v1/plan", json={"destroy": True})
    assert answer.status_code == 400
    assert "There is no world to destroy." in answer.json()["message"]


def test_a_world_that_nobody_knows_is_not_found(client: TestClient) -> None:
    assert client.get("/api/v1/worlds/nowhere").status_code == 404


def test_grants_of_a_credential_are_as_the_file_says_and_nothing_of_it_is_the_worlds(
    client: TestClient, store: Store
) -> None:
    credentials = Credentials(store.engine)
    made, _ = credentials.create("notebook", [Grant(Role.READER)])
    body = {"yaml": "world: w\ncredentials:\n  notebook: {grants: [reader:local:shop.*]}"}
    plan = planned(client, **body)
    answer = client.post("/api/v1/apply", json={**body, "plan": plan["id"]})
    assert '"op": "end"' in answer.text
    found = credentials.find(made.client_id)
    assert found is not None
    assert found.grants == (Grant(Role.READER, "local", "shop.*"),)
    assert store.events("credential notebook", 1)[0]["message"] == "reader:local:shop.*"
    assert planned(client, **body)["steps"] == []
    assert Worlds(store.engine).all() == []


def test_a_secret_that_the_configuration_does_not_have_is_named_before_anything_is_done(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setitem(settings.secrets, "polaris", SecretStr("hunter2"))
    options = "{uri: 'https://lake.example', client_id: me, secret: polarsi}"
    text = f"catalogs:\n  outside:\n    type: rest\n    options: {options}"
    answer = client.post("/api/v1/plan", json={"yaml": text})
    assert answer.status_code == 400
    assert answer.json()["message"] == "the text:2: There is no secret 'polarsi'."
    assert answer.json()["remedy"] == "Did you mean 'polaris'?"
    right = client.post("/api/v1/plan", json={"yaml": text.replace("polarsi", "polaris")})
    assert right.status_code == 200
    assert "hunter2" not in right.text


def test_a_world_tells_its_buckets_and_who_may_look_into_it(client: TestClient, store: Store) -> None:
    worlds = Worlds(store.engine)
    worlds.claim("topics", "raw", "w", {})
    worlds.claim("storage", "lake", "w", {})
    Storages(store.engine).add(Place.checked(name="lake", bucket="bucket", prefix="lake"))
    credentials = Credentials(store.engine)
    reader, _ = credentials.create("reader", [Grant(Role.READER, "local", "r*")])
    credentials.create("other", [Grant(Role.READER, "local", "orders")])
    world = client.get("/api/v1/worlds/w").json()
    assert world["storage"] == [{"name": "lake", "uri": "s3://bucket/lake"}]
    shown = {"name": "reader", "client_id": reader.client_id, "grants": ["reader:local:r*"]}
    assert world["clients"] == [shown]
