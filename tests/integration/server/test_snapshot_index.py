"""The index of snapshots in Postgres, as several servers make it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headgate.store import Store
from headgate.store.snapshots import SnapshotIndex
from tests.support.postgres import postgres

SERVERS = 4


@pytest.fixture(scope="module")
def stores() -> Iterator[list[Store]]:
    with postgres() as url:
        opened = [Store.open(url) for _ in range(SERVERS)]
        yield opened
        for store in opened:
            store.close()


def entries(*numbers: int, refs: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    return [{"sequence": n, "snapshot_id": str(2**62 + n), "refs": list(refs)} for n in numbers]


def test_a_page_is_of_the_metadata_that_was_indexed_last(stores: list[Store]) -> None:
    first, second = (SnapshotIndex(store.engine) for store in stores[:2])
    first.put("shop.orders", "1.json", entries(*range(1, 1201)), {"total": 1200})
    page = second.page("shop.orders", "1.json", 2)
    assert page is not None
    assert ([one["sequence"] for one in page.entries], page.next) == ([1200, 1199], 1199)
    rest = second.page("shop.orders", "1.json", None, 3)
    assert rest is not None
    assert ([one["sequence"] for one in rest.entries], rest.next) == ([2, 1], None)
    # All but two have expired, and one of those has a tag now.
    second.put("shop.orders", "2.json", [*entries(7), *entries(1200, refs=("main",))], {"total": 2})
    assert first.page("shop.orders", "1.json") is None
    now = first.page("shop.orders", "2.json")
    assert now is not None
    assert [(one["sequence"], one["refs"]) for one in now.entries] == [(1200, ["main"]), (7, [])]


def test_servers_that_index_at_the_same_time_leave_one_index(stores: list[Store]) -> None:
    barrier = threading.Barrier(SERVERS)

    def put(store: Store) -> None:
        barrier.wait()
        SnapshotIndex(store.engine).put("shop.parallel", "1.json", entries(*range(1, 301)), {"total": 300})

    with ThreadPoolExecutor(SERVERS) as pool:
        list(pool.map(put, stores))
    page = SnapshotIndex(stores[0].engine).page("shop.parallel", "1.json")
    assert page is not None
    assert len(page.entries) == 300
