"""`headgate queries`: what was asked, what it cost, and the queries that run."""

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_fields, print_json, print_table, progress, say
from headgate.cli.query import size_text
from headgate.errors import InvalidRequest, ServerUnavailable

app = typer.Typer(help="Queries that were asked: list, show, compare, cancel.", no_args_is_help=True)

PAGE = 1000
STATES = ("running", "finished", "failed", "cancelled")
POLL_SECONDS, END_SECONDS = 0.25, 60.0
LONGEST_SQL = 60
QueryArgument = Annotated[str, typer.Argument(metavar="QUERY", help="A query's id.")]
FIGURES = ("seconds", "rows", "result_bytes", "files", "bytes", "files_skipped", "bytes_skipped")
SIZES = ("result_bytes", "bytes", "bytes_skipped")


@app.command("list")
def list_queries(
    state: Annotated[str | None, typer.Option(help="running, finished, failed or cancelled.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 50,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Your own queries, the newest first; an admin sees all."""
    if state is not None and state not in STATES:
        raise InvalidRequest(f"There is no state '{state}'.", f"There are {', '.join(STATES)}.")
    given = {} if state is None else {"state": state}
    found: list[dict[str, Any]] = []
    with connect(data) as client:
        while len(found) < limit:
            older = {"before": found[-1]["id"]} if found else {}
            page = client.get("queries", **given, **older, limit=min(PAGE, limit - len(found)))
            found += page
            if not page:
                break
    if json:
        print_json(found)
        return
    columns = ("QUERY", "STARTED", "WHO", "STATE", "SECONDS", "ROWS", "FILES", "READ", "SKIPPED", "SQL")
    print_table("Queries", columns, [_line(one) for one in found])


@app.command()
def show(query: QueryArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """A query: its SQL, the snapshots that it read, and what was read and skipped of each."""
    with connect(data) as client:
        found = client.get("queries", query)
    if json:
        print_json(found)
        return
    fields = [("state", found["state"]), ("error", found["error"]), ("who", found["principal"])]
    fields += [("started", _time(found["started_at"])), ("ended", _time(found["ended_at"]))]
    fields += [(name, _figure(name, found[name])) for name in FIGURES]
    print_fields(found["id"], [(name, value) for name, value in fields if value not in (None, "")])
    for one in found["tables"]:
        snapshot = f" at {one['snapshot_id']}" if one["snapshot_id"] is not None else ""
        read = f"{one['files']} files of {size_text(one['bytes'])} read"
        skipped = f"{one['files_skipped']} files of {size_text(one['bytes_skipped'])} skipped"
        reason = "" if one["reason"] is None else f": {one['reason']}"
        say(f"  {one['table']}{snapshot}: {read}, {skipped}{reason}")
    say(found["sql"])


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="A query's id.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another's.")],
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """What two queries cost side by side: B less A, and B by A."""
    with connect(data) as client:
        found = client.get("queries", first, "compare", second)
    if json:
        print_json(found)
        return
    lines = []
    for name, one in found["figures"].items():
        shown = [_figure(name, one[end]) for end in ("a", "b")]
        difference = one["difference"]
        sign = "-" if difference is not None and difference < 0 else "+"
        change = None if difference is None else sign + str(_figure(name, abs(difference)))
        ratio = None if one["ratio"] is None else f"{one['ratio']:.2f}"
        lines.append((name, *(_or_dash(text) for text in (*shown, change, ratio))))
    print_table("", ("", "A", "B", "B - A", "B / A"), lines)
    same = "the same" if found["same_sql"] else "not the same"
    snapshots = "the same snapshots" if found["same_snapshots"] else "other snapshots"
    say(f"{same} SQL, on {snapshots}")


@app.command()
def cancel(query: QueryArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """Stop a query that runs; returns when it has ended."""
    with connect(data) as client:
        client.delete("queries", query)
        deadline = time.monotonic() + END_SECONDS
        with progress(f"stopping query {query}"):
            while (found := client.get("queries", query))["state"] == "running":
                if time.monotonic() > deadline:
                    raise ServerUnavailable(
                        f"Query {query} has not ended after {END_SECONDS:.0f} s.",
                        "See logs/query.log in the data folder.",
                    )
                time.sleep(POLL_SECONDS)
    if json:
        print_json(found)
    else:
        say(f"query {query} is {found['state']}")


def _line(one: dict[str, Any]) -> tuple[object, ...]:
    sql = " ".join(one["sql"].split())
    read, skipped = (None if one[name] is None else size_text(one[name]) for name in SIZES[1:])
    seconds = _figure("seconds", one["seconds"])
    figures = (seconds, one["rows"], one["files"], read, skipped)
    short = sql if len(sql) <= LONGEST_SQL else sql[: LONGEST_SQL - 1] + "…"
    who = one["principal"]
    return (one["id"], _time(one["started_at"]), who, one["state"], *map(_or_dash, figures), short)


def _figure(name: str, value: Any) -> object:
    if value is None:
        return None
    if name in SIZES:
        return size_text(value)
    return f"{value:.2f}" if name == "seconds" else value


def _or_dash(value: object) -> object:
    return "–" if value is None else value


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
