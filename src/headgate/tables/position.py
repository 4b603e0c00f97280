"""Where a table has come in its topic: read from its own snapshots, never from anywhere else."""

from typing import Any

from headgate.errors import PositionMissing
from headgate.model import POSITION_KEY, POSITION_TAG, Position


def read_position(table: Any, name: str) -> Position | None:
    """The position of the newest ancestor that carries one; where expiry has left none, the tag's.

    After a rollback the tag is newer than the rows that are left: the ancestor's word goes first. None only
    for a table that never had a snapshot: one with history and no position is an error.
    """
    found = position_at(table, table.currentSnapshot())
    if found is None and table.operations().current().lastSequenceNumber() > 0:
        raise PositionMissing(
            f"Table '{name}' has history but none of its snapshots carries a position.",
            "Its snapshots were expired or replaced by another tool: start over with "
            "`headgate table disable --purge`, then enable it again.",
        )
    return found


def position_at(table: Any, snapshot: Any | None) -> Position | None:
    """The position of a table as of one of its snapshots: of its nearest ancestor that carries one, or of the
    tag where expiry has cut the history."""
    while snapshot is not None:
        position = _position_of(snapshot)
        if position is not None:
            return position
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None
    tag = table.refs().get(POSITION_TAG)
    return None if tag is None else _position_of(table.snapshot(tag.snapshotId()))


def _position_of(snapshot: Any) -> Position | None:
    text = snapshot.summary().get(POSITION_KEY) if snapshot is not None else None
    return None if text is None else Position.from_json(text)
