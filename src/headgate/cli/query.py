"""`headgate query`: SQL on the lake's tables."""

import csv
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.client import DEFAULT_DATA, URL_VARIABLE, Client, DataOption, connect, data_folder
from headgate.cli.output import note, print_json, print_table, progress
from headgate.errors import InvalidRequest, ServerUnavailable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.query.client import QueryResult

POLL_SECONDS = 0.25
START_SECONDS = 120.0


class Output(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Tables are named by their topics.")],
    output: Annotated[Output, typer.Option(help="How to print the rows.")] = Output.TABLE,
    data: DataOption = None,
) -> None:
    """Query the tables with Spark: time travel and metadata tables included."""
    print_result(ask(sql, data), output)


def print_result(result: "QueryResult", output: Output) -> None:
    """The rows on standard output, what they cost beside it."""
    columns, rows = list(result.rows.column_names), plain_rows(result.rows)
    match output:
        case Output.TABLE:
            print_table("", columns, [[cell(value) for value in row] for row in rows])
        case Output.CSV:
            _print_csv(columns, rows)
        case Output.JSON:
            reading = result.reading
            print_json(
                {
                    "rows": [dict(zip(columns, row, strict=True)) for row in rows],
                    "seconds": round(result.seconds, 3),
                    "files": reading.files,
                    "bytes": reading.bytes,
                }
            )
    files, size = result.reading.files, size_text(result.reading.bytes)
    note(f"{len(rows)} rows in {result.seconds:.2f} s, {files} files of {size} read")


def ask(sql: str, data: Path | None) -> "QueryResult":
    """Runs SQL on the query driver, which is started for it."""
    return ask_for(lambda spark: spark.sql(_spark_text(spark, sql)), data)


def _spark_text(spark: "SparkSession", sql: str) -> str:
    from headgate.spark import CATALOG
    from headgate.sql.athena import to_spark

    cluster = str(spark.conf.get(f"spark.sql.catalog.{CATALOG}.default-namespace"))
    return to_spark(sql, cluster, str(spark.conf.get("spark.sql.session.timeZone"))).text


def ask_for(frame: Callable[["SparkSession"], "DataFrame"], data: Path | None) -> "QueryResult":
    """The rows of a frame that is made in a session of the query driver."""
    from headgate.catalog.client import key_properties
    from headgate.embedded.secrets import OPERATOR_KEY, known_secret, secret
    from headgate.query.client import run_query

    folder = data_folder(data)
    if folder is None and os.environ.get(URL_VARIABLE):
        raise InvalidRequest(
            "Queries need the data folder, for its token.", "Run on Headgate's machine, with --data DIR."
        )
    with connect(data) as client:
        start_driver(client)
        addresses = client.addresses()
    folder = folder or DEFAULT_DATA.absolute()
    token = secret(folder, "connect")
    # A catalog of yours is told nothing of ours.
    embedded = addresses["iceberg"].startswith(addresses["console"])
    key = known_secret(folder, OPERATOR_KEY) if embedded else None
    catalog = {} if key is None else key_properties(addresses["iceberg"], key)
    _keep_quiet()
    return run_query(addresses["spark_connect"], token, catalog, frame)


def start_driver(client: Client) -> None:
    """The query driver runs only when somebody asks."""
    client.post("query", "start")
    deadline = time.monotonic() + START_SECONDS
    with progress("starting the query driver") as shown:
        while (state := client.get("query")["state"]) != "ready":
            shown.update(f"the query driver is {state}")
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The query driver is still {state} after {START_SECONDS:.0f} s.",
                    "See logs/query.log in the data folder.",
                )
            time.sleep(POLL_SECONDS)


def _keep_quiet() -> None:
    """Spark's client logs what it raises, with its stack; here an error is one line."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


def plain_rows(table: "pa.Table") -> list[list[Any]]:
    """By place, since two columns may have one name."""
    columns = [column.to_pylist(maps_as_pydicts="strict") for column in table.columns]
    return [[_plain(value) for value in row] for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    """In JSON's types, nothing rounded; bytes as `topic consume` shows them."""
    from headgate.kafka.readable import exact

    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case datetime():
            return str(value)
    return exact(value)


def cell(value: Any) -> Any:
    """Where there is no place for structure, JSON keeps it readable."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _print_csv(columns: list[str], rows: list[list[Any]]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows([[cell(value) for value in row] for row in rows])


def size_text(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
