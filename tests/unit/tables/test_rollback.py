"""What a rollback would mean, and what it refuses, by a table's snapshots alone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InvalidRequest, PositionMissing
from headgate.model import (
    BATCH_KEY,
    DEAD_KEY,
    OPERATION_KEY,
    POSITION_TAG,
    ROLLBACK,
    ROLLED_BACK_FROM_KEY,
    ROLLED_BACK_TO_KEY,
    Batch,
    Position,
)
from headgate.tables.rollback import (
    Records,
    plan_rollback,
    undone_by,
    unfinished_rollback,
    why_not_again,
)
from tests.support.plain_table import PlainRef, PlainSnapshot, PlainTable


def at(first: int, second: int = 0, epoch: int = 1) -> Position:
    return Position("cluster", "topic", {0: first, 1: second}, epochs={0: epoch, 1: epoch})


def batch(number: int, start: Position, end: Position, rows: int = 0, **more: str) -> PlainSnapshot:
    summary = {**Batch(start, end, f"batch-{number}").summary(), "total-records": str(rows), **more}
    return PlainSnapshot(number, number - 1 or None, summary, at_ms=number * 1000)


ONE = batch(1, at(0), at(0))
TWO = batch(2, at(0), at(10, 5), 15)
THREE = batch(3, at(10, 5), at(20, 5), 23, **{DEAD_KEY: "2"})
COMPACTED = PlainSnapshot(4, 3, {OPERATION_KEY: "compact", "total-records": "23"}, at_ms=4000)
FIVE = batch(5, at(20, 5), at(20, 9, epoch=2), 27)
HISTORY = (ONE, TWO, THREE, COMPACTED, FIVE)


def table(*snapshots: PlainSnapshot, **said: Any) -> PlainTable:
    return PlainTable(*snapshots, **{"main": snapshots[-1].id, "log": [s.id for s in snapshots], **said})


def test_a_plan_says_what_leaves_in_snapshots_rows_and_offsets() -> None:
    plan = plan_rollback(table(*HISTORY), "orders", "2")
    assert plan.to_dict() == {
        "from": "5",
        "to": "2",
        "committed_at": 2000,
        "rows": 27,
        "rows_after": 15,
        "undone": {"batch": 2, "compact": 1},
        "offsets": 14,
        "ranges": [{"partition": 0, "start": 10, "end": 20}, {"partition": 1, "start": 5, "end": 9}],
        "dead_letters": 2,
    }


@pytest.mark.parametrize(
    ("to", "found"),
    [
        ("3", 3),
        ("good", 2),
        ("1970-01-01T00:00:02Z", 2),
        ("1970-01-01T00:00:03.999", 3),
        ("1970-01-01T01:00:04+01:00", 4),
    ],
)
def test_a_snapshot_is_named_by_its_id_a_tag_or_a_time(to: str, found: int) -> None:
    history = table(*HISTORY, tags={"good": PlainRef(2)})
    assert plan_rollback(history, "orders", to).target.snapshotId() == found


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("5", "is at snapshot 5 already"),
        ("99", "has no snapshot 99"),
        ("yesterday", "no snapshot's id, tag or time"),
        ("1970-01-01T00:00:00.5Z", "has no snapshot"),
        ("8", "not in the history of table 'orders' any more"),
        ("1970-01-01T00:00:06.5Z", "not in the history of table 'orders' any more"),
    ],
)
def test_what_cannot_be_gone_back_to_is_refused_by_name(to: str, said: str) -> None:
    undone = PlainSnapshot(8, 2, at_ms=6000)
    history = PlainTable(*HISTORY, undone, main=5, log=[1, 2, 8])
    with pytest.raises(InvalidRequest, match=said):
        plan_rollback(history, "orders", to)


def test_nothing_goes_back_beyond_an_erasure() -> None:
    erased = PlainSnapshot(6, 5, {OPERATION_KEY: "erase"}, at_ms=6000)
    after = batch(7, at(20, 9, epoch=2), at(21, 9), 20)
    with pytest.raises(InvalidRequest, match="were erased since snapshot 5"):
        plan_rollback(table(*HISTORY, erased, after), "orders", "5")
    assert plan_rollback(table(*HISTORY, erased, after), "orders", "6").undone == (after,)


def test_nothing_goes_back_beyond_another_topic_or_timeline() -> None:
    old = FIVE.properties["headgate.position"]
    new = Position.from_json(old).in_new_era("cluster", "another", {0: 3})
    accepted = batch(6, Position.from_json(old), new)
    with pytest.raises(InvalidRequest, match="not the same records"):
        plan_rollback(table(*HISTORY, accepted), "orders", "5")


def test_a_snapshot_of_which_nobody_tells_the_position_is_refused() -> None:
    lone = PlainSnapshot(4, 3, {OPERATION_KEY: "compact"}, at_ms=4000)
    with pytest.raises(PositionMissing, match="Nothing tells where"):
        plan_rollback(table(lone, FIVE), "orders", "4")
    tagged = plan_rollback(table(TWO, lone, FIVE, tagged=2), "orders", "4")
    assert tagged.back == at(10, 5)


def test_kept_out_the_position_stays_and_again_it_goes_back_and_remembers_what_was_read() -> None:
    plan = plan_rollback(table(*HISTORY), "orders", "2")
    assert plan.end(Records.KEEP_OUT) == at(20, 9, epoch=2)
    again = plan.end(Records.AGAIN)
    assert again == replace(at(10, 5, epoch=2), reread={0: 20, 1: 9})
    # Half of it is read again, and the table is put back once more: nothing of it is forgotten.
    half = batch(6, again, again.advanced_to({0: 15}), 20)
    assert half.properties["headgate.position"].endswith('"reread":{"0":20,"1":9}}')
    back = replace(half, parent=2)
    once_more = plan_rollback(table(*HISTORY, back), "orders", "2")
    assert once_more.end(Records.AGAIN).reread == {0: 20, 1: 9}


@given(
    st.dictionaries(st.integers(0, 3), st.integers(0, 30)),
    st.dictionaries(st.integers(0, 3), st.integers(1, 30)),
)
def test_what_is_read_again_is_remembered_until_the_position_has_passed_it(
    offsets: dict[int, int], read: dict[int, int]
) -> None:
    position = replace(at(0), reread=read).advanced_to(offsets)
    assert position.reread == {p: end for p, end in read.items() if end > position.offsets.get(p, 0)}
    assert Position.from_json(position.to_json()) == position
    farthest = position.once_read
    assert farthest.reread == {}
    for partition in {*position.offsets, *position.reread}:
        most = max(position.offsets.get(partition, 0), position.reread.get(partition, 0))
        assert farthest.offsets[partition] == most


@pytest.mark.parametrize(
    ("earliest", "ends", "replaced", "counted", "said"),
    [
        ({0: 10, 1: 5}, {0: 20, 1: 9}, {}, None, None),
        ({0: 10, 1: 5}, {0: 25, 1: 9}, {}, 14, None),
        ({0: 11, 1: 5}, {0: 20, 1: 9}, {}, None, "partition 0: 10 to 10"),
        ({0: 0, 1: 0}, {0: 18, 1: 9}, {}, None, "partition 0: 18 to 19"),
        ({0: 0, 1: 0}, {0: 20, 1: 9}, {1: (7, 9)}, None, "partition 1: 7 to 8"),
        ({0: 0, 1: 0}, {0: 20, 1: 9}, {}, 13, "only 13 of 14 offsets have a record"),
    ],
)
def test_records_are_read_again_only_while_kafka_has_them_all(
    earliest: dict[int, int],
    ends: dict[int, int],
    replaced: dict[int, tuple[int, int]],
    counted: int | None,
    said: str | None,
) -> None:
    plan = plan_rollback(table(*HISTORY), "orders", "2")
    why = why_not_again(plan, earliest, ends, replaced, counted)
    assert why is None if said is None else said in str(why)


def rollback(number: int, parent: int, head: int, to: int) -> PlainSnapshot:
    said = {OPERATION_KEY: ROLLBACK, ROLLED_BACK_FROM_KEY: str(head), ROLLED_BACK_TO_KEY: str(to)}
    return PlainSnapshot(number, parent, {BATCH_KEY: "asked", **said}, at_ms=number * 1000)


def test_a_rollback_is_followed_up_until_a_batch_has_come() -> None:
    back = rollback(6, parent=2, head=5, to=2)
    assert unfinished_rollback(table(*HISTORY)) is None
    assert unfinished_rollback(table(*HISTORY, back)) == back
    pin = PlainSnapshot(7, 6, {OPERATION_KEY: "pin"}, at_ms=7000)
    assert unfinished_rollback(table(*HISTORY, back, pin)) == back
    later = replace(batch(8, at(10, 5), at(20, 5)), parent=7)
    assert unfinished_rollback(table(*HISTORY, back, pin, later)) is None
    assert [one.id for one in undone_by(table(*HISTORY, back), back)] == [5, 4, 3]
    assert undone_by(table(ONE, TWO, back), back) == []


def test_a_tag_of_the_position_is_no_name_of_a_good_state() -> None:
    """It may be named all the same: it is a snapshot of the history."""
    history = table(*HISTORY, tagged=2)
    assert plan_rollback(history, "orders", POSITION_TAG).target == TWO
