"""A world comes to its rows though engine and server are killed on the way: for the soak."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from headgate.worlds import WORLDS, world_file
from tests.support.stack import Stack
from tests.support.worlds import CUT, apply_up_to, check_tables

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


def test_an_apply_goes_on_though_server_or_engine_is_killed_at_any_of_its_steps(tmp_path: Path) -> None:
    file = tmp_path / "cut.yaml"
    file.write_text(CUT)
    with Stack(tmp_path / "data") as stack:
        before = stack.json("topic", "list")
        for number, (victim, step) in enumerate(product(("server", "engine"), (1, 2, 3))):
            said = [str(file), "--var", f"N={number}"]
            applied = apply_up_to(stack, f"[{step}/3]", *said)
            pid = stack.store.process(victim).pid
            assert pid is not None
            os.killpg(os.getpgid(pid), signal.SIGKILL)
            _, rest = applied.communicate(timeout=PATIENCE_SECONDS)
            # Without its server it ends; an engine that comes again it waits for.
            assert victim == "server" or applied.returncode == 0, rest
            insist(partial(stack.run, "apply", *said))
            assert stack.json("plan", *said)["steps"] == []
            assert stack.json("statement", "show", f"cut{number}")["state"] == "Running"
            insist(partial(stack.run, "destroy", *said, "--delete-data", "--yes"))
        assert stack.json("topic", "list") == before


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
        for table in expected.tables:
            insist(partial(stack.verify, table))
