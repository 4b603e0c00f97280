"""The broker is killed while the engine reads from it, and started again."""

import os
import random
import signal
import time

import pytest

from headgate.model import OnError, TableState
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.stream import Stream, mixed

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
ROWS, KILLS = (200_000, 5) if SOAK else (20_000, 1)
TEXT = 200


def kill_broker(stack: Stack) -> None:
    found = stack.store.process("broker")
    assert found.pid is not None
    os.killpg(os.getpgid(found.pid), signal.SIGKILL)
    wait_for("another broker", lambda: another_broker(stack, found.pid or 0))


def another_broker(stack: Stack, before: int) -> bool:
    found = stack.store.process("broker")
    return found.state == "ready" and found.pid != before


@pytest.mark.soak
def test_the_broker_is_killed_in_a_fetch(stack: Stack) -> None:
    chance = random.Random(11)
    stream = Stream(stack.runtime, "broker.killed")
    enabled = False
    for _ in range(KILLS):
        stream.send(ROWS // KILLS, text="t" * TEXT)
        stream.send_mixed(mixed(stream, 200, 0.1, chance))
        if not enabled:
            stack.run("table", "enable", stream.topic, "--freshness", "1s", "--on-error", "log")
            enabled = True
        wait_for(
            "the engine to read",
            lambda: (
                stack.store.table(stream.topic).status.state
                in (TableState.SYNCING, TableState.DEGRADED, TableState.RUNNING)
            ),
        )
        time.sleep(chance.uniform(0.0, 1.5))
        kill_broker(stack)
    stream.send(100)
    stack.run("table", "sync", stream.topic, "--timeout", "300s")
    assert stack.store.table(stream.topic).spec.on_error is OnError.LOG
    stream.check()
    stream.check_dead()
    stack.verify(stream.topic)
