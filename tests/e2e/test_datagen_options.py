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


def with_null(value: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    name, *rest = path
    return value | {name: with_null(value[name], tuple(rest)) if rest else None}


def row_of(record: Record, schema: Any, evolution: Evolution) -> dict[str, Any]:
    """A record's row in a table that has followed the schemas: earlier ones have NULL in a new column."""
    value = dict(record.value)
    if not record.version:
        value |= {new: value[old] for old, new in evolution.renamed.items()}
        if evolution.added is not None:
            value = with_null(value, (*evolution.inside, evolution.added["name"]))
    native: dict[str, Any] = to_native(value, schema)
    return native


@pytest.mark.parametrize(
    ("kind", "name", "topic"),
    [
        (Format.AVRO, "sales", "sales"),
        (Format.JSON, "hotels", "bookings"),
        (Format.PROTOBUF, "orders", "payments"),
    ],
)
def test_tables_follow_the_schemas_of_each_format(stack: Stack, kind: Format, name: str, topic: str) -> None:
    table = f"evolved-{kind}.{topic}"
    plain = GeneratorSpec(name, seed=8).made()
    scenario = GeneratorSpec(name, seed=8, evolve_after=AFTER, duplicate_share=0.1).made()
    options = ("--seed", "8", "--prefix", f"evolved-{kind}.", "--format", kind.value)
    stack.run("datagen", name, "--limit", "20", *options)
    stack.run("table", "enable", table)
    stack.run("table", "sync", table, "--timeout", "180s")
    evolve = ("--evolve", str(AFTER), "--duplicate-share", "0.1")
    stack.run("datagen", name, "--limit", str(LIMIT), *options, *evolve)
    stack.run("table", "sync", table, "--timeout", "180s")
    records = [*plain.records(20), *scenario.records(LIMIT)]
    written = [record for record in records if record.topic == topic]
    assert {record.version for record in written} == {0, 1}
    schema = scenario.later_schemas(renames=kind is not Format.JSON)[topic]
    evolution = scenario.evolutions[topic]
    expected = sorted(canonical(row_of(record, schema, evolution)) for record in written)
    for read in (read_duckdb, read_pyiceberg):
        rows = read(stack.runtime.iceberg, "local", table)
        assert sorted(canonical(without_metadata(row)) for row in rows) == expected, read.__name__
