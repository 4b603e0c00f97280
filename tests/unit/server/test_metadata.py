"""History and metadata of tables by the API, from a catalog that holds one table."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.catalog.errors import CatalogError, no_such_table
from headgate.embedded.runtime import Runtime
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.store import Store
from headgate.store.snapshots import SnapshotIndex
from tests.support.peers import own_peer
from tests.unit.catalog.test_history import FILES, METADATA


class OneTable:
    """A catalog of the table `orders`."""

    def __init__(self) -> None:
        self.trouble: CatalogError | None = None
        self.now: dict[str, Any] = METADATA
        self.commits = 0
        self.loads = 0
        # Commits that come in between whenever the metadata is read.
        self.restless = False

    def commit(self, metadata: dict[str, Any]) -> None:
        self.now, self.commits = metadata, self.commits + 1

    def metadata_location(self, namespace: tuple[str, ...], name: str) -> str:
        self._check(namespace, name)
        return f"metadata/{self.commits}.json"

    def metadata(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        self._check(namespace, name)
        self.loads += 1
        self.commits += int(self.restless)
        return self.now

    def _check(self, namespace: tuple[str, ...], name: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        if (namespace, name) != (("local",), "orders"):
            raise no_such_table(name)

    def content(self, location: str) -> bytes | None:
        return FILES.get(location)


@pytest.fixture
def lake() -> OneTable:
    return OneTable()


@pytest.fixture
def asked(runtime: Runtime, store: Store, lake: OneTable) -> Iterator[TestClient]:
    for topic in ("orders", "not.yet"):
        store.enable_table(TableSpec(topic))
    app = create_app(runtime, store, lake=lake)
    with TestClient(app, base_url="http://127.0.0.1:8080") as client:
        client.app_state[PEER] = own_peer()
        yield client


def test_history_is_that_of_the_metadata(asked: TestClient) -> None:
    found = asked.get("/api/v1/tables/orders/history").json()
    assert [one["snapshot_id"] for one in found["snapshots"]] == ["3", "2", "1"]
    assert found["last_compaction_at"] == 3000


@pytest.mark.parametrize(
    ("kind", "count"),
    [("snapshots", 3), ("history", 4), ("refs", 2), ("partitions", 2), ("files", 4), ("manifests", 1)],
)
def test_each_metadata_table_is_there(asked: TestClient, kind: str, count: int) -> None:
    assert len(asked.get(f"/api/v1/tables/orders/metadata/{kind}").json()) == count


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("orders/metadata/nothing", 422, "kind"),
        ("nowhere/history", 404, "nowhere"),
        ("not.yet/history", 404, "has not been made yet"),
    ],
)
def test_what_is_not_there_is_named(asked: TestClient, path: str, status: int, said: str) -> None:
    answer = asked.get(f"/api/v1/tables/{path}")
    assert answer.status_code == status
    assert said in answer.json()["message"]


def test_a_catalog_in_trouble_is_asked_again_later(asked: TestClient, lake: OneTable) -> None:
    lake.trouble = CatalogError(500, "ServiceFailureException", "the disk is full")
    answer = asked.get("/api/v1/tables/orders/history")
    assert (answer.status_code, "the disk is full" in answer.json()["message"]) == (503, True)


def test_a_catalog_of_ones_own_is_asked_by_spark(client: TestClient, store: Store) -> None:
    store.enable_table(TableSpec("orders"))
    answer = client.get("/api/v1/tables/orders/metadata/files")
    assert answer.status_code == 400
    assert "headgate query" in answer.json()["remedy"]


def test_schemas_are_those_of_the_metadata(asked: TestClient) -> None:
    found = asked.get("/api/v1/tables/orders/schemas").json()
    assert {one["schema_id"] for one in found["versions"]} == {
        one["schema-id"] for one in METADATA["schemas"]
    }
    assert asked.get("/api/v1/tables/not.yet/schemas").status_code == 404


def ids(asked: TestClient, **query: int) -> list[str]:
    found = asked.get("/api/v1/tables/orders/history", params=query).json()
    return [one["snapshot_id"] for one in found["snapshots"]]


def with_snapshot(metadata: dict[str, Any], number: int, parent: int) -> dict[str, Any]:
    """The metadata with one snapshot more, which is the current one."""
    made = deepcopy(metadata)
    newest = {**made["snapshots"][-1], "snapshot-id": number, "parent-snapshot-id": parent}
    newest["sequence-number"] = made["last-sequence-number"] = number
    made["snapshots"].append(newest)
    made["current-snapshot-id"] = number
    return made


def test_pages_of_the_history_follow_each_other(asked: TestClient) -> None:
    first = asked.get("/api/v1/tables/orders/history", params={"limit": 2}).json()
    assert [one["snapshot_id"] for one in first["snapshots"]] == ["3", "2"]
    assert first["total"] == 3
    rest = asked.get("/api/v1/tables/orders/history", params={"limit": 2, "before": first["next"]}).json()
    assert ([one["snapshot_id"] for one in rest["snapshots"]], rest["next"]) == (["1"], None)
    assert first["kept_bytes"] == rest["kept_bytes"]


def test_a_page_of_what_was_seen_before_reads_no_metadata(asked: TestClient, lake: OneTable) -> None:
    whole = asked.get("/api/v1/tables/orders/history").json()
    assert asked.get("/api/v1/tables/orders/history").json() == whole
    assert ids(asked, limit=1) == ["3"]
    assert lake.loads == 1


def test_the_index_follows_commits_rollbacks_and_expiry(asked: TestClient, lake: OneTable) -> None:
    assert ids(asked) == ["3", "2", "1"]
    lake.commit(with_snapshot(lake.now, 4, 3))
    assert ids(asked) == ["4", "3", "2", "1"]
    # Back to 2, by a snapshot of its own: 3 and 4 are no ancestors of it.
    lake.commit(with_snapshot(lake.now, 5, 2))
    found = asked.get("/api/v1/tables/orders/history").json()["snapshots"]
    assert {one["snapshot_id"]: one["is_current_ancestor"] for one in found} == {
        "5": True,
        "4": False,
        "3": False,
        "2": True,
        "1": True,
    }
    expired = deepcopy(lake.now)
    expired["snapshots"] = [one for one in expired["snapshots"] if one["snapshot-id"] in (2, 5)]
    expired["refs"] = {}
    lake.commit(expired)
    found = asked.get("/api/v1/tables/orders/history").json()
    assert [(one["snapshot_id"], one["refs"]) for one in found["snapshots"]] == [("5", []), ("2", [])]
    assert found["total"] == 2


def test_a_table_that_is_committed_to_without_pause_has_its_history_all_the_same(
    asked: TestClient, lake: OneTable
) -> None:
    lake.restless = True
    assert ids(asked) == ["3", "2", "1"]
    assert ids(asked, limit=1, before=3) == ["2"]


def test_nothing_is_kept_of_a_table_that_is_gone(asked: TestClient, store: Store) -> None:
    assert ids(asked) == ["3", "2", "1"]
    index = SnapshotIndex(store.engine)
    assert index.page("orders", "metadata/0.json") is not None
    store.remove_table("orders")
    assert index.page("orders", "metadata/0.json") is None
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM snapshots").scalar() == 0
