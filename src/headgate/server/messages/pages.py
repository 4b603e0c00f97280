"""One page of a topic's messages: the partitions' records merged by time, a part of them at a time."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import Message

from headgate.kafka.offsets import size_of
from headgate.server.messages.cursor import Way

# Offsets that one partition gives at a time while a filter is held against them, and all of them together.
CHUNK, MOST_AT_ONCE = 500, 5_000
# Where compaction has left nothing, longer ranges are read.
WIDER, WIDEST = 4, 10_000
# What a page takes at most: records that a filter is held against, bytes, and time.
MOST_LOOKED_AT, MOST_BYTES, MOST_SECONDS = 10_000, 8 * 1024**2, 5.0
# Whether a message is wanted.
Filter = Callable[[Message], bool]


class RangesTooLarge(Exception):
    """The records of some ranges are more than is kept at a time."""


class Source(Protocol):
    """What ranges of offsets are read from."""

    def read(self, ranges: Mapping[int, tuple[int, int]]) -> Mapping[int, list[Message]]:
        """By partition, the records of a range, the oldest first. Raises RangesTooLarge, unless each range is
        of one offset."""


@dataclass(frozen=True)
class Page:
    """Messages in the order in which they were read. They lie between `low` and `high`, by partition; with
    `is_whole` false a limit was met before the page was full."""

    messages: list[Message]
    low: dict[int, int]
    high: dict[int, int]
    looked_at: int
    is_whole: bool


@dataclass
class _Partition:
    """How far one partition has been read: the next offset to fetch, and to give."""

    fetched: int
    given: int
    chunk: int
    waiting: deque[Message] = field(default_factory=deque)


def read_page(
    source: Source,
    bounds: Mapping[int, tuple[int, int]],
    start: Mapping[int, int],
    way: Way,
    limit: int,
    matches: Filter | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Page:
    """`bounds` are where each partition begins and ends now; `start` is where the page begins in each."""
    deadline = clock() + MOST_SECONDS
    chunk = CHUNK if matches is not None else limit
    merged = _Merged(source, bounds, start, way, chunk, lambda: clock() > deadline)
    taken: list[Message] = []
    looked_at = size = 0
    is_whole = True
    for message in merged:
        looked_at += 1
        if matches is None or matches(message):
            taken.append(message)
            size += size_of(message)
        if len(taken) == limit:
            break
        if size >= MOST_BYTES or looked_at >= MOST_LOOKED_AT or clock() > deadline:
            is_whole = False
            break
    reached = merged.reached()
    begun = {p: _within(offset, bounds[p]) for p, offset in start.items()}
    low, high = (reached, begun) if way == "older" else (begun, reached)
    return Page(taken, low, high, looked_at, is_whole and not merged.is_late)


class _Merged:
    """The records of all partitions in the order of their times, as far as each partition's order allows."""

    def __init__(
        self,
        source: Source,
        bounds: Mapping[int, tuple[int, int]],
        start: Mapping[int, int],
        way: Way,
        chunk: int,
        is_over: Callable[[], bool],
    ) -> None:
        self._source = source
        self._bounds = bounds
        self._is_older = way == "older"
        self._is_over = is_over
        self.is_late = False
        self._most = WIDEST
        chunk = max(1, min(chunk, MOST_AT_ONCE // max(1, len(start))))
        self._partitions = {
            p: _Partition(at, at, chunk) for p, offset in start.items() for at in [_within(offset, bounds[p])]
        }

    def __iter__(self) -> Iterator[Message]:
        while True:
            if not self._fetch():
                self.is_late = True
                return
            ready = {p: one for p, one in self._partitions.items() if one.waiting}
            if not ready:
                return
            pick = max if self._is_older else min
            number = pick(ready, key=lambda p: (ready[p].waiting[0].timestamp()[1], p))
            one = ready[number]
            message = one.waiting.popleft()
            offset = int(message.offset() or 0)
            one.given = offset if self._is_older else offset + 1
            yield message

    def reached(self) -> dict[int, int]:
        """The offsets where a next page begins: behind what was given, and what turned out to be nothing."""
        return {p: one.given if one.waiting else one.fetched for p, one in self._partitions.items()}

    def _fetch(self) -> bool:
        """Something for each partition that has more, as which of them is next is not known without; False
        when the time is up before."""
        while True:
            ranges = {
                p: self._next_range(p, one) for p, one in self._partitions.items() if self._lacks(p, one)
            }
            if not ranges:
                return True
            if self._is_over():
                return False
            try:
                found = self._source.read(ranges)
            except RangesTooLarge:
                self._most = max(1, max(end - start for start, end in ranges.values()) // WIDER)
                continue
            for p, messages in found.items():
                self._keep(self._partitions[p], ranges[p], messages)

    def _keep(self, one: _Partition, read: tuple[int, int], messages: list[Message]) -> None:
        one.waiting.extend(reversed(messages) if self._is_older else messages)
        one.fetched = one.given = read[0] if self._is_older else read[1]
        if one.waiting:
            # Until it is given, a page ends before it.
            first = int(one.waiting[0].offset() or 0)
            one.given = first + 1 if self._is_older else first
        else:
            one.chunk *= WIDER

    def _lacks(self, p: int, one: _Partition) -> bool:
        earliest, end = self._bounds[p]
        return not one.waiting and (one.fetched > earliest if self._is_older else one.fetched < end)

    def _next_range(self, p: int, one: _Partition) -> tuple[int, int]:
        earliest, end = self._bounds[p]
        chunk = min(one.chunk, self._most)
        if self._is_older:
            return max(earliest, one.fetched - chunk), one.fetched
        return one.fetched, min(end, one.fetched + chunk)


def _within(offset: int, bounds: tuple[int, int]) -> int:
    return min(max(offset, bounds[0]), bounds[1])
