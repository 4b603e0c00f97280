"""History and metadata of tables by the API, from a catalog that holds one table."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.catalog.errors import CatalogError, no_such_table
from headgate.embedded.runtime import Runtime
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.store import Store
from tests.support.peers import own_peer
from tests.unit.catalog.test_history import FILES, METADATA


class OneTable:
    """A catalog of the table `orders`."""

    def __init__(self) -> None:
        self.trouble: CatalogError | None = None

    def metadata(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        if self.trouble is not None:
            raise self.trouble
        if (namespace, name) != (("local",), "orders"):
            raise no_such_table(name)
        return METADATA

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
