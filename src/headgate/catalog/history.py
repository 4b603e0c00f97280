"""The history of a table as its metadata has it: the specification's JSON in, plain rows out. No I/O."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from headgate.model import (
    ASKED_BY_KEY,
    FROM_KEY,
    OPERATION_KEY,
    POSITION_KEY,
    ROLLED_BACK_FROM_KEY,
    ROLLED_BACK_RECORDS_KEY,
    ROLLED_BACK_TO_KEY,
    SECONDS_KEY,
    SPEC_KEY,
)

Metadata = Mapping[str, Any]
# What a snapshot's summary says of itself, by the names of this API.
_COUNTS = {
    "rows_added": "added-records",
    "rows_removed": "deleted-records",
    "rows_deleted": "added-position-deletes",
    "files_added": "added-data-files",
    "files_removed": "deleted-data-files",
    "delete_files_added": "added-delete-files",
    "delete_files_removed": "removed-delete-files",
    "bytes_added": "added-files-size",
    "bytes_removed": "removed-files-size",
}
_TOTALS = {
    "rows": "total-records",
    "deleted_rows": "total-position-deletes",
    "files": "total-data-files",
    "delete_files": "total-delete-files",
    "bytes": "total-files-size",
}


def snapshot_rows(metadata: Metadata) -> list[dict[str, Any]]:
    """As `t$snapshots`, the newest first."""
    return [
        {
            "committed_at": snapshot["timestamp-ms"],
            "snapshot_id": str(snapshot["snapshot-id"]),
            "parent_id": _id(snapshot.get("parent-snapshot-id")),
            "operation": _summary(snapshot).get("operation"),
            "manifest_list": snapshot.get("manifest-list"),
            "summary": {key: text for key, text in _summary(snapshot).items() if key != "operation"},
        }
        for snapshot in _newest_first(metadata)
    ]


def history_rows(metadata: Metadata) -> list[dict[str, Any]]:
    """As `t$history`: which snapshot was the current one since when, the newest first."""
    parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in _snapshots(metadata)}
    ancestors = set(_ancestors(metadata))
    return [
        {
            "made_current_at": entry["timestamp-ms"],
            "snapshot_id": str(entry["snapshot-id"]),
            "parent_id": _id(parents.get(entry["snapshot-id"])),
            "is_current_ancestor": entry["snapshot-id"] in ancestors,
        }
        for entry in reversed(metadata.get("snapshot-log") or [])
    ]


def ref_rows(metadata: Metadata) -> list[dict[str, Any]]:
    """As `t$refs`."""
    return [
        {
            "name": name,
            "type": str(ref["type"]).upper(),
            "snapshot_id": str(ref["snapshot-id"]),
            "max_reference_age_in_ms": ref.get("max-ref-age-ms"),
            "min_snapshots_to_keep": ref.get("min-snapshots-to-keep"),
            "max_snapshot_age_in_ms": ref.get("max-snapshot-age-ms"),
        }
        for name, ref in sorted((metadata.get("refs") or {}).items())
    ]


def table_history(metadata: Metadata) -> dict[str, Any]:
    """What each snapshot that is kept did, the newest first, and what the table takes with all of them."""
    snapshots = _newest_first(metadata)
    by_id = {one["snapshot-id"]: one for one in snapshots}
    ancestors, refs = set(_ancestors(metadata)), ref_rows(metadata)
    layouts = _partition_changes(metadata)
    entries = [
        _entry(metadata, one, by_id.get(one.get("parent-snapshot-id")))
        | {
            "partition_change": layouts.get(one["snapshot-id"]),
            "is_current_ancestor": one["snapshot-id"] in ancestors,
            "refs": [ref["name"] for ref in refs if ref["snapshot_id"] == str(one["snapshot-id"])],
        }
        for one in snapshots
    ]
    return {
        "snapshots": entries,
        "total": len(entries),
        "format_version": metadata.get("format-version"),
        **storage(metadata),
        "partition_specs": [_spec(metadata, spec) for spec in metadata.get("partition-specs") or []],
        "partition_spec_id": metadata.get("default-spec-id"),
    }


def storage(metadata: Metadata) -> dict[str, int | None]:
    """Of all snapshots that are kept: when the last compaction was, and the bytes of their files."""
    snapshots = _newest_first(metadata)
    compactions = [one["timestamp-ms"] for one in snapshots if _summary(one).get(OPERATION_KEY) == "compact"]
    return {
        "last_compaction_at": max(compactions, default=None),
        "kept_bytes": _kept_bytes(snapshots),
    }


def _entry(metadata: Metadata, snapshot: Metadata, parent: Metadata | None) -> dict[str, Any]:
    summary = _summary(snapshot)
    before = None if parent is None else _numbers(_summary(parent), _TOTALS)
    return {
        "snapshot_id": str(snapshot["snapshot-id"]),
        "sequence": int(snapshot.get("sequence-number") or 0),
        "parent_id": _id(snapshot.get("parent-snapshot-id")),
        "committed_at": snapshot["timestamp-ms"],
        "operation": summary.get("operation"),
        # What of ours it was: a batch, a replay, compact, erase, rollback, pin.
        "action": summary.get(OPERATION_KEY),
        **_numbers(summary, _COUNTS),
        "before": before,
        "after": _numbers(summary, _TOTALS),
        "seconds": float(summary[SECONDS_KEY]) if SECONDS_KEY in summary else None,
        "from": _offsets(summary.get(FROM_KEY)),
        "to": _offsets(summary.get(POSITION_KEY)),
        "rolled_back": _rolled_back(summary),
        "asked_by": summary.get(ASKED_BY_KEY),
        "schema_id": snapshot.get("schema-id"),
        "schema_changes": [] if parent is None else _schema_changes(metadata, parent, snapshot),
    }


def _rolled_back(summary: Mapping[str, str]) -> dict[str, str] | None:
    """From which snapshot the table was put back to which, and what became of the records."""
    if ROLLED_BACK_FROM_KEY not in summary:
        return None
    return {
        "from": summary[ROLLED_BACK_FROM_KEY],
        "to": summary[ROLLED_BACK_TO_KEY],
        "records": summary[ROLLED_BACK_RECORDS_KEY],
    }


def _numbers(summary: Mapping[str, str], names: Mapping[str, str]) -> dict[str, int]:
    return {name: int(summary.get(key) or 0) for name, key in names.items()}


def _offsets(text: str | None) -> dict[str, int] | None:
    """Of a position's JSON."""
    return None if text is None else dict(json.loads(text)["offsets"])


