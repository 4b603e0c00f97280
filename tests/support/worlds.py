"""The tables of a world against what plain Python makes of its seed."""

import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from headgate.datagen import SCENARIOS
from headgate.worlds import Expected, World
from tests.e2e.test_delta import folder_of
from tests.support.delta import read_delta_duckdb
from tests.support.ledger import canonical, read_duckdb, read_pyiceberg, to_native, without_metadata
from tests.support.stack import HEADGATE, Stack

# A topic, a statement and a table: three steps.
CUT = """
world: cut${N}
topics:
  cut${N}.in: {sql: "CREATE TABLE `cut${N}.in` (id BIGINT, name STRING)"}
statements:
  cut${N}: {sql: "CREATE TABLE `cut${N}.out` AS SELECT id FROM `cut${N}.in`"}
tables:
  cut${N}.out: {freshness: 5s}
"""
Read = Callable[[], Iterable[dict[str, Any]]]


def check_tables(stack: Stack, world: World, expected: Expected) -> None:
    """Each table equals what is expected, to the last row, in each of its formats."""
    schemas = SCENARIOS[world.name]().schemas
    for table, rows in expected.tables.items():
        schema = schemas.get(table)
        wanted = Counter(canonical(row if schema is None else to_native(row, schema)) for row in rows)
        for reader, read in readers(stack, table):
            names = None if schema is not None else set(rows[0])
            found = Counter(canonical(_plain(row, names)) for row in read())
            missing, extra = list(wanted - found), list(found - wanted)
            assert not missing, f"{table}, {reader}: {len(missing)} missing: {missing[:2]}, extra {extra[:2]}"
            assert not extra, f"{table}, {reader}: {len(extra)} too many: {extra[:2]}"


def apply_up_to(stack: Stack, step: str, *arguments: str) -> "subprocess.Popen[str]":
    """An apply that has begun a step, by what it says of it: `[2/3]`."""
    command = [HEADGATE, "apply", *arguments, "--data", str(stack.data)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(step):
            break
    return process


def goes_on(stack: Stack, *arguments: str) -> bool:
    """Whether an apply ends. It is refused until the server has seen that the one before is gone."""
    try:
        stack.run("apply", *arguments)
    except AssertionError as refused:
        if "Another apply is under way" in str(refused) or "has changed since the plan" in str(refused):
            return False
        raise
    return True


def readers(stack: Stack, table: str) -> Iterator[tuple[str, Read]]:
    formats = stack.json("table", "show", table)["spec"]["formats"]
    if "iceberg" in formats:
        yield "DuckDB", partial(read_duckdb, stack.runtime.iceberg, "local", table)
        yield "PyIceberg", partial(read_pyiceberg, stack.runtime.iceberg, "local", table)
    if "delta" in formats:
        yield "Delta", partial(read_delta_duckdb, folder_of(stack, table))


def _plain(row: dict[str, Any], names: set[str] | None) -> dict[str, Any]:
    """The columns of these names, else all of the record's own; moments in UTC."""
    if names is None:
        return without_metadata(row)
    return {name: _utc(row[name]) for name in names}


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
