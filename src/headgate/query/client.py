"""Runs one query on the query driver, by Spark Connect, and says what it read."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.errors import InvalidRequest, ServerUnavailable
from headgate.spark import CATALOG

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.metrics import PlanMetrics


@dataclass(frozen=True)
class Reading:
    """What a query read: the data and delete files that planning left, and their size."""

    files: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class QueryResult:
    rows: "pa.Table"
    seconds: float
    reading: Reading


def run_query(
    address: str, token: str, catalog: Mapping[str, str], make: Callable[["SparkSession"], "DataFrame"]
) -> QueryResult:
    """`token` opens the driver; `catalog` has properties by which the session shows the catalog who it is."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(f"{address}/;token={token}").create()
    try:
        for name, value in catalog.items():
            spark.conf.set(f"spark.sql.catalog.{CATALOG}.{name}", value)
        started = time.monotonic()
        frame = make(spark)
        rows = frame.toArrow()
        seconds = time.monotonic() - started
        info: Any = frame.executionInfo
        # The command's own metrics when the statement ran at once, as SHOW and DESCRIBE do.
        plans = info.metrics._metrics if info is not None and info.metrics is not None else []
        return QueryResult(rows, seconds, reading_of(plans))
    except PySparkException as error:
        raise _failure(error) from error
    finally:
        spark.stop()


def reading_of(plans: Iterable["PlanMetrics"]) -> Reading:
    """Adds up what Iceberg's scans report."""
    files = size = 0
    for plan in plans:
        for metric in plan.metrics:
            match metric.name:
                case "resultDataFiles" | "resultDeleteFiles":
                    files += int(metric.value)
                case "totalDataFileSize" | "totalDeleteFileSize":
                    size += int(metric.value)
    return Reading(files, size)


def _failure(error: Any) -> InvalidRequest | ServerUnavailable:
    """The first line of what Spark says, without the plan and the stack."""
    said = str(error).split("\n\nJVM stacktrace")[0].split(";\n")[0].splitlines()
    line = next((text.strip() for text in said if text.strip()), type(error).__name__)
    if "StatusCode.UNAVAILABLE" in str(error):
        return ServerUnavailable(
            "The query driver does not answer.", "Try again: it is started when asked for."
        )
    return InvalidRequest(line)
