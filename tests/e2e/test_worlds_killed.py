"""A world comes to its rows though engine and server are killed on the way: for the soak."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from headgate.worlds import WORLDS, world_file
from tests.support.stack import Stack
from tests.support.worlds import check_tables

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
KILLS = 6
PATIENCE_SECONDS = 900.0

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not SOAK, reason="make soak runs it")]


def insist(check: Callable[[], object]) -> None:
    """What a server that dies, or a statement that has not come there yet, may fail: until it succeeds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            check()
        except (AssertionError, OSError):
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


@pytest.mark.parametrize("name", list(WORLDS))
def test_a_world_comes_to_its_rows_though_engine_and_server_are_killed(tmp_path: Path, name: str) -> None:
    world = WORLDS[name]
    expected = world.expected(1_000, 7)
    with Stack(tmp_path / "data") as stack:
        stack.run("apply", str(world_file(name)))
        arguments = ["--cdc"] if world.cdc else []
        stack.run("datagen", name, *arguments, "--limit", "1000", "--seed", "7")
        url = str(stack.runtime.settings.store_url)
        killers = [
            subprocess.Popen([sys.executable, "-m", "tests.support.killer", url, str(KILLS), "7", victim])
            for victim in ("engine", "server")
        ]
        for statement in world.finishes:
            insist(partial(stack.run, "statement", "finish", statement))
        for killer in killers:
            assert killer.wait(PATIENCE_SECONDS) == 0
        insist(partial(stack.run, "status"))
        insist(partial(check_tables, stack, world, expected))
