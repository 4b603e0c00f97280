"""Our clock in place of Spark's: what batches have shown goes in, the watermark of the next one comes out.

Spark's tracker keeps one watermark for a query, writes it down with each batch, and takes it up again after a
restart. All that is ours is what it is set to, and when: while a batch runs, before Spark looks at it for the
next one; or between two batches, when silence alone moves it, under the lock in which Spark plans them.
"""

import json
import threading
import time
from collections.abc import Mapping
from typing import Any, cast

from pyspark.sql.streaming.query import StreamingQuery

from headgate.statements.clock import Clock, SourceClock
from headgate.statements.scan import OTHERS


class EventTime:
    """The clock of one run of a query. Batches and looks come from two threads."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._lock = threading.Lock()
        self._ran = -1
        self._closing: int | None = None
        #: A topic has partitions that the scans do not know: event time stands still until they do.
        self.outgrown = False

    def watch(self, scan: str, source: SourceClock) -> None:
        self._clock.sources[scan] = source
        self._clock.calm_at = time.monotonic()

    @property
    def is_watched(self) -> bool:
        """Whether the query reads any event time."""
        return bool(self._clock.sources)

    # -- across restarts

    def to_dict(self) -> dict[str, dict[str, int]]:
        """The greatest event time that each scan has shown, by partition: its records do not come again."""
        with self._lock:
            return {
                scan: {str(p): state.seen for p, state in source.partitions.items() if state.seen is not None}
                for scan, source in self._clock.sources.items()
            }

    def recall(self, known: Mapping[str, Mapping[str, int]]) -> None:
        """Takes up what an earlier run had seen, as `to_dict` said it."""
        with self._lock:
            for scan, times in known.items():
                if (source := self._clock.sources.get(scan)) is not None:
                    source.recall({int(partition): int(time_ms) for partition, time_ms in times.items()})

    # -- while it runs

    def batch_ran(self, query: StreamingQuery, number: int) -> int:
        """In the thread of a batch, after its rows have passed: what it has shown counts for the next one.

        Returns the watermark of this batch, by which rows of the next one are late.
        """
        if not self._clock.sources:
            return 0
        execution = _execution(query)
        observed = execution.lastExecution().observedMetrics()
        now = time.monotonic()
        with self._lock:
            for scan in self._clock.sources:
                row = observed.get(scan)
                if row.isDefined():
                    self._see(scan, json.loads(row.get().json()), now)
            self._ran = number
            reached = self._clock.batch_ended(now)
        tracker = execution.watermarkTracker()
        if not self.outgrown and reached is not None and reached > tracker.currentWatermark():
            tracker.setWatermark(reached)
        return int(execution.lastExecution().offsetSeqMetadata().batchWatermarkMs())

    def heard(self, scan: str, behind: Mapping[int, int], number: int) -> None:
        """How many offsets of each partition waited when batch `number` began."""
        with self._lock:
            # What is told of an earlier batch than the last one says nothing of what waits now.
            if scan in self._clock.sources and number >= self._ran:
                self._clock.hear(scan, behind, time.monotonic())

    def look(self, query: StreamingQuery) -> None:
        """Between two batches: has a silence become long enough?"""
        if not self._clock.sources or self.outgrown or query.status["isTriggerActive"]:
            return
        execution = _execution(query)
        tracker = execution.watermarkTracker()
        # There is none before Spark has read the checkpoint, and nothing to do before a first batch.
        if tracker is None or execution.lastExecution() is None:
            return
        lock = execution.awaitProgressLock()
        lock.lock()
        try:
            # While a batch runs, nobody is heard: that is no silence.
            if query.status["isTriggerActive"]:
                return
            looked_at = _last_look(execution)
            if looked_at is None:
                return
            with self._lock:
                reached = self._clock.rest(looked_at)
                if self._closing is not None:
                    reached = max(reached or 0, self._closing)
            if reached is not None and reached > tracker.currentWatermark():
                # Spark has asked itself whether the next batch is due, and remembers by which watermark.
                execution.lastExecution().watermarkPropagator().purge(2**62)
                tracker.setWatermark(reached)
        finally:
            lock.unlock()

    def date(self, scan: str, passed_ms: int) -> None:
        """Nothing older than that comes from a scan any more."""
        with self._lock:
            source = self._clock.sources[scan]
            source.passed_ms = max(passed_ms, source.passed_ms or 0)

    def passed(self, scan: str) -> int:
        """Up to when nothing older comes from a scan any more, by the wall clock; the delay is taken off."""
        with self._lock:
            source = self._clock.sources[scan]
            return (source.passed_ms or 0) - source.delay_ms

    def close(self, watermark_ms: int) -> None:
        """Event time is to be there, at the next look."""
        with self._lock:
            self._closing = max(watermark_ms, self._closing or 0)

    def silent_seconds(self) -> float:
        """For how long no record has come, and none waits."""
        with self._lock:
            return self._clock.silent_seconds(time.monotonic())

    @property
    def seen(self) -> int | None:
        """The greatest event time of all records."""
        with self._lock:
            return self._clock.seen

    def slowest(self) -> tuple[str, list[int], bool] | None:
        """The scan that holds event time up, the partitions whose next records move it, and whether these had
        none before."""
        with self._lock:
            return self._clock.slowest()

    def watermarks(self) -> dict[str, int | None]:
        with self._lock:
            as_of, spoken_at = self._clock.calm_at, self._clock.spoken_at
            return {scan: source.watermark(as_of, spoken_at) for scan, source in self._clock.sources.items()}

    def _see(self, scan: str, observed: Mapping[str, Any], now: float) -> None:
        if observed.get(OTHERS):
            self.outgrown = True
        times = {
            int(key): int(value) for key, value in observed.items() if key.isdigit() and value is not None
        }
        self._clock.see(scan, times, now)


def _last_look(execution: Any) -> float | None:
    """When Spark last began to look for records, on our clock; None when it is about to.

    Of what has come since then nobody knows: it may have been while a batch ran.
    """
    began_ms = int(execution.getLatestExecutionContext().currentTriggerStartTimestamp())
    return None if began_ms < 0 else time.monotonic() - max(0.0, time.time() - began_ms / 1000)


def _execution(query: StreamingQuery) -> Any:
    return cast(Any, query)._jsq.streamingQuery()
