"""Generators of files, carried out on the control state; the worker's part is acted here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.apply.model import Change
from headgate.errors import InvalidRequest, NotFound
from headgate.server.desired.generators import GeneratorPart
from headgate.store import Generators, GeneratorState, Store

SPEC = {"scenario": "orders", "rate": 50, "start": "now"}


@pytest.fixture
def generators(tmp_path: Path) -> Iterator[Generators]:
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    yield Generators(store.engine)
    store.close()


def report(generators: Generators, state: GeneratorState, reason: str = "") -> None:
    generators.report(generators.get("shop").id, state, reason)


def test_it_is_created_when_it_writes(generators: Generators) -> None:
    part = GeneratorPart(generators)
    lines = part.create("shop", SPEC)
    assert next(lines) == "generator shop to write"
    report(generators, GeneratorState.WAITING, "nobody answers")
    assert next(lines) == "generator shop to write: nobody answers"
    report(generators, GeneratorState.RUNNING)
    assert list(lines) == []
    [live] = part.observe(None).values()
    assert (live.spec["scenario"], live.spec["rate"], live.spec["state"]) == ("orders", 50, "running")
    assert live.spec["start"] > "2026"


def test_one_that_was_created_by_half_is_gone_on_with(generators: Generators) -> None:
    part = GeneratorPart(generators)
    next(part.create("shop", SPEC))
    first = generators.get("shop")
    next(part.create("shop", SPEC))
    assert generators.get("shop") == first


def test_one_that_fails_stops_the_apply_with_the_reason(generators: Generators) -> None:
    lines = GeneratorPart(generators).create("shop", SPEC)
    next(lines)
    report(generators, GeneratorState.FAILED, "the topic is too small")
    with pytest.raises(InvalidRequest, match="too small"):
        list(lines)


def test_its_state_changes_in_place(generators: Generators) -> None:
    part = GeneratorPart(generators)
    next(part.create("shop", SPEC))
    report(generators, GeneratorState.RUNNING)
    id_before = generators.get("shop").id
    [live] = part.observe(["shop"]).values()
    change = [Change("state", "running", "stopped")]
    lines = part.change("shop", {**SPEC, "state": "stopped"}, change, live)
    assert next(lines) == "generator shop to stop"
    report(generators, GeneratorState.STOPPED)
    assert list(lines) == []
    assert part.observe(["shop"])["shop"].spec["state"] == "stopped"
    lines = part.change("shop", SPEC, [Change("state", "stopped", None)], live)
    assert next(lines) == "generator shop to write"
    report(generators, GeneratorState.RUNNING)
    assert list(lines) == []
    assert generators.get("shop").id == id_before


def test_it_is_removed_when_it_writes_no_more(generators: Generators) -> None:
    part = GeneratorPart(generators)
    next(part.create("shop", SPEC))
    lines = part.remove("shop", delete_data=False)
    assert next(lines) == "generator shop to stop"
    report(generators, GeneratorState.STOPPED)
    assert list(lines) == []
    with pytest.raises(NotFound):
        generators.get("shop")
    assert list(part.remove("shop", delete_data=False)) == []
    assert part.observe(["shop"]) == {}


def test_one_that_is_to_be_there_stopped_is(generators: Generators) -> None:
    lines = GeneratorPart(generators).create("shop", {**SPEC, "state": "stopped"})
    next(lines)
    assert generators.get("shop").desired == "stopped"
    report(generators, GeneratorState.STOPPED)
    assert list(lines) == []
