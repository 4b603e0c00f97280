"""`headgate table compact|expire|clean|delete|mirror|verify`: maintenance that is asked for."""

import sys
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_json, say
from headgate.cli.table import TopicArgument, app, wait_for_request
from headgate.errors import InvalidRequest

__all__ = ["app"]


@app.command()
def compact(
    topic: TopicArgument,
    everything: Annotated[bool, typer.Option("--all", help="Every file, whatever its size.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Pack small files into few, and let deleted rows leave the files."""
    done = _ask(topic, "compact", {"all": everything}, data)
    if json:
        print_json(done)
        return
    say(
        f"{topic} is compacted: {done['files_before']} files are {done['files_after']}, "
        f"{done['bytes_before']} bytes are {done['bytes_after']}"
    )


@app.command()
def expire(
    topic: TopicArgument,
    older_than: Annotated[str | None, typer.Option(help="As 5d or 12h. [default: as configured]")] = None,
    keep_last: Annotated[
        int | None, typer.Option(min=1, help="Snapshots to keep in any case. [default: as configured]")
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Remove old snapshots, with the files that only they hold."""
    done = _ask(topic, "expire", {"older_than": older_than, "keep_last": keep_last}, data)
    if json:
        print_json(done)
        return
    removed = done["snapshots_before"] - done["snapshots_after"]
    say(f"{topic} is expired: {removed} snapshots and {done['data_files_removed']} data files are removed")
    _say_held(done)


@app.command()
def clean(
    topic: TopicArgument,
    older_than: Annotated[str | None, typer.Option(help="As 3d or 12h. [default: as configured]")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also files under an hour old: nothing may be writing.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Remove files in the table's folder that no snapshot knows."""
    done = _ask(topic, "clean", {"older_than": older_than, "force": force}, data)
    if json:
        print_json(done)
    else:
        say(f"{topic} is clean: {done['orphans_removed']} files are removed")


@app.command()
def delete(
    topic: TopicArgument,
    where: Annotated[str, typer.Option(help="A condition on the table's columns, as in SQL.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Erase rows for good: from the table, from its files and from its history."""
    if not yes:
        _confirm(topic, where)
    done = _ask(topic, "erase", {"where": where}, data)
    if json:
        print_json(done)
        return
    say(
        f"{done['rows_erased']} rows of {topic} are erased, {done['files_rewritten']} files written anew, "
        f"{done['snapshots_removed']} snapshots removed"
    )
    _say_held(done)
    say("Not covered: the topic itself, and the table's dead letters.")


@app.command()
def mirror(
    topic: TopicArgument,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Write the log anew from the Iceberg side. Versions get new numbers."),
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Bring a table's Delta log to where the table is."""
    done = _ask(topic, "mirror", {"rebuild": rebuild}, data)
    if json:
        print_json(done)
        return
    say(f"The Delta log of {topic} is at version {done['version']}: {done['rows']} rows")
    if rebuild:
        say("It was written anew: its versions are numbered from 0, and earlier ones are gone.")


@app.command()
def verify(
    topic: TopicArgument,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every row; compare with Kafka and the key index.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Check that a table is whole, while it goes on; exits with 1 when it is damaged."""
    found = _ask(topic, "verify", {"deep": deep}, data)
    if json:
        print_json(found)
    else:
        for check in found["checks"]:
            say(f"{check['state']:8} {check['name']:8} {check['detail']}")
        for one in found["findings"]:
            say(f"damaged: {one['check']}: {one['where']}: {one['message']}")
        if found["findings_total"] > len(found["findings"]):
            say(f"… and {found['findings_total'] - len(found['findings'])} more")
        state = "damaged" if found["damaged"] else "whole"
        say(f"{topic} is {state}: snapshot {found['snapshot_id']}, {found['rows']} rows")
    if found["damaged"]:
        raise typer.Exit(1)


def _confirm(topic: str, where: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"Rows of '{topic}' and the table's history are to be erased for good.", "Say --yes to mean it."
        )
    typer.confirm(f"Erase all rows of '{topic}' where {where}, and the table's history?", abort=True)


def _say_held(done: dict[str, Any]) -> None:
    if done["held_by"]:
        say(f"Tags and branches still hold older snapshots: {', '.join(done['held_by'])}.")


def _ask(topic: str, what: str, wanted: dict[str, Any], data: Any) -> dict[str, Any]:
    body = {name: value for name, value in wanted.items() if value is not None}
    with connect(data) as client:
        request = client.post("tables", topic, what, body=body)["request"]
        return wait_for_request(client, topic, request, may_be_suspended=what == "verify")
