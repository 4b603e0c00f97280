"""Iceberg's format version of a table: by its readers and its way of deleting, and never back."""

import re
from pathlib import Path
from typing import Any

import pytest

from headgate.config import TablePattern
from headgate.engine.patterns import wanted_spec
from headgate.errors import InvalidRequest
from headgate.model import READERS, Deletes, RecordFormat, TableMode, TableSpec
from headgate.options import TableOptions
from headgate.server.api.tables import format_warnings

ROOT = Path(__file__).parents[2]
NAME = re.compile(r"`([^`]+)`")


@pytest.mark.parametrize(
    ("wanted", "version", "deletes"),
    [
        ({}, 3, Deletes.DELETION_VECTORS),
        ({"readers": ("spark", "trino")}, 3, Deletes.DELETION_VECTORS),
        ({"readers": ("spark", "delta-rs", "polars")}, 3, Deletes.DELETION_VECTORS),
        ({"readers": ("spark", "athena")}, 2, Deletes.POSITION_DELETES),
        ({"readers": ("redshift",), "deletes": Deletes.COPY_ON_WRITE}, 2, Deletes.COPY_ON_WRITE),
        ({"deletes": Deletes.POSITION_DELETES}, 2, Deletes.POSITION_DELETES),
        ({"deletes": Deletes.DELETION_VECTORS, "readers": ("athena",)}, 3, Deletes.DELETION_VECTORS),
        ({"format_version": 2}, 2, Deletes.POSITION_DELETES),
        ({"format_version": 3, "readers": ("athena",)}, 3, Deletes.COPY_ON_WRITE),
    ],
)
def test_readers_and_deletes_choose_the_format(
    wanted: dict[str, Any], version: int, deletes: Deletes
) -> None:
    spec = TableSpec("t", mode=TableMode.UPSERT, **wanted)
    assert (spec.format, spec.deletes_by) == (version, deletes)
    assert TableSpec.from_dict(spec.to_dict()) == spec


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"format_version": 2, "deletes": Deletes.DELETION_VECTORS}, "of version 3"),
        ({"format_version": 3, "deletes": Deletes.POSITION_DELETES}, "of version 2"),
        ({"format_version": 4}, "format version 4"),
        ({"format_version": 2, "value_format": RecordFormat.JSON_VARIANT}, "no variants"),
        ({"readers": ("athena",), "value_format": RecordFormat.JSON_VARIANT}, "no variants"),
    ],
)
def test_what_a_format_has_not_is_refused(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        TableSpec("t", **wanted)


def test_the_page_of_readers_says_what_is_chosen() -> None:
    page = (ROOT / "docs" / "reference" / "readers.md").read_text(encoding="utf-8")
    told: dict[str, bool] = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 6:
            told |= {
                name: cells[2].startswith(("yes", "reads", "by their")) for name in NAME.findall(cells[0])
            }
    assert told == READERS


def test_a_table_of_before_keeps_the_format_that_it_has() -> None:
    older = {name: value for name, value in TableSpec("t").to_dict().items() if name != "format_version"}
    assert TableSpec.from_dict(older).format == 3
    assert TableSpec.from_dict({**older, "readers": ["athena"]}).deletes_by is Deletes.COPY_ON_WRITE
    assert TableSpec.from_dict({**older, "deletes": "position-deletes"}).format == 2


def test_a_table_is_taken_to_version_3_and_never_back() -> None:
    two, three = (TableSpec("t", format_version=version) for version in (2, 3))
    assert TableOptions(format_version=3).apply(two).format == 3
    assert TableOptions(deletes="deletion-vectors").apply(two).format == 3
    assert TableOptions(readers=["athena"]).apply(three).deletes_by is Deletes.COPY_ON_WRITE
    for options in (TableOptions(format_version=2), TableOptions(deletes="position-deletes")):
        with pytest.raises(InvalidRequest, match="version"):
            options.apply(three)


def test_a_pattern_takes_no_table_back() -> None:
    three = TableSpec("t", format_version=3)
    pattern = TablePattern(match="*", readers=["athena"])
    made = wanted_spec("t", [pattern], None)
    assert made is not None
    assert made.format == 2
    kept = wanted_spec("t", [pattern], three)
    assert kept is not None
    assert kept.format == 3
    assert wanted_spec("t", [TablePattern(match="*", deletes="position-deletes")], three) == three


def test_a_table_of_version_3_in_glue_is_warned_of() -> None:
    kinds = {"athena": "glue", "lake": "rest"}
    (warning,) = format_warnings(TableSpec("t"), kinds)
    assert "in athena" in warning
    assert "--readers athena" in warning
    assert format_warnings(TableSpec("t"), {"lake": "rest"}) == []
    assert format_warnings(TableSpec("t", readers=("athena",)), kinds) == []
