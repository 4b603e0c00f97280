"""`headgate query`: SQL on the lake's tables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption
from headgate.cli.lake import Answer, answer
from headgate.cli.output import note
from headgate.cli.rows import Output, cell, chosen_output, write_rows
from headgate.errors import InvalidRequest

__all__ = ["Output", "cell", "print_answer", "query", "size_text"]

# What ends a document of JSON.
DOCUMENTED = ("seconds", "files", "bytes", "files_skipped", "bytes_skipped", "tables")
OutputOption = Annotated[
    Output | None, typer.Option(help="How to write the rows. [default: as --to ends, or a table]")
]
ToOption = Annotated[
    Path | None, typer.Option("--to", metavar="FILE", help="Where to: a file instead of standard output.")
]


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Tables are named by their topics.")],
    output: OutputOption = None,
    to: ToOption = None,
    data: DataOption = None,
) -> None:
    """Query the tables with Spark: time travel and metadata tables included."""
    if not sql.strip():
        raise InvalidRequest("There is no SQL to run.", 'headgate query "SELECT …"')
    form = chosen_output(output, to)
    with answer({"sql": sql, "lake": True}, data) as found:
        print_answer(found, form, to)


def print_answer(found: Answer, output: Output, to: Path | None = None) -> None:
    """The rows on standard output or in a file, what they cost on standard error."""

    def tail() -> Mapping[str, Any]:
        return {"query": found.id, **{name: found.end.get(name) for name in DOCUMENTED}}

    write_rows(found, output, to, tail)
    for line in cost_lines(found.end, found.id):
        note(line)


def cost_lines(end: Mapping[str, Any], query_id: str = "") -> list[str]:
    """What a query cost; and of each table of which no file was skipped, why."""
    line = f"{end['rows']} rows in {end['seconds']:.2f} s"
    if "files" in end:
        line += f", {end['files']} files of {size_text(end['bytes'])} read"
        line += f", {end['files_skipped']} files of {size_text(end['bytes_skipped'])} skipped"
    named = f" (query {query_id})" if query_id else ""
    reasons = [
        f"no file of {one['table']} was skipped: {one['reason']}"
        for one in end.get("tables", ())
        if one["reason"] is not None
    ]
    return [line + named, *reasons]


def size_text(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
