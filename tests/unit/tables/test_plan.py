"""What the next batch holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import OffsetsLost, TopicReplaced
from headgate.model import OffsetRange, Position, Topic
from headgate.tables.plan import Limits, check_retained, check_source, lag, plan_batch

TOPIC = Topic("orders", "T1", (0, 1))


def at(**offsets: int) -> Position:
    return Position("C1", "T1", {int(name[1:]): offset for name, offset in offsets.items()})


def test_nothing_to_read() -> None:
    assert plan_batch(at(p0=5, p1=7), {0: 5, 1: 7}, 100) is None


def test_everything_when_it_fits() -> None:
    batch = plan_batch(at(p0=5, p1=7), {0: 8, 1: 7}, 100)
    assert batch is not None
    assert batch.ranges == (OffsetRange(0, 5, 8),)
    assert batch.end == at(p0=8, p1=7)


def test_a_new_partition_is_read_from_its_beginning() -> None:
    batch = plan_batch(at(p0=5), {0: 5, 1: 3}, 100)
    assert batch is not None
    assert batch.ranges == (OffsetRange(1, 0, 3),)


def test_ends_before_the_position_are_an_error() -> None:
    with pytest.raises(OffsetsLost, match=r"\[1\]"):
        plan_batch(at(p0=5, p1=7), {0: 9, 1: 6}, 100)


@given(
    st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1),
    st.integers(1, 10**7),
)
def test_batches_follow_one_another_without_gap_or_overlap(
    topic: dict[int, tuple[int, int]], max_rows: int
) -> None:
    """However often a batch is bounded, its start is the last one's end, and it reaches the end."""
    position = Position("C1", "T1", {p: start for p, (start, _) in topic.items()})
    ends = {p: start + more for p, (start, more) in topic.items()}
    for _ in range(3):
        batch = plan_batch(position, ends, max_rows)
        if batch is None:
            assert lag(position, ends) == 0
            return
        assert batch.start == position
        # At least one record of each partition that has any, whatever the bound.
        assert 0 < batch.offsets <= max_rows + len(topic)
        assert all(r.start == position.offsets[r.partition] for r in batch.ranges)
        assert all(r.end <= ends[r.partition] for r in batch.ranges)
        assert lag(batch.end, ends) == lag(position, ends) - batch.offsets
        position = batch.end


@pytest.mark.parametrize(
    ("record_bytes", "rows"), [(0.0, 1000), (1.0, 1000), (50.0, 20), (10_000.0, 1), (1.0e9, 1)]
)
def test_rows_that_fit_in_both_bounds(record_bytes: float, rows: int) -> None:
    assert Limits(rows=1000, bytes=1000).rows_of(record_bytes) == rows


def test_retention_that_overtook_names_the_ranges() -> None:
    check_retained(at(p0=5, p1=7), {0: 5, 1: 0}, TOPIC)
    with pytest.raises(OffsetsLost, match="partition 1: 7 to 11"):
        check_retained(at(p0=5, p1=7), {0: 5, 1: 12}, TOPIC)


def test_retention_in_a_partition_that_was_never_read_is_noticed() -> None:
    with pytest.raises(OffsetsLost, match="partition 1: 0 to 2"):
        check_retained(at(p0=5), {0: 5, 1: 3}, TOPIC)


def test_another_topic_of_the_same_name() -> None:
    check_source(at(p0=1), "C1", TOPIC)
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        check_source(at(p0=1), "C1", Topic("orders", "T2", (0,)))
    with pytest.raises(TopicReplaced, match="cluster C1, this is C2"):
        check_source(at(p0=1), "C2", TOPIC)
