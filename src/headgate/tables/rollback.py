"""A table is put back to an earlier snapshot of its history, in one commit that says where it stands then.

`main` goes back, and on it comes an empty snapshot with the position: no commit that is still under way finds
the head that it was made for. What lies beside the table (remembered deletes, dead letters, key index, Delta
log) follows when the table is opened again, before any batch; done twice, it is the same.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from headgate.errors import InvalidRequest, PositionMissing, StaleBatch
from headgate.model import (
    ASKED_BY_KEY,
    DEAD_KEY,
    FROM_KEY,
    OPERATION_KEY,
    POSITION_KEY,
    POSITION_TAG,
    REPLAY_KEY,
    ROLLBACK,
    ROLLED_BACK_FROM_KEY,
    ROLLED_BACK_RECORDS_KEY,
    ROLLED_BACK_TO_KEY,
    SPEC_KEY,
    Batch,
    OffsetRange,
    Position,
)
from headgate.tables.lake import commit_errors
from headgate.tables.plan import lost_ranges, named
from headgate.tables.position import position_at
from headgate.tables.totals import Totals

ERASE, OTHER = "erase", "other"
# What may come on a rollback without being a batch of the table.
_PASSIVE = ("pin", "compact", ERASE)


EVENTS_NEED_EACH_OTHER = (
    "The rows of table '{topic}' are of change events, and a later one may leave out values that only one "
    "before it has: records that are kept out would change rows that come after them. Read them again."
)


class Records(StrEnum):
    """What becomes of the records between the two positions."""

    AGAIN = "again"  # the position goes back, they are read again
    KEEP_OUT = "keep-out"  # the position stays, they stay out of the table


@dataclass(frozen=True)
class Wanted:
    """What somebody asks for: the request's id, a snapshot's id, a tag or a time, and what of the records."""

    id: str
    to: str
    records: Records | None = None
    asked_by: str = ""


@dataclass(frozen=True)
class RollbackPlan:
    """From which snapshot to which, and the table's positions at both."""

    topic: str
    head: Any
    target: Any
    #: The snapshots that leave the table's history, the newest first.
    undone: tuple[Any, ...]
    was: Position
    back: Position

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The records that the table has read since the target, as far as offsets tell."""
        return Batch(self.back, self.was).ranges

    @property
    def dead(self) -> int:
        """Records among them that became dead letters."""
        return sum(int(one.summary().get(DEAD_KEY) or 0) for one in self.undone)

    @property
    def replays(self) -> bool:
        return any(one.summary().get(REPLAY_KEY) for one in self.undone)

    def end(self, records: Records) -> Position:
        """Where the table stands after it."""
        if records is Records.KEEP_OUT:
            return self.was
        farthest = self.was.once_read.offsets
        ahead = {p: end for p, end in farthest.items() if end > self.back.offsets.get(p, 0)}
        return replace(self.back, epochs={**self.back.epochs, **self.was.epochs}, reread=ahead)

    def to_dict(self) -> dict[str, Any]:
        """What it means, in snapshots, rows and offsets."""
        kinds = Counter(str(one.summary().get(OPERATION_KEY) or OTHER) for one in self.undone)
        return {
            "from": str(self.head.snapshotId()),
            "to": str(self.target.snapshotId()),
            "committed_at": int(self.target.timestampMillis()),
            "rows": rows_of(self.head),
            "rows_after": rows_of(self.target),
            "undone": dict(sorted(kinds.items())),
            "offsets": sum(map(len, self.ranges)),
            "ranges": [{"partition": r.partition, "start": r.start, "end": r.end} for r in self.ranges],
            "dead_letters": self.dead,
        }


def plan_rollback(table: Any, topic: str, to: str) -> RollbackPlan:
    """Refuses what cannot be gone back to, whatever becomes of the records."""
    head, target = table.currentSnapshot(), _target(table, topic, to)
    undone = tuple(_since(table, head, target.snapshotId()))
    if not undone:
        raise InvalidRequest(f"Table '{topic}' is at snapshot {target.snapshotId()} already.")
    if any(one.summary().get(OPERATION_KEY) == ERASE for one in undone):
        raise InvalidRequest(
            f"Rows of table '{topic}' were erased since snapshot {target.snapshotId()}: it cannot be put "
            "back to it, or they would be there again."
        )
    was, back = position_at(table, head), position_at(table, target)
    if was is None or back is None:
        raise PositionMissing(
            f"Nothing tells where table '{topic}' stood in its topic at snapshot {target.snapshotId()}.",
            "Choose a younger snapshot of `headgate table history`.",
        )
    if (was.cluster_id, was.topic_id, was.earlier) != (back.cluster_id, back.topic_id, back.earlier):
        raise InvalidRequest(
            f"Since snapshot {target.snapshotId()} somebody has accepted another topic or timeline for table "
            f"'{topic}', or lost records: offsets before and after it are not the same records.",
            "Choose a younger snapshot of `headgate table history`, or start over with `disable --purge`.",
        )
    return RollbackPlan(topic, head, target, undone, was, back)


def rows_of(snapshot: Any) -> int:
    summary = snapshot.summary()
    return int(summary.get("total-records") or 0) - int(summary.get("total-position-deletes") or 0)


def roll_back(table: Any, plan: RollbackPlan, wanted: Wanted, records: Records, totals: Totals) -> Any:
    """*The* commit of a rollback; its snapshot. Made from the state that was planned from, or not at all.

    Not by Iceberg's own end of a transaction, which would refresh and do it again on what others have made.
    """
    batch = Batch(plan.back, plan.end(records), wanted.id)
    summary = {
        **batch.summary(),
        **totals.summary(0),
        SPEC_KEY: str(table.spec().specId()),
        OPERATION_KEY: ROLLBACK,
        ROLLED_BACK_FROM_KEY: str(plan.head.snapshotId()),
        ROLLED_BACK_TO_KEY: str(plan.target.snapshotId()),
        ROLLED_BACK_RECORDS_KEY: records.value,
        **({ASKED_BY_KEY: wanted.asked_by} if wanted.asked_by else {}),
    }
    with commit_errors(f"roll back table '{plan.topic}'"):
        transaction, operations = table.newTransaction(), table.operations()
        base = operations.current()
        if not plan.head.equals(base.currentSnapshot()):
            raise StaleBatch(f"Table '{plan.topic}' has moved on: the rollback is planned again.")
        transaction.manageSnapshots().rollbackTo(plan.target.snapshotId()).commit()
        update = transaction.newAppend()
        for key, value in summary.items():
            update.set(key, value)
        update.commit()
        tag = table.refs().get(POSITION_TAG)
        if tag is not None and _is_undone(plan, tag.snapshotId()):
            after = transaction.table().currentSnapshot().snapshotId()
            transaction.manageSnapshots().replaceTag(POSITION_TAG, after).commit()
        operations.commit(base, transaction.table().operations().current())
        table.refresh()
    return table.currentSnapshot()


def unfinished_rollback(table: Any) -> Any | None:
    """The snapshot of a rollback that no batch has followed: what lies beside the table may not have."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        operation = snapshot.summary().get(OPERATION_KEY)
        if operation == ROLLBACK:
            return snapshot
        if operation not in _PASSIVE and str(snapshot.operation()) != "replace":
            return None
        snapshot = _parent(table, snapshot)
    return None


