"""What worlds come to, and where their files are."""

import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from headgate.apply.kinds import KINDS
from headgate.apply.model import Ref
from headgate.apply.read import read_path
from headgate.datagen.scenario import Record
from headgate.worlds import WORLDS, World, world_file
from headgate.worlds.hotels import Versions, rounded
from headgate.worlds.sales import masked_email, masked_phone
from tests.unit.docs.pages import ROOT

ALL = pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)


@ALL
def test_the_figures_are_of_the_tables_of_the_file(world: World) -> None:
    tables = {
        one.ref.name for one in read_path(world_file(world.name), {}).resources if one.ref.kind == "tables"
    }
    assert set(world.totals) == tables
    expected = world.expected(200)
    assert set(expected.figures) == tables
    assert all(figure.rows > 0 for figure in expected.figures.values())


@ALL
def test_statements_are_finished_after_those_that_they_read(world: World) -> None:
    specs = {one.ref: one.spec for one in read_path(world_file(world.name), {}).resources}
    done: set[Ref] = set()
    for name in world.finishes:
        spec = specs[Ref("statements", name)]
        written = {
            ref: other.name
            for other in specs
            if other.kind == "statements"
            for ref in KINDS["statements"].writes(other.name, specs[other])
        }
        for ref in KINDS["statements"].reads(name, spec):
            if ref in written and written[ref] != name:
                assert Ref("statements", written[ref]) in done, f"{name} is finished before {written[ref]}"
        done.add(Ref("statements", name))


@ALL
def test_the_same_seed_comes_to_the_same_and_another_to_something_else(world: World) -> None:
    assert world.expected(100).figures == world.expected(100).figures
    assert world.expected(100).figures != world.expected(100, world.seed + 1).figures


def test_of_a_hundred_orders_three_are_not_paid_and_two_too_late() -> None:
    expected = WORLDS["orders"].expected(1_000)
    assert expected.records["payments"] == 1_020
    assert expected.figures["completed_orders"].rows == 950
    sold = sum(row["pieces"] for row in expected.tables["product_sales"])
    assert sold == sum(
        line["quantity"] for row in expected.tables["completed_orders"] for line in row["lines"]
    )
    spent = expected.figures["customer_snapshot"].total
    assert spent == expected.figures["completed_orders"].total


def test_a_booking_has_what_was_valid_when_it_was_made() -> None:
    def guest(tier: str, at: str) -> Record:
        return Record("guests", b"a", {"mail": "a", "tier": tier, "updated_at": at}, 0)

    records = [
        guest("DAY", "1970-01-01T00:00:01.000Z"),
        guest("SEASON", "1970-01-01T00:00:03.000Z"),
        guest("WEEK", "1970-01-01T00:00:02.000Z"),
        guest("LAST", "1970-01-01T00:00:03.000Z"),
    ]
    versions = Versions(records, "guests", "mail")

    def tier(at: int) -> str | None:
        found = versions.at("a", at)
        return None if found is None else str(found["tier"])

    assert [tier(at) for at in (999, 1_000, 1_999, 2_000, 2_999, 3_000)] == [
        None,
        "DAY",
        "DAY",
        "WEEK",
        "WEEK",
        "LAST",
    ]
    assert versions.at("nobody", 5_000) is None


def test_each_booking_is_in_one_week_and_every_hotel_has_its_own() -> None:
    tables = WORLDS["hotels"].expected(300).tables
    assert sum(row["bookings"] for row in tables["hotel_weeks"]) == len(tables["detailed_bookings"]) == 300
    lost = {row["click_id"] for row in tables["lost_visitors"]}
    high = {row["click_id"] for row in tables["high_value_visitors"]}
    assert high < lost
    booked = {row["guest_mail"] for row in tables["detailed_bookings"]}
    assert lost
    assert not booked & {row["guest_mail"] for row in tables["lost_visitors"]}


def test_halves_are_rounded_away_from_zero() -> None:
    assert rounded(Decimal("3.125")) == Decimal("3.13")
    assert rounded(Decimal("2.664999"), 2) == Decimal("2.66")


@pytest.mark.parametrize(
    ("address", "masked"),
    [("anneke@example.org", "a****e@example.org"), ("al@example.org", "**@example.org")],
)
def test_an_address_is_masked_as_the_reference_shows_it(address: str, masked: str) -> None:
    assert masked_email(address) == masked


@pytest.mark.parametrize(
    ("number", "masked"), [("+31 6 1234 5678", "+** * **** **78"), ("7", "7"), (None, None)]
)
def test_a_number_is_masked_as_the_reference_shows_it(number: str | None, masked: str | None) -> None:
    assert masked_phone(number) == masked


def test_a_wheel_has_the_worlds_as_they_are_in_the_examples(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        inside = {
            name.removeprefix("headgate/examples/"): content.read(name)
            for name in content.namelist()
            if name.startswith("headgate/examples/")
        }
    examples = ROOT / "examples"
    assert inside == {
        str(file.relative_to(examples)): file.read_bytes() for file in examples.rglob("*") if file.is_file()
    }
    assert {f"{name}.yaml" for name in WORLDS} <= set(inside)
