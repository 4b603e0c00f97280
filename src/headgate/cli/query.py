"""`headgate query`: SQL on the lake's tables."""

import csv
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption
from headgate.cli.lake import Answer, answer
from headgate.cli.output import note, print_table
from headgate.errors import InvalidRequest


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
    if not sql.strip():
        raise InvalidRequest("There is no SQL to run.", 'headgate query "SELECT …"')
    with answer({"sql": sql, "lake": True}, data) as found:
        print_answer(found, output)


def print_answer(found: Answer, output: Output) -> None:
    """The rows on standard output, what they cost beside it. Only a table needs all rows at once."""
    match output:
        case Output.TABLE:
            print_table("", found.columns, [[cell(value) for value in row] for row in found.rows()])
        case Output.CSV:
            _print_csv(found.columns, found.rows())
        case Output.JSON:
            _print_json(found)
    end = found.end
    read = f"{end['files']} files of {size_text(end['bytes'])} read"
    note(f"{end['rows']} rows in {end['seconds']:.2f} s, {read}")


def cell(value: Any) -> Any:
    """Where there is no place for structure, JSON keeps it readable."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _print_csv(columns: list[str], rows: Iterable[list[Any]]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(value) for value in row])


def _print_json(found: Answer) -> None:
    """One document, written as the rows come."""
    out, before = sys.stdout, "\n    "
    out.write('{\n  "rows": [')
    for row in found.rows():
        out.write(before + json.dumps(dict(zip(found.columns, row, strict=True)), ensure_ascii=False))
        before = ",\n    "
    shown = {name: found.end[name] for name in ("seconds", "files", "bytes")}
    end = "".join(f',\n  "{name}": {json.dumps(value)}' for name, value in shown.items())
    out.write(("" if before.startswith("\n") else "\n  ") + "]" + end + "\n}\n")


def size_text(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
