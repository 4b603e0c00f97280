"""By chance: what was dumped plans nothing, and an apply that is killed anywhere goes on to the same end."""

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headgate.apply.dump import dump_document
from headgate.apply.memory import memory_installation
from headgate.apply.plan import make_plan
from headgate.apply.ports import Installation
from headgate.apply.read import read_text
from headgate.apply.show import file_text
from headgate.errors import InvalidRequest
from tests.unit.apply.worlds import documents, planned, take, wanted_of


def things(installation: Installation) -> dict[Any, Any]:
    return {ref: (live.spec, live.detail) for ref, live in installation.observe_all().live.items()}


@settings(max_examples=20, deadline=None)
@given(documents())
def test_what_was_dumped_plans_nothing(document: dict[str, Any]) -> None:
    installation = memory_installation()
    assert take(installation, wanted_of(document))
    for world in (None, "shop"):
        dumped = read_text(file_text(dump_document(installation.observe_all(), world)))
        assert make_plan(dumped, installation.observe(dumped)).steps == ()


@settings(max_examples=20, deadline=None)
@given(documents(), documents(), st.integers(0, 40), st.integers(0, 40))
def test_an_apply_that_is_killed_converges_when_it_is_run_again(
    first: dict[str, Any], second: dict[str, Any], here: int, there: int
) -> None:
    straight, killed = memory_installation(), memory_installation()
    try:
        for document in (first, second):
            assert take(straight, wanted_of(document))
    except InvalidRequest:
        # A topic that would be replaced under who reads it.
        assume(False)
    for document, events in ((first, here), (second, there)):
        wanted = wanted_of(document)
        if not take(killed, wanted, events):
            assert take(killed, wanted)
        assert planned(killed, wanted).steps == ()
    assert things(killed) == things(straight)
    assert killed.owners.all() == straight.owners.all()


def test_every_place_to_be_killed_at_converges() -> None:
    document = {
        "world": "shop",
        "topics": {
            "a": {"watermark": {"column": "at", "delay": "1 s"}},
            "b": {"sql": "CREATE TABLE b (id BIGINT)"},
        },
        "statements": {
            "a-b": {"sql": "INSERT INTO b SELECT id FROM a"},
            "b-d": {"sql": "CREATE TABLE d AS SELECT id FROM b"},
        },
        "tables": {"b": {"freshness": "5s"}},
    }
    wanted = wanted_of(document)
    straight = memory_installation()
    assert take(straight, wanted)
    places = 0
    while True:
        killed = memory_installation()
        if take(killed, wanted, places):
            break
        assert take(killed, wanted)
        assert planned(killed, wanted).steps == ()
        assert things(killed) == things(straight)
        assert killed.owners.all() == straight.owners.all()
        places += 1
    assert places == 4 * len(wanted.resources)
