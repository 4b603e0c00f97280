"""`headgate datagen --cdc` to upsert tables: the rows are those of the databases, in both formats."""

from typing import Any

import pytest

from headgate.datagen import SCENARIOS
from headgate.datagen.seeded import Seeded
from tests.e2e.test_delta import folder_of
from tests.support.delta import read_delta_duckdb
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg, to_native
from tests.support.stack import Stack

PREFIX = "cdc."
LIMIT = 300


def rows_at_the_end(scenario: Seeded, topic: str) -> list[dict[str, Any]]:
    """The rows of a database's table after all changes, as readers of the lake have them."""
    rows: dict[bytes, dict[str, Any]] = {}
    for record in scenario.records(LIMIT):
        if record.topic == topic and record.value:
            rows.pop(record.key, None)
            if record.value["after"] is not None:
                rows[record.key] = record.value["after"]
    return [to_native(row, type(scenario).schemas[topic]) for row in rows.values()]


@pytest.mark.parametrize("name", ["orders", "hotels"])
def test_tables_have_the_rows_of_the_database(stack: Stack, name: str) -> None:
    scenario = SCENARIOS[name](9, cdc=True)
    stack.run("datagen", name, "--cdc", "--limit", str(LIMIT), "--seed", "9", "--prefix", PREFIX)
    for topic in scenario.keys:
        table = PREFIX + topic
        stack.run("table", "enable", table, "--mode", "upsert", "--formats", "iceberg,delta")
        stack.run("table", "sync", table, "--timeout", "180s")
        expected = sorted(map(canonical, rows_at_the_end(scenario, topic)))
        iceberg = stack.runtime.iceberg
        for rows in (
            read_duckdb(iceberg, "local", table),
            read_pyiceberg(iceberg, "local", table),
            read_delta_duckdb(folder_of(stack, table)),
        ):
            own = [{name: value for name, value in row.items() if name[0] != "_"} for row in rows]
            assert sorted(map(canonical, own)) == expected
