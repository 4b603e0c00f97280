"""Credentials in files: their grants change in place, and none is made or removed."""

from typing import Any

import pytest
import yaml

from headgate.apply.dump import dump_document
from headgate.apply.memory import MemoryPart, memory_installation
from headgate.apply.model import ChangeInPlace, Live, Ref, Step
from headgate.apply.plan import make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text
from headgate.apply.show import file_text
from headgate.errors import InvalidRequest
from tests.unit.apply.worlds import planned, take

REF = Ref("credentials", "notebook")


def world(*grants: str) -> str:
    return yaml.safe_dump({"world": "shop", "credentials": {"notebook": {"grants": list(grants)}}})


def steps(installation: Installation, text: str) -> tuple[Step, ...]:
    wanted = read_text(text)
    return make_plan(wanted, installation.observe(wanted)).steps


@pytest.fixture
def installation() -> Installation:
    """An installation on which a command has made the credential."""
    installation = memory_installation()
    part = installation.parts["credentials"]
    assert isinstance(part, MemoryPart)
    part.things["notebook"] = Live({"grants": ["reader:local:*"]})
    return installation


def test_grants_change_in_place(installation: Installation) -> None:
    text = world("writer:local:shop.*", "reader:local:*")
    [step] = steps(installation, text)
    assert isinstance(step, ChangeInPlace)
    [change] = step.changes
    said = ("grants", ["reader:local:*"], ["reader:local:*", "writer:local:shop.*"])
    assert (change.field, change.before, change.after) == said
    assert take(installation, read_text(text))
    assert steps(installation, text) == ()
    dumped = file_text(dump_document(installation.observe_all()))
    assert steps(installation, dumped) == ()


def test_the_same_grants_in_other_words_are_no_change(installation: Installation) -> None:
    assert steps(installation, world("READER:local", "reader:local:*")) == ()


def test_one_that_is_not_there_is_refused_with_the_command_that_makes_it() -> None:
    with pytest.raises(InvalidRequest) as caught:
        steps(memory_installation(), world("reader"))
    said = str(caught.value)
    assert said.startswith("the text:2: credential notebook is not there, and no file makes one.")
    assert "headgate credentials create notebook" in said


def test_no_world_owns_one(installation: Installation) -> None:
    assert take(installation, read_text(world("writer")))
    assert installation.owners.all() == {}
    assert planned(installation, read_text("world: shop")).steps == ()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"grants": []}, "the text:3: credentials.notebook.grants: "),
        ({"grants": ["raeder"]}, "the text:2: There is no role 'raeder'."),
        ({"grants": ["reader"], "client_secret": "x"}, "nothing is known of"),
        ({}, "credentials.notebook.grants"),
    ],
)
def test_what_cannot_be_granted_is_refused(
    installation: Installation, said: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        steps(installation, yaml.safe_dump({"credentials": {"notebook": said}}))
    assert problem in str(caught.value)
