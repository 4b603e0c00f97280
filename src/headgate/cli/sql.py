"""`headgate sql`: scripts of statements on topics."""

from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import note, print_json, print_table, say, say_lines
from headgate.errors import InvalidRequest


def sql(
    expression: Annotated[str | None, typer.Option("-e", help="A script.")] = None,
    file: Annotated[Path | None, typer.Option("-f", help="A file with a script.")] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Carry out statements in their order; those that run for ever are named, and run on."""
    if (expression is None) == (file is None):
        raise InvalidRequest("A script is wanted.", "Say -e 'SQL', or -f FILE.")
    with connect(data) as client:
        found = client.post("sql", body={"sql": expression if file is None else read(file)})
    if json:
        print_json(found["outcomes"])
        return
    for outcome in found["outcomes"]:
        show(outcome)


def read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The script {file} cannot be read: {error}.") from error


def show(outcome: dict[str, Any]) -> None:
    if outcome["message"]:
        say(outcome["message"])
    for warning in outcome["warnings"]:
        note(f"note: {warning}")
    if len(outcome["columns"]) == 1:
        for (text,) in outcome["rows"]:
            say_lines(text)
    elif outcome["columns"]:
        print_table("", outcome["columns"], outcome["rows"])
