"""When a table's next batch is due, and what its owner is told of it. No I/O."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from headgate.backoff import Backoff
from headgate.model import Position, TableState
from headgate.tables.materialize import BatchReport, Materializer, TopicView

FIRST_RETRY_SECONDS = 0.5
LONGEST_RETRY_SECONDS = 30.0
BACKOFF = Backoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS)
# Failures in a row after which a table that still retries is called Failed.
FAILED_AFTER = 8


@dataclass
class TableTask:
    """One enabled table in the engine: its materializer and its clock."""

    materializer: Materializer
    state: TableState = TableState.PENDING
    reason: str = "waiting for the engine"
    running: Future[BatchReport | None] | None = None
    # Since when records have been waiting; None while there are none.
    waiting_since: float | None = None
    retry_at: float = 0.0
    failures: int = 0
    batch_seconds: float = 0.0
    # When the last batch came to its end; what ended before this engine began was long ago.
    ended_at: float = float("-inf")
    last_batch: Mapping[str, Any] | None = None
    # The same instant as `waiting_since`, on the clock that people read.
    behind_since: float | None = None
    # The last batch stopped at its bounds, not at the end of the topic.
    backlog: bool = True
    view: TopicView | None = None
    sync_token: str | None = None
    sync_target: Mapping[int, int] | None = None
    synced: str | None = None
    opened: bool = False
    schemaless: bool = False
    # When the Delta log that could not follow is tried again, and after how long the time after that.
    mirror_retry_at: float = 0.0
    mirror_wait: float = FIRST_RETRY_SECONDS
    # What the store has of this table: an earlier engine's word to begin with.
    told: Mapping[str, Any] = field(default_factory=dict)

    def see(self, view: TopicView, now: float, wall: float) -> int:
        """Take note of the topic as it is now; how far behind the table is."""
        self.view = view
        behind = self.materializer.lag(view)
        if behind == 0:
            self.waiting_since = self.behind_since = None
            self.backlog = False
        elif self.waiting_since is None:
            self.waiting_since, self.behind_since = now, wall
        return behind

    def request_sync(self, token: str | None, view: TopicView) -> None:
        """Catch up with what is there now, at once."""
        if token is not None and token != self.sync_token:
            self.sync_token = token
            self.sync_target = dict(view.ends)
        if self.sync_target is not None and _reached(self.materializer.position, self.sync_target):
            self.synced, self.sync_target = self.sync_token, None

    def due(self, behind: int, now: float) -> bool:
        """Whether to start a batch: freshness, size, a sync, or a table that was never opened."""
        if self.running is not None or now < self.retry_at:
            return False
        if not self.opened or self.sync_target is not None:
            return True
        if self.materializer.mirror_trouble is not None and now >= self.mirror_retry_at:
            return True
        if behind and self.backlog:
            return True
        if behind == 0 or self.waiting_since is None:
            return False
        spec = self.materializer.spec
        # Begin early enough to be done in time, as far as the last batch tells. After a silence there is
        # nothing to wait for: batches are at least so far apart.
        waited = now - min(self.waiting_since, self.ended_at) + self.batch_seconds
        return waited >= spec.freshness_seconds or behind * self.materializer.record_bytes >= spec.flush_bytes

    def finished(self, report: BatchReport | None, now: float, wall: float) -> None:
        """A batch came to its end; what arrived meanwhile waits from the next look on."""
        self.waiting_since = self.behind_since = None
        if self.materializer.mirror_trouble is None:
            self.mirror_wait = FIRST_RETRY_SECONDS
        else:
            self.mirror_retry_at = now + self.mirror_wait
            self.mirror_wait = min(LONGEST_RETRY_SECONDS, self.mirror_wait * 2)
        if report is None:
            return
        self.ended_at = now
        self.backlog = self.view is not None and not _reached(report.batch.end, self.view.ends)
        self.batch_seconds = report.seconds
        self.last_batch = {
            "rows": report.rows,
            "bytes": report.bytes,
            "seconds": round(report.seconds, 3),
            "at": wall,
            "snapshot_id": str(report.snapshot_id),
            **({"bad": report.bad} if report.bad else {}),
        }

    def failed(self, now: float) -> None:
        self.failures += 1
        self.retry_at = now + BACKOFF.after(self.failures)

    def detail(self, view: TopicView | None) -> dict[str, Any]:
        """What `table show` knows beside state and reason; the last known ends when there is no new look."""
        position = self.materializer.position
        found: dict[str, Any] = {
            **{key: value for key, value in self.told.items() if key not in ("state", "reason")},
            **({"synced": self.synced} if self.synced is not None else {}),
            **({"last_batch": self.last_batch} if self.last_batch is not None else {}),
            "behind_since": self.behind_since,
        }
        if position is not None:
            found |= {"position": position.to_dict(), **self.materializer.facts}
        if view is not None:
            found["ends"] = {str(partition): end for partition, end in view.ends.items()}
            found["lag"] = self.materializer.lag(view)
        return found


def _reached(position: Position | None, target: Mapping[int, int]) -> bool:
    if position is None:
        return not any(target.values())
    return all(position.offsets.get(partition, 0) >= end for partition, end in target.items())
