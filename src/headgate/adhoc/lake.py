"""A SELECT on tables of the lake, and what changed between two snapshots of one: rows, and what was read."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from pyspark.sql import DataFrame

from headgate.adhoc.arrow import ArrowResults, give_batches
from headgate.adhoc.results import INSERT, Results
from headgate.adhoc.values import plain_rows
from headgate.sql.planner import check_names
from headgate.statements.asking import Asked

FILES = ("resultDataFiles", "resultDeleteFiles")
SIZES = ("totalDataFileSize", "totalDeleteFileSize")


class Lake(Protocol):
    """Rows of the lake with the rights of who asks, whom the properties `catalog` show to the catalog."""

    def query(self, asked: Asked, catalog: Mapping[str, str]) -> AbstractContextManager[DataFrame]: ...

    def changes(self, asked: Asked, catalog: Mapping[str, str]) -> AbstractContextManager[DataFrame]: ...


def run_lake(lake: Lake, asked: Asked, catalog: Mapping[str, str], results: Results) -> dict[str, int]:
    """Gives the rows; how many files were read for them, and how many bytes those are."""
    frame = lake.query if asked.kind == "lake" else lake.changes
    with frame(asked, catalog) as rows:
        if isinstance(results, ArrowResults):
            give_batches(rows, results)
        else:
            check_names(rows.columns)
            for row in plain_rows(rows, asked.zone):
                results.row(INSERT, row)
        return reading_of(rows)


def reading_of(rows: DataFrame) -> dict[str, int]:
    """What Iceberg's scans report, after the rows were read."""
    found = {"files": 0, "bytes": 0}
    for step in _steps(cast(Any, rows)._jdf.queryExecution().executedPlan()):
        metrics = step.metrics()
        for names, what in ((FILES, "files"), (SIZES, "bytes")):
            for name in names:
                metric = metrics.get(name)
                if metric.isDefined():
                    found[what] += int(metric.get().value())
    return found


def _steps(plan: Any) -> Iterator[Any]:
    """Every step of a plan that has run, those of its stages and subqueries too."""
    yield plan
    inner = {"AdaptiveSparkPlanExec": "executedPlan", "ShuffleQueryStageExec": "plan"}
    inner |= {"BroadcastQueryStageExec": "plan", "ResultQueryStageExec": "plan"}
    into = inner.get(plan.getClass().getSimpleName())
    if into is not None:
        yield from _steps(getattr(plan, into)())
    for below in (plan.children(), plan.subqueries()):
        for number in range(below.size()):
            yield from _steps(below.apply(number))
