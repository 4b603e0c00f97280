"""Where a table has come in its topic: read from its own snapshots, never from anywhere else."""

from typing import Any

from headgate.errors import PositionMissing
from headgate.model import POSITION_KEY, POSITION_TAG, Position


def read_position(table: Any, name: str) -> Position | None:
    """The position of the newest ancestor that carries one; where expiry has left none, the tag's.

    After a rollback the tag is newer than the rows that are left: the ancestor's word goes first. None only
    for a table that never had a snapshot: one with history and no position is an error.
    """
    found = _newest_ancestor(table)
    if found is None:
        tag = table.refs().get(POSITION_TAG)
        found = _position_of(table.snapshot(tag.snapshotId())) if tag is not None else None
    if found is None and table.operations().current().lastSequenceNumber() > 0:
        raise PositionMissing(
            f"Table '{name}' has history but none of its snapshots carries a position.",
            "Its snapshots were expired or replaced by another tool: start over with "
            "`headgate table disable --purge`, then enable it again.",
        )
    return found


def _newest_ancestor(table: Any) -> Position | None:
    """Walk from the current snapshot to its parents as far as they are reachable."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        position = _position_of(snapshot)
        if position is not None:
            return position
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    return None


def _position_of(snapshot: Any) -> Position | None:
    text = snapshot.summary().get(POSITION_KEY) if snapshot is not None else None
    return None if text is None else Position.from_json(text)
