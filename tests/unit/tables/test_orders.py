"""Which of two records of a key is the later one."""

import pytest

from headgate.model import Era, Position, SnapshotCount
from headgate.tables.deleted_keys import Mark
from headgate.tables.generations import (
    ERA_SHIFT,
    UNKNOWN,
    begins_generation,
    count_snapshots,
    generation_of,
    generation_of_mark,
    generation_steps,
)
from headgate.tables.key_index import Place
from headgate.tables.orders import comes_late, is_later, order_of

EARLY, LATE = order_of("db", b"\x01"), order_of("db", b"\x02")
ELSEWHERE = order_of("other", b"\x00")
ERA = 1 << ERA_SHIFT
#: The first topic was read up to offset 90 and created again; a snapshot has come in the second one.
POSITION = Position("cluster", "T2", {0: 20}, (Era("T1", {0: 90}),), {0: SnapshotCount(1, 10)})


def row(offset: int, partition: int = 0, order: bytes = b"") -> Place:
    return Place("file", 0, partition, offset, order)


@pytest.mark.parametrize(
    ("offset", "partition", "late"), [(4, 0, True), (5, 0, True), (6, 0, False), (6, 1, True)]
)
def test_a_replayed_record_is_late_unless_it_follows_in_the_same_partition(
    offset: int, partition: int, late: bool
) -> None:
    assert comes_late(partition, offset, b"", row(5), replay=True) is late


def test_a_record_of_a_batch_is_never_late_by_its_offset() -> None:
    assert not comes_late(1, 0, b"", row(5), replay=False)


def test_the_position_at_the_source_decides_before_the_offset() -> None:
    assert comes_late(0, 9, EARLY, row(5, order=LATE), replay=False)
    assert not comes_late(0, 1, LATE, row(5, order=EARLY), replay=True)
    assert not comes_late(0, 9, LATE, row(5, order=LATE), replay=False), "the same event again"
    assert not comes_late(0, 9, ELSEWHERE, row(5, order=LATE), replay=False), "another source"


def test_a_deletion_is_remembered_unless_a_later_record_is_known() -> None:
    assert is_later(Mark(b"k", 0, 5, b""), None)
    assert is_later(Mark(b"k", 0, 5, b""), row(4))
    assert not is_later(Mark(b"k", 0, 5, b""), row(6))
    assert not is_later(Mark(b"k", 1, 9, b""), row(5)), "nobody can tell across partitions"
    assert is_later(Mark(b"k", 0, 1, LATE), row(5, order=EARLY))
    assert not is_later(Mark(b"k", 0, 9, EARLY), row(5, order=LATE))


def test_positions_of_two_generations_are_never_compared() -> None:
    for generation in (1, ERA):
        restored = order_of("db", b"\x01", generation)
        assert not comes_late(0, 9, restored, row(5, order=LATE), replay=False)
        assert not comes_late(0, 9, LATE, row(5, order=restored), replay=False)
        assert generation_of(restored) == generation


def test_a_record_of_an_earlier_era_is_older_whatever_its_offset() -> None:
    new = row(5, order=order_of(None, None, ERA))
    assert comes_late(0, 99, b"", new, replay=True)
    assert not comes_late(0, 1, order_of(None, None, ERA), row(99), replay=True)
    assert not is_later(Mark(b"k", 0, 99, b""), new)
    assert not is_later(Mark(b"k", 0, 99, order_of(None, None, UNKNOWN)), row(5))
    assert is_later(Mark(b"k", 1, 0, order_of(None, None, ERA)), row(99))


def test_a_mark_counts_only_if_the_table_has_its_record() -> None:
    def mark(topic: str, offset: int, written: int | None) -> int | None:
        return generation_of_mark(POSITION, topic, 0, offset, written)

    assert mark("T2", 19, ERA) == ERA
    assert mark("T2", 20, ERA) is None, "its batch was never committed"
    assert mark("T1", 89, 0) == 0
    assert mark("T1", 90, 0) is None
    assert mark("T3", 1, ERA) is None, "the table was rolled back out of that topic"
    # As they were written before there were generations.
    assert mark("T1", 89, None) == 0
    assert mark("T0", 500, None) == UNKNOWN
    assert mark("T2", 25, None) is None


def test_the_generations_of_a_topic_by_offset() -> None:
    assert generation_steps(POSITION, "T1", 0) == [(0, 0)]
    assert generation_steps(POSITION, "T2", 0) == [(0, ERA), (10, ERA + 1)]
    assert generation_steps(POSITION, "T2", 1) == [(0, ERA)], "a partition that is new"
    assert generation_steps(POSITION, "T0", 0) == [(0, UNKNOWN)]
    timeline = POSITION.in_new_era("cluster", "T2", {0: 20})
    assert generation_steps(timeline, "T2", 0) == [(0, ERA), (20, 2 * ERA)]


def test_a_snapshot_begins_a_generation_only_after_stream_events() -> None:
    fresh, streamed = SnapshotCount(), SnapshotCount(streamed=True)
    assert not begins_generation(fresh, 7, 6), "the first snapshot, then the log"
    assert begins_generation(fresh, 5, 6)
    assert begins_generation(streamed, None, 6)
    assert not begins_generation(streamed, 3, None)
    assert count_snapshots(fresh, [(0, True), (7, False)]) == (SnapshotCount(0, 0, True), [])
    assert count_snapshots(streamed, [(5, True)]) == (SnapshotCount(1, 5), [5])
    assert count_snapshots(SnapshotCount(1, 5), [(9, True)]) == (SnapshotCount(1, 5), []), "it goes on"
    turns = [(5, True), (7, False), (9, True), (11, False)]
    assert count_snapshots(streamed, turns) == (SnapshotCount(2, 9, True), [5, 9])


def test_a_position_tells_its_generations_and_reads_those_of_before() -> None:
    assert Position.from_json(POSITION.to_json()) == POSITION
    plain = Position("cluster", "T1", {0: 1})
    assert plain.to_dict().keys() == {"cluster", "topic", "offsets"}
    assert Position.from_json(plain.to_json()) == plain
