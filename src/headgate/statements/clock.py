"""How far event time has come: the least of what the partitions have shown, without those that are idle.

Spark's own watermark is the greatest time of a source: while a backlog is read, a partition that is ahead
would make the records of the others late. Records move event time, silence does not: a partition is idle when
others spoke for so long and it did not. The wall clock counts for topics whose records the broker dates.
No I/O here, and no Spark.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Partition:
    """`seen`: the greatest event time, in milliseconds, since this clock was made.

    `waits`: whether records waited unread when the last batch began; None until that batch has told.
    """

    seen: int | None = None
    heard_at: float = 0.0
    waits: bool | None = False
    #: A pause of all since it was heard was not counted as its silence.
    is_excused: bool = False

    def hear(self, now: float) -> None:
        self.heard_at, self.is_excused = now, False


@dataclass
class SourceClock:
    """The partitions of one scan. A partition that was added later counts from its first look on."""

    delay_ms: int
    idle_seconds: float
    partitions: dict[int, _Partition] = field(default_factory=dict)
    #: Nothing older than this comes any more, by the broker's own dates and the wall clock.
    passed_ms: int | None = None

    def know(self, partitions: Iterable[int], now: float) -> None:
        for partition in partitions:
            self.partitions.setdefault(partition, _Partition(heard_at=now))

    def see(self, times: Mapping[int, int], now: float) -> None:
        """The greatest event time that a batch had in each partition."""
        self.know(times, now)
        for partition, time_ms in times.items():
            state = self.partitions[partition]
            state.seen = time_ms if state.seen is None else max(state.seen, time_ms)
            state.hear(now)

    def recall(self, times: Mapping[int, int]) -> None:
        """What an earlier run had seen: those records do not come again."""
        for partition, time_ms in times.items():
            if (state := self.partitions.get(partition)) is not None:
                state.seen = time_ms if state.seen is None else max(state.seen, time_ms)

    def hear(self, behind: Mapping[int, int], now: float) -> None:
        """How many offsets of each partition waited unread when the last batch began.

        A partition with a backlog is not silent, however long it takes until its turn comes.
        """
        self.know(behind, now)
        for partition, state in self.partitions.items():
            state.waits = behind.get(partition, 0) > 0
            if state.waits:
                state.hear(now)

    def excuse(self, pause: float) -> None:
        """A pause of all that was as long as the idle timeout is nobody's silence, the first time: sparse
        records of others leave out a partition that has none in the end."""
        if pause >= self.idle_seconds:
            for state in self.partitions.values():
                if not state.is_excused:
                    state.heard_at, state.is_excused = state.heard_at + pause, True

    def batch_ended(self) -> None:
        """Records may have come before it began: whether they wait is known when it tells."""
        for state in self.partitions.values():
            state.waits = None

    @property
    def heard_at(self) -> float:
        """When the last record came, or this clock was made."""
        return max((state.heard_at for state in self.partitions.values()), default=0.0)

    @property
    def is_read(self) -> bool:
        """Whether nothing waited when the last batch began, and that batch has told."""
        return all(state.waits is False for state in self.partitions.values())

    @property
    def seen(self) -> int | None:
        """The greatest event time of all."""
        return max((s.seen for s in self.partitions.values() if s.seen is not None), default=None)

    def is_idle(self, now: float, spoken_at: float | None = None) -> bool:
        return not self._active(now, spoken_at)

    def watermark(self, now: float, spoken_at: float | None = None) -> int | None:
        """None while a partition that is not idle has shown nothing: it holds all others up.

        `spoken_at`: when the last record of all sources came; of this one, if there are no others.
        """
        times = [state.seen for state in self._active(now, spoken_at)]
        known = [time for time in times if time is not None]
        reached = min(known) if known and len(known) == len(times) else None
        if self.passed_ms is not None:
            reached = self.passed_ms if reached is None else max(reached, self.passed_ms)
        return None if reached is None else reached - self.delay_ms

    def slowest(self, now: float, spoken_at: float | None = None) -> list[int]:
        """The partitions whose next records move event time: those without any yet, else the least."""
        active = self._active(now, spoken_at)
        silent = [p for p, state in self.partitions.items() if state in active and state.seen is None]
        if silent:
            return sorted(silent)
        least = min((state.seen for state in active if state.seen is not None), default=None)
        return sorted(p for p, state in self.partitions.items() if state in active and state.seen == least)

    def _active(self, now: float, spoken_at: float | None) -> list[_Partition]:
        spoken_at = self.heard_at if spoken_at is None else spoken_at
        return [state for state in self.partitions.values() if self._is_active(state, now, spoken_at)]

    def _is_active(self, state: _Partition, now: float, spoken_at: float) -> bool:
        if state.waits or state.waits is None:
            return True
        # A pause of all is nobody's silence. One that never showed anything may stay empty.
        until = now if state.seen is None else min(now, spoken_at)
        return until - state.heard_at < self.idle_seconds


@dataclass
class Clock:
    """The scans of one statement. Its watermark only grows.

    A batch takes as long as it takes, and meanwhile nobody is heard: whether a partition is silent is asked
    as of the moment at which the batch began, `calm_at`, the last one without a batch.
    """

    sources: dict[str, SourceClock] = field(default_factory=dict)
    reached: int | None = None
    calm_at: float = 0.0

    def see(self, scan: str, times: Mapping[int, int], now: float) -> None:
        """The greatest event time that a batch had in each partition of a scan."""
        if times:
            self._end_pause(now)
        self.sources[scan].see(times, now)

    def hear(self, scan: str, behind: Mapping[int, int], now: float) -> None:
        """How many offsets of each partition of a scan waited unread when the last batch began."""
        if any(behind.values()):
            self._end_pause(now)
        self.sources[scan].hear(behind, now)

    def _end_pause(self, now: float) -> None:
        """A record has come. Those that others send at the same time may be in the next batch."""
        pause = now - self.spoken_at
        for source in self.sources.values():
            source.excuse(pause)

    def batch_ended(self, now: float) -> int | None:
        """The watermark after a batch; the next one may begin at once."""
        reached = self.watermark(self.calm_at)
        for source in self.sources.values():
            source.batch_ended()
        self.calm_at = now
        return reached

    def rest(self, looked_at: float) -> int | None:
        """The watermark while no batch runs. `looked_at`: when it was last seen whether records wait."""
        self.calm_at = max(self.calm_at, looked_at)
        return self.watermark(looked_at)

    def watermark(self, now: float) -> int | None:
        """The least of the sources that are not idle; of all of them when all are."""
        spoken_at = self.spoken_at
        awake = [source for source in self.sources.values() if not source.is_idle(now, spoken_at)]
        times = [source.watermark(now, spoken_at) for source in awake or self.sources.values()]
        known = [time for time in times if time is not None]
        if awake and len(known) < len(times):
            return self.reached
        if known:
            self.reached = max(self.reached or 0, min(known))
        return self.reached

    @property
    def spoken_at(self) -> float:
        """When the last record of all sources came."""
        return max((source.heard_at for source in self.sources.values()), default=0.0)

    @property
    def seen(self) -> int | None:
        """The greatest event time of all sources."""
        times = [source.seen for source in self.sources.values()]
        return max((time for time in times if time is not None), default=None)

    def silent_seconds(self, now: float) -> float:
        """For how long nothing came and nothing waits; 0 while that is not known."""
        if not all(source.is_read for source in self.sources.values()):
            return 0.0
        return max(0.0, now - self.spoken_at)

    def slowest(self) -> tuple[str, list[int], bool] | None:
        """The scan that holds event time up, its partitions whose next records move it, and whether these had
        none before."""
        spoken_at = self.spoken_at
        awake = {n: s for n, s in self.sources.items() if not s.is_idle(self.calm_at, spoken_at)}
        times = {n: s.watermark(self.calm_at, spoken_at) for n, s in (awake or self.sources).items()}
        if not times:
            return None
        name = min(times, key=lambda n: -1 if (time := times[n]) is None else time)
        source = self.sources[name]
        slowest = source.slowest(self.calm_at, spoken_at)
        return name, slowest, any(source.partitions[p].seen is None for p in slowest)
