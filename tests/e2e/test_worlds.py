"""The worlds, each set up by the page that tells of it: tables hold what plain Python makes of the seed."""

import copy
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.demo.evolved import FIELD, EvolvedOrders
from headgate.demo.orders import MORE_ORDERS
from headgate.worlds import WORLDS, Expected, World, world_file
from tests.support.ledger import read_duckdb
from tests.support.pages import Typist, read_page
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.there import There, take_away
from tests.support.worlds import CUT, apply_up_to, check_tables, goes_on

SEED = 7


@dataclass(frozen=True)
class ShownWorld:
    """A world as a page of the documents sets it up."""

    world: World
    typist: Typist
    limit: int
    expected: Expected


PAGES = (
    ("sales", "docs/tutorials/sales.md", 5_000),
    ("hotels", "docs/tutorials/hotels.md", 1_000),
    ("orders", "README.md", 1_000),
)


@pytest.fixture(scope="module", params=PAGES, ids=lambda one: one[0])
def shown(
    request: pytest.FixtureRequest, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ShownWorld]:
    """The page is typed up to where the world has its figures; the last test types what follows."""
    name, page, limit = request.param
    before = There.on(stack)
    typist = Typist(stack, read_page(page), tmp_path_factory.mktemp(name))
    try:
        typist.type_on(until="figures")
        yield ShownWorld(WORLDS[name], typist, limit, WORLDS[name].expected(limit, SEED))
    finally:
        take_away(stack, before)


def test_the_demo_finds_the_world_and_its_figures(stack: Stack, shown: ShownWorld) -> None:
    done = stack.run("demo", shown.world.name, "--limit", str(shown.limit), "--seed", str(SEED), "--no-tour")
    assert "The records of this seed are there already." in done.stdout
    assert done.stdout.count("the same") == len(shown.world.totals)
    assert "ANOTHER" not in done.stdout


def test_its_tables_hold_what_the_seed_says_to_the_last_row(stack: Stack, shown: ShownWorld) -> None:
    check_tables(stack, shown.world, shown.expected)


def test_nothing_was_late(stack: Stack, shown: ShownWorld) -> None:
    for statement in stack.json("statement", "list"):
        assert stack.json("statement", "show", statement["name"])["late_rows"] == 0, statement["name"]


def test_the_file_again_plans_nothing(stack: Stack, shown: ShownWorld) -> None:
    assert "nothing to do" in stack.run("plan", str(world_file(shown.world.name))).stdout


def test_a_changed_file_changes_what_it_says_and_nothing_else(
    stack: Stack, shown: ShownWorld, tmp_path: Path
) -> None:
    name = shown.world.name
    shutil.copytree(world_file(name).parent, tmp_path, dirs_exist_ok=True)
    file, table = tmp_path / f"{name}.yaml", list(shown.world.totals)[-1]
    document = yaml.safe_load(file.read_text())
    document["tables"][table]["freshness"] = "7s"
    file.write_text(yaml.safe_dump(document))
    before, running = stack.json("dump"), statements_of(stack)
    (step,) = stack.json("plan", str(file))["steps"]
    assert (step["kind"], step["name"]) == ("tables", table)
    stack.run("apply", str(file))
    wanted = copy.deepcopy(before)
    wanted["tables"][table]["freshness"] = "7s"
    assert stack.json("dump") == wanted
    assert statements_of(stack) == running
    stack.run("apply", str(world_file(name)))
    assert stack.json("dump") == before


def statements_of(stack: Stack) -> dict[str, Any]:
    """Which statements run, and since when."""
    return {s["name"]: (s["state"], s["since"]) for s in stack.json("statement", "list")}


def test_the_tour_asks_engines_changes_a_schema_and_looks_back(stack: Stack, shown: ShownWorld) -> None:
    if shown.world.name != "orders":
        pytest.skip("only orders have a tour")
    done = stack.run("demo", "orders", "--limit", str(shown.limit), "--seed", str(SEED)).stdout
    assert "All answers are equal." in done
    paid = f"{shown.expected.figures['completed_orders'].total:,}"
    lines = [line.split() for line in done.splitlines()]
    engines = ("Spark", "DuckDB,", "PyIceberg", "plain")
    assert [line[-1] for line in lines if line[:1] and line[0] in engines] == [paid] * 5
    before = shown.expected.records["payments"]
    assert [str(before)] in lines, "the snapshot from before"
    rows = list(read_duckdb(stack.runtime.iceberg, "local", "payments"))
    evolved = [r.value for r in EvolvedOrders(SEED + 1).records(MORE_ORDERS) if r.topic == "payments"]
    assert len(rows) == before + len(evolved)
    found = Counter((row["payment_id"], row[FIELD]) for row in rows if row[FIELD] is not None)
    assert found == Counter((v["payment_id"], v[FIELD]) for v in evolved if v[FIELD] is not None)
    # The file's schema is the first of two now, and there is nothing to register.
    said = stack.run("plan", str(world_file("orders"))).stdout
    assert "schema payments-value has moved on: that of the file is version 1 of 2" in said
    assert "nothing to do" in said


def test_what_is_left_of_the_page_is_true_too(stack: Stack, shown: ShownWorld) -> None:
    shown.typist.type_on()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_apply_that_is_killed_at_a_step_goes_on_when_it_is_run_again(
    stack: Stack, tmp_path: Path, step: int
) -> None:
    before = There.on(stack)
    file = tmp_path / "cut.yaml"
    file.write_text(CUT)
    said = [str(file), "--var", f"N={step}"]
    killed = apply_up_to(stack, f"[{step}/3]", *said)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    killed.communicate()
    wait_for("the killed apply to be left", lambda: goes_on(stack, *said))
    assert stack.json("plan", *said)["steps"] == []
    assert stack.json("statement", "show", f"cut{step}")["state"] == "Running"
    stack.run("destroy", *said, "--delete-data", "--yes")
    assert There.on(stack) == before
