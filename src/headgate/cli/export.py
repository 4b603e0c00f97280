"""`headgate export`: files of rows by schedule, and mails when they are there."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say, say_lines
from headgate.errors import InvalidRequest, ServerUnavailable, TerminalError

POLL_SECONDS = 0.5
ENDED = ("Done", "Failed")

app = typer.Typer(
    help="Files of rows by schedule, and mails when they are there.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The export's name.")]


@app.command()
def create(
    name: NameArgument,
    definition: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML, as it stands below the name under `exports:`."),
    ] = None,
    sql: Annotated[str | None, typer.Option(help="A SELECT, with :from and :to of the period.")] = None,
    period: Annotated[str | None, typer.Option(help="day, week, month or schedule.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Cron: '0 6 * * 1'.")] = None,
    zone: Annotated[str | None, typer.Option(help="A time zone, as Europe/Oslo.")] = None,
    file_format: Annotated[str | None, typer.Option("--format", help="csv, jsonl, parquet or xlsx.")] = None,
    compression: Annotated[str | None, typer.Option(help="none, gzip or zstd.")] = None,
    folder: Annotated[str | None, typer.Option(help="Below the folder of exports.")] = None,
    mail: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Who gets a mail; may be repeated.")
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Create an export. What stands in an option wins over the file."""
    said = {
        "sql": sql,
        "period": period,
        "schedule": schedule,
        "zone": zone,
        "format": file_format,
        "compression": compression,
        "folder": folder,
        "mail": {"to": mail} if mail else None,
    }
    body = {**_definition(definition), **{key: value for key, value in said.items() if value is not None}}
    with connect(data) as client:
        made = client.post("exports", body={**body, "name": name})
    if json:
        print_json(made)
    else:
        say(f"{name} is there; it runs next at {made['next']}")


def _definition(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidRequest(f"{file} cannot be read: {error}.", "Write YAML: `sql: SELECT …`.") from error
    if not isinstance(found, dict) or "name" in found:
        raise InvalidRequest(
            f"{file} holds no definition of one export.", "Write `sql: SELECT …`, without a name."
        )
    return found


@app.command("list")
def list_all(data: DataOption = None, json: JsonOption = False) -> None:
    """All exports, with their last runs."""
    with connect(data) as client:
        found = client.get("exports")
    if json:
        print_json(found)
        return
    rows = []
    for one in found:
        last = one["last_run"] or {}
        rows.append(
            (one["name"], one["state"], one["next"] or "–", last.get("state", "–"), last.get("rows") or "")
        )
    print_table("Exports", ("NAME", "STATE", "NEXT RUN", "LAST RUN", "ROWS"), rows)


@app.command()
def show(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """One export: what it says, its warnings and its last runs."""
    with connect(data) as client:
        found = client.get("exports", name)
    if json:
        print_json(found)
        return
    spec = {key: value for key, value in found["spec"].items() if key != "sql"}
    fields = [("state", found["state"]), ("schedule", f"{found['schedule']} ({found['zone']})")]
    fields += [("next", found["next"] or "–"), *((key.replace("_", " "), str(spec[key])) for key in spec)]
    fields += [("warning", warning) for warning in found["warnings"]]
    print_fields(name, fields)
    say("")
    say_lines(found["spec"]["sql"])
    if found["runs"]:
        say("")
        _print_runs(found["runs"])


@app.command()
def history(
    name: NameArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many of the newest.")] = 20,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """The runs of an export, the newest first."""
    with connect(data) as client:
        found = client.get("exports", name, "runs", limit=limit)
    if json:
        print_json(found)
    else:
        _print_runs(found)


def _print_runs(runs: list[dict[str, Any]]) -> None:
    now = time.time()
    rows = [
        (
            run["id"],
            run["state"],
            run["from"],
            run["to"],
            run["rows"] if run["rows"] is not None else run["progress"],
            run["bytes"],
            f"{age(now - run['created_at'])} ago",
            "; ".join(filter(None, [run["reason"], *run["warnings"]])),
        )
        for run in runs
    ]
    print_table("Runs", ("RUN", "STATE", "FROM", "TO", "ROWS", "BYTES", "MADE", "SAID"), rows)


@app.command()
def run(
    name: NameArgument,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="With --to: what it is about.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The end, not in it.")] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="An incremental export begins again with the whole table.")
    ] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return as soon as it is asked for.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Run an export now, about its last whole period or about a time that is said."""
    said: dict[str, Any] = {"from": start, "to": end, "whole": whole or None}
    wanted = {key: value for key, value in said.items() if value is not None}
    with connect(data) as client:
        found = client.post("exports", name, "run", body=wanted)
        if not no_wait:
            found = _wait(client, name, found["id"])
    if json:
        print_json(found)
    elif found["state"] == "Done":
        more = f" and {len(found['parts']) - 1} more" if len(found["parts"]) > 1 else ""
        is_there = "are" if more else "is"
        say(f"{found['file']}{more} {is_there} there: {found['rows']} rows, {found['bytes']} bytes")
        for warning in found["warnings"]:
            say(f"warning: {warning}")
    elif no_wait:
        say(f"run {found['id']} is asked for")
    if found["state"] == "Failed":
        raise TerminalError(f"Run {found['id']} of export '{name}' has failed: {found['reason']}")


def _wait(client: Client, name: str, run_id: str) -> Any:
    """Until it has ended. A run that is tried again says why meanwhile."""
    with progress(f"running {name}") as shown:
        while True:
            found = next((one for one in client.get("exports", name, "runs") if one["id"] == run_id), None)
            if found is None:
                raise ServerUnavailable(
                    f"Run {run_id} is not there any more.", f"headgate export history {name}"
                )
            if found["state"] in ENDED:
                return found
            rows = f", {found['progress']} rows" if found["progress"] else ""
            why = f", tried again: {found['reason']}" if found["reason"] else ""
            shown.update(f"run {run_id} is {found['state']}{rows}{why}")
            time.sleep(POLL_SECONDS)


@app.command()
def pause(name: NameArgument, data: DataOption = None) -> None:
    """Make no more runs by schedule."""
    with connect(data) as client:
        client.post("exports", name, "pause")
    say(f"{name} is paused")


@app.command()
def resume(name: NameArgument, data: DataOption = None) -> None:
    """Go on with the schedule. What it named meanwhile is not made up for."""
    with connect(data) as client:
        found = client.post("exports", name, "resume")
    say(f"{name} runs next at {found['next']}")


@app.command("test")
def send_test(
    name: NameArgument,
    to: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Whom to send it to; may be repeated.")
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Send a test mail, to those whom the export tells or to others."""
    with connect(data) as client:
        found = client.post("exports", name, "test", body={} if not to else {"to": to})
    if json:
        print_json(found)
        return
    say(f"the mail server has taken a test for {', '.join(found['to'])}")
    for address, said in found["refused"].items():
        say(f"it refuses {address}: {said}")


@app.command()
def remove(name: NameArgument, data: DataOption = None) -> None:
    """Remove an export with its history. Files that it has made stay."""
    with connect(data) as client:
        client.delete("exports", name)
    say(f"{name} is removed; its files stay")
