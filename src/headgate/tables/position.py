"""Where a table has come in its topic: read from its own snapshots, never from anywhere else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.errors import PositionMissing
from headgate.model import POSITION_KEY, POSITION_TAG, Position


@dataclass(frozen=True)
class Carrier:
    """A snapshot that carries a position."""

    snapshot_id: int
    sequence_number: int
    position: Position


def read_position(table: Any, name: str) -> Position | None:
    """The newer of the newest ancestor that carries a position and the tag that maintenance keeps.

    None only for a table that never had a snapshot: one with history and no position is an error.
    """
    current = table.currentSnapshot()
    found = newest_carrier(current, table.snapshot)
    tag = table.refs().get(POSITION_TAG)
    if tag is not None:
        kept = _carrier(table.snapshot(tag.snapshotId()))
        if kept is not None and (found is None or kept.sequence_number > found.sequence_number):
            found = kept
    if found is not None:
        return found.position
    if table.operations().current().lastSequenceNumber() > 0:
        raise PositionMissing(
            f"Table '{name}' has history but none of its snapshots carries a position.",
            "Its commits did not come from Headgate, or its snapshots were expired by another tool: "
            "disable it with --purge and enable it again.",
        )
    return None


def newest_carrier(snapshot: Any, by_id: Callable[[int], Any]) -> Carrier | None:
    """Walk from `snapshot` to its parents as far as they are reachable."""
    while snapshot is not None:
        carrier = _carrier(snapshot)
        if carrier is not None:
            return carrier
        parent = snapshot.parentId()
        snapshot = by_id(parent) if parent is not None else None
    return None


def _carrier(snapshot: Any) -> Carrier | None:
    text = snapshot.summary().get(POSITION_KEY) if snapshot is not None else None
    if text is None:
        return None
    return Carrier(snapshot.snapshotId(), snapshot.sequenceNumber(), Position.from_json(text))
