"""Dead letters of a batch that was begun and not committed, and the claim of the engine that writes them."""

from dataclasses import replace
from typing import Any, cast

import pytest

from headgate.errors import StaleBatch
from headgate.model import Position
from headgate.tables.dead_letters import ENGINE_KEY, DeadLetters, _rest
from headgate.tables.lake import Lake
from tests.support.plain_table import PlainSnapshot, PlainTable


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


def test_dead_letters_of_offsets_that_another_leader_has_written_again_are_no_rest() -> None:
    """The table went back from 20 to 15, and what stands there now has never been looked at."""
    begun, end = (replace(position, epochs={0: 5, 1: 5}) for position in (BEGUN, END))
    back = end.advanced_to({0: 15}).in_new_era("cluster", "topic", {0: 15, 1: 5, 2: 3})
    assert _rest(begun, end, replace(back, epochs={0: 6, 1: 5})) is None
    # They were read from that leader, whoever led when the position was written.
    assert _rest(BEGUN, end, BEGUN) == replace(END, epochs={0: 5})
    timeline = begun.in_new_era("cluster", "topic", begun.offsets)
    assert _rest(begun, end, timeline) == timeline.advanced_to(end.offsets)


def test_dead_letters_of_partitions_that_kept_their_leader_are_not_written_again() -> None:
    """Of a batch in two partitions one has got another leader: the letters of the other are there already."""
    begun, end = (replace(at(p0=start, p1=start), epochs={0: 5, 1: 5}) for start in (10, 20))
    back = begun.advanced_to({0: 7}).in_new_era("cluster", "topic", {0: 7, 1: 10})
    now = replace(back, epochs={0: 6, 1: 5})
    assert _rest(begun, end, now) == now.advanced_to({1: 20})


class Unmoved:
    """A lake whose tables are as they were given."""

    parent = staticmethod(Lake.parent)

    def refresh(self, _: Any) -> None:
        pass


def snapshot(number: int, engine: str) -> PlainSnapshot:
    return PlainSnapshot(number, number - 1 or None, {ENGINE_KEY: engine})


CLAIM = snapshot(1, "ours")


def claimed(table: PlainTable) -> DeadLetters:
    """The dead letters of the engine `ours`, which knows the table up to its claim."""
    letters = DeadLetters("dlq", cast(Any, Unmoved()), cast(Any, None), "ours", cast(Any, None))
    letters._table, letters._head = table, CLAIM
    return letters


def test_an_engine_goes_on_after_its_own_snapshots() -> None:
    letters = claimed(PlainTable(CLAIM, snapshot(2, "ours"), main=2))
    letters._refreshed()
    assert letters._head == snapshot(2, "ours")


@pytest.mark.parametrize("engines", [("theirs",), ("theirs", "ours"), ("ours", "theirs")])
def test_an_engine_whose_claim_was_replaced_writes_nothing(engines: tuple[str, ...]) -> None:
    history = [CLAIM, *(snapshot(number, engine) for number, engine in enumerate(engines, 2))]
    with pytest.raises(StaleBatch, match="Another engine has claimed"):
        claimed(PlainTable(*history, main=len(history)))._refreshed()


def test_dead_letters_that_were_put_back_before_the_claim_are_not_written() -> None:
    before = PlainSnapshot(5, None, {ENGINE_KEY: "ours"})
    with pytest.raises(StaleBatch, match="put back to an earlier state"):
        claimed(PlainTable(before, CLAIM, main=5))._refreshed()
