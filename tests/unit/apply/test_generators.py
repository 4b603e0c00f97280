"""Generators in files: what is a change in place, what begins from the beginning, and what is refused."""

from typing import Any

import pytest
import yaml

from headgate.apply.dump import dump_document
from headgate.apply.kinds.generators import generator_of, spec_of
from headgate.apply.memory import memory_installation
from headgate.apply.model import ChangeInPlace, Create, Ref, Remove, Replace, Wishes
from headgate.apply.plan import make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text
from headgate.apply.show import file_text
from headgate.errors import InvalidRequest
from tests.unit.apply.worlds import take

GENERATOR = {"scenario": "orders", "rate": 50, "start": "2026-11-12T00:00:00Z", "cdc": True, "evolve": 3}
REF = Ref("generators", "shop")


def world(**said: Any) -> str:
    return yaml.safe_dump({"world": "shop", "topics": {"orders": {}}, "generators": {"shop": said}})


def plan(installation: Installation, text: str, **wishes: bool) -> Any:
    wanted = read_text(text)
    return make_plan(wanted, installation.observe(wanted), Wishes(**wishes)).steps


@pytest.fixture
def installation() -> Installation:
    installation = memory_installation()
    assert take(installation, read_text(world(**GENERATOR)))
    return installation


def test_a_generator_comes_after_the_topics_that_it_writes() -> None:
    steps = plan(memory_installation(), world(**GENERATOR))
    assert [step.ref for step in steps] == [Ref("topics", "orders"), REF]
    assert isinstance(steps[1], Create)


def test_what_was_applied_plans_nothing(installation: Installation) -> None:
    assert plan(installation, world(**GENERATOR)) == ()
    assert plan(installation, world(**GENERATOR, seed=1, format="avro", state="running")) == ()
    assert plan(installation, world(**GENERATOR | {"start": "2026-11-12T01:00:00+01:00"})) == ()
    assert plan(installation, world(**GENERATOR | {"start": "now"})) == ()
    dumped = file_text(dump_document(installation.observe_all(), "shop"))
    assert plan(installation, dumped) == ()


def test_another_state_is_a_change_in_place(installation: Installation) -> None:
    [step] = plan(installation, world(**GENERATOR, state="stopped"))
    assert isinstance(step, ChangeInPlace)
    assert [change.field for change in step.changes] == ["state"]
    assert take(installation, read_text(world(**GENERATOR, state="stopped")))
    assert "stopped" in file_text(dump_document(installation.observe_all(), "shop"))
    [step] = plan(installation, world(**GENERATOR))
    assert isinstance(step, ChangeInPlace)


@pytest.mark.parametrize(
    "other", [{"seed": 2}, {"rate": 60}, {"cdc": False}, {"evolve": 4}, {"start": "2026-11-13T00:00:00Z"}]
)
def test_all_else_is_another_generator(installation: Installation, other: dict[str, Any]) -> None:
    [step] = plan(installation, world(**GENERATOR | other))
    assert isinstance(step, Replace)
    assert "from the beginning" in step.lost


def test_what_the_world_names_no_longer_is_removed_before_its_topics(installation: Installation) -> None:
    empty = yaml.safe_dump({"world": "shop"})
    assert plan(installation, empty) == ()
    steps = plan(installation, empty, prune=True, delete_data=True)
    assert [step.ref for step in steps] == [REF, Ref("topics", "orders")]
    assert all(isinstance(step, Remove) for step in steps)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"scenario": "sales", "cdc": True}, "no database"),
        ({"scenario": "orders", "start": "soon"}, "no time to start"),
        ({"scenario": "orders", "prefix": "a b"}, "cannot be the name"),
        ({"scenario": "orders", "cdc": True, "format": "protobuf"}, "no Protobuf"),
        ({"scenario": "weather"}, "scenario"),
        ({"scenario": "orders", "rate": 0}, "rate"),
        ({"scenario": "orders", "rat": 5}, "rate"),
    ],
)
def test_what_cannot_be_made_is_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        plan(memory_installation(), world(**said))


def test_what_a_file_says_survives_being_made() -> None:
    said = {**GENERATOR, "rate": 50.0, "late_share": 0.5, "prefix": "p.", "limit": 3, "speed": 2.0}
    assert spec_of(generator_of(said)) == said
    assert spec_of(generator_of({"scenario": "sales", "seed": 1})) == {"scenario": "sales"}
