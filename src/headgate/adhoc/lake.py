"""A SELECT on tables of the lake, and what changed between two snapshots of one: rows, and what was read."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.adhoc.arrow import ArrowResults, give_batches
from headgate.adhoc.parts import in_parts
from headgate.adhoc.reading import Reading, reading_of
from headgate.adhoc.results import INSERT, Results
from headgate.adhoc.values import plain_rows
from headgate.sql.planner import check_names
from headgate.statements.asking import Asked

__all__ = ["Lake", "reading_of", "run_lake"]


class Lake(Protocol):
    """Rows of the lake with the rights of who asks, whom the properties `catalog` show to the catalog."""

    def query(self, asked: Asked, catalog: Mapping[str, str]) -> AbstractContextManager[DataFrame]: ...

    def changes(self, asked: Asked, catalog: Mapping[str, str]) -> AbstractContextManager[DataFrame]: ...


def run_lake(
    lake: Lake, asked: Asked, catalog: Mapping[str, str], results: Results, reading: Reading | None = None
) -> dict[str, Any]:
    """Gives the rows; what was read for them, by table. `reading` has as much of that while it runs."""
    frame = lake.query if asked.kind == "lake" else lake.changes
    reading = reading or Reading()
    with frame(asked, catalog) as asked_rows:
        rows = in_parts(asked_rows)
        reading.attach(rows)
        reading.check_planned(asked.caller)
        if isinstance(results, ArrowResults):
            results.begin(to_arrow_schema(rows.schema))
            give_batches(rows, results)
        else:
            check_names(rows.columns)
            for row in plain_rows(rows, asked.zone):
                results.row(INSERT, row)
        return reading.figures()
