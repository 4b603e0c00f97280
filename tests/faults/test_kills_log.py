"""The engine is killed at random times while bad records arrive: table and dead letters are the ledger."""

import os
import random
import subprocess
import sys
import time

import pytest

from tests.support.stack import Stack
from tests.support.stream import Stream, mixed

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
ROWS, KILLS = (100_000, 6) if SOAK else (2_000, 1)
ROUND, RATE = 200, 1_000 if SOAK else 400


@pytest.mark.soak
def test_killed_at_random_times_with_bad_records(stack: Stack) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    stream = Stream(stack.runtime, "kills.log")
    stack.run("table", "enable", stream.topic, "--freshness", "1s", "--on-error", "log")
    # A first batch: what is killed is work, not only the start of it.
    stream.send_mixed(mixed(stream, ROUND, 0.05, chance))
    stack.run("table", "sync", stream.topic, "--timeout", "300s")
    url = stack.runtime.settings.store_url
    command = [sys.executable, "-m", "tests.support.killer", url, str(KILLS), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killer:
        try:
            # Until the last kill, and at least so many: a new schema now and then.
            while killer.poll() is None or len(stream.rows) < ROWS:
                version = min(4, 1 + len(stream.rows) * 4 // ROWS)
                written_by = chance.randint(1, version)
                stream.send_mixed(mixed(stream, ROUND, 0.05, chance, written_by))
                time.sleep(ROUND / RATE)
            said, _ = killer.communicate(timeout=600)
        finally:
            killer.kill()
    assert said.count("killed") == KILLS
    stream.send(1, version=4)
    stack.run("table", "sync", stream.topic, "--timeout", "300s")
    stream.check(version=4)
    stream.check_dead()
