"""A SELECT on tables of the lake: Spark runs it as it is written."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from headgate.adhoc.results import INSERT, Results
from headgate.adhoc.values import plain_rows
from headgate.spark import CATALOG
from headgate.sql.planner import check_names

FILES = ("resultDataFiles", "resultDeleteFiles")
SIZES = ("totalDataFileSize", "totalDeleteFileSize")


def run_lake(
    spark: SparkSession, text: str, zone: str, catalog: Mapping[str, str], results: Results
) -> dict[str, int]:
    """Gives the rows; how many files were read for them, and how many bytes those are. `catalog` has the
    properties by which the session shows the catalog who it is."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", zone)
    for name, value in catalog.items():
        session.conf.set(f"spark.sql.catalog.{CATALOG}.{name}", value)
    rows = session.sql(text)
    check_names(rows.columns)
    for row in plain_rows(rows, zone):
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
