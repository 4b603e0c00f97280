"""One table follows its topic: the way of a record, read from top to bottom.

Each batch is one call of `Materializer.run`. A crash anywhere in it loses nothing and doubles nothing,
because nothing counts until the commit, and the commit carries the position.
"""

import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.errors import (
    CommitRefused,
    CommitUnknown,
    HeadgateError,
    InvalidRequest,
    StaleBatch,
    TableStopped,
)
from headgate.failpoints import failpoint
from headgate.model import (
    ASKED_BY_KEY,
    DEAD_KEY,
    FORMATS_KEY,
    OPERATION_KEY,
    REPLAY_KEY,
    REQUEST_KEY,
    SKIPPED_KEY,
    Batch,
    Metadata,
    OnError,
    Position,
    StartKind,
    TableFormat,
    TableMode,
    TableSpec,
    Topic,
)
from headgate.partition import PartitionField
from headgate.tables.dead_letters import DeadLetters, Owner
from headgate.tables.deleted_keys import DeletedKeys
from headgate.tables.evolve import Message, Schemas, SchemasInPlay, stopped
from headgate.tables.frames import Frame
from headgate.tables.key_index import KeyIndex
from headgate.tables.key_places import KeyPlaces
from headgate.tables.lake import FileChanges, Lake
from headgate.tables.lane import MANY_PARTITIONS, BadGroup, SparkLane, Staged
from headgate.tables.layout import laid_out, partition_of
from headgate.tables.mirror import CREATING, GENERATION_KEY, DeltaMirror
from headgate.tables.plan import (
    Limits,
    check_leaders,
    check_replaced,
    check_retained,
    check_source,
    lag,
    led_by_others,
    lost_ranges,
    plan_batch,
    replaced_ranges,
)
from headgate.tables.position import read_position
from headgate.tables.records import POSITION_COLUMN, RecordPlan
from headgate.tables.rollback import (
    EVENTS_NEED_EACH_OTHER,
    Records,
    RollbackPlan,
    Wanted,
    outcome,
    plan_rollback,
    roll_back,
    unfinished_rollback,
    why_not_again,
)
from headgate.tables.settle import settle, settled, settled_properties
from headgate.tables.totals import Totals
from headgate.tables.undone import check_letters, follow_rollback
from headgate.tables.upsert import StagedChanges, Upserts
from headgate.tables.usage import Usage
from headgate.tables.versions import Versions

log = logging.getLogger(__name__)

T = TypeVar("T")
ENABLEMENT_KEY = "headgate.enablement"
# Groups of bad records that are looked at together.
GROUPS = 500
# What a snapshot says beside its position.
ACCEPTED_KEY = "headgate.accepted"
# The keys of a batch are in the driver's memory.
UPSERT_ROWS = 1_000_000
# How long a sample of a topic's records is taken to tell their length.
RESAMPLE_SECONDS = 60.0


class Source(Protocol):
    """What is asked of Kafka about one topic."""

    def view(self, topic: str) -> "TopicView": ...
    def start_offsets(self, spec: TableSpec, topic: Topic) -> Mapping[int, int]: ...
    def record_bytes(self, topic: Topic, offsets: Mapping[int, int]) -> float: ...
    def peek(self, topic: Topic, offsets: Mapping[int, int]) -> Iterable[Message]: ...
    def cleanup_policy(self, topic: str) -> str: ...
    def leader_epochs(
        self, topic: Topic, ranges: Mapping[int, tuple[int, int]]
    ) -> Mapping[int, Sequence[tuple[int, int]]]: ...


@dataclass(frozen=True)
class TopicView:
    """A topic as the engine's last look-up found it."""

    cluster_id: str
    topic: Topic
    earliest: Mapping[int, int]
    ends: Mapping[int, int]
    #: The epochs of the leaders that told the ends, where brokers tell them.
    epochs: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchReport:
    """What one batch did."""

    batch: Batch
    snapshot_id: int
    rows: int
    bytes: int
    seconds: float
    bad: int = 0


