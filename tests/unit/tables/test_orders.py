"""Which of two records of a key is the later one."""

import pytest

from headgate.tables.deleted_keys import Mark
from headgate.tables.key_index import Place
from headgate.tables.orders import comes_late, is_later, order_of

EARLY, LATE = order_of("db", b"\x01"), order_of("db", b"\x02")
ELSEWHERE = order_of("other", b"\x00")


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
