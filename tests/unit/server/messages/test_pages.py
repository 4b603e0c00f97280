"""Pages of messages: merged by time, each record on one page, whatever gaps there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from headgate.errors import InvalidRequest
from headgate.server.messages.cursor import Cursor, Way
from headgate.server.messages.pages import RangesTooLarge, read_page


@dataclass(frozen=True)
class Fake:
    """A record as far as pages look at it."""

    of: int
    at: int
    ms: int
    size: int = 1

    def partition(self) -> int:
        return self.of

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, self.ms

    def key(self) -> None:
        return None

    def headers(self) -> None:
        return None

    def value(self) -> bytes:
        return b"v" * self.size


@dataclass
class FakeTopic:
    """Records by partition and offset; `most` is how many it gives at a time."""

    records: Mapping[int, list[Fake]]
    ends: Mapping[int, int]
    most: int | None = None
    reads: list[Mapping[int, tuple[int, int]]] = field(default_factory=list)

    @property
    def bounds(self) -> dict[int, tuple[int, int]]:
        return {p: (0, end) for p, end in self.ends.items()}

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> dict[int, list[Message]]:
        self.reads.append(ranges)
        wanted = sum(end - start for start, end in ranges.values())
        if self.most is not None and wanted > self.most and any(e - s > 1 for s, e in ranges.values()):
            raise RangesTooLarge
        return {
            p: [cast(Message, one) for one in self.records[p] if start <= one.at < end]
            for p, (start, end) in ranges.items()
        }


def topic(times: Mapping[int, Mapping[int, int]], most: int | None = None) -> FakeTopic:
    """`times`: by partition and offset. Behind the last record stands the mark of a transaction."""
    records = {p: [Fake(p, at, ms) for at, ms in sorted(own.items())] for p, own in times.items()}
    return FakeTopic(records, {p: max(own, default=-1) + 2 for p, own in times.items()}, most)


def places(messages: list[Message]) -> list[tuple[int, int]]:
    return [(cast(Any, one).of, cast(Any, one).at) for one in messages]


def all_pages(found: FakeTopic, way: Way, limit: int) -> list[list[tuple[int, int]]]:
    edge = 1 if way == "older" else 0
    at = {p: bounds[edge] for p, bounds in found.bounds.items()}
    pages = []
    for _ in range(200):
        page = read_page(found, found.bounds, at, way, limit)
        pages.append(places(page.messages))
        at = page.low if way == "older" else page.high
        if all(offset == found.bounds[p][0 if way == "older" else 1] for p, offset in at.items()):
            return pages
    raise AssertionError("the pages do not come to an end")


def test_the_newest_of_all_partitions_come_first() -> None:
    found = topic({0: {0: 10, 1: 30, 2: 50}, 1: {0: 20, 1: 40}})
    assert all_pages(found, "older", 2) == [[(0, 2), (1, 1)], [(0, 1), (1, 0)], [(0, 0)]]


def test_the_oldest_come_first_the_other_way_round() -> None:
    found = topic({0: {0: 10, 1: 30, 2: 50}, 1: {0: 20, 1: 40}})
    assert [place for page in all_pages(found, "newer", 2) for place in page] == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
        (0, 2),
    ]


def test_a_page_back_has_the_records_that_were_left() -> None:
    found = topic({0: {n: n for n in range(10)}})
    newest = read_page(found, found.bounds, {0: 11}, "older", 3)
    older = read_page(found, found.bounds, newest.low, "older", 3)
    back = read_page(found, found.bounds, older.high, "newer", 3)
    assert places(older.messages) == [(0, 6), (0, 5), (0, 4)]
    assert places(back.messages) == [(0, 7), (0, 8), (0, 9)]


@given(
    st.dictionaries(
        st.integers(0, 3),
        st.dictionaries(st.integers(0, 60), st.integers(0, 5), max_size=20),
        min_size=1,
    ),
    st.sampled_from(["older", "newer"]),
    st.integers(1, 7),
    st.sampled_from([None, 1, 5]),
)
def test_each_record_is_on_one_page(
    times: dict[int, dict[int, int]], way: Way, limit: int, most: int | None
) -> None:
    found = topic(times, most)
    seen = [place for page in all_pages(found, way, limit) for place in page]
    assert sorted(seen) == sorted((p, at) for p, own in times.items() for at in own)


def test_a_filter_says_how_many_it_was_held_against() -> None:
    found = topic({0: {n: n for n in range(1000)}})
    page = read_page(found, found.bounds, {0: 0}, "newer", 2, lambda one: cast(Any, one).at % 100 == 99)
    assert places(page.messages) == [(0, 99), (0, 199)]
    assert (page.looked_at, page.is_whole, page.high) == (200, True, {0: 200})


def test_a_filter_gives_up_and_goes_on_from_there() -> None:
    found = topic({0: {n: n for n in range(12_000)}})
    page = read_page(found, found.bounds, {0: 0}, "newer", 5, lambda one: cast(Any, one).at == 11_000)
    assert (page.messages, page.looked_at, page.is_whole) == ([], 10_000, False)
    rest = read_page(found, found.bounds, page.high, "newer", 5, lambda one: cast(Any, one).at == 11_000)
    assert places(rest.messages) == [(0, 11_000)]


def test_a_page_ends_when_its_time_is_up() -> None:
    now = iter(range(0, 1000, 2))
    found = topic({0: {n: n for n in range(1000)}})
    page = read_page(found, found.bounds, {0: 0}, "newer", 500, lambda _: False, clock=lambda: next(now))
    assert not page.is_whole
    assert 0 < page.looked_at < 10


def test_what_compaction_has_emptied_is_passed_in_long_steps() -> None:
    found = topic({0: {0: 1, 9_000_000: 2}})
    page = read_page(found, found.bounds, {0: 9_000_002}, "older", 1)
    assert places(page.messages) == [(0, 9_000_000)]
    far = read_page(found, found.bounds, page.low, "older", 1, clock=iter(range(10**6)).__next__)
    assert not far.is_whole
    assert all(end - start <= 10_000 for ranges in found.reads for start, end in ranges.values())


def test_a_cursor_is_for_the_topic_that_it_was_made_of() -> None:
    cursor = Cursor("an-id", "older", True, {0: 7, 12: 2**40})
    assert Cursor.parse(cursor.to_text(), "an-id") == cursor
    with pytest.raises(InvalidRequest, match="created again"):
        Cursor.parse(cursor.to_text(), "another-id")
    for text in ("", "x", "bm90IGpzb24", "é", "W10"):
        with pytest.raises(InvalidRequest, match="none of this server"):
            Cursor.parse(text, "an-id")
