"""The offset ranges of a history of snapshots: gaps, repeats, rows that no range explains."""

from dataclasses import dataclass

import pytest

from headgate.maintain.findings import Report
from headgate.maintain.verify_ranges import check_ranges
from headgate.model import Batch, Position
from tests.support.plain_table import PlainSnapshot, PlainTable


@dataclass(frozen=True)
class Written(PlainSnapshot):
    """A snapshot that says how it was made."""

    kind: str = "append"

    def operation(self) -> str:
        return self.kind


def at(offset: int, topic: str = "T1") -> Position:
    return Position("cluster", topic, {0: offset, 1: 7})


def batch(number: int, start: Position, end: Position, rows: int = 0) -> Written:
    summary = {**Batch(start, end, f"batch {number}").summary(), "added-records": str(rows)}
    return Written(number, number - 1 or None, summary)


def findings(*history: PlainSnapshot, append: bool = True) -> list[str]:
    report = Report()
    table = PlainTable(*history, main=len(history))
    check_ranges(report, table, table.currentSnapshot(), append)
    assert report.is_damaged == (report.checks["offsets"]["state"] == "damaged")
    return [f"{one.where} {one.message}" for one in report.findings]


def test_ranges_that_follow_one_another_are_whole() -> None:
    compaction = Written(3, 2, {"added-records": "20"}, kind="replace")
    new = Position("cluster", "T1", {0: 20, 1: 7, 2: 3})
    assert (
        findings(batch(1, at(0), at(0)), batch(2, at(0), at(20), 20), compaction, batch(4, at(20), new, 3))
        == []
    )


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (at(12), "snapshot 2 skips partition 0, offsets 10 to 11"),
        (at(8), "snapshot 2 repeats partition 0, offsets 8 to 9"),
        (at(10, "T2"), "snapshot 2 begins in topic T2, the one before it ends in T1"),
    ],
    ids=["skipped", "overlapping", "another topic"],
)
def test_ranges_that_do_not_meet_are_found(start: Position, message: str) -> None:
    end = Position(start.cluster_id, start.topic_id, {0: 20, 1: 7})
    assert findings(batch(1, at(0), at(10), 10), batch(2, start, end, 5)) == [message]


def test_a_batch_with_more_rows_than_offsets_is_found() -> None:
    history = batch(1, at(0), at(10), 11)
    assert findings(history) == ["snapshot 1 has 11 records of a range of 10 offsets"]
    assert findings(history, append=False) == []


def test_rows_of_another_writer_are_found() -> None:
    found = findings(batch(1, at(0), at(10), 10), Written(2, 1, {"added-records": "1"}))
    assert found == ["snapshot 2 has rows of another writer: it says no range of offsets"]
