"""`headgate table rollback|tag`: back to an earlier snapshot, and names for snapshots."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.history import app
from headgate.cli.output import print_json, print_table, say
from headgate.cli.table import TopicArgument, wait_for_request
from headgate.errors import InvalidRequest

__all__ = ["app"]

AGAIN, KEEP_OUT = "again", "keep-out"
SAY_WHICH = (
    "Say --records again to have them read again, or --records keep-out to keep them out of the table."
)


@app.command()
def rollback(
    topic: TopicArgument,
    to: Annotated[str, typer.Option(help="A snapshot's id, a tag, or a time (2026-01-31T12:00:00Z).")],
    records: Annotated[
        str | None,
        typer.Option(
            help="What becomes of the records that the table has read since: again (they are read again) or "
            "keep-out (they stay out of the table). [default: it asks]"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would mean.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Put a table back to an earlier snapshot of its history."""
    if records not in (None, AGAIN, KEEP_OUT):
        raise InvalidRequest(f"'{records}' cannot become of records.", SAY_WHICH)
    plan = _ask(topic, {"to": to, "dry_run": True}, data)
    if not json:
        _say_plan(topic, plan)
    if dry_run:
        if json:
            print_json(plan)
        return
    records = records or _choose(topic, plan)
    if records in plan["refused"]:
        raise InvalidRequest(plan["refused"][records])
    if not yes:
        _confirm(topic, plan, records)
    done = _ask(topic, {"to": plan["to"], "records": records}, data)
    if json:
        print_json(done)
        return
    how = "are read again" if done["records"] == AGAIN else "stay out of it"
    say(
        f"{topic} is put back to snapshot {done['to']}: {done['rows']} rows; the records of "
        f"{done['offsets']} offsets {how}"
    )


def _say_plan(topic: str, plan: dict[str, Any]) -> None:
    rows, after = plan["rows"], plan["rows_after"]
    undone = ", ".join(f"{count} × {kind}" for kind, count in plan["undone"].items())
    say(
        f"{topic} would go from snapshot {plan['from']} back to {plan['to']} of {_time(plan['committed_at'])}"
    )
    say(f"  rows: {rows} now, {after} then ({after - rows:+d})")
    say(f"  snapshots that leave its history: {undone}")
    ranges = ", ".join(
        f"partition {one['partition']}: {one['start']} to {one['end'] - 1}" for one in plan["ranges"]
    )
    letters = f", {plan['dead_letters']} of their records dead letters" if plan["dead_letters"] else ""
    say(f"  read since: {plan['offsets']} offsets{f' ({ranges})' if ranges else ''}{letters}")
    for kind, meaning in (
        (AGAIN, f"the position goes back, the records of {plan['offsets']} offsets are read again"),
        (KEEP_OUT, f"the position stays, the records of {plan['offsets']} offsets stay out of the table"),
    ):
        why = plan["refused"].get(kind)
        say(f"  --records {kind}: " + (meaning if why is None else f"not possible. {why}"))


def _choose(topic: str, plan: dict[str, Any]) -> str:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"It is not said what becomes of the records that table '{topic}' has read since.", SAY_WHICH
        )
    possible = [kind for kind in (AGAIN, KEEP_OUT) if kind not in plan["refused"]]
    if not possible:
        raise InvalidRequest(" ".join(plan["refused"].values()))
    answer: str = typer.prompt(f"What becomes of the records ({' or '.join(possible)})?")
    if answer not in possible:
        raise InvalidRequest(f"'{answer}' cannot become of them.", SAY_WHICH)
    return answer


def _confirm(topic: str, plan: dict[str, Any], records: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"Table '{topic}' is to be put back to snapshot {plan['to']}, records: {records}.",
            "Say --yes to mean it.",
        )
    typer.confirm(f"Put '{topic}' back to snapshot {plan['to']}, records: {records}?", abort=True)


@app.command()
def tag(
    topic: TopicArgument,
    name: Annotated[str | None, typer.Argument(help="The tag; without it, all are listed.")] = None,
    snapshot: Annotated[
        str | None, typer.Option(help="The snapshot's id. [default: the newest snapshot]")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="As 30d or 12h, from now on. [default: until it is removed]")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tag or branch.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Name a snapshot, so that expiry keeps it; list the names that there are."""
    if name is None:
        if snapshot is not None or keep is not None or remove:
            raise InvalidRequest(
                "The tag has no name.", "Write `headgate table tag TOPIC NAME`, or no option at all to list."
            )
        _list_tags(topic, data, json)
        return
    if remove and (snapshot is not None or keep is not None):
        raise InvalidRequest("A tag is made or removed, not both.", "Leave --snapshot and --keep away.")
    with connect(data) as client:
        if remove:
            request = client.delete("tables", topic, "tags", name)["request"]
        else:
            body = {"name": name, "snapshot": snapshot, "keep": keep}
            wanted = {key: value for key, value in body.items() if value is not None}
            request = client.post("tables", topic, "tags", body=wanted)["request"]
        done = wait_for_request(client, topic, request)
    if json:
        print_json(done)
    elif remove:
        say(f"{name} is no tag of {topic} any more; snapshot {done['snapshot_id']} is kept by age alone")
    else:
        say(f"{name} is snapshot {done['snapshot_id']} of {topic}, kept {_until(done['kept_until'])}")


def _list_tags(topic: str, data: Any, json: bool) -> None:
    with connect(data) as client:
        refs = client.get("tables", topic, "metadata", "refs")
        snapshots = client.get("tables", topic, "metadata", "snapshots")
    times = {one["snapshot_id"]: one["committed_at"] for one in snapshots}
    found = [
        {
            "name": one["name"],
            "type": one["type"].lower(),
            "snapshot_id": one["snapshot_id"],
            "committed_at": times.get(one["snapshot_id"]),
            "kept_until": _kept_until(one["max_reference_age_in_ms"], times.get(one["snapshot_id"])),
        }
        for one in refs
    ]
    if json:
        print_json(found)
        return
    lines = [
        (one["name"], one["type"], one["snapshot_id"], _time(one["committed_at"]), _until(one["kept_until"]))
        for one in found
    ]
    print_table(topic, ("NAME", "TYPE", "SNAPSHOT", "COMMITTED", "KEPT"), lines)


def _kept_until(age: int | None, committed_at: int | None) -> int | None:
    return None if age is None or committed_at is None else committed_at + age


def _until(moment: int | None) -> str:
    return "until it is removed" if moment is None else f"until {_time(moment)}"


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "–"
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _ask(topic: str, body: dict[str, Any], data: Any) -> dict[str, Any]:
    with connect(data) as client:
        return wait_for_request(client, topic, client.post("tables", topic, "rollback", body=body)["request"])
