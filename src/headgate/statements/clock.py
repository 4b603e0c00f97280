"""How far event time has come: the least of what the partitions have shown, without those that are silent.

Spark's own watermark is the greatest time of a source: while a backlog is read, a partition that is ahead
would make the records of the others late. No I/O here, and no Spark.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class _Partition:
    """`seen`: the greatest event time, in milliseconds, since this clock was made."""

    seen: int | None = None
    heard_at: float = 0.0


@dataclass
class SourceClock:
    """The partitions of one scan. A partition that was added later counts from its first look on."""

    delay_ms: int
    idle_seconds: float
    partitions: dict[int, _Partition] = field(default_factory=dict)

    def know(self, partitions: Iterable[int], now: float) -> None:
        for partition in partitions:
            self.partitions.setdefault(partition, _Partition(heard_at=now))

    def see(self, times: Mapping[int, int], behind: Mapping[int, int], now: float) -> None:
        """The greatest event time that a batch had in each partition, and how many offsets wait unread there.

        A partition with a backlog is not silent, however long it takes until its turn comes.
        """
        self.know({*times, *behind}, now)
        for partition, time_ms in times.items():
            state = self.partitions[partition]
            state.seen = time_ms if state.seen is None else max(state.seen, time_ms)
            state.heard_at = now
        for partition, offsets in behind.items():
            if offsets > 0:
                self.partitions[partition].heard_at = now

    def is_idle(self, now: float) -> bool:
        return not self._active(now)

    def watermark(self, now: float) -> int | None:
        """None while a partition that is not silent has shown nothing: it holds all others up.

        When all are silent, nothing more is expected, and the one that came farthest says how far it is.
        """
        active = self._active(now)
        if not active:
            seen = [state.seen for state in self.partitions.values() if state.seen is not None]
            return max(seen) - self.delay_ms if seen else None
        times = [state.seen for state in active]
        known = [time for time in times if time is not None]
        return min(known) - self.delay_ms if len(known) == len(times) else None

    def _active(self, now: float) -> list[_Partition]:
        return [state for state in self.partitions.values() if now - state.heard_at < self.idle_seconds]


@dataclass
class Clock:
    """The scans of one statement. Its watermark only grows."""

    sources: dict[str, SourceClock] = field(default_factory=dict)
    reached: int | None = None

    def watermark(self, now: float) -> int | None:
        """The least of the sources that are not silent; of all of them when all are."""
        awake = [source for source in self.sources.values() if not source.is_idle(now)]
        if awake:
            times = [source.watermark(now) for source in awake]
            if any(time is None for time in times):
                return self.reached
        else:
            times = [source.watermark(now) for source in self.sources.values()]
        known = [time for time in times if time is not None]
        if known:
            self.reached = max(self.reached or 0, min(known))
        return self.reached
