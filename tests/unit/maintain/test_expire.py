"""Which snapshots an expiry keeps, and which of them the position's tag is moved to."""

from typing import Any, cast

import pytest

from headgate.errors import PositionMissing
from headgate.maintain.expire import _move_tag, _would_hold, expire, kept_and_carrier
from headgate.model import POSITION_KEY, POSITION_TAG
from tests.support.plain_table import PlainSnapshot, PlainTable


def batch(number: int) -> PlainSnapshot:
    return PlainSnapshot(number, number - 1 or None, {POSITION_KEY: "{}"}, at_ms=number * 1000)


def compaction(number: int) -> PlainSnapshot:
    return PlainSnapshot(number, number - 1, at_ms=number * 1000)


def ids(table: PlainTable, older_than_ms: int, keep_last: int) -> tuple[list[int], int | None]:
    kept, carrier = kept_and_carrier(table, older_than_ms, keep_last)
    return [one.id for one in kept], None if carrier is None else carrier.id


BATCHES = PlainTable(batch(1), batch(2), batch(3), main=3)


@pytest.mark.parametrize(("older_than_ms", "keep_last", "kept"), [(9999, 1, 1), (9999, 2, 2), (2000, 1, 2)])
def test_snapshots_stay_by_their_number_or_their_age(older_than_ms: int, keep_last: int, kept: int) -> None:
    assert ids(BATCHES, older_than_ms, keep_last) == ([3, 2, 1][:kept], 4 - kept)


def test_the_tag_goes_to_the_position_of_the_oldest_snapshot_that_stays() -> None:
    """Main may be put back to the compaction, and must find the position of the rows it has then."""
    table = PlainTable(batch(1), batch(2), compaction(3), batch(4), batch(5), main=5)
    assert ids(table, 9999, 3) == ([5, 4, 3], 2)


def test_where_an_earlier_expiry_cut_the_chain_its_tag_still_holds() -> None:
    table = PlainTable(batch(1), compaction(3), main=3, tagged=1, removed=1)
    assert ids(table, 9999, 1) == ([3], 1)


def test_a_carrier_that_goes_is_replaced_unless_the_newest_snapshot_has_a_position() -> None:
    kept, carrier = kept_and_carrier(PlainTable(batch(1), compaction(2), main=2), 9999, 1)
    assert _would_hold(kept, carrier)
    kept, carrier = kept_and_carrier(PlainTable(batch(1), compaction(2), batch(3), main=3), 9999, 2)
    assert not _would_hold(kept, carrier)


class Recorder(PlainTable):
    """The table, Iceberg's changes to it and its actions at once: calls that matter are written down."""

    def __init__(self, *snapshots: PlainSnapshot, main: int) -> None:
        super().__init__(*snapshots, main=main)
        self.calls: list[tuple[Any, ...]] = []

    def createTag(self, name: str, snapshot: int) -> "Recorder":  # noqa: N802
        self.calls.append(("tag", name, snapshot))
        return self

    def execute(self) -> "Recorder":
        self.calls.append(("expire",))
        return self

    def of(self) -> "Recorder":
        return self

    def expireSnapshots(self, _: Any) -> "Recorder":  # noqa: N802
        return self

    expireOlderThan = retainLast = expireSnapshots  # noqa: N815

    def manageSnapshots(self) -> "Recorder":  # noqa: N802
        return self

    def commit(self) -> None:
        pass

    def refresh(self, _: Any = None) -> None:
        pass

    def name(self) -> str:
        return "orders"

    def properties(self) -> dict[str, str]:
        return {}

    def deletedDataFilesCount(self) -> int:  # noqa: N802
        return 0

    deletedPositionDeleteFilesCount = deletedDataFilesCount  # noqa: N815

    @property
    def lake(self) -> "Recorder":
        return self


def test_the_tag_is_moved_before_snapshots_expire() -> None:
    """An engine that dies between the two has lost nothing; the other way round, the position."""
    table = Recorder(batch(1), batch(2), compaction(3), batch(4), main=4)
    expire(cast(Any, table), table, "orders", 9999, keep_last=2)
    assert table.calls == [("tag", POSITION_TAG, 2), ("expire",)]


def test_nothing_is_expired_where_no_snapshot_has_a_position() -> None:
    table = Recorder(compaction(2), compaction(3), main=3)
    with pytest.raises(PositionMissing, match="nothing is expired"):
        _move_tag(table, "orders", None)
    with pytest.raises(PositionMissing, match="nothing is expired"):
        _move_tag(table, "orders", compaction(2))
    assert table.calls == []
