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
        #: A topic has partitions that the scans do not know: event time stands still until they do.
        self.outgrown = False

    def watch(self, scan: str, source: SourceClock, before: "EventTime | None" = None) -> None:
        """`before`: the clock of an earlier run, whose records do not come again."""
        self._clock.sources[scan] = source
        self._clock.calm_at = time.monotonic()
        if before is not None and (known := before._clock.sources.get(scan)) is not None:
            seen = {p: state.seen for p, state in known.partitions.items() if state.seen is not None}
            source.see(seen, time.monotonic())

    def batch_ran(self, query: StreamingQuery, number: int) -> None:
        """In the thread of a batch, after its rows have passed: what it has shown counts for the next one."""
        if not self._clock.sources:
            return
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

    def heard(self, scan: str, behind: Mapping[int, int], number: int) -> None:
        """How many offsets of each partition waited when batch `number` began."""
        with self._lock:
            # What is told of an earlier batch than the last one says nothing of what waits now.
            if scan in self._clock.sources and number >= self._ran:
                self._clock.sources[scan].hear(behind, time.monotonic())

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
            with self._lock:
                reached = self._clock.rest(time.monotonic())
            if reached is not None and reached > tracker.currentWatermark():
                # Spark has asked itself whether the next batch is due, and remembers by which watermark.
                execution.lastExecution().watermarkPropagator().purge(2**62)
                tracker.setWatermark(reached)
        finally:
            lock.unlock()

    def watermarks(self) -> dict[str, int | None]:
        with self._lock:
            as_of = self._clock.calm_at
            return {scan: source.watermark(as_of) for scan, source in self._clock.sources.items()}

    def _see(self, scan: str, observed: Mapping[str, Any], now: float) -> None:
        if observed.get(OTHERS):
            self.outgrown = True
        times = {
            int(key): int(value) for key, value in observed.items() if key.isdigit() and value is not None
        }
        self._clock.sources[scan].see(times, now)


def _execution(query: StreamingQuery) -> Any:
    return cast(Any, query)._jsq.streamingQuery()
