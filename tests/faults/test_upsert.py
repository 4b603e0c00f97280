"""Upsert tables under kills and compaction: the table is what a dict replay of the acknowledged records says.

Kills at random times are in test_kills.py."""

import os
import shutil
import time
from pathlib import Path

import pytest

from headgate.model import OnError, TableMode, TableSpec
from tests.faults.test_failpoints import ENGINE_SECONDS, arm, die, die_at_all
from tests.support.keyed import Keyed, check_keyed
from tests.support.services import Services
from tests.support.stack import Stack

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
KEYS = 1_000 if SOAK else 200
LOAD_SECONDS = 600.0 if SOAK else 15.0


@pytest.mark.soak
def test_killed_between_commit_and_index_and_the_index_deleted(services: Services, tmp_path: Path) -> None:
    keyed = Keyed(services.runtime, "upsert.index")
    spec = TableSpec(keyed.topic, mode=TableMode.UPSERT, freshness_seconds=1, on_error=OnError.LOG)
    indexes = services.data / "indexes"
    with services.table(spec):
        keyed.random(300, 40, seed=1)
        folder = tmp_path / "points"
        numbers = iter(range(100, 200))

        def more() -> None:
            keyed.random(200, 40, seed=next(numbers))

        with services.engine(failpoints=folder) as engine:
            services.sync(keyed.topic, ENGINE_SECONDS)
            places = ("batch-committed", "index-written", "files-staged") if SOAK else ("batch-committed",)
            arm(folder, places)
            more()
            die(services, engine, folder, places, more)
        die_at_all(services, folder, more)
        with services.engine():
            services.sync(keyed.topic, ENGINE_SECONDS)
            check_keyed(keyed, services.runtime.iceberg)
            # Under its feet.
            shutil.rmtree(indexes)
            for seed in (2, 3):
                keyed.random(200, 40, seed)
                services.sync(keyed.topic, ENGINE_SECONDS)
            check_keyed(keyed, services.runtime.iceberg)
        # What is left of it, if anything: RocksDB goes on with files that have no name any more.
        shutil.rmtree(indexes, ignore_errors=True)
        keyed.random(200, 40, seed=4)
        with services.engine():
            services.sync(keyed.topic, ENGINE_SECONDS)
        check_keyed(keyed, services.runtime.iceberg)


@pytest.mark.soak
def test_compaction_under_a_running_load(stack: Stack) -> None:
    """No batch fails, no delete is lost: files are packed again and again while rows change."""
    keyed = Keyed(stack.runtime, "upsert.packed")
    stack.run("table", "enable", keyed.topic, "--mode", "upsert", "--freshness", "1s")
    seen: set[tuple[str, str]] = set()
    deadline = time.monotonic() + LOAD_SECONDS
    compactions, number = 0, 0
    request: str | None = None
    while time.monotonic() < deadline or request is not None:
        number += 1
        keyed.random(200, KEYS // 2, seed=number)
        status = stack.store.table(keyed.topic).status
        seen.add((status.state.value, status.reason))
        if request is None and number > 5:
            request = stack.store.ask(keyed.topic, "compact", {"all": True})
        elif request is not None and (found := stack.store.request(request)).state != "waiting":
            assert found.state == "done", found.result
            compactions += 1
            request = None
        time.sleep(0.3)
    stack.run("table", "sync", keyed.topic, "--timeout", "300s")
    print(f"{number * 200} operations, {compactions} compactions, states {seen}")
    assert {state for state, _ in seen} <= {"Pending", "Syncing", "Running"}
    assert compactions > (20 if SOAK else 0)
    check_keyed(keyed, stack.runtime.iceberg)
