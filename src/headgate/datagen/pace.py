"""When records are due: by a rate, by the times that they carry, or at once."""

import time
from collections.abc import Callable, Iterator
from itertools import islice

from headgate.datagen.scenario import Record
from headgate.errors import InvalidRequest

# Written between two looks at the clock and at acknowledgements; fewer at a low rate.
RECORDS_AT_A_TIME = 500
SECONDS_AT_A_TIME = 0.05


def check_pace(rate: float | None, speed: float | None) -> None:
    if rate is not None and not rate > 0:
        raise InvalidRequest(f"{rate} records per second is no rate.", "Choose one above 0.")
    if speed is not None and not speed > 0:
        raise InvalidRequest(f"{speed} is no speed.", "Choose one above 0; 1 is as fast as the clock.")


class Pace:
    """Holds a writer to its rate, counted from when it began."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        check_pace(rate, None)
        self._rate = rate
        self._clock = clock
        self._began = clock()

    @property
    def records_at_a_time(self) -> int:
        if self._rate is None:
            return RECORDS_AT_A_TIME
        return max(1, min(RECORDS_AT_A_TIME, int(self._rate * SECONDS_AT_A_TIME)))

    def wait(self, sent: int) -> float:
        """Seconds until the next record is due."""
        return 0.0 if self._rate is None else self._began + sent / self._rate - self._clock()


class Timeline:
    """Records at the times that they carry, `speed` times as fast as the clock; without a speed, all at once.

    The first record is due at once.
    """

    def __init__(
        self, records: Iterator[Record], speed: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        check_pace(None, speed)
        self._records = records
        self._speed = speed
        self._clock = clock
        self._next = next(records, None)
        self._first_ms = self._next.timestamp_ms if self._next is not None else 0
        self._began = clock()

    @property
    def ended(self) -> bool:
        return self._next is None

    def take(self, count: int) -> list[Record]:
        """The next records, so many at most, as far as they are due."""
        if self._speed is None and self._next is not None:
            all_due = [self._next, *islice(self._records, count - 1)]
            self._next = next(self._records, None)
            return all_due
        taken: list[Record] = []
        due_ms = self._due_ms()
        while len(taken) < count and self._next is not None and self._next.timestamp_ms <= due_ms:
            taken.append(self._next)
            self._next = next(self._records, None)
        return taken

    def wait(self) -> float:
        """Seconds until the next record is due."""
        if self._speed is None or self._next is None:
            return 0.0
        after_ms = self._next.timestamp_ms - self._first_ms
        return self._began + after_ms / 1000 / self._speed - self._clock()

    def _due_ms(self) -> float:
        speed = self._speed or 0.0
        return self._first_ms + (self._clock() - self._began) * 1000 * speed
