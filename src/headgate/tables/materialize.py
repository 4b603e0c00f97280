"""One table follows its topic: the way of a record, read from top to bottom.

Each batch is one call of `Materializer.run`. A crash anywhere in it loses nothing and doubles nothing,
because nothing counts until the commit, and the commit carries the position.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from py4j.protocol import Py4JError

from headgate.errors import CommitUnknown, HeadgateError, TableStopped
from headgate.model import Batch, Position, StartKind, TableSpec, Topic
from headgate.tables.evolve import Schemas, SchemasInPlay
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane, Staged
from headgate.tables.plan import Limits, check_retained, check_source, lag, plan_batch
from headgate.tables.position import read_position

T = TypeVar("T")
ENABLEMENT_KEY = "headgate.enablement"
# How long a sample of a topic's records is taken to tell their length.
RESAMPLE_SECONDS = 60.0


class Source(Protocol):
    """What is asked of Kafka about one topic."""

    def view(self, topic: str) -> "TopicView": ...
    def start_offsets(self, spec: TableSpec, topic: Topic) -> Mapping[int, int]: ...
    def record_bytes(self, topic: Topic, offsets: Mapping[int, int]) -> float: ...


@dataclass(frozen=True)
class TopicView:
    """A topic as the engine's last look-up found it."""

    cluster_id: str
    topic: Topic
    earliest: Mapping[int, int]
    ends: Mapping[int, int]


@dataclass(frozen=True)
class BatchReport:
    """What one batch did."""

    batch: Batch
    snapshot_id: int
    rows: int
    bytes: int
    seconds: float


