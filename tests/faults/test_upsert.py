"""An upsert table under compaction: it is what a dict replay of the acknowledged records says.

Kills at random times are in test_kills.py, those at places in the code in test_failpoints.py."""

import os
import time

import pytest

from tests.support.keyed import Keyed, check_keyed
from tests.support.stack import Stack

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
KEYS = 1_000 if SOAK else 200
LOAD_SECONDS = 600.0 if SOAK else 15.0


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
    stack.verify(keyed.topic)
