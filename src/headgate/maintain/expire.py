"""Old snapshots go, with the files that only they hold. The table's position stays."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headgate.errors import PositionMissing
from headgate.failpoints import failpoint
from headgate.maintain.actions import Actions, check_may_delete, lost_commits
from headgate.maintain.tags import kept_until
from headgate.model import ASKED_BY_KEY, OPERATION_KEY, POSITION_KEY, POSITION_TAG, Batch
from headgate.options import OWN_REFS
from headgate.tables.lake import FileChanges
from headgate.tables.mirror import DeltaMirror, snapshot_ids
from headgate.tables.position import read_position


@dataclass(frozen=True)
class Expired:
    """What an expiry did."""

    snapshots_before: int
    snapshots_after: int
    data_files_removed: int
    delete_files_removed: int
    # Tags and branches of others that still hold snapshots.
    held_by: list[str]


def expire(
    actions: Actions,
    table: Any,
    topic: str,
    older_than_ms: int,
    keep_last: int,
    mirror: DeltaMirror | None = None,
) -> Expired:
    """Expire what is older, but keep so many snapshots of `main`, and the one that has the position.

    The Delta log comes first: it shows all that the table has, and no version whose files are to go.
    """
    actions.lake.refresh(table)
    check_may_delete(table)
    before = _snapshots(table)
    if expirable(table, older_than_ms, keep_last) <= 0:
        return Expired(before, before, 0, 0, _held_by(table))
    with lost_commits(f"expire snapshots of table '{table.name()}'"):
        kept, carrier = kept_and_carrier(table, older_than_ms, keep_last)
        if _would_hold(kept, carrier):
            # It would be kept by the tag alone, with all of its files: a fresh one has the table's own.
            pin(actions, table, topic)
            kept, carrier = kept_and_carrier(table, older_than_ms, keep_last)
        _move_tag(table, topic, carrier)
        failpoint("maintain-tagged")
        if mirror is not None:
            plan = table.expireSnapshots().expireOlderThan(older_than_ms).retainLast(keep_last)
            doomed = {int(snapshot.snapshotId()) for snapshot in plan.apply()}
            mirror.truncate(table, snapshot_ids(table) - doomed)
        action = actions.of().expireSnapshots(table)
        result = action.expireOlderThan(older_than_ms).retainLast(keep_last).execute()
    actions.lake.refresh(table)
    return Expired(
        before,
        _snapshots(table),
        int(result.deletedDataFilesCount()),
        int(result.deletedPositionDeleteFilesCount()),
        _held_by(table),
    )


def expirable(table: Any, older_than_ms: int, keep_last: int) -> int:
    """How many snapshots an expiry would remove, at least; from metadata that is in memory."""
    if table.currentSnapshot() is None:
        return 0
    kept, carrier = kept_and_carrier(table, older_than_ms, keep_last)
    ids = {snapshot.snapshotId() for snapshot in kept}
    now = int(time.time() * 1000)
    untils = {name: kept_until(table, ref) for name, ref in table.refs().items() if name not in OWN_REFS}
    held = {table.refs().get(name).snapshotId() for name, at in untils.items() if at is None or at >= now}
    if carrier is not None and not _would_hold(kept, carrier):
        held.add(carrier.snapshotId())
    return _snapshots(table) - len(ids | held)


def kept_and_carrier(table: Any, older_than_ms: int, keep_last: int) -> tuple[list[Any], Any | None]:
    """The snapshots of `main` that stay by their age and number, and the one with the position of the oldest.

    Not the newest position of all: `main` may be put back to any snapshot that stays, and must find the
    position of the rows it has then. Those above a carrier that stays find that one themselves.
    """
    main = table.refs().get("main")
    keep = keep_last if main.minSnapshotsToKeep() is None else int(main.minSnapshotsToKeep())
    age = main.maxSnapshotAgeMs()
    oldest = older_than_ms if age is None else int(time.time() * 1000) - int(age)
    ancestors = list(_ancestors(table))
    count = 0
    while count < len(ancestors) and (count < keep or ancestors[count].timestampMillis() >= oldest):
        count += 1
    for snapshot in ancestors[count - 1 :]:
        if POSITION_KEY in snapshot.summary():
            return ancestors[:count], snapshot
    # An earlier expiry has cut the chain: what its tag says still holds.
    tag = table.refs().get(POSITION_TAG)
    return ancestors[:count], None if tag is None else table.snapshot(tag.snapshotId())


def pin(actions: Actions, table: Any, topic: str, asked_by: str = "") -> None:
    """A snapshot without rows that says again where the table stands, judged as any batch is. `asked_by`:
    whose request it is a part of."""
    position = read_position(table, topic)
    if position is None:
        raise PositionMissing(f"Table '{topic}' has no position to keep.")
    batch, head = Batch(position, position), table.currentSnapshot()
    whose = {ASKED_BY_KEY: asked_by} if asked_by else {}
    actions.lake.commit(table, topic, FileChanges(), batch, head, {OPERATION_KEY: "pin", **whose})
    actions.lake.refresh(table)


def _move_tag(table: Any, topic: str, carrier: Any | None) -> None:
    if carrier is None or POSITION_KEY not in carrier.summary():
        raise PositionMissing(
            f"Table '{topic}' has no snapshot with a position: nothing is expired.",
            "Its snapshots were expired or replaced by another tool: start over with "
            "`headgate table disable --purge`, then enable it again.",
        )
    tag = table.refs().get(POSITION_TAG)
    if tag is not None and tag.snapshotId() == carrier.snapshotId():
        return
    manage = table.manageSnapshots()
    change = manage.createTag if tag is None else manage.replaceTag
    change(POSITION_TAG, carrier.snapshotId()).commit()
    table.refresh()


def _ancestors(table: Any) -> Iterator[Any]:
    """Of `main`, the newest first, as far as they are reachable."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)


def _would_hold(kept: list[Any], carrier: Any | None) -> bool:
    """Whether the position is in a snapshot that goes otherwise, while a newer one could have it."""
    goes = carrier is None or all(snapshot.snapshotId() != carrier.snapshotId() for snapshot in kept)
    return goes and POSITION_KEY not in kept[0].summary()


def _held_by(table: Any) -> list[str]:
    return sorted(str(name) for name in table.refs() if name not in OWN_REFS)


def _snapshots(table: Any) -> int:
    return int(table.operations().current().snapshots().size())
