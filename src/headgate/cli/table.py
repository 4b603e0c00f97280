"""`headgate table`: topics as tables."""

import sys
import time
from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say
from headgate.cli.status import print_tables
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable, TableStopped

POLL_SECONDS = 0.25
DISABLE_SECONDS = 120.0
# Of interest to programs only; `--json` has them.
INTERNAL = ("synced", "behind_since")

app = typer.Typer(help="Topics as tables.", no_args_is_help=True, rich_markup_mode=None)

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, which names its table.")]


@app.command()
def enable(
    topic: TopicArgument,
    formats: Annotated[str, typer.Option(help="Table formats: iceberg.")] = "iceberg",
    mode: Annotated[str, typer.Option(help="How records become rows: append.")] = "append",
    freshness: Annotated[str, typer.Option(help="How old a record may be when it is in the table.")] = "10s",
    on_error: Annotated[str, typer.Option(help="On a record that cannot be decoded: suspend.")] = "suspend",
    start: Annotated[
        str,
        typer.Option(
            "--from", help="earliest, latest, a time (2026-01-31T12:00:00Z), or offsets (0:12,1:40)."
        ),
    ] = "earliest",
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make a topic a table, and keep it one."""
    wanted = {
        "topic": topic,
        "formats": [name.strip() for name in formats.split(",")],
        "mode": mode,
        "freshness": freshness,
        "on_error": on_error,
        "from": start,
    }
    with connect(data) as client:
        found = client.post("tables", body=wanted)
    if json:
        print_json(found)
    else:
        say(f"{topic} is enabled: {found['state']}, {found['reason']}")


@app.command("list")
def list_tables(data: DataOption = None, json: JsonOption = False) -> None:
    """All tables and how they stand."""
    with connect(data) as client:
        found = client.get("tables")
    if json:
        print_json(found)
    else:
        print_tables(found)


@app.command()
def show(topic: TopicArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """All there is to know of a table."""
    with connect(data) as client:
        found = client.get("tables", topic)
    if json:
        print_json(found)
        return
    print_fields(topic, _fields(found))
    if found["events"]:
        say("")
        rows = [(age(event["age"]), event["kind"], event["message"]) for event in found["events"]]
        print_table("Events", ("AGO", "EVENT", "MESSAGE"), rows)


def _fields(found: dict[str, Any]) -> list[tuple[str, object]]:
    spec = found["spec"]
    fields = [
        ("state", found["state"]),
        ("reason", found["reason"] or "–"),
        ("since", f"{age(found['age'])} ago"),
        ("wanted", found["desired"]),
        ("formats", ", ".join(spec["formats"])),
        ("mode", spec["mode"]),
        ("freshness wanted", age(spec["freshness_seconds"])),
        ("on error", spec["on_error"]),
        ("from", found["from"]),
    ]
    detail = {name: value for name, value in found["detail"].items() if name not in INTERNAL}
    known = [(name.replace("_", " "), _text(value)) for name, value in detail.items() if value is not None]
    return [*fields, *known]


def _text(value: object) -> str:
    """`{"0": 12, "1": 40}` as `0:12 1:40`; a position is its offsets."""
    if isinstance(value, dict):
        pairs = value.get("offsets", value)
        return " ".join(f"{key}:{_text(item)}" for key, item in pairs.items())
    return " ".join(map(_text, value)) if isinstance(value, list) else str(value)


@app.command()
def sync(
    topic: TopicArgument,
    timeout: Annotated[str, typer.Option(help="Give up after this long; 0 never does.")] = "0",
    data: DataOption = None,
) -> None:
    """Wait until the table holds every record that is in the topic now."""
    from headgate.config import parse_duration

    seconds = parse_duration(timeout)
    with connect(data) as client:
        token = client.post("tables", topic, "sync")["token"]
        found = _wait_for_sync(client, topic, token, seconds)
    rows = "" if found["rows"] is None else f", {found['rows']} rows"
    say(f"{topic} is caught up{rows}")


def _wait_for_sync(client: Client, topic: str, token: str, seconds: float) -> dict[str, Any]:
    started = time.monotonic()
    backlog = 0
    with progress(f"{topic}: waiting for the engine") as shown:
        while True:
            found: dict[str, Any] = client.get("tables", topic)
            if found["detail"].get("synced") == token:
                return found
            if found["state"] in ("Suspended", "Failed"):
                raise TableStopped(f"Table '{topic}' is {found['state']}: {found['reason']}")
            lag = found["lag"]
            if lag is not None:
                backlog = max(backlog, lag)
                shown.update(f"{topic}: {found['rows'] or 0} rows", backlog - lag, backlog)
            if seconds and time.monotonic() - started > seconds:
                reason = f" ({found['reason']})" if found["reason"] else ""
                raise ServerUnavailable(
                    f"Table '{topic}' is not caught up after {seconds:g} s: "
                    f"{found['state']}{reason}, lag {lag}."
                )
            time.sleep(POLL_SECONDS)


@app.command()
def suspend(topic: TopicArgument, data: DataOption = None) -> None:
    """Stop writing the table; its position stays."""
    with connect(data) as client:
        client.post("tables", topic, "suspend")
    say(f"{topic} is to be suspended")


@app.command()
def resume(topic: TopicArgument, data: DataOption = None) -> None:
    """Go on where the table stopped."""
    with connect(data) as client:
        client.post("tables", topic, "resume")
    say(f"{topic} is to be resumed")


@app.command()
def disable(
    topic: TopicArgument,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the table and its files too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
) -> None:
    """Stop materializing the topic; the table stays, unless it is purged."""
    if purge and not yes:
        _confirm_purge(topic)
    with connect(data) as client:
        client.delete("tables", topic, purge=purge)
        _wait_until_disabled(client, topic)
    say(f"{topic} is disabled" + (", its table and files are deleted" if purge else ""))


def _confirm_purge(topic: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"--purge deletes the table of '{topic}' and its files.", "Say --yes to mean it."
        )
    typer.confirm(f"Delete the table of '{topic}' and all of its files?", abort=True)


def _wait_until_disabled(client: Client, topic: str) -> None:
    deadline = time.monotonic() + DISABLE_SECONDS
    with progress(f"{topic}: waiting for the engine"):
        while True:
            try:
                found = client.get("tables", topic)
            except NotFound:
                return
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The engine has not disabled '{topic}' in {DISABLE_SECONDS:.0f} s: {found['reason']}",
                    "It will when it can: see `headgate status`.",
                )
            time.sleep(POLL_SECONDS)
