"""`headgate table changes`: what is different between two snapshots of a table."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from headgate.cli.client import DataOption
from headgate.cli.lake import answer
from headgate.cli.maintain import app
from headgate.cli.query import OutputOption, print_answer
from headgate.cli.rows import chosen_output
from headgate.cli.table import TopicArgument
from headgate.errors import InvalidRequest

__all__ = ["app"]


@app.command()
def changes(
    topic: TopicArgument,
    start: Annotated[
        str, typer.Option("--from", help="A snapshot's id, a time (2026-01-31T12:00:00Z), or earliest.")
    ],
    end: Annotated[str | None, typer.Option("--to", help="As --from. [default: now]")] = None,
    summary: Annotated[
        bool, typer.Option("--summary", help="By column: how many values came, are others now, went.")
    ] = False,
    output: OutputOption = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Where to, instead of standard output.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Rows that came, went or are others now: inserts, updates (before and after) and deletes."""
    form = chosen_output(output, file)
    first = None if start == "earliest" else _when(start)
    last = None if end is None else _when(end)
    wanted = {"topic": topic, "start": first, "end": last, "summary": summary}
    with answer(wanted, data, ("queries", "changes")) as found:
        print_answer(found, form, file)


def _when(text: str) -> str:
    """As Spark takes it: an id, or a time in its own words."""
    if text.isdigit():
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            f"'{text}' is neither a snapshot's id nor a time.",
            "Ids and times of snapshots are in the metadata table `TOPIC.snapshots`.",
        ) from error
    return moment.isoformat(sep=" ") if moment.tzinfo else f"{moment.isoformat(sep=' ')}+00:00"