@dataclass(frozen=True)
class ReplayReport:
    """What a replay did."""

    replayed: int
    dead: int


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
        dead_letters: DeadLetters | None = None,
        index: KeyIndex | None = None,
        mirror: DeltaMirror | None = None,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        """`index` is where an upsert table keeps its keys; `mirror` has its Delta log, wanted or not. `warn`
        tells the table's owner."""
        self._warn = warn
        self.spec = spec
        self._enablement = enablement
        self._lake = lake
        self._lane = lane
        self._schemas = schemas
        self._settle(spec)
        self._dead = dead_letters
        self._index = index
        self._mirror = mirror
        # Why the Delta log is not where the table is.
        self.mirror_trouble: Exception | None = None
        self._upserts: Upserts | None = None
        self._owner: Owner | None = None
        self._source = source
        self._limits = limits
        self._table: Any | None = None
        self._head: Any | None = None
        self._record_bytes = 0.0
        self._sampled_at = -RESAMPLE_SECONDS
        # What the last batch was like: the next one is likely the same.
        self._many_partitions = True
        self._had_bad = False
        self._headers = False
        # How records were read last.
        self._last_plan: RecordPlan | None = None
        self._quick_plan: RecordPlan | None = None
        # The position and the leaders for which the topic is known to have what the table has read.
        self._looked_into: tuple[Position, Mapping[int, int]] | None = None
        # The end of a batch that was begun, whose dead letters are written.
        self._begun: Position | None = None
        self.position: Position | None = None
        self._totals = Totals()
        self._usage = Usage(spec.topic, lambda table: lake.metadata_json(table))
        # Dead letters that were not replayed, of a table that keeps some.
        self._dead_count = 0
        self._partition_reason = ""
        self.facts: Mapping[str, Any] = {}

    def _settle(self, spec: TableSpec) -> None:
        """Nothing is left open in this one."""
        if spec == getattr(self, "_settled", None):
            return
        self._settled = spec
        self._in_play = SchemasInPlay(spec, self._schemas, self._lake, self._warn)
        self._partition = partition_of(spec)

    def forget(self) -> None:
        """Trust nothing that was read before: another writer may have been here."""
        self._table = None
        self.position = None
        self._usage.forget()
        if self._mirror is not None:
            self._mirror.forget()

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
    def places(self) -> KeyPlaces | None:
        """Where the rows of an upsert table's keys are; None for an append table, and before it is open."""
        return None if self._upserts is None else self._upserts.places

    @property
    def record_plan(self) -> RecordPlan | None:
        """How the records of the last batch were read."""
        return self._last_plan

    @property
    def record_bytes(self) -> float:
        """Mean bytes of a record, as far as is known."""
        return self._record_bytes

    def open(self, view: TopicView) -> bool:
        """Find or make the table and its position; False while nothing tells what its columns are."""
        if self._table is None:
            self._table = self._lake.load(self.spec.topic)
            if self._table is not None:
                self._settle(settled(self.spec, self._table.properties()))
            else:
                self._table = self._create(view)
            if self._table is None:
                return False
        if self.position is None:
            if self._dead is not None:
                # Before the position is read: what an earlier engine still writes there is seen, or fails.
                self._owner = self._dead.claim(self.spec.topic, str(self._table.uuid()))
            self._table.refresh()
            # 1. Read the position: the table's own word.
            self._head = self._table.currentSnapshot()
            self.position = read_position(self._table, self.spec.topic)
            self._totals = Totals.of(self._table)
            if self.position is None:
                self.position = self._begin(view)
            self._take_up()
            self._follow_rollback()
            if self._dead is not None:
                self._begun = self._dead.pending(self._known(self._owner), self.position)
                self._finish_replay()
            self._in_play.add_metadata(self._table, self._lake.columns(self._table))
            self._lake.set_format_version(self._table, self._settled.format)
            self._lay_out(self._lake.columns(self._table))
            self._lake.partition_by(self._table, self._resolved_partition())
            if self._settled.is_upsert:
                self._open_upserts()
            self._mirror_now()
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
        if self.mirror_trouble is not None:
            self._mirror_now()
            self._note_facts()
        position = self._known(self.position)
        judged = self._validated(position)
        if any(end < judged.offsets.get(partition, 0) for partition, end in view.ends.items()):
            # The view is older than the position: `latest` was settled since, or another engine was here.
            view = self._source.view(self.spec.topic)
        failpoint("position-read")
        self.check(view)
        check_retained(position, view.earliest, view.topic)
        check_replaced(self._replaced(view, judged), view.topic)

        # 2. Choose the end: the last stable offset, bounded by rows and bytes. A batch that was begun and has
        # dead letters keeps its end.
        if self._begun is not None:
            batch: Batch | None = Batch(position, self._begun)
        else:
            rows = self._limits.rows_of(self._record_bytes)
            if self._upserts is not None:
                rows = min(rows, UPSERT_ROWS)
            batch = plan_batch(position, view.ends, rows)
        if batch is None:
            return None
        batch = replace(batch, end=replace(batch.end, epochs={**position.epochs, **view.epochs}))
        failpoint("batch-planned")

        # 3.–5. Read and decode the range, split good from bad, evolve the table for new schemas.
        staged, bad = self._write(batch, view)
        if isinstance(staged, StagedChanges):
            batch = replace(batch, end=replace(batch.end, snapshots=staged.snapshots))
        failpoint("files-staged")

        # 6. The commit: rows and position in one snapshot.
        totals = self._totals.plus(staged.rows, len(staged.files))
        self._head = self._commit(batch, staged, bad, totals.summary(time.monotonic() - started))
        failpoint("batch-committed")
        self.position, self._totals = batch.end, totals
        self._dead_count += bad
        self._begun = None
        self._many_partitions = staged.partitions > MANY_PARTITIONS
        if isinstance(staged, StagedChanges):
            self._known(self._upserts).committed(staged, self._table, self._head, batch.end)
            failpoint("index-written")
        # 7. The Delta log follows. What goes wrong there is its own trouble: the rows are in the table.
        self._mirror_now()
        self._note_facts()
        return BatchReport(
            batch, self._head.snapshotId(), staged.rows, staged.bytes, time.monotonic() - started, bad
        )

    def accept(self, view: TopicView, what: str, request: str = "", asked_by: str = "") -> None:
        """Go on past what stopped the table, by its operator's word: `new-topic` begins with the topic that
        has its name now, `new-timeline` compares no position with those before it, `lost` goes on behind
        records that are gone. An empty snapshot says so; `request` finds it again when its answer is lost."""
        if not self.open(view):
            raise InvalidRequest(f"Table '{self.spec.topic}' does not exist yet: there is nothing to accept.")
        if request and self._lake.find_request(self._table, request) is not None:
            return
        position = self._known(self.position)
        if what == "new-topic":
            if (position.cluster_id, position.topic_id) == (view.cluster_id, view.topic.id):
                raise InvalidRequest(f"Topic '{self.spec.topic}' is the one that its table was read from.")
            end = position.in_new_era(view.cluster_id, view.topic.id, view.earliest)
            said = f"new topic {view.topic.id}"
        elif what == "new-timeline":
            self.check(view)
            if self._upserts is None or not self._upserts.places.events:
                raise InvalidRequest(
                    f"The rows of table '{self.spec.topic}' are not of change events: they have no timeline."
                )
            end = position.in_new_era(position.cluster_id, position.topic_id, position.offsets)
            said = "new timeline"
        else:
            self.check(view)
            view = self._source.view(self.spec.topic)
            lost = lost_ranges(position, view.earliest)
            replaced = self._replaced(view, self._validated(position))
            if not lost and not replaced:
                raise InvalidRequest(f"Topic '{self.spec.topic}' has lost nothing that its table lacks.")
            end = position.advanced_to({partition: first for partition, (_, first) in lost.items()})
            if replaced:
                # Offsets go back: what is there now is not what was there before.
                first = {p: min(first, position.offsets.get(p, 0)) for p, (first, _) in replaced.items()}
                back = end.advanced_to(first)
                end = back.in_new_era(back.cluster_id, back.topic_id, back.offsets)
                end = replace(end, reread={p: at for p, at in end.reread.items() if p not in replaced})
            end = replace(end, epochs={**end.epochs, **view.epochs})
            said = ", ".join(
                f"{what} {p}:{start}-{behind - 1}"
                for what, ranges in (("lost", lost), ("replaced", replaced))
                for p, (start, behind) in ranges.items()
            )
        batch = Batch(position, end)
        whose = {REQUEST_KEY: request, ASKED_BY_KEY: asked_by}
        extra = {ACCEPTED_KEY: said, **{key: value for key, value in whose.items() if value}}
        self._head = self._lake.commit(self._table, self.spec.topic, FileChanges(), batch, self._head, extra)
        self.position = end
        if self._upserts is not None:
            self._open_upserts()
        self._begun = None if self._dead is None else self._dead.pending(self._known(self._owner), end)
        self._mirror_now()
        self._note_facts()

    def _validated(self, position: Position) -> Position:
        """Up to where records are in the table, or were validated and may be in its dead letters."""
        validated = self._begun or position
        return validated if self._dead is None else validated.once_read

    def rollback(self, view: TopicView, wanted: Wanted) -> Mapping[str, Any]:
        """Put the table back to an earlier snapshot; without `records`, what that would mean. A request that
        was carried out before is not carried out again."""
        if not self.open(view):
            raise InvalidRequest(f"Table '{self.spec.topic}' does not exist yet: it has no history.")
        table, position = self._known(self._table), self._known(self.position)
        done = self._lake.find_batch(table, Batch(position, position, wanted.id), None)
        if done is None:
            plan = plan_rollback(table, self.spec.topic, wanted.to)
            dead = None if self._dead is None else (self._dead, self._known(self._owner))
            check_letters(plan, dead)
            refused = self._why_not(plan, view)
            if wanted.records is None:
                return plan.to_dict() | {"refused": {str(kind): why for kind, why in refused.items()}}
            if wanted.records in refused:
                raise InvalidRequest(refused[wanted.records])
            failpoint("rollback-planned")
            done = roll_back(table, plan, wanted, wanted.records, Totals.of(table))
            failpoint("rollback-committed")
            # What lies beside the table follows as it is opened.
            self.position = None
            self.open(view)
        return outcome(table, done)

    def _why_not(self, plan: RollbackPlan, view: TopicView) -> dict[Records, str]:
        """What cannot become of the records of a rollback, and why."""
        view = self._source.view(view.topic.name)
        refused: dict[Records, str] = {}
        replaced = self._replaced(view, plan.was.once_read)
        again = why_not_again(plan, view.earliest, view.ends, replaced, self._counted(plan))
        if again is not None:
            refused[Records.AGAIN] = again
        if self._upserts is not None and self._upserts.places.events:
            refused[Records.KEEP_OUT] = EVENTS_NEED_EACH_OTHER.format(topic=plan.topic)
        return refused

    def _counted(self, plan: RollbackPlan) -> int | None:
        """How many of the records are still there, where Kafka takes some away in between."""
        if not plan.ranges or "compact" not in self._source.cleanup_policy(plan.topic):
            return None
        return self._lane.read(Batch(plan.back, plan.was), plan.topic).count()

    def _replaced(self, view: TopicView, judged: Position) -> dict[int, tuple[int, int]]:
        """Ranges whose records the topic has lost to another leader, by partition. `judged`: up to where they
        are in the table, or in its dead letters for a batch that was begun.

        Only a partition that has got another leader since is looked into.
        """
        others = led_by_others(judged, view.epochs)
        asked = {p: (view.earliest.get(p, 0), judged.offsets[p]) for p in others}
        if not asked or self._looked_into == (judged, view.epochs):
            return {}
        # What is gone and not written over yet.
        gone = {p: (view.ends[p], judged.offsets[p]) for p in asked if view.ends[p] < judged.offsets[p]}
        found = gone | replaced_ranges(judged, self._source.leader_epochs(view.topic, asked))
        if not found:
            self._looked_into = (judged, view.epochs)
        return found

    def mirror(self, view: TopicView, rebuild: bool = False) -> Mapping[str, Any]:
        """Bring the Delta log to where the table is, or write it anew; what it is like then."""
        if not self.spec.has_delta or self._mirror is None:
            raise InvalidRequest(
                f"Table '{self.spec.topic}' has no Delta log.",
                f"It has with `headgate table alter {self.spec.topic} --formats iceberg,delta`.",
            )
        if not self.open(view):
            raise InvalidRequest(f"Table '{self.spec.topic}' does not exist yet: there is nothing to mirror.")
        if rebuild:
            self._mirror.rebuild(self._table)
        else:
            self._lake.refresh(self._table)
            self._mirror.catch_up(self._table)
        self.mirror_trouble = None
        self._note_facts()
        return self._mirror.facts

    def _mirror_now(self) -> None:
        """The Delta log, if one is wanted, is where the table is; if not, there is none."""
        if self._mirror is None:
            return
        table = self._known(self._table)
        try:
            formats = ",".join(self.spec.formats)
            if (table.properties().get(FORMATS_KEY) or TableFormat.ICEBERG.value) != formats:
                self._lake.set_property(table, FORMATS_KEY, formats)
                self._lake.refresh(table)
            if self.spec.has_delta:
                self._mirror.is_alone = TableFormat.ICEBERG not in self.spec.formats
                self._mirror.widens = not self.spec.avoids_widening
                self._mirror.catch_up(table)
            else:
                self._mirror.remove(table)
        except Exception as error:  # noqa: BLE001 - the rows are in the table; its owner is told
            level = logging.WARNING if isinstance(error, HeadgateError) else logging.ERROR
            log.log(level, "The Delta log of table '%s' waits: %s", self.spec.topic, error)
            self.mirror_trouble = error
        else:
            self.mirror_trouble = None

    def replay(self, view: TopicView, asked_by: str = "") -> ReplayReport:
        """Dead letters that can be read now go into the table, each once, however often this is called."""
        if self._dead is None:
            raise InvalidRequest(
                f"Table '{self.spec.topic}' keeps no dead letters.",
                f"It does with `headgate table alter {self.spec.topic} --on-error log`.",
            )
        if not self.open(view):
            raise InvalidRequest(f"Table '{self.spec.topic}' does not exist yet: nothing is dead.")
        replayed = 0
        for topic_id, source in self._dead.candidates(self._known(self._owner)):
            plan, _ = self._understand(source)
            good = self._lane.good(plan, source)
            replay_id = str(uuid.uuid4())
            if self._dead.take_up(replay_id, self._known(self._owner), topic_id, good):
                failpoint("replay-taken-up")
                replayed += self._carry_out(replay_id, topic_id, asked_by)
        self._dead_count = self._dead.count(self._known(self._owner))
        self._note_facts()
        return ReplayReport(replayed, self._dead_count)

    def _follow_rollback(self) -> None:
        """What lies beside the table is as the table is, before anything is read for the next batch."""
        table = self._known(self._table)
        rolled_back = unfinished_rollback(table)
        if rolled_back is None:
            return
        dead = None if self._dead is None else (self._dead, self._known(self._owner))
        marks = DeletedKeys(self._lake.gateway, table) if self._settled.is_upsert else None
        follow_rollback(table, rolled_back, dead, marks)

    def _finish_replay(self) -> None:
        """A replay that an engine did not live to finish."""
        dead, owner = self._known(self._dead), self._known(self._owner)
        self._dead_count, replay_id = dead.standing(owner)
        if replay_id is None:
            return
        if self._lake.find_replay(self._table, replay_id) is not None:
            dead.finish(replay_id)
        else:
            # Its commit may still be on the way: on another head no catalog takes it.
            self._pin()
            # Whether its rows still decode is for the next replay to find out.
            dead.give_back(replay_id)
            self._dead_count = dead.count(owner)

    def _pin(self) -> None:
        """An empty snapshot that says again where the table stands."""
        position = self._known(self.position)
        batch, extra = Batch(position, position), {OPERATION_KEY: "pin"}
        self._head = self._lake.commit(self._table, self.spec.topic, FileChanges(), batch, self._head, extra)

    def _carry_out(self, replay_id: str, topic_id: str, asked_by: str) -> int:
        dead = self._known(self._dead)
        source = dead.of_replay(replay_id)
        plan = self._in_play.evolve(self._table)
        staged: Staged | None
        if self._upserts is None:
            staged = self._lane.write(plan, source, self._table, sort=True)
        else:
            position = self._known(self.position)
            staged = self._upserts.write(plan, source, self._table, position, replay_of=topic_id)
        if staged is None:
            raise AssertionError(f"replay {replay_id} took up a record that does not decode")
        whose = {ASKED_BY_KEY: asked_by} if asked_by else {}
        summary = {OPERATION_KEY: "replay", REPLAY_KEY: replay_id, **whose}
        changes = self._changes(staged)
        self._head = self._lake.change(self._table, self.spec.topic, changes, summary, self._head)
        if self._head.summary().get(REPLAY_KEY) != replay_id:
            raise CommitUnknown(f"Table '{self.spec.topic}' has moved on since replay {replay_id}.")
        if isinstance(staged, StagedChanges):
            position = self._known(self.position)
            self._known(self._upserts).committed(staged, self._table, self._head, position)
        failpoint("replay-committed")
        dead.finish(replay_id)
        self._mirror_now()
        self._note_facts()
        return staged.rows

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
            "mode": self._settled.mode.value,
            "rows": int(summary.get("total-records") or 0) - int(summary.get("total-position-deletes") or 0),
            "deleted_rows": int(summary.get("total-position-deletes") or 0),
            "records_materialized": self._totals.records,
            "files_created": self._totals.files,
            "files": int(summary.get("total-data-files") or 0),
            "bytes": int(summary.get("total-files-size") or 0),
            "schema_ids": self._in_play.ids,
            "dead_letters": None if self._dead is None else self._dead.name,
            "dead_letters_count": None if self._dead is None else self._dead_count,
            **self._usage.facts(table, self._log_bytes),
            "partition": [str(field) for field in self._resolved_partition()],
            "format_version": self._settled.format,
            "partition_reason": self._partition_reason,
        }
        if self._mirror is not None and self.spec.has_delta:
            self.facts = {**self.facts, "delta": self._mirror.facts}
        if self._upserts is not None:
            self.facts = {
                **self.facts,
                "key": list(self._in_play.identity(table).columns),
                "deletes": self._settled.deletes_by.value,
                "unique_keys": self.facts["rows"],
                **self._upserts.facts(),
            }

    def _log_bytes(self) -> int | None:
        return self._mirror.size() if self._mirror is not None and self.spec.has_delta else None

    def _check_partition(self, key: Sequence[str]) -> None:
        for one in self._resolved_partition():
            if one.transform != "bucket" or one.column not in key:
                raise TableStopped(
                    f"Upsert table '{self.spec.topic}' cannot be partitioned by {one}: a record that deletes "
                    "a row says nothing but its key.",
                    f"Partition it by bucket(n, {key[0]}), or not at all.",
                )

    def _open_upserts(self) -> None:
        """Where each key's row is, as of the snapshot that the position was read from."""
        table, position = self._known(self._table), self._known(self.position)
        identity = self._in_play.identity(table)
        self._check_partition(identity.columns)
        if self._upserts is None:
            places = KeyPlaces(self.spec.topic, self._lane, self._lake, self._known(self._index))
            kind = Versions if self._settled.mode is TableMode.SCD2 else Upserts
            deletes = self._settled.deletes_by
            self._upserts = kind(self.spec.topic, self._lane, self._lake, places, deletes)
        events = POSITION_COLUMN in self._lake.columns(table).names
        self._upserts.places.open(table, self._head, position, identity, events, self._dead is not None)

    def _create(self, view: TopicView) -> Any | None:
        def peek() -> Iterable[Message]:
            return self._source.peek(view.topic, self._source.start_offsets(self.spec, view.topic))

        spec = settle(self.spec, lambda: self._source.cleanup_policy(self.spec.topic), self._schemas, peek)
        if spec is None:
            return None
        self._settle(spec)
        columns = self._in_play.first_columns(peek)
        if columns is None:
            return None
        self._lay_out(columns)
        properties = {
            ENABLEMENT_KEY: self._enablement,
            FORMATS_KEY: ",".join(self.spec.formats),
            **({GENERATION_KEY: f"{CREATING} 1"} if self.spec.has_delta else {}),
            "format-version": str(spec.format),
            **settled_properties(spec),
            **self._in_play.first_properties(),
        }
        if spec.is_upsert:
            self._check_partition(self._in_play.first_key)
            # By these bounds the writer knows its own files.
            properties[f"write.metadata.metrics.column.{Metadata.OFFSET.column}"] = "full"
        return self._lake.create(self.spec.topic, columns, self._partition, properties, self.spec.storage)

    def _lay_out(self, columns: StructType) -> None:
        spec = laid_out(self._settled, columns)
        self._partition, self._partition_reason = partition_of(spec), spec.partition_reason

    def _resolved_partition(self) -> list[PartitionField]:
        """A column that was renamed since is still what the table is partitioned by."""
        renames = self.spec.renames
        return [replace(field, column=renames.get(field.column, field.column)) for field in self._partition]

    def _begin(self, view: TopicView) -> Position:
        """Pin the start with an empty snapshot: `latest` must mean the same after a restart."""
        offsets = self._source.start_offsets(self.spec, view.topic)
        position = Position(view.cluster_id, view.topic.id, offsets)
        batch = Batch(position, position)
        self._head = self._lake.commit(self._table, self.spec.topic, FileChanges(), batch, None)
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

    def _write(self, batch: Batch, view: TopicView) -> tuple[Staged, int]:
        """Files of the batch, and how many records are bad. All is tried at once: most batches are good."""
        source = self._lane.read(batch, self.spec.topic)
        if self._dead is not None and (self._begun is not None or batch.start.reread):
            source = self._dead.without_dead(source, self._known(self._owner), batch)
        if self._begun is None and not self._had_bad:
            plan = self._plan(batch, view)
            if plan.headers != self._headers:
                plan = replace(plan, headers=self._headers)
                plan = self._quick_plan if plan == self._quick_plan else plan
                self._quick_plan = plan
            staged = self._stage(plan, source)
            if staged is not None:
                return staged, 0
            self._headers = self._headers or self._lane.has_headers(source)
        plan, groups = self._understand(source, batch, view)
        if not groups:
            self._had_bad = False
            # Nothing was bad a moment ago, and schemas in play stay so.
            return self._known(self._stage(plan, source)), 0
        bad = self._put_aside(plan, source, groups, batch)
        if self._upserts is not None:
            return self._upserts.write_good(plan, source, self._table, batch.start), bad
        return self._lane.write_good(plan, source, self._table, self._many_partitions), bad

    def _stage(self, plan: RecordPlan, source: DataFrame) -> Staged | None:
        """All records; None when some are bad."""
        if self._upserts is not None:
            return self._upserts.write(plan, source, self._table, self._known(self.position))
        return self._lane.write(plan, source, self._table, self._many_partitions)

    def _changes(self, staged: Staged) -> FileChanges:
        if isinstance(staged, StagedChanges):
            return self._known(self._upserts).changes(staged)
        return FileChanges(tuple(staged.files))

    def _put_aside(
        self, plan: RecordPlan, source: DataFrame, groups: Sequence[BadGroup], batch: Batch
    ) -> int:
        """What the table's owner wants done with its bad records; how many they are."""
        first = groups[0]
        if self.spec.on_error is OnError.SUSPEND:
            which = "" if first.unknown is None else f" ({first.unknown[1]})"
            raise stopped(self.spec.topic, first.partition, first.offset, first.message + which)
        self._had_bad = True
        if self.spec.on_error is OnError.SKIP:
            return sum(group.count for group in groups)
        return self._known(self._dead).add(self._lane.dead(plan, source), self._known(self._owner), batch)

    def _understand(
        self, source: DataFrame, batch: Batch | None = None, view: TopicView | None = None
    ) -> tuple[RecordPlan, list[BadGroup]]:
        """Schemas met for the first time join those in play, until what is still bad cannot be helped."""
        missing: set[tuple[str, Frame]] = set()
        limit = GROUPS
        while True:
            plan = self._plan(batch, view)
            groups = self._lane.bad(plan, source, limit)
            unknown = {group.unknown for group in groups if group.unknown is not None} - missing
            learned = False
            for part in ("key", "value"):
                frames = {frame for name, frame in unknown if name == part}
                if not frames:
                    continue
                lacking = self._in_play.learn(part, frames, partial(self._lane.present, source))
                missing |= {(part, frame) for frame in lacking}
                learned |= frames > lacking
                failpoint("schemas-learned")
            if learned:
                continue
            if len(groups) < limit:
                return plan, groups
            # Groups that nobody can help may be as many as values that records name.
            limit *= 2

    def _plan(self, batch: Batch | None, view: TopicView | None) -> RecordPlan:
        plan = self._in_play.evolve(self._table)
        if plan == self._last_plan:
            # What it was built into is built already.
            plan = self._last_plan
        self._last_plan = plan
        failpoint("table-evolved")
        if Metadata.LEADER_EPOCH in self._settled.metadata and batch is not None and view is not None:
            ranges = {one.partition: (one.start, one.end) for one in batch.ranges}
            plan = replace(plan, epochs=self._source.leader_epochs(view.topic, ranges))
        return plan

    def _commit(self, batch: Batch, staged: Staged, bad: int, counts: Mapping[str, str]) -> Any:
        """The batch's snapshot. Files that certainly did not make it into the table are removed."""
        try:
            # The range was read by the topic's name: it must still be the same topic, under the same leaders.
            now = self._source.view(self.spec.topic)
            self.check(now)
            check_leaders(batch, now.epochs, self.spec.topic)
        except HeadgateError:
            self._lake.delete_files(self._table, self._new_files(staged))
            raise
        try:
            key = DEAD_KEY if self.spec.on_error is OnError.LOG else SKIPPED_KEY
            extra = {**counts, **({key: str(bad)} if bad else {})}
            changes = self._changes(staged)
            return self._lake.commit(self._table, self.spec.topic, changes, batch, self._head, extra)
        except (StaleBatch, CommitRefused):
            # Refused, or so it seems: a repeated request can lose against its own first copy. After any other
            # error the request may still be on its way: orphan removal takes what never arrives.
            if self._lake.find_batch(self._table, batch, self._head) is None:
                self._lake.delete_files(self._table, self._new_files(staged))
            raise

    @staticmethod
    def _new_files(staged: Staged) -> list[Any]:
        deletes = staged.deletes.added if isinstance(staged, StagedChanges) else ()
        return [*staged.files, *deletes]

    @staticmethod
    def _known(found: T | None) -> T:
        """For what `open` has set."""
        if found is None:
            raise AssertionError("a batch was run on a table that is not open")
        return found
