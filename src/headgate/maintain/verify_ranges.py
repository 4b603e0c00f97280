"""The offset ranges of a table's snapshots: each begins where the one before it ended."""

from collections.abc import Iterator
from typing import Any

from headgate.maintain.findings import Report
from headgate.model import (
    BATCH_KEY,
    DEAD_KEY,
    FROM_KEY,
    OPERATION_KEY,
    POSITION_KEY,
    SKIPPED_KEY,
    Batch,
    Position,
)

CHECK = "offsets"


def ancestors(table: Any, snapshot: Any) -> Iterator[Any]:
    """A snapshot and those before it, as far as they are reachable."""
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)


def check_ranges(report: Report, table: Any, snapshot: Any, append: bool) -> None:
    """`append`: a batch has at most one row for each offset of its range."""
    newer: tuple[int, Position] | None = None
    count = 0
    for one in ancestors(table, snapshot):
        summary = one.summary()
        where = f"snapshot {one.snapshotId()}"
        if POSITION_KEY not in summary:
            if (
                int(summary.get("added-records") or 0)
                and OPERATION_KEY not in summary
                and not _same_rows(one)
            ):
                report.add(CHECK, where, "has rows of another writer: it says no range of offsets")
            continue
        batch = Batch(
            Position.from_json(summary.get(FROM_KEY)), Position.from_json(summary.get(POSITION_KEY))
        )
        count += 1
        if newer is not None:
            _compare(report, newer[0], batch.end, newer[1])
        rows = sum(int(summary.get(key) or 0) for key in ("added-records", DEAD_KEY, SKIPPED_KEY))
        if append and BATCH_KEY in summary and rows > batch.offsets:
            report.add(CHECK, where, f"has {rows} records of a range of {batch.offsets} offsets")
        newer = (one.snapshotId(), batch.start)
    report.passed(CHECK, f"{count} batches")


def _same_rows(snapshot: Any) -> bool:
    return str(snapshot.operation()) == "replace"


def _compare(report: Report, snapshot_id: int, before: Position, start: Position) -> None:
    where = f"snapshot {snapshot_id}"
    if (before.cluster_id, before.topic_id) != (start.cluster_id, start.topic_id):
        report.add(
            CHECK, where, f"begins in topic {start.topic_id}, the one before it ends in {before.topic_id}"
        )
        return
    for partition in sorted({*before.offsets, *start.offsets}):
        end, begin = before.offsets.get(partition, 0), start.offsets.get(partition, 0)
        if begin > end:
            report.add(CHECK, where, f"skips partition {partition}, offsets {end} to {begin - 1}")
        elif begin < end:
            report.add(CHECK, where, f"repeats partition {partition}, offsets {begin} to {end - 1}")
