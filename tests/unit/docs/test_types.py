"""The table of types says what the code does."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from tests.unit.docs.pages import ROOT

PAGE = ROOT / "docs" / "reference" / "types.md"
# What each kind of type needs to be complete.
DETAILS: Mapping[str, Mapping[str, Any]] = {
    "fixed": {"name": "F", "size": 9},
    "fixed(16)": {"type": "fixed", "name": "F", "size": 16},
    "fixed(12)": {"type": "fixed", "name": "F", "size": 12},
    "enum": {"name": "E", "symbols": ["A"]},
    "record": {"name": "I", "fields": [{"name": "x", "type": "int"}]},
    "array": {"items": "int"},
    "map": {"values": "int"},
}
ICEBERG: Mapping[type[t.DataType], str] = {
    t.BooleanType: "boolean",
    t.IntegerType: "int",
    t.LongType: "long",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.BinaryType: "binary",
    t.StringType: "string",
    t.DateType: "date",
    t.TimestampType: "timestamptz",
    t.TimestampNTZType: "timestamp",
    t.DecimalType: "decimal(precision, scale)",
    t.StructType: "struct",
    t.ArrayType: "list",
    t.MapType: "map",
}


def rows() -> list[tuple[str, str, str]]:
    """The rows of the table under `Avro to Iceberg`: type, logical type, Iceberg's type. A row may hold
    several of each, with commas between them."""
    section = PAGE.read_text().split("## Avro to Iceberg\n")[1].split("\n## ")[0]
    found = []
    for line in section.splitlines():
        if not line.startswith("| `"):
            continue
        kinds, logicals, wanted = (_listed(cell) for cell in line.strip("|").split("|")[:3])
        for place, kind in enumerate(kinds):
            for logical in logicals:
                found.append((kind, logical, wanted[place] if len(wanted) == len(kinds) else wanted[0]))
    return found


def _listed(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell) or [cell.strip()]


@pytest.mark.parametrize(("kind", "logical", "wanted"), rows())
def test_a_row_is_true(kind: str, logical: str, wanted: str) -> None:
    schema: dict[str, Any] = {"type": kind, **DETAILS.get(kind, {})}
    if logical != "–":
        schema |= {"logicalType": logical, "precision": 9, "scale": 2}
    record = {"type": "record", "name": "R", "fields": [{"name": "c", "type": schema}]}

    found = AvroReader(json.dumps(record)).type["c"].dataType

    assert ICEBERG[type(found)] == wanted.partition("<")[0]


def test_every_type_has_a_row() -> None:
    assert {wanted.partition("<")[0] for _, _, wanted in rows()} == set(ICEBERG.values())
