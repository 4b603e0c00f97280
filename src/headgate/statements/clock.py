"""How far event time has come: the least of what the partitions have shown, without those that are silent.

Spark's own watermark is the greatest time of a source: while a backlog is read, a partition that is ahead
would make the records of the others late. No I/O here, and no Spark.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class _Partition:
    """`seen`: the greatest event time, in milliseconds, since this clock was made.

    `waits`: whether records waited unread when the last batch began; None until that batch has told.
    """

    seen: int | None = None
    heard_at: float = 0.0
    waits: bool | None = False


@dataclass
class SourceClock:
    """The partitions of one scan. A partition that was added later counts from its first look on."""

    delay_ms: int
    idle_seconds: float
    partitions: dict[int, _Partition] = field(default_factory=dict)

    def know(self, partitions: Iterable[int], now: float) -> None:
        for partition in partitions:
            self.partitions.setdefault(partition, _Partition(heard_at=now))

    def see(self, times: Mapping[int, int], now: float) -> None:
        """The greatest event time that a batch had in each partition."""
        self.know(times, now)
        for partition, time_ms in times.items():
            state = self.partitions[partition]
            state.seen = time_ms if state.seen is None else max(state.seen, time_ms)
            state.heard_at = now

    def hear(self, behind: Mapping[int, int], now: float) -> None:
        """How many offsets of each partition waited unread when the last batch began.

        A partition with a backlog is not silent, however long it takes until its turn comes.
        """
        self.know(behind, now)
        for partition, state in self.partitions.items():
            state.waits = behind.get(partition, 0) > 0
            if state.waits:
                state.heard_at = now

    def batch_ended(self) -> None:
        """Records may have come before it began: whether they wait is known when it tells."""
        for state in self.partitions.values():
            state.waits = None

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
        return [
            state
            for state in self.partitions.values()
            if state.waits or state.waits is None or now - state.heard_at < self.idle_seconds
        ]


@dataclass
class Clock:
    """The scans of one statement. Its watermark only grows.

    A batch takes as long as it takes, and meanwhile nobody is heard: whether a partition is silent is asked
    as of the moment at which the batch began, `calm_at`, the last one without a batch.
    """

    sources: dict[str, SourceClock] = field(default_factory=dict)
    reached: int | None = None
    calm_at: float = 0.0

    def batch_ended(self, now: float) -> int | None:
        """The watermark after a batch; the next one may begin at once."""
        reached = self.watermark(self.calm_at)
        for source in self.sources.values():
            source.batch_ended()
        self.calm_at = now
        return reached

    def rest(self, now: float) -> int | None:
        """The watermark while no batch runs."""
        self.calm_at = now
        return self.watermark(now)

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
