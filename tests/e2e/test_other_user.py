"""Another user of the machine, who has no credential: nothing of a Headgate opens to them."""

import json

from tests.conftest import PEPPER
from tests.e2e.commands import on
from tests.support.stack import Stack
from tests.support.trespass import careless, loose, outcomes, processes, showing
from tests.support.users import needs_root


@needs_root
def test_other_user_gets_nothing_but_the_open_brokers_topics(stack: Stack) -> None:
    done = on(stack, "query", "SELECT 1 AS one", "--output", "json")
    assert json.loads(done.stdout)["rows"] == [{"one": 1}], done.stderr
    told = outcomes(stack, broker_is_open=True)
    assert len(told) >= 40
    assert {name: what for name, what in told.items() if what.startswith("IN")} == {}
    assert [
        made["name"] for made in stack.json("credentials", "list") if made["name"] in ("blind", "mine")
    ] == []


def test_nothing_in_the_data_folder_is_open_to_others(stack: Stack) -> None:
    assert loose(stack.data) == []


def test_no_process_makes_files_for_others_or_a_core_file(stack: Stack) -> None:
    assert len(processes(stack.data)) > 4
    assert careless(stack.data) == {}


def test_secrets_are_in_no_argument_and_in_no_environment_that_needs_none(stack: Stack) -> None:
    keys = [file.read_text() for file in (stack.data / "secrets").iterdir()]
    assert showing(stack.data, [PEPPER, *keys]) == []