def _kept_bytes(newest_first: list[Metadata]) -> int:
    """The files of the oldest snapshot, and those that each later one added: none is gone before its last
    snapshot is."""
    if not newest_first:
        return 0
    *later, oldest = newest_first
    added = sum(int(_summary(one).get("added-files-size") or 0) for one in later)
    return added + int(_summary(oldest).get("total-files-size") or 0)


def _schema_changes(metadata: Metadata, parent: Metadata, snapshot: Metadata) -> list[str]:
    """Columns that came, went, are called otherwise or have another type, by their ids."""
    schemas = {schema["schema-id"]: schema for schema in metadata.get("schemas") or []}
    old, new = (schemas.get(one.get("schema-id")) for one in (parent, snapshot))
    if old is None or new is None or old is new:
        return []
    was, now = dict(_columns(old, "")), dict(_columns(new, ""))
    changes = [f"added {name} {kind}" for number, (name, kind) in now.items() if number not in was]
    changes += [f"dropped {name}" for number, (name, _) in was.items() if number not in now]
    for number in was.keys() & now.keys():
        (name, kind), (new_name, new_kind) = was[number], now[number]
        if name != new_name:
            changes.append(f"renamed {name} to {new_name}")
        if kind != new_kind:
            changes.append(f"{new_name} {kind} is {new_kind}")
    return sorted(changes)


def _partition_changes(metadata: Metadata) -> dict[int, str]:
    """The snapshots that laid their files out otherwise than the last one before them, each with by what."""
    by_id = {str(spec["spec-id"]): spec for spec in metadata.get("partition-specs") or []}
    specs: dict[int, str] = {}
    changes = {}
    for snapshot in reversed(_newest_first(metadata)):
        number, before = snapshot["snapshot-id"], specs.get(snapshot.get("parent-snapshot-id", -1))
        now = _summary(snapshot).get(SPEC_KEY, before)
        if now is not None:
            specs[number] = now
        if before is not None and now != before and now in by_id:
            changes[number] = ", ".join(_spec(metadata, by_id[now])["fields"]) or "none"
    return changes


def _columns(kind: Any, path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Every field of a type at any depth: its id, its path and its type's name."""
    if not isinstance(kind, Mapping):
        return
    fields = [(f["id"], f["name"], f["type"]) for f in kind.get("fields") or []]
    for part in ("element", "key", "value"):
        if f"{part}-id" in kind:
            fields.append((kind[f"{part}-id"], part, kind[part]))
    for number, name, inner in fields:
        full = f"{path}.{name}" if path else str(name)
        yield number, (full, inner if isinstance(inner, str) else str(inner["type"]))
        yield from _columns(inner, full)


def _spec(metadata: Metadata, spec: Metadata) -> dict[str, Any]:
    names: dict[int, str] = {}
    for schema in metadata.get("schemas") or []:
        names |= {number: name for number, (name, _) in _columns(schema, "")}
    fields = [
        _field(str(one["transform"]), str(names.get(one["source-id"], one["source-id"])))
        for one in spec["fields"]
        if one["transform"] != "void"
    ]
    return {"spec_id": spec["spec-id"], "fields": fields}


def _field(transform: str, column: str) -> str:
    """As `--partition` takes it: `day(ts)`, `bucket(16, id)`, `id`."""
    name, _, size = transform.removesuffix("]").partition("[")
    if name == "identity":
        return column
    return f"{name}({size}, {column})" if size else f"{name}({column})"


def _summary(snapshot: Metadata) -> Mapping[str, str]:
    return snapshot.get("summary") or {}


def _snapshots(metadata: Metadata) -> list[Metadata]:
    return list(metadata.get("snapshots") or [])


def _newest_first(metadata: Metadata) -> list[Metadata]:
    return sorted(_snapshots(metadata), key=lambda one: one.get("sequence-number") or 0, reverse=True)


def _ancestors(metadata: Metadata) -> Iterator[int]:
    parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in _snapshots(metadata)}
    number = metadata.get("current-snapshot-id")
    while number is not None and number in parents:
        yield number
        number = parents[number]


def _id(number: int | None) -> str | None:
    """A text: programs that read JSON round numbers that are so long."""
    return None if number is None else str(number)
