"""Exports in Postgres: of several servers one makes each run, and one has it."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from headgate.export.service import Scheduler
from headgate.store import Exports, RunState, Store
from tests.support.postgres import postgres

SERVERS = 4
SPEC = {"sql": "SELECT * FROM sales WHERE at < :to", "zone": "Europe/Oslo"}
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
WEEK = 7 * 86_400


@pytest.fixture(scope="module")
def stores() -> Iterator[list[Store]]:
    with postgres() as url:
        opened = [Store.open(url) for _ in range(SERVERS)]
        yield opened
        for store in opened:
            store.close()


def together(acts: list[Callable[[], Any]]) -> list[Any]:
    barrier = threading.Barrier(len(acts))

    def act(one: Callable[[], Any]) -> Any:
        barrier.wait()
        return one()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(act, acts))


def test_of_several_servers_one_makes_a_run_and_one_carries_it_out(stores: list[Store]) -> None:
    clock = [NOW]
    servers = [Exports(store.engine, lambda: clock[0]) for store in stores]
    servers[0].create("weekly", SPEC)
    clock[0] += 2 * WEEK
    together([Scheduler(server, lambda: clock[0]).look for server in servers])
    assert len(servers[0].runs("weekly")) == 2
    taken = together([lambda n=n, s=s: s.take(f"{n}", 60) for n, s in enumerate(servers)])  # type: ignore[misc]
    (owner,) = [str(number) for number, run in enumerate(taken) if run is not None]
    run = taken[int(owner)]
    assert run.period_end == min(one.period_end for one in servers[0].runs("weekly"))
    assert servers[1].note(run.id, owner, RunState.RUNNING, {"snapshots": {"local.sales": 2**62}})
    assert not servers[1].note(run.id, "another", RunState.DONE, {})
    assert servers[1].retry(run.id, owner, "once more", 30.0)
    clock[0] += 31
    again = servers[2].take("late", 60)
    assert again is not None
    assert (again.attempts, again.detail["snapshots"]["local.sales"]) == (1, 2**62)
    servers[3].note_erasure([again.id])
    assert servers[2].end(again.id, "late", RunState.DONE, "", again.detail)
    assert [one.id for one in servers[0].newest([RunState.DONE])] == [again.id]
    assert set(servers[0].counts()) == {("weekly", "Done", 1), ("weekly", "Waiting", 1)}
    servers[0].remove("weekly")
    assert servers[1].runs() == []
