"""A running query as one step of a statement: closing what it has read, and why nothing more comes out."""

import time
from collections.abc import Callable, Mapping, Sequence

from headgate.errors import ConfigError
from headgate.kafka.access import KafkaAccess
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import Topics
from headgate.statements import runnable as r
from headgate.statements.event_time import EventTime
from headgate.statements.progress import Progress
from headgate.statements.waiting import Holdup, Standing


class Step:
    """What is asked of a query by who closes statements and who tells of them."""

    _access: KafkaAccess
    _topics: Topics
    _job: r.Job
    _idle_seconds: float
    _event_time: EventTime
    #: By the name of an observation: the topic that it is about.
    _scans: dict[str, str]
    #: The delays of scans whose event time is the records' own timestamp.
    _rowtimes: dict[str, int]
    progress: Progress | None

    # -- closing what has come

    def ends(self) -> dict[str, dict[int, int]]:
        """Where the topics that it reads end now: up to there every transaction is decided."""
        topics = self._topics.describe_many(set(self._scans.values())).values()
        return Offsets(self._access).stable_ends(topics)

    def has_read(self, ends: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether the batches that are done have read all before these offsets."""
        done = {} if self.progress is None else self.progress.offsets
        return all(
            done.get(topic, {}).get(partition, 0) >= offset
            for topic, partitions in ends.items()
            for partition, offset in partitions.items()
        )

    def silent_seconds(self) -> float | None:
        """For how long none of its event times has had a record; None if it reads none."""
        return self._event_time.silent_seconds() if self._event_time.is_watched else None

    def due(self) -> int | None:
        """The watermark at which all that it has read has come out; None if nothing waits for one."""
        seen = self._event_time.seen
        stateful = self._job.runnable.stateful
        return None if seen is None or not stateful else self._job.runnable.due_ms(seen) + 1

    def close(self) -> int | None:
        """Event time is to pass `due`, which is returned."""
        due = self.due()
        if due is not None:
            self._event_time.close(due)
        return due

    def to_date(self) -> Callable[[], None] | None:
        """Asks, for scans of what waits, whether the wall clock has passed it; None if it has not yet."""
        due = self.due()
        if due is None or self.has_passed(due):
            return None
        now = self._clock_ms()
        scans = [
            name
            for name, delay_ms in self._rowtimes.items()
            if self._event_time.passed(name) < due <= now - delay_ms
        ]
        return (lambda: self._date(scans)) if scans else None

    def _date(self, scans: Sequence[str]) -> None:
        """Of topics whose records the broker dates, once all of them are read: nothing older than now comes.

        The time is taken first. What was appended before it is below the ends that are asked for then, but
        for what replicas and clocks may be behind: an idle timeout.
        """
        for name in scans:
            topic, now = self._scans[name], self._clock_ms()
            if not self._is_dated_by_broker(topic):
                self._rowtimes.pop(name, None)
            elif self.has_read({topic: self._topics.last_ends(self._topics.describe(topic))}):
                self._event_time.date(name, now)

    def _is_dated_by_broker(self, topic: str) -> bool:
        try:
            return self._topics.is_dated_by_broker(topic)
        except ConfigError:
            # Who may not see it takes the times for the producers'.
            return False

    def _clock_ms(self) -> int:
        return int((time.time() - self._idle_seconds) * 1000)

    def has_passed(self, watermark_ms: int) -> bool:
        """Whether a batch that had this watermark is done."""
        return (
            self.progress is not None
            and self.progress.watermark_ms is not None
            and self.progress.watermark_ms >= watermark_ms
        )

    # -- why nothing comes out

    def standing(self) -> Standing:
        """Where it stands, and what waits in it for event time."""
        progress, due = self.progress, self.due()
        if progress is None:
            return Standing(0, 0, None, None, None)
        waiting = progress.grouped_rows if self._job.runnable.output_mode == "append" else 0
        if not waiting and self._job.runnable.due_ms(0) > 0:
            waiting = progress.joined_rows
        slowest = self._event_time.slowest()
        holdup = None
        if slowest is not None:
            scan, partitions, unseen = slowest
            holdup = Holdup(self._scans[scan], partitions, self._idle_seconds if unseen else None)
        return Standing(
            progress.lag, waiting, None if due is None else due - 1, progress.watermark_ms, holdup
        )
