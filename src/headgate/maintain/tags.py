"""Names for snapshots: what a tag names is kept by expiry, for as long as the tag is."""

import time
from dataclasses import dataclass
from typing import Any

from headgate.errors import InvalidRequest
from headgate.options import check_tag
from headgate.tables.lake import Lake, catalog_errors


@dataclass(frozen=True)
class Tagged:
    """A tag, and until when expiry keeps it; None: until it is removed. Milliseconds of the epoch."""

    name: str
    snapshot_id: str
    kept_until: int | None


@dataclass(frozen=True)
class Untagged:
    """A tag or branch that is no more, and the snapshot that it named."""

    name: str
    snapshot_id: str


def tag(
    lake: Lake, table: Any, topic: str, name: str, snapshot: str | None = None, keep: float | None = None
) -> Tagged:
    """Name a snapshot, the newest unless one is said, for so many seconds from now on. Asked for again, it
    is the same."""
    check_tag(name)
    lake.refresh(table)
    found = table.currentSnapshot() if snapshot is None else _snapshot(table, snapshot)
    if found is None:
        raise InvalidRequest(
            f"Table '{topic}' has no snapshot {snapshot or 'yet'}.", f"See `headgate table history {topic}`."
        )
    number = found.snapshotId()
    before = table.refs().get(name)
    if before is not None:
        if before.isTag() and before.snapshotId() == number:
            return Tagged(name, str(number), kept_until(table, before))
        raise InvalidRequest(
            f"Table '{topic}' has a {'tag' if before.isTag() else 'branch'} '{name}' already, of snapshot "
            f"{before.snapshotId()}.",
            f"Remove it first: `headgate table tag {topic} {name} --remove`.",
        )
    with catalog_errors(f"tag table '{topic}'"):
        change = table.manageSnapshots().createTag(name, number)
        if keep is not None:
            # Iceberg counts from when the snapshot was made, whoever names it when.
            age = max(0, int(time.time() * 1000) - found.timestampMillis())
            change = change.setMaxRefAgeMs(name, age + max(1, int(keep * 1000)))
        change.commit()
    lake.refresh(table)
    return Tagged(name, str(number), kept_until(table, table.refs().get(name)))


def untag(lake: Lake, table: Any, topic: str, name: str) -> Untagged:
    """Remove a tag or a branch; its snapshot goes with the next expiry, if it is old enough."""
    check_tag(name)
    lake.refresh(table)
    before = table.refs().get(name)
    if before is None:
        raise InvalidRequest(
            f"Table '{topic}' has no tag '{name}'.", f"See `headgate table tag {topic}`, which lists them."
        )
    with catalog_errors(f"remove tag '{name}' of table '{topic}'"):
        change = table.manageSnapshots()
        (change.removeTag(name) if before.isTag() else change.removeBranch(name)).commit()
    lake.refresh(table)
    return Untagged(name, str(before.snapshotId()))


def kept_until(table: Any, reference: Any) -> int | None:
    """When expiry lets go of a tag or branch, in milliseconds of the epoch; None: never by itself."""
    age, snapshot = reference.maxRefAgeMs(), table.snapshot(reference.snapshotId())
    return None if age is None or snapshot is None else int(snapshot.timestampMillis()) + int(age)


def _snapshot(table: Any, text: str) -> Any | None:
    if not text.isdigit():
        raise InvalidRequest(f"'{text}' is no snapshot's id.", "They are in `headgate table history`.")
    return table.snapshot(int(text))