def undone_by(table: Any, rolled_back: Any) -> list[Any]:
    """The snapshots that a rollback took out of the history, as far as they are kept."""
    said: Mapping[str, str] = rolled_back.summary()
    head = table.snapshot(int(said[ROLLED_BACK_FROM_KEY]))
    return [] if head is None else list(_since(table, head, int(said[ROLLED_BACK_TO_KEY])))


def why_not_again(
    plan: RollbackPlan,
    earliest: Mapping[int, int],
    ends: Mapping[int, int],
    replaced: Mapping[int, tuple[int, int]],
    counted: int | None,
) -> str | None:
    """Why the records cannot be read again: Kafka has not all of them any more. None if it has.

    `counted`: how many are there, of a topic that is compacted.
    """
    behind = plan.was.offsets
    cut = {p: (ends[p], end) for p, end in behind.items() if p in ends and ends[p] < end}
    gone = {**lost_ranges(plan.back, earliest), **cut, **replaced}
    if gone:
        return f"Kafka no longer has the records of topic '{plan.topic}' ({named(gone)}): keep them out."
    offsets = sum(map(len, plan.ranges))
    if counted is not None and counted < offsets:
        return (
            f"Topic '{plan.topic}' is compacted, and only {counted} of {offsets} offsets have a record: "
            "those that are gone may have deleted or changed rows. Keep the records out."
        )
    return None


