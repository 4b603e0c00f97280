"""`headgate query`: SQL on the lake's tables."""

import csv
import os
import sys
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from headgate.cli.client import DEFAULT_DATA, URL_VARIABLE, Client, DataOption, connect, data_folder
from headgate.cli.output import note, print_json, print_table, progress
from headgate.errors import InvalidRequest, ServerUnavailable

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
    from headgate.embedded.secrets import secret
    from headgate.query.client import run_query

    folder = data_folder(data)
    if folder is None and os.environ.get(URL_VARIABLE):
        raise InvalidRequest(
            "Queries need the data folder, for its token.", "Run on Headgate's machine, with --data DIR."
        )
    with connect(data) as client:
        _start(client)
        address = client.addresses()["spark_connect"]
    token = secret(folder or DEFAULT_DATA.absolute(), "connect")
    result = run_query(address, token, sql)
    rows = result.rows.to_pylist()
    match output:
        case Output.TABLE:
            print_table("", result.rows.column_names, [list(row.values()) for row in rows])
        case Output.CSV:
            _print_csv(result.rows.column_names, rows)
        case Output.JSON:
            reading = result.reading
            print_json(
                {
                    "rows": rows,
                    "seconds": round(result.seconds, 3),
                    "files": reading.files,
                    "bytes": reading.bytes,
                }
            )
    files, size = result.reading.files, _size(result.reading.bytes)
    note(f"{len(rows)} rows in {result.seconds:.2f} s, {files} files of {size} read")


def _start(client: Client) -> None:
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


def _print_csv(columns: list[str], rows: list[dict[str, Any]]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    writer.writerows([list(row.values()) for row in rows])


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
