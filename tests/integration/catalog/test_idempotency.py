"""Requests sent twice under one Idempotency-Key act once, whatever happens in between."""

import shutil
import threading
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate.jvm import Jvm
from tests.integration.catalog.raw import SCHEMA, RawTable, added_id, set_properties
from tests.integration.catalog.serving import Service


def new_key() -> str:
    return str(uuid.uuid4())


def test_keys_are_advertised(service: Service) -> None:
    assert service.get("/config")["idempotency-key-lifetime"] == "PT24H"


def test_a_commit_is_applied_once(table: RawTable) -> None:
    table.create()
    key, body = new_key(), table.append()
    first = table.commit(body, idempotency_key=key)
    assert table.commit(body, idempotency_key=key) == first
    assert len(table.history()) == 1


def test_a_commit_is_remembered_when_its_metadata_file_is_gone(table: RawTable) -> None:
    table.create(
        **{
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        }
    )
    key, body = new_key(), table.append()
    table.commit(body, idempotency_key=key)
    for number in range(3):
        table.commit(set_properties(n=str(number)))
    assert table.commit(body, idempotency_key=key)["metadata"] == table.metadata()
    assert len(table.history()) == 1


def test_an_applied_commit_is_never_a_refusal_even_when_the_table_is_gone(table: RawTable) -> None:
    table.create()
    key, body = new_key(), table.append()
    table.commit(body, idempotency_key=key)
    table.service.http.delete(table.path).raise_for_status()
    assert table.commit(body, idempotency_key=key)["metadata"]["current-snapshot-id"] == added_id(body)
    shutil.rmtree(table.service.warehouse / "db" / table.name)
    assert table.commit(body, 500, idempotency_key=key)["error"]["type"] == "CommitStateUnknownException"


def test_a_key_is_for_one_request(table: RawTable) -> None:
    table.create()
    key = new_key()
    table.commit(set_properties(a="1"), idempotency_key=key)
    error = table.commit(set_properties(a="2"), 422, idempotency_key=key)["error"]
    assert error["type"] == "UnprocessableEntityException"
    assert table.metadata()["properties"]["a"] == "1"
    assert table.commit(set_properties(a="3"), 400, idempotency_key="not-a-uuid")["error"]["code"] == 400


def test_a_refused_commit_may_be_tried_again_under_its_key(table: RawTable) -> None:
    key = new_key()
    table.commit(set_properties(a="1"), 404, idempotency_key=key)
    table.create()
    table.commit(set_properties(a="1"), idempotency_key=key)


def test_a_transaction_is_applied_once(table: RawTable) -> None:
    table.create()
    key, body = new_key(), {"table-changes": [table.identified(table.append())]}
    for _ in range(2):
        table.service.post("/transactions/commit", body, 204, idempotency_key=key)
    assert len(table.history()) == 1


def test_requests_under_one_key_at_the_same_time_act_once(table: RawTable) -> None:
    table.create()
    key, body = new_key(), table.append()
    answers: list[httpx.Response] = []

    def send() -> None:
        answers.append(table.service.http.post(table.path, json=body, headers={"Idempotency-Key": key}))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 6
    assert len({answer.text for answer in answers}) == 1
    assert len(table.history()) == 1


def test_creating_renaming_and_dropping_act_once(service: Service, table: RawTable) -> None:
    keys = [new_key() for _ in range(3)]
    create = {"name": table.name, "schema": SCHEMA}
    renamed = f"{table.name}-renamed"
    names = [{"namespace": ["db"], "name": name} for name in (table.name, renamed)]
    created = service.post("/namespaces/db/tables", create, idempotency_key=keys[0])
    assert service.post("/namespaces/db/tables", create, idempotency_key=keys[0]) == created
    for _ in range(2):
        rename = {"source": names[0], "destination": names[1]}
        service.post("/tables/rename", rename, 204, idempotency_key=keys[1])
    for _ in range(2):
        path = f"/namespaces/db/tables/{renamed}"
        assert service.http.delete(path, headers={"Idempotency-Key": keys[2]}).status_code == 204


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/namespaces", {"namespace": ["once"], "properties": {"a": "b"}}),
        ("/namespaces/db/properties", {"updates": {"a": "b"}, "removals": ["c"]}),
    ],
)
def test_changes_of_namespaces_act_once(service: Service, path: str, body: dict[str, Any]) -> None:
    key = new_key()
    first = service.post(path, body, idempotency_key=key)
    assert service.post(path, body, idempotency_key=key) == first


def test_an_outcome_is_remembered_over_a_restart(jvm: Jvm, folder: Path) -> None:
    key = new_key()
    with Service(jvm, folder) as service:
        service.post("/namespaces", {"namespace": ["db"]})
        table = RawTable(service, "db", "t")
        table.create()
        body = table.append()
        first = table.commit(body, idempotency_key=key)
    with Service(jvm, folder) as service:
        table = RawTable(service, "db", "t")
        assert table.commit(body, idempotency_key=key) == first
        assert len(table.history()) == 1
        table.commit(set_properties(a="b"), 422, idempotency_key=key)
        assert table.load() == first
