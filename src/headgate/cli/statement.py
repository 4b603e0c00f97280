"""`headgate statement`: statements that run."""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say, say_lines
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable, StatementFailed

POLL_SECONDS = 0.25
PATIENCE_SECONDS = 120.0
# What is closed is read first, however much that is; the request stays if nobody waits for it.
FINISH_SECONDS = 3600.0

app = typer.Typer(help="Statements that run.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The statement's name.")]
NoWaitOption = Annotated[bool, typer.Option("--no-wait", help="Return as soon as it is asked for.")]


@app.command("list")
def list_statements(data: DataOption = None, json: JsonOption = False) -> None:
    """All statements, with where they stand."""
    with connect(data) as client:
        found = client.get("statements")
    if json:
        print_json(found)
        return
    print_statements(found)


def print_statements(found: list[dict[str, Any]]) -> None:
    keys = ("name", "state", "rows_in", "rows_out", "late_rows", "lag")
    rows = [(*(s[key] for key in keys), s["reason"] or s["waiting"] or "") for s in found]
    print_table("Statements", ("NAME", "STATE", "ROWS IN", "ROWS OUT", "LATE", "LAG", "REASON"), rows)


@app.command()
def show(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """All there is to know of a statement."""
    with connect(data) as client:
        found = client.get("statements", name)
    if json:
        print_json(found)
        return
    fields: list[tuple[str, object]] = [
        ("state", found["state"]),
        ("reason", found["reason"] or "–"),
        ("since", f"{age(found['age'])} ago"),
        ("wanted", found["desired"]),
        ("waiting", found["waiting"] or "–"),
    ]
    detail = {key: value for key, value in found["detail"].items() if key != "waiting"}
    steps, finished = detail.pop("steps", None), detail.pop("finished", None)
    if finished is not None and finished["watermark"] is not None:
        detail["finished"] = f"rows before {finished['watermark']} are late since"
    fields += [(key.replace("_", " "), _text(value)) for key, value in detail.items() if value is not None]
    print_fields(name, fields)
    if steps:
        say("")
        print_steps(steps)
    say("")
    say_lines(found["script"])
    if found["events"]:
        say("")
        rows = [(age(event["age"]), event["kind"], event["message"]) for event in found["events"]]
        print_table("Events", ("AGO", "EVENT", "MESSAGE"), rows)


def print_steps(steps: list[dict[str, Any]]) -> None:
    """The queries of a statement that Spark cannot run as one."""
    keys = ("batch", "batch_seconds", "lag", "state_rows", "state_bytes")
    rows = [(s["step"], ", ".join(s["reads"]), *("–" if s[k] is None else s[k] for k in keys)) for s in steps]
    columns = ("STEP", "READS", "BATCH", "BATCH SECONDS", "LAG", "STATE ROWS", "STATE BYTES")
    print_table("Steps", columns, rows)


@app.command()
def stop(name: NameArgument, no_wait: NoWaitOption = False, data: DataOption = None) -> None:
    """Stop a statement between two batches. Its offsets and its state stay."""
    with connect(data) as client:
        client.post("statements", name, "stop")
        if not no_wait:
            _wait(client, name, "to stop", lambda found: found["state"] in ("Stopped", "Failed", "Completed"))
    say(f"{name} is to be stopped" if no_wait else f"{name} is stopped")


@app.command()
def start(name: NameArgument, no_wait: NoWaitOption = False, data: DataOption = None) -> None:
    """Go on where a statement was."""
    with connect(data) as client:
        client.post("statements", name, "start")
        if not no_wait:
            _wait(client, name, "to run", _is_running)
    say(f"{name} is to be started" if no_wait else f"{name} runs")


@app.command()
def reset(
    name: NameArgument,
    start: Annotated[
        list[str],
        typer.Option(
            "--from",
            metavar="PLACE",
            help="Where to begin: earliest, latest, a time as 2026-01-31T12:00:00Z, offsets by partition as "
            "0:12,1:40, or last: where its output stands. TOPIC=PLACE for each, where it reads several.",
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
) -> None:
    """Have a stopped statement begin elsewhere. Says first what that repeats and skips."""
    places = _places(start)
    with connect(data) as client:
        plan = client.post("statements", name, "reset", body={"from": places, "dry_run": True})
        say_lines("\n".join(reset_lines(name, plan)))
        if not yes:
            _confirm(name)
        client.post("statements", name, "reset", body={"from": plan["places"]})
        done = _wait(client, name, "to be reset", lambda found: found["desired"] != "reset")
    if done["state"] == "Failed":
        raise StatementFailed(f"Statement '{name}' could not be reset: {done['reason']}")
    say(f"{name} is reset: start it with `headgate statement start {name}`")


def _places(said: list[str]) -> str | dict[str, str]:
    if all("=" in one for one in said):
        return dict(one.rpartition("=")[::2] for one in said)
    if len(said) > 1:
        raise InvalidRequest(
            "Several places are of several topics.",
            "Say --from TOPIC=PLACE for each, or --from PLACE for all.",
        )
    return said[0]


def reset_lines(name: str, plan: dict[str, Any]) -> list[str]:
    """What a reset means to who reads the output."""
    if plan["places"] == "last":
        return [f"{name} goes on where its output stands: nothing is repeated, nothing is skipped."]
    lines = [
        f"{verb} {span['topic']}, partition {span['partition']}, offsets {span['start']} to "
        f"{span['end'] - 1}: {span['end'] - span['start']} records at most"
        for verb, spans in (("repeats", plan["repeats"]), ("skips", plan["skips"]))
        for span in spans
    ]
    return [*(lines or ["Nothing is repeated, nothing is skipped."]), "What it remembers begins empty."]


def _confirm(name: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"This resets statement '{name}'.", "Say --yes to mean it.")
    typer.confirm(f"Reset statement '{name}'?", abort=True)


@app.command()
def finish(name: NameArgument, no_wait: NoWaitOption = False, data: DataOption = None) -> None:
    """Close what has come: all that waits for event time comes out, without a further record.

    The statement goes on. Rows before what its event time has passed by that are late from then on.
    """
    with connect(data) as client:
        request = client.post("statements", name, "finish")["finish"]
        if no_wait:
            say(f"{name} is to close what has come")
            return
        _wait(
            client,
            name,
            "to close what has come",
            lambda found: _has_finished(found, request),
            FINISH_SECONDS,
        )
        watermark = client.get("statements", name)["detail"]["finished"]["watermark"]
    say(f"{name} has written all that it had read")
    if watermark is not None:
        say(f"rows before {watermark} are late from now on")


@app.command()
def delete(name: NameArgument, no_wait: NoWaitOption = False, data: DataOption = None) -> None:
    """Delete a statement with its offsets and its state. The topic that it wrote stays."""
    with connect(data) as client:
        client.delete("statements", name)
        if not no_wait:
            with suppress(NotFound):
                _wait(client, name, "to be gone", lambda found: False)
    say(f"{name} is to be deleted" if no_wait else f"{name} is deleted")


def _is_running(found: dict[str, Any]) -> bool:
    if found["state"] == "Failed":
        raise StatementFailed(f"Statement '{found['name']}' has failed: {found['reason']}")
    # One that ends may have run between two looks.
    return found["state"] in ("Running", "Completed")


def _has_finished(found: dict[str, Any], request: str) -> bool:
    if found["state"] in ("Failed", "Stopped"):
        raise StatementFailed(
            f"Statement '{found['name']}' is {found['state']}: {found['reason']}",
            "What has come is closed when it runs again.",
        )
    return bool((found["detail"].get("finished") or {}).get("request") == request)


def _wait(
    client: Client,
    name: str,
    what: str,
    done: Callable[[dict[str, Any]], bool],
    patience: float = PATIENCE_SECONDS,
) -> dict[str, Any]:
    deadline = time.monotonic() + patience
    with progress(f"{name}: waiting for it {what}"):
        while not done(found := client.get("statements", name)):
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"Statement '{name}' is {found['state']} still, after {patience:.0f} s.",
                    "Does the engine run? See `headgate status`.",
                )
            time.sleep(POLL_SECONDS)
    return dict(found)


def _text(value: object) -> str:
    """`{"0": 12, "1": 40}` as `0:12 1:40`."""
    if isinstance(value, dict):
        return " ".join(f"{key}:{_text(item)}" for key, item in value.items())
    return str(value)
