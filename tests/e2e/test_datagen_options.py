"""`headgate datagen` in each format, with schemas that change on the way: tables follow, row by row."""

from typing import Any

import pytest

from headgate.datagen import GeneratorSpec
from headgate.datagen.evolve import Evolution
from headgate.datagen.formats import Format
from headgate.datagen.scenario import Record
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg, to_native, without_metadata
from tests.support.stack import Stack

LIMIT, AFTER = 120, 50


def row_of(record: Record, schema: Any, evolution: Evolution) -> dict[str, Any]:
    """A record's row in a table that has followed the schemas: earlier ones have NULL in a new column."""
    value = dict(record.value)
    if not record.version:
        value |= {new: value[old] for old, new in evolution.renamed.items()}
        if evolution.added is not None:
            value[evolution.added["name"]] = None
    native: dict[str, Any] = to_native(value, schema)
    return native


@pytest.mark.parametrize("kind", Format)
def test_tables_follow_the_schemas_of_each_format(stack: Stack, kind: Format) -> None:
    prefix = f"evolved-{kind}."
    scenario = GeneratorSpec("hotels", seed=8, evolve_after=AFTER, duplicate_share=0.1).made()
    options = ("--evolve", str(AFTER), "--duplicate-share", "0.1", "--format", kind.value)
    stack.run("datagen", "hotels", "--limit", str(LIMIT), "--seed", "8", "--prefix", prefix, *options)
    records = list(scenario.records(LIMIT))
    schemas = scenario.later_schemas(renames=kind is not Format.JSON)
    for topic in ("bookings", "reviews"):
        assert {record.version for record in records if record.topic == topic} == {0, 1}
        stack.run("table", "enable", prefix + topic)
        stack.run("table", "sync", prefix + topic, "--timeout", "180s")
        evolution = scenario.evolutions[topic]
        expected = sorted(
            canonical(row_of(record, schemas[topic], evolution))
            for record in records
            if record.topic == topic
        )
        for read in (read_duckdb, read_pyiceberg):
            rows = read(stack.runtime.iceberg, "local", prefix + topic)
            assert sorted(canonical(without_metadata(row)) for row in rows) == expected, read.__name__
