"""The position of a table, read from its snapshots alone."""

import pytest

from headgate.errors import PositionMissing
from headgate.model import POSITION_KEY, Position
from headgate.tables.position import read_position
from tests.support.plain_table import PlainSnapshot, PlainTable


def at(offset: int) -> Position:
    return Position("cluster", "topic", {0: offset})


def batch(number: int, offset: int, parent: int | None = None) -> PlainSnapshot:
    return PlainSnapshot(number, parent, {POSITION_KEY: at(offset).to_json()})


ONE, TWO = batch(1, 10), batch(2, 20, parent=1)
COMPACTED = PlainSnapshot(3, 2)


def test_the_newest_ancestor_with_a_position_is_read() -> None:
    assert read_position(PlainTable(ONE, TWO, main=2), "orders") == at(20)
    assert read_position(PlainTable(ONE, TWO, COMPACTED, main=3), "orders") == at(20)


def test_after_a_rollback_the_ancestor_is_read_and_not_the_newer_tag() -> None:
    assert read_position(PlainTable(ONE, TWO, main=1, tagged=2), "orders") == at(10)


def test_where_expiry_left_no_ancestor_the_tag_is_read() -> None:
    expired = PlainSnapshot(9, 8)
    assert read_position(PlainTable(ONE, expired, main=9, tagged=1, removed=7), "orders") == at(10)


def test_a_table_without_history_has_no_position() -> None:
    assert read_position(PlainTable(), "orders") is None


@pytest.mark.parametrize(
    "table",
    [PlainTable(PlainSnapshot(1), main=1), PlainTable(removed=3)],
    ids=["a snapshot without a position", "every snapshot expired"],
)
def test_history_without_a_position_is_an_error_and_no_fresh_start(table: PlainTable) -> None:
    with pytest.raises(PositionMissing, match="none of its snapshots carries a position"):
        read_position(table, "orders")
