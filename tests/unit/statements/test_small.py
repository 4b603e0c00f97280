"""Which batches the driver writes itself: those whose rows and bytes are bounded."""

import json
from collections.abc import Mapping

from headgate.kafka.frames import Written
from headgate.kafka.markers import Marker
from headgate.statements.progress import Progress
from headgate.statements.small import MOST_BYTES, MOST_OFFSETS, Sizes, most_rows, offsets_read


def entry(*sources: Mapping[str, Mapping[str, int]]) -> str:
    return "\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), *(json.dumps(one) for one in sources)])


def progress(batch: int, state_rows: int, joined_rows: int = 0) -> Progress:
    return Progress(batch, 1.0, None, {}, {}, state_rows, 0, 0, joined_rows)


def test_offsets_are_counted_over_all_sources_and_partitions() -> None:
    before = entry({"a": {"0": 10, "1": 5}}, {"b": {"0": 7}})
    after = entry({"a": {"0": 12, "1": 5}}, {"b": {"0": 10}})
    assert offsets_read(Marker(4, "id", after, before)) == 5


def test_a_topic_that_is_read_twice_counts_twice() -> None:
    before, after = entry({"a": {"0": 10}}, {"a": {"0": 8}}), entry({"a": {"0": 12}}, {"a": {"0": 12}})
    assert offsets_read(Marker(4, "id", after, before)) == 6


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    assert offsets_read(Marker(4, "id", entry({"a": {"0": 3, "1": 40}}), entry({"a": {"0": 3}}))) == 40


def test_of_a_first_batch_nobody_knows_where_it_begins() -> None:
    assert offsets_read(Marker(0, "id", entry({"a": {"0": 3}}))) is None
    assert offsets_read(Marker(3)) is None


def test_other_sources_than_before_are_not_compared() -> None:
    assert offsets_read(Marker(4, "id", entry({"b": {"0": 3}}), entry({"a": {"0": 3}}))) is None


def test_rows_of_a_query_with_state_are_bounded_by_what_it_keeps() -> None:
    assert most_rows(10, progress(6, 500), 7) == 510
    assert most_rows(10, progress(6, 500, joined_rows=300), 7) == 500 + 10 * 301


def test_state_that_is_not_known_as_of_the_batch_before_bounds_nothing() -> None:
    assert most_rows(10, None, 7) is None
    assert most_rows(10, progress(5, 500), 7) is None


def test_nothing_is_small_whose_rows_are_not_known() -> None:
    assert not Sizes().is_small(None, None)
    assert not Sizes().is_small(1, None)


def test_before_a_row_was_seen_only_few_are_small() -> None:
    sizes = Sizes()
    assert sizes.is_small(100, 100)
    assert not sizes.is_small(200, 200)


def test_small_is_told_by_the_bytes_of_rows_before() -> None:
    sizes = Sizes()
    sizes.see(200, Written(2, 200, 200 * 100))
    assert sizes.is_small(MOST_OFFSETS, MOST_OFFSETS)
    assert not sizes.is_small(MOST_OFFSETS + 1, MOST_OFFSETS + 1)
    sizes.see(200, Written(2, 200, 200 * 100_000))
    assert sizes.is_small(MOST_BYTES // 100_000, MOST_BYTES // 100_000)
    assert not sizes.is_small(100, 100)


def test_rows_that_were_large_once_count_for_a_while() -> None:
    sizes = Sizes()
    sizes.see(1, Written(1, 1, 1_000_000))
    for _ in range(5):
        sizes.see(1, Written(1, 1, 100))
        assert not sizes.is_small(20, 20)
    for _ in range(200):
        sizes.see(1, Written(1, 1, 100))
    assert sizes.is_small(20, 20)


def test_several_rows_of_one_offset_count_as_many() -> None:
    sizes = Sizes()
    sizes.see(10, Written(1, 10_000, 10_000 * 10))
    assert sizes.is_small(40, 40)
    assert not sizes.is_small(60, 60)


def test_a_batch_without_rows_says_nothing_of_their_size() -> None:
    sizes = Sizes()
    sizes.see(50, Written(0, 0, 0))
    assert not sizes.is_small(200, 200)
