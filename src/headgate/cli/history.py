"""`headgate table history|metadata`: what was done to a table, and what it is made of."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.cli.changes import app
from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_json, print_table, say
from headgate.cli.query import cell, size_text
from headgate.cli.table import TopicArgument

__all__ = ["app"]


@app.command()
def history(
    topic: TopicArgument,
    limit: Annotated[int, typer.Option(min=1, help="So many snapshots, the newest first.")] = 50,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """What each snapshot that is kept did: rows, files, bytes, offsets, columns."""
    with connect(data) as client:
        found = client.get("tables", topic, "history", limit=limit)
    if json:
        print_json(found)
        return
    columns = ("COMMITTED", "SNAPSHOT", "OPERATION", "ROWS", "FILES", "BYTES", "SECONDS", "TO", "NOTES")
    print_table(topic, columns, [_line(one) for one in found["snapshots"]])
    if found["last_compaction_at"] is not None:
        say(f"last compaction: {_time(found['last_compaction_at'])}")
    kept = size_text(found["kept_bytes"])
    say(f"storage of all snapshots: {kept}, format version {found['format_version']}")


@app.command()
def metadata(
    topic: TopicArgument,
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="snapshots, history, refs, partitions, files or manifests.")
    ],
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """A table's metadata, without Spark."""
    with connect(data) as client:
        found: list[dict[str, Any]] = client.get("tables", topic, "metadata", kind)
    if json:
        print_json(found)
        return
    names = list(found[0]) if found else ["nothing"]
    print_table(
        f"{topic}${kind}", [name.upper() for name in names], [[cell(v) for v in r.values()] for r in found]
    )


def _line(one: dict[str, Any]) -> tuple[object, ...]:
    action = f" ({one['action']})" if one["action"] else ""
    removed = one["rows_removed"] + one["rows_deleted"]
    notes = [*one["schema_changes"], *(f"at {name}" for name in one["refs"])]
    if one["partition_change"] is not None:
        notes.append(f"partitioned by {one['partition_change']} from here on")
    if one["rolled_back"] is not None:
        back = one["rolled_back"]
        notes.append(f"back from {back['from']} to {back['to']}, records {back['records']}")
    if not one["is_current_ancestor"]:
        notes.append("undone")
    if one["action"] not in (None, "batch", "rollback") and one["before"] is not None:
        before, after = one["before"], one["after"]
        notes.append(
            f"{before['files']} files of {size_text(before['bytes'])} are {after['files']} of "
            f"{size_text(after['bytes'])}"
        )
    if one["asked_by"]:
        notes.append(f"asked by {one['asked_by']}")
    offsets = " ".join(f"{partition}:{offset}" for partition, offset in (one["to"] or {}).items())
    return (
        _time(one["committed_at"]),
        one["snapshot_id"],
        f"{one['operation']}{action}",
        f"+{one['rows_added']} -{removed}",
        f"+{one['files_added']} -{one['files_removed']}",
        f"+{size_text(one['bytes_added'])} -{size_text(one['bytes_removed'])}",
        "–" if one["seconds"] is None else f"{one['seconds']:.2f}",
        offsets or "–",
        "; ".join(notes),
    )


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
