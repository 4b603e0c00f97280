"""Records that arrive late, and records that come again, beyond those that a scenario has of itself."""

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from random import Random

from headgate.datagen.scenario import Record
from headgate.datagen.times import HOUR_MS, MINUTE_MS
from headgate.errors import InvalidRequest

# A late record arrives so much later at least and at most.
LATE_MS = (MINUTE_MS, HOUR_MS)
# A record that comes again does so within this time, byte for byte.
AGAIN_MS = 10 * MINUTE_MS


@dataclass(frozen=True)
class Shares:
    """How large a part of the records arrives late, and how large a part comes again."""

    late: float = 0.0
    duplicate: float = 0.0

    def __post_init__(self) -> None:
        for name, share in (("late", self.late), ("duplicate", self.duplicate)):
            if not 0 <= share <= 1:
                raise InvalidRequest(f"{share} is no share of {name} records.", "Choose one from 0 to 1.")

    def __bool__(self) -> bool:
        return bool(self.late or self.duplicate)

    def applied(self, records: Iterable[Record], topics: Collection[str], seed: int) -> Iterator[Record]:
        """The records in the order of their arrival; only those of `topics` are late or come again."""
        random = Random(f"shares of {seed}")  # noqa: S311  it is to be foreseeable
        # On their way: when they arrive, a number that tells equals apart, and the record.
        coming: list[tuple[int, int, Record]] = []
        sent = 0
        for record in records:
            while coming and coming[0][0] <= record.timestamp_ms:
                yield heapq.heappop(coming)[2]
            if record.topic not in topics:
                yield record
                continue
            arrival = record.timestamp_ms
            if random.random() < self.late:
                shortest, longest = LATE_MS
                arrival += shortest + int(random.random() * (longest - shortest))
                sent += 1
                heapq.heappush(coming, (arrival, sent, record._replace(timestamp_ms=arrival)))
            else:
                yield record
            if random.random() < self.duplicate:
                arrival += 1 + int(random.random() * AGAIN_MS)
                sent += 1
                heapq.heappush(coming, (arrival, sent, record._replace(timestamp_ms=arrival)))
        while coming:
            yield heapq.heappop(coming)[2]


NO_SHARES = Shares()
