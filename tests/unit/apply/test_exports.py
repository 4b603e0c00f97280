"""Exports in files: what they read, how they differ, and that a file of them comes back."""

import pytest

from headgate.apply.dump import dump_document
from headgate.apply.kinds import KINDS
from headgate.apply.memory import memory_installation
from headgate.apply.model import Live, Owner, Ref
from headgate.apply.plan import make_plan
from headgate.apply.read import read_text
from headgate.apply.show import file_text
from headgate.errors import InvalidRequest
from tests.unit.apply.worlds import take

WORLD = """
world: sales
topics:
  sales: {}
tables:
  sales: {}
exports:
  weekly:
    sql: SELECT * FROM sales WHERE at >= :from
    zone: Europe/Oslo
    masks: {mail: {mask: hash, secret: pepper}}
    state: paused
"""


def test_an_export_is_made_after_its_tables_and_comes_back_as_it_was() -> None:
    installation, wanted = memory_installation(), read_text(WORLD)
    plan = make_plan(wanted, installation.observe(wanted))
    assert [str(step.ref) for step in plan.steps] == ["topic sales", "table sales", "export weekly"]
    assert take(installation, wanted)
    assert make_plan(wanted, installation.observe(wanted)).steps == ()
    dumped = read_text(file_text(dump_document(installation.observe_all(), "sales")))
    assert make_plan(dumped, installation.observe(dumped)).steps == ()
    said = {resource.ref: resource.spec for resource in dumped.resources}[Ref("exports", "weekly")]
    assert said == {
        "sql": "SELECT * FROM sales WHERE at >= :from",
        "zone": "Europe/Oslo",
        "masks": {"mail": {"mask": "hash", "secret": "pepper"}},
        "state": "paused",
    }


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("FROM sales", "FROM seals", "export weekly needs table seals.*Did you mean 'sales'"),
        ("mask: hash", "mask: hush", "exports.weekly.masks.mail.mask"),
        ("zone: Europe/Oslo", "zone: Europe/Nowhere", "no time zone 'Europe/Nowhere'"),
        ("SELECT *", "DELETE", "It is no query"),
        ("secret: pepper", "secret: '${PEPPER}'", "takes no variable"),
    ],
)
def test_mistakes_are_named_with_their_line(before: str, after: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        plan_of(WORLD.replace(before, after))


def plan_of(text: str) -> None:
    wanted = read_text(text, {"PEPPER": "x"})
    for resource in wanted.resources:
        KINDS[resource.ref.kind].check(resource.ref.name, resource.spec)
    make_plan(wanted, memory_installation().observe(wanted))


def test_what_a_file_says_no_more_goes_back_to_its_default_where_the_world_made_it() -> None:
    kind = KINDS["exports"]
    live = Live({"sql": "SELECT * FROM t", "zone": "Europe/Oslo", "csv": {"header": False}})
    wanted = {"sql": "SELECT * FROM t", "zone": "Europe/Oslo"}
    mine = kind.difference("e", wanted, live, Owner("w"))
    assert mine is not None
    assert [(change.field, change.after["header"]) for change in mine.changes] == [("csv", True)]
    assert kind.difference("e", wanted, live, None) is None
    # What is said is meant, though it is the default.
    said = kind.difference("e", {**wanted, "csv": {"header": True}, "state": "active"}, live, None)
    assert said is not None
    assert [change.field for change in said.changes] == ["csv"]
    assert kind.difference("e", {**wanted, "csv": {"header": False}}, live, Owner("w")) is None
