"""Where a batch ends that was begun, wrote dead letters, and was not committed."""

import pytest

from headgate.model import Position
from headgate.tables.dead_letters import _rest


def at(topic: str = "topic", **offsets: int) -> Position:
    return Position("cluster", topic, {int(name[1:]): offset for name, offset in offsets.items()})


BEGUN, END = at(p0=10, p1=5), at(p0=20, p1=5, p2=3)


def test_a_batch_that_was_begun_ends_where_it_would_have_ended() -> None:
    assert _rest(BEGUN, END, BEGUN) == END


def test_records_that_were_accepted_as_lost_since_are_left_out() -> None:
    assert _rest(BEGUN, END, at(p0=15, p1=9)) == at(p0=20, p1=9, p2=3)


@pytest.mark.parametrize(
    "now",
    [END, at(p0=25, p1=9, p2=3), at(p0=9, p1=5), at("created again", p0=10, p1=5)],
    ids=["committed", "long past", "rolled back before it", "another topic"],
)
def test_a_batch_that_the_table_is_not_in_has_no_rest(now: Position) -> None:
    assert _rest(BEGUN, END, now) is None