def outcome(table: Any, rolled_back: Any) -> dict[str, Any]:
    """What a rollback has done, by its own snapshot."""
    said = rolled_back.summary()
    batch = Batch(Position.from_json(said.get(FROM_KEY)), Position.from_json(said.get(POSITION_KEY)))
    head = table.snapshot(int(said.get(ROLLED_BACK_FROM_KEY)))
    position = batch.start if head is None else position_at(table, head)
    return {
        "snapshot_id": str(rolled_back.snapshotId()),
        "from": str(said.get(ROLLED_BACK_FROM_KEY)),
        "to": str(said.get(ROLLED_BACK_TO_KEY)),
        "records": str(said.get(ROLLED_BACK_RECORDS_KEY)),
        "rows_before": None if head is None else rows_of(head),
        "rows": rows_of(rolled_back),
        "offsets": Batch(batch.start, position or batch.start).offsets,
    }


def _target(table: Any, topic: str, to: str) -> Any:
    """By its id, by a tag or branch, or by a time at which it was the newest."""
    reference = table.refs().get(to)
    if reference is not None:
        found = table.snapshot(reference.snapshotId())
    elif to.isdigit():
        found = table.snapshot(int(to))
    else:
        found = _newest_at(table, topic, to)
    if found is None:
        raise InvalidRequest(
            f"Table '{topic}' has no snapshot {to} (any more).", f"See `headgate table history {topic}`."
        )
    snapshot = table.currentSnapshot()
    while snapshot is not None and snapshot.snapshotId() != found.snapshotId():
        snapshot = _parent(table, snapshot)
    if snapshot is None:
        raise InvalidRequest(
            f"Snapshot {found.snapshotId()} is not in the history of table '{topic}' any more: the table was "
            "put back to one before it, or its history was cut in between.",
            f"See `headgate table history {topic}`.",
        )
    return snapshot


def _newest_at(table: Any, topic: str, text: str) -> Any | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            f"'{text}' is no snapshot's id, tag or time of table '{topic}'.",
            f"See `headgate table history {topic}`; a time is written 2026-01-31T12:00:00Z.",
        ) from error
    until = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000
    number: int | None = None
    for entry in table.history():
        if entry.timestampMillis() <= until:
            number = entry.snapshotId()
    return None if number is None else table.snapshot(number)


def _since(table: Any, head: Any, target_id: int) -> Iterator[Any]:
    """From `head` down to the snapshot after the target, as far as they are reachable."""
    snapshot = head
    while snapshot is not None and snapshot.snapshotId() != target_id:
        yield snapshot
        snapshot = _parent(table, snapshot)


def _parent(table: Any, snapshot: Any) -> Any | None:
    parent = snapshot.parentId()
    return None if parent is None else table.snapshot(parent)


def _is_undone(plan: RollbackPlan, snapshot_id: int) -> bool:
    return any(one.snapshotId() == snapshot_id for one in plan.undone)
