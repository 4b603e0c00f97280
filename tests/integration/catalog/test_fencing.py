"""Managed tables over HTTP: which commits the catalog takes, and with which status it refuses the others."""

import uuid

import pytest

from headgate.jvm import Jvm
from headgate.model import MANAGED_KEY, OPERATION_KEY, POSITION_TAG, Batch
from tests.integration.catalog.raw import RawTable, added_id, position, set_properties
from tests.integration.catalog.serving import Service


@pytest.fixture
def managed(table: RawTable) -> RawTable:
    """A managed table with one batch, at offset 10."""
    table.create(**{MANAGED_KEY: "true"})
    table.commit(table.batch(0, 10, "first"))
    return table


def test_batches_follow_one_another(managed: RawTable) -> None:
    for start in range(10, 50, 10):
        managed.commit(managed.batch(start, start + 10, f"from-{start}"))
    assert len(managed.history()) == 5


def test_a_stale_batch_is_refused_though_its_client_refreshed(managed: RawTable) -> None:
    managed.commit(managed.batch(10, 20, "theirs"))
    before = managed.load()
    error = managed.commit(managed.batch(10, 20, "ours"), 409)["error"]
    assert error["type"] == "CommitFailedException"
    assert position(10).to_json() in error["message"]
    assert position(20).to_json() in error["message"]
    assert managed.load() == before


def test_a_batch_that_comes_again_is_unknown_and_never_refused(managed: RawTable) -> None:
    again = managed.batch(0, 10, "first")
    assert managed.commit(again, 500)["error"]["type"] == "CommitStateUnknownException"
    managed.commit(managed.batch(10, 20, "second"))
    assert managed.commit(again, 500)["error"]["type"] == "CommitStateUnknownException"
    assert len(managed.history()) == 2


def test_a_batch_is_known_after_its_snapshot_expired(managed: RawTable) -> None:
    first = managed.head()
    managed.commit(managed.batch(10, 20, "second"))
    managed.commit({"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [first]}]})
    assert first not in managed.history()
    managed.commit(managed.batch(0, 10, "first"), 500)
    managed.commit(managed.batch(20, 30, "first"), 500)


def test_the_tag_carries_the_position_over_compaction_and_expiry(managed: RawTable) -> None:
    first = managed.head()
    tag = {"action": "set-snapshot-ref", "ref-name": POSITION_TAG, "type": "tag", "snapshot-id": first}
    managed.commit({"requirements": [], "updates": [tag]})
    managed.commit(managed.append(operation="replace"))
    middle = managed.head()
    managed.commit(managed.append(operation="replace"))
    managed.commit(
        {"requirements": [], "updates": [{"action": "remove-snapshots", "snapshot-ids": [middle]}]}
    )
    managed.commit(managed.batch(9, 20, "gap"), 409)
    managed.commit(managed.batch(10, 20, "second"))


def test_history_without_a_position_cannot_be_continued(table: RawTable) -> None:
    table.create()
    table.commit(table.append())
    table.commit(set_properties(**{MANAGED_KEY: "true"}))
    assert table.commit(table.batch(0, 10, "b"), 409)["error"]["type"] == "CommitFailedException"


def test_a_commit_must_assert_the_head_that_it_was_made_from(managed: RawTable) -> None:
    body = managed.append(Batch(position(10), position(20), "b").summary(), asserting=False)
    assert "assert-ref-snapshot-id" in managed.commit(body, 400)["error"]["message"]


def test_rows_from_elsewhere_are_forbidden(managed: RawTable) -> None:
    error = managed.commit(managed.append(), 403)["error"]
    assert error["type"] == "ForbiddenException"
    assert "written by the engine alone" in error["message"]


def test_other_spellings_are_judged_all_the_same(managed: RawTable) -> None:
    """Iceberg's parser does not mind the case of actions, so neither may the judgement."""
    body = managed.append()
    body["updates"][0]["action"] = "ADD-SNAPSHOT"
    body["updates"][1]["action"] = "Set-Snapshot-Ref"
    managed.commit(body, 403)
    body["requirements"][1]["type"] = "ASSERT-REF-SNAPSHOT-ID"
    managed.commit(body, 403)


def test_rewrites_operations_and_branches_are_allowed(managed: RawTable) -> None:
    managed.commit(managed.append(operation="replace"))
    managed.commit(managed.append({OPERATION_KEY: "delete"}, operation="delete"))
    managed.commit(managed.append(branch="audit"))
    managed.commit(managed.batch(10, 20, "second"))


def test_unmanaged_tables_take_anything(table: RawTable) -> None:
    table.create()
    table.commit(table.append())
    table.commit(table.append(asserting=False))
    assert len(table.history()) == 2


def test_the_mark_is_not_shed_in_the_commit_that_it_would_judge(managed: RawTable) -> None:
    body = managed.append()
    body["updates"].insert(0, {"action": "remove-properties", "removals": [MANAGED_KEY]})
    managed.commit(body, 403)
    managed.commit({"requirements": [], "updates": body["updates"][:1]})
    managed.commit(managed.append())


def test_transactions_are_judged_table_by_table(service: Service, managed: RawTable) -> None:
    other = RawTable(service, "db", f"other-{uuid.uuid4().hex}")
    other.create(**{MANAGED_KEY: "true"})
    fresh = other.identified(other.batch(0, 5, "one"))
    before = [managed.load(), other.load()]
    for body, status in (
        (managed.batch(0, 10, "first"), 500),
        (managed.batch(0, 10, "stale"), 409),
        (managed.append(), 403),
    ):
        service.post("/transactions/commit", {"table-changes": [fresh, managed.identified(body)]}, status)
        assert [managed.load(), other.load()] == before
    good = managed.identified(managed.batch(10, 20, "second"))
    service.post("/transactions/commit", {"table-changes": [fresh, good]}, 204)
    other.commit(other.batch(0, 5, "one"), 500)
    managed.commit(managed.batch(10, 20, "second"), 500)


def test_a_batch_is_known_to_another_process_and_after_a_rename(jvm: Jvm, managed: RawTable) -> None:
    service = managed.service
    renamed = RawTable(service, "db", f"{managed.name}-renamed")
    names = [{"namespace": ["db"], "name": name} for name in (managed.name, renamed.name)]
    again = managed.batch(0, 10, "first")
    service.post("/tables/rename", {"source": names[0], "destination": names[1]}, 204)
    with Service(jvm, service.folder) as other:
        RawTable(other, "db", renamed.name).commit(again, 500)


def test_a_retry_with_the_same_key_gets_the_answer_of_the_first(managed: RawTable) -> None:
    key = str(uuid.uuid4())
    body = managed.batch(10, 20, "second")
    first = managed.commit(body, idempotency_key=key)
    assert managed.commit(body, idempotency_key=key) == first
    assert managed.head() == added_id(body)
    managed.commit(body, 500, idempotency_key=str(uuid.uuid4()))
    managed.commit(body, 500)
