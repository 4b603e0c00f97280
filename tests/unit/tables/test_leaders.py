"""Another broker leads a partition: what the table has read must still be what the topic has."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from headgate.errors import CommitUnknown, InvalidRequest, OffsetsLost, RowsChanged
from headgate.model import REQUEST_KEY, Batch, Era, OnError, Position, TableSpec, Topic
from headgate.tables.materialize import Materializer, TopicView
from headgate.tables.plan import Limits, check_leaders
from tests.support.plain_table import PlainSnapshot
from tests.unit.tables.test_batch_order import Parts

# Read up to offset 100 from the leader of epoch 5.
POSITION = Position("cluster", "T1", {0: 100}, epochs={0: 5})


def looked_at(epoch: int, end: int = 120) -> TopicView:
    return TopicView("cluster", Topic("orders", "T1", (0,)), {0: 0}, {0: end}, {0: epoch})


class Broker(Parts):
    """A topic whose records were written by the leaders that `steps` tells."""

    def __init__(self, view: TopicView, steps: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.now, self.steps = view, steps
        self.looks = 0
        self.committed: list[Batch] = []
        self.loses_answers = False
        self.requests: set[str] = set()

    def view(self, _: str) -> TopicView:
        return self.now

    def leader_epochs(self, *_: Any) -> Mapping[int, Sequence[tuple[int, int]]]:
        self.looks += 1
        return {0: self.steps}

    def commit(self, *arguments: Any) -> Any:
        self.committed.append(arguments[3])
        self.requests |= {request for request in [arguments[5].get(REQUEST_KEY)] if request is not None}
        if self.loses_answers:
            raise CommitUnknown("the connection broke")
        return super().commit()

    def find_request(self, _: Any, request: str) -> Any | None:
        return PlainSnapshot(1) if request in self.requests else None


def table_on(broker: Broker) -> Materializer:
    parts = cast(Any, broker)
    spec = TableSpec("orders", partition=(), on_error=OnError.SKIP)
    materializer = Materializer(spec, "first", parts, parts, parts, parts, Limits(100, 10**6))
    materializer._table, materializer._in_play = parts, parts
    materializer.position = POSITION
    return materializer


def test_an_unclean_election_suspends_the_table_and_names_what_is_lost() -> None:
    """The new leader had records up to offset 80 only, and others have been written since."""
    broker = Broker(looked_at(6), [(0, 4), (60, 5), (80, 6)])
    table = table_on(broker)
    with pytest.raises(OffsetsLost, match="partition 0: 80 to 99") as raised:
        table.run(broker.now)
    assert "headgate table resume orders --accept lost" in raised.value.remedy
    assert broker.committed == []
    # The same before anything is written there.
    broker.now, broker.steps = looked_at(6, end=80), [(0, 4), (60, 5)]
    with pytest.raises(OffsetsLost, match="partition 0: 80 to 99"):
        table.run(broker.now)


def test_what_the_new_leader_has_is_read_when_the_operator_accepts_it() -> None:
    broker = Broker(looked_at(6), [(0, 5), (80, 6)])
    table = table_on(broker)
    table.accept(broker.now, "lost")
    assert table.position == Position("cluster", "T1", {0: 80}, (Era("T1", {0: 80}),), epochs={0: 6})
    assert table.run(broker.now) is not None
    assert [batch.ranges[0].start for batch in broker.committed if batch.ranges] == [80]
    with pytest.raises(InvalidRequest, match="has lost nothing"):
        table.accept(broker.now, "lost")


def test_a_clean_election_costs_one_look_and_is_kept_with_the_position() -> None:
    broker = Broker(looked_at(6, end=100), [(0, 4), (60, 5)])
    table = table_on(broker)
    assert table.run(broker.now) is None
    assert table.run(broker.now) is None
    assert broker.looks == 1
    broker.now = looked_at(6)
    assert table.run(broker.now) is not None
    assert table.position is not None
    assert (table.position.offsets[0], table.position.epochs[0]) == (120, 6)


def test_a_batch_under_two_leaders_is_tried_again() -> None:
    batch = Batch(POSITION, replace(POSITION.advanced_to({0: 120}), epochs={0: 5}))
    check_leaders(batch, {0: 5}, "orders")
    check_leaders(batch, {}, "orders")
    with pytest.raises(RowsChanged, match="another leader"):
        check_leaders(batch, {0: 6}, "orders")


def test_dead_letters_that_another_leader_has_written_over_suspend_the_table() -> None:
    """Those of a batch that was begun and not committed: at their offsets are other records now, which the
    batch that is tried again would take for dead."""
    broker = Broker(looked_at(6), [(0, 5), (108, 6)])
    table = table_on(broker)
    table._begun = POSITION.advanced_to({0: 110})
    with pytest.raises(OffsetsLost, match="partition 0: 108 to 109"):
        table.run(broker.now)
    assert broker.committed == []
    # What the table has not read is read.
    table.accept(broker.now, "lost")
    assert table.position == Position("cluster", "T1", {0: 100}, (Era("T1", {0: 100}),), epochs={0: 6})
    assert table._begun is None


def test_what_one_partition_lost_to_retention_and_another_to_a_leader_is_accepted_at_once() -> None:
    both = TopicView("cluster", Topic("orders", "T1", (0, 1)), {0: 0, 1: 40}, {0: 120, 1: 50}, {0: 6, 1: 3})
    broker = Broker(both, [(0, 5), (80, 6)])
    table = table_on(broker)
    table.position = Position("cluster", "T1", {0: 100, 1: 20}, epochs={0: 5, 1: 3})
    table.accept(broker.now, "lost")
    assert table.position.offsets == {0: 80, 1: 40}
    # The era that ends is that of the records which the table has.
    assert table.position.earlier == (Era("T1", {0: 80, 1: 40}),)
    with pytest.raises(InvalidRequest, match="has lost nothing"):
        table.accept(broker.now, "lost")


def test_an_acceptance_whose_answer_is_lost_is_not_asked_for_again() -> None:
    """It is in the table: to accept the same once more would be refused, as if it had failed."""
    broker = Broker(looked_at(6), [(0, 5), (80, 6)])
    table = table_on(broker)
    broker.loses_answers = True
    with pytest.raises(CommitUnknown):
        table.accept(broker.now, "lost", "request-1")
    # As the engine finds the table when it looks again.
    (accepted,) = broker.committed
    table.position = accepted.end
    table.accept(broker.now, "lost", "request-1")
    assert broker.committed == [accepted]
    with pytest.raises(InvalidRequest, match="has lost nothing"):
        table.accept(broker.now, "lost", "request-2")