class Materializer:
    """The table of one topic. Not for two threads at once."""

    def __init__(
        self,
        spec: TableSpec,
        enablement: str,
        lake: Lake,
        lane: SparkLane,
        schemas: Schemas,
        source: Source,
        limits: Limits,
    ) -> None:
        self.spec = spec
        self._enablement = enablement
        self._lake = lake
        self._lane = lane
        self._in_play = SchemasInPlay(spec.topic, schemas, lake)
        self._source = source
        self._limits = limits
        self._table: Any | None = None
        self._head: Any | None = None
        self._record_bytes = 0.0
        self._sampled_at = -RESAMPLE_SECONDS
        self.position: Position | None = None
        self.facts: Mapping[str, Any] = {}

    def forget(self) -> None:
        """Trust nothing that was read before: another writer may have been here."""
        self._table = None
        self.position = None

    def lag(self, view: TopicView) -> int:
        """Offsets still to read; before the table is open, all that the topic has."""
        at = self.position or Position(view.cluster_id, view.topic.id, view.earliest)
        return lag(at, view.ends)

    def check(self, view: TopicView) -> None:
        """Raises when the topic is no longer the one that the table was read from."""
        if self.position is not None:
            check_source(self.position, view.cluster_id, view.topic)

    @property
    def is_open(self) -> bool:
        """Whether the table and its position are known."""
        return self.position is not None

    @property
    def record_bytes(self) -> float:
        """Mean bytes of a record, as far as is known."""
        return self._record_bytes

    def open(self, view: TopicView) -> bool:
        """Find or make the table and its position; False while the topic has no schema yet."""
        if self._table is None:
            self._table = self._lake.load(self.spec.topic) or self._create()
            if self._table is None:
                return False
        if self.position is None:
            self._table.refresh()
            # 1. Read the position: the table's own word.
            self._head = self._table.currentSnapshot()
            self.position = read_position(self._table, self.spec.topic)
            if self.position is None:
                self.position = self._begin(view)
            self._take_up()
            self._note_facts()
        return True

    def run(self, view: TopicView) -> BatchReport | None:
        """The next batch, or None when there is nothing to read, or no schema to read it by."""
        started = time.monotonic()
        with ThreadPoolExecutor(1) as aside:
            # While the table is opened: how long records are, for the batch's bound in bytes.
            sample = aside.submit(self._sample, view, started) if self._is_sample_due(started) else None
            if not self.open(view):
                return None
            if sample is not None:
                sample.result()
        position = self._known(self.position)
        if any(end < position.offsets.get(partition, 0) for partition, end in view.ends.items()):
            # The view is older than the position: `latest` was settled since, or another engine was here.
            view = self._source.view(self.spec.topic)
        self.check(view)
        check_retained(position, view.earliest, view.topic)

        # 2. Choose the end: the last stable offset, bounded by rows and bytes.
        batch = plan_batch(position, view.ends, self._limits.rows_of(self._record_bytes))
        if batch is None:
            return None

        # 3.–5. Read and decode the range, split good from bad, evolve the table for new schemas.
        staged = self._write(batch)

        # 6. The commit: rows and position in one snapshot.
        self._head = self._commit(batch, staged)
        self.position = batch.end
        self._note_facts()
        return BatchReport(
            batch, self._head.snapshotId(), staged.rows, staged.bytes, time.monotonic() - started
        )

    def _is_sample_due(self, now: float) -> bool:
        return not self._record_bytes or now - self._sampled_at >= RESAMPLE_SECONDS

    def _sample(self, view: TopicView, now: float) -> None:
        at = self.position.offsets if self.position is not None else view.earliest
        found = self._source.record_bytes(view.topic, at)
        self._record_bytes, self._sampled_at = found or self._record_bytes, now

    def _note_facts(self) -> None:
        """What `table show` says of the table itself, as of the snapshot just read or made."""
        summary = self._head.summary() if self._head is not None else {}
        table = self._known(self._table)
        self.facts = {
            "location": table.location(),
            "snapshot_id": None if self._head is None else str(self._head.snapshotId()),
            "rows": int(summary.get("total-records") or 0),
            "files": int(summary.get("total-data-files") or 0),
            "bytes": int(summary.get("total-files-size") or 0),
            "schema_ids": sorted(self._in_play.texts),
        }

    def _create(self) -> Any | None:
        columns = self._in_play.newest_columns()
        if columns is None:
            return None
        return self._lake.create(self.spec.topic, columns, {ENABLEMENT_KEY: self._enablement})

    def _begin(self, view: TopicView) -> Position:
        """Pin the start with an empty snapshot: `latest` must mean the same after a restart."""
        offsets = self._source.start_offsets(self.spec, view.topic)
        position = Position(view.cluster_id, view.topic.id, offsets)
        self._head = self._lake.commit(self._table, self.spec.topic, (), Batch(position, position), None)
        return position

    def _take_up(self) -> None:
        """A table that was enabled before goes on where it stood; a start that says otherwise is refused."""
        table = self._table
        before = table.properties().get(ENABLEMENT_KEY) if table is not None else None
        if before == self._enablement:
            return
        if before is not None and self.spec.start.kind is not StartKind.EARLIEST:
            raise TableStopped(
                f"Table '{self.spec.topic}' has history and goes on at its position; "
                f"it cannot start from {self.spec.start.kind.value}.",
                "Disable it and enable it again without --from, or disable it with --purge first.",
            )
        self._lake.set_property(table, ENABLEMENT_KEY, self._enablement)

    def _write(self, batch: Batch) -> Staged:
        """Files of the batch. A schema id met for the first time is fetched, and the range written again."""
        while True:
            columns = self._in_play.evolve(self._table)
            texts = dict(self._in_play.texts)
            staged = self._lane.write(batch, self.spec.topic, self._table, columns, texts)
            if staged is not None:
                return staged
            self._in_play.learn(self._lane.bad_records(batch, self.spec.topic, columns, texts))

    def _commit(self, batch: Batch, staged: Staged) -> Any:
        """The batch's snapshot. Files that certainly did not make it into the table are removed."""
        try:
            # The range was read by the topic's name: it must still be the same topic.
            self.check(self._source.view(self.spec.topic))
        except HeadgateError:
            self._lake.delete_files(self._table, staged.files)
            raise
        try:
            return self._lake.commit(self._table, self.spec.topic, staged.files, batch, self._head)
        except CommitUnknown:
            raise
        except (HeadgateError, Py4JError):
            # Refused, or so it seems: a repeated request can lose against its own first copy.
            if self._lake.find_batch(self._table, batch, self._head) is None:
                self._lake.delete_files(self._table, staged.files)
            raise

    @staticmethod
    def _known(found: T | None) -> T:
        """For what `open` has set."""
        if found is None:
            raise AssertionError("a batch was run on a table that is not open")
        return found
