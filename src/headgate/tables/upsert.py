"""Upsert tables: a batch is reduced to the last record of each key, and only the files that hold those keys'
rows are changed, as the key index tells them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import RowsChanged
from headgate.model import Deletes, Position, SnapshotCount
from headgate.tables.batch_records import Records, Verdict, is_truncated
from headgate.tables.deleted_keys import Mark
from headgate.tables.fill import filled
from headgate.tables.generations import generation_of
from headgate.tables.identity import KEY_COLUMN
from headgate.tables.key_index import Entries, Found, Numbers, Place
from headgate.tables.key_places import OFFSET, ORDER_COLUMNS, PARTITION, KeyPlaces, orders_of
from headgate.tables.lake import FileChanges, Lake
from headgate.tables.lane import SparkLane, Staged
from headgate.tables.orders import comes_late, comparable, source_of
from headgate.tables.origin import FIRST_STREAM, LAST_SNAPSHOT, Origin, with_phases
from headgate.tables.records import (
    BAD_RECORD,
    CHANGE,
    GENERATION_COLUMN,
    IGNORE,
    UPSERT,
    RecordPlan,
)
from headgate.tables.row_deletes import RowDeletes, Written

# Spark numbers rows by task and place in it, in one number.
_TASK_SHIFT = 33
# So many rows are written by one task: each file of a table costs every later batch a little.
_ONE_FILE = 500_000
_COLLECTED = ("id", "op", "partition", "offset", "differs", "source", "position", "at", "missing")
_ORDER_COLUMNS = ("_headgate_rank", "_headgate_stretch", "_headgate_before")


@dataclass(frozen=True)
class StagedChanges(Staged):
    """Files of a batch, and what else its commit does to the table."""

    deletes: Written = field(default_factory=Written)
    #: Paths of data files that leave the table.
    removed: tuple[str, ...] = ()
    #: What the index learns when the commit is done.
    entries: Sequence[Entries] = ()
    gone: Sequence[tuple[bytes, Place]] = ()
    forget: Sequence[bytes] = ()
    truncated: Mapping[str, bytes] = field(default_factory=dict)
    #: Records that change a row or delete one.
    applied: int = 0
    #: What the batch's end says of the snapshots of the source, by partition.
    snapshots: Mapping[int, SnapshotCount] = field(default_factory=dict)
    #: Rows of earlier generations that it replaces or deletes; None: only a look at the table tells.
    repeated: int | None = 0

    @property
    def rows(self) -> int:
        return self.applied


class Upserts:
    """Writes the batches of one upsert table."""

    def __init__(self, topic: str, lane: SparkLane, lake: Lake, places: KeyPlaces, deletes: Deletes) -> None:
        self._topic = topic
        self._lane = lane
        self._lake = lake
        self.places = places
        self._how = deletes
        self._deletes = RowDeletes(lane.spark)

    def facts(self) -> dict[str, Any]:
        if not self.places.index.is_open:
            return {}
        earlier = self.places.earlier_rows
        counted = {} if earlier is None else {"rows_of_earlier_generations": earlier}
        return {"index_bytes": self.places.index.size(), **counted}

    def write(
        self,
        plan: RecordPlan,
        source: DataFrame,
        table: Any,
        position: Position,
        replay_of: str | None = None,
    ) -> StagedChanges | None:
        """Stage all records; None, and no files, when some record is bad. `replay_of`: they are dead letters
        of the topic with this id."""
        try:
            return self._stage(plan.changes(source), table, Origin(position, replay_of))
        except (PySparkException, Py4JJavaError) as error:
            if BAD_RECORD in str(error):
                return None
            raise

    def write_good(
        self, plan: RecordPlan, source: DataFrame, table: Any, position: Position
    ) -> StagedChanges:
        """Only the good records; bad ones are another's business."""
        rows = plan.judged(source).where(f.col("problem").isNull()).select("row.*")
        return self._stage(rows, table, Origin(position))

    def changes(self, staged: StagedChanges) -> FileChanges:
        """What the commit does to the table."""
        live = self.places.live
        removed = tuple(live[path].file for path in staged.removed)
        # What applied to a file that leaves the table, and to no other, leaves with it.
        gone = [delete for path in staged.removed for delete in live[path].deletes]
        own = [delete for delete in gone if delete.referencedDataFile() is not None]
        deletes = staged.deletes
        return FileChanges(tuple(staged.files), deletes.added, (*deletes.replaced, *own), removed)

    def committed(self, staged: StagedChanges, table: Any, head: Any, position: Position) -> None:
        """The index follows the commit; an engine that dies before this catches up from the table."""
        live = self.places.live
        live.change(staged.files, staged.removed, staged.deletes.applies)
        entries = list(staged.entries)
        if staged.removed:
            # Rows that were kept have moved.
            entries += self.places.entries(table, head, [live[str(one.location())] for one in staged.files])
        self.places.learn(table, head, entries, staged.gone, staged.truncated, staged.forget)
        self.places.count_earlier(table, head, position, staged.repeated)

    # -- what a batch says

    def _stage(self, changes: DataFrame, table: Any, origin: Origin) -> StagedChanges:
        kept = [self._chosen(changes, origin).persist(StorageLevel.MEMORY_AND_DISK)]
        try:
            found = self._collected(kept[-1], table)
            now = origin if origin.is_replay else origin.counted(found.phases, changes)
            if now.steps:
                kept.append(self._chosen(changes, now).persist(StorageLevel.MEMORY_AND_DISK))
                found = self._collected(kept[-1], table)
            if lacking := found.lacking:
                kept.append(self._filled(changes, lacking, table, now))
                kept.append(self._chosen(kept[-1], now).persist(StorageLevel.MEMORY_AND_DISK))
                found = self._collected(kept[-1], table)
            return self._carry_out(kept[-1], found, table, now)
        finally:
            for one in kept:
                one.unpersist()

    def _chosen(self, changes: DataFrame, origin: Origin) -> DataFrame:
        """The last record of each key: by partition and offset, or by the position at its source."""
        rows, order = self._ordered(changes, origin)
        latest = Window.partitionBy(f"{CHANGE}.id").orderBy(*(column.desc() for column in order))
        ranked = rows.withColumn("_headgate_rank", f.row_number().over(latest))
        return ranked.where(f.col("_headgate_rank") == 1).drop(*_ORDER_COLUMNS)

    def _ordered(self, changes: DataFrame, origin: Origin) -> tuple[DataFrame, list[Any]]:
        """All records of a key in one task, and what they are ordered by."""
        who, change = f.col(f"{CHANGE}.id"), f.col(CHANGE)
        tasks = int(self._lane.spark.sparkContext.defaultParallelism)
        rows = changes.repartition(tasks, who).withColumn(GENERATION_COLUMN, origin.generation(change))
        order = [change["partition"], change["offset"]]
        if self.places.events:
            rows = with_phases(rows)
            # Positions compare within a stretch of one source; a record without one begins another stretch,
            # because Kafka's order decides about it, and so does a generation.
            in_kafka = Window.partitionBy(who).orderBy(*order)
            stream = f.struct(change["source"], f.col(GENERATION_COLUMN))
            rows = rows.withColumn("_headgate_before", f.lag(stream).over(in_kafka))
            same = stream.eqNullSafe(f.col("_headgate_before")) & change["position"].isNotNull()
            rows = rows.withColumn("_headgate_stretch", f.sum(f.when(same, 0).otherwise(1)).over(in_kafka))
            order = [f.col("_headgate_stretch"), f.coalesce(change["position"], f.lit(b"")), *order]
            # What is about no row comes before all others. A filter would be pushed down, and decode twice.
            order = [change["op"] != IGNORE, *order]
        return rows, order

    def _filled(self, changes: DataFrame, lacking: set[bytes], table: Any, origin: Origin) -> DataFrame:
        rows, order = self._ordered(changes, origin)
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            return filled(self._lane.spark, rows, order, lacking, self.places, table)
        finally:
            rows.unpersist()

    def _collected(self, rows: DataFrame, table: Any) -> Records:
        """What the records do, with the place of each in its task, and the partition that it falls into."""
        place = f.monotonically_increasing_id().alias("place")
        buckets = [column.alias(f"bucket_{n}") for n, column in enumerate(self._lake.partition_of(table))]
        change = [f.col(f"{CHANGE}.{name}") for name in _COLLECTED]
        change += [f.col(GENERATION_COLUMN).alias("generation")]
        change += [f.col(name) for name in (FIRST_STREAM, LAST_SNAPSHOT) if name in rows.columns]
        return Records(rows.select(*change, place, *buckets).toArrow().combine_chunks())

    # -- what it does to the table

    def _carry_out(self, last: DataFrame, found: Records, table: Any, origin: Origin) -> StagedChanges:
        verdict = self._judge(found, origin.is_replay)
        if verdict.truncate is not None:
            self._truncate(verdict, table)
        self._hold_columns(verdict, table)
        rows = last.where(f.col(f"{CHANGE}.op") == UPSERT)
        if verdict.stale:
            rows = self._less(rows, f.col(f"{CHANGE}.id"), verdict.stale)
        columns = [written(name).alias(name) for name in self._lake.columns(table).names]
        removed: tuple[str, ...] = ()
        entries: list[Entries] = []
        files: Sequence[Any] = ()
        if self._how is Deletes.COPY_ON_WRITE and verdict.doomed:
            removed = tuple(verdict.doomed)
            files = self._rewritten(rows.select(*columns), verdict, table)
        elif len(verdict.upserts):
            one = len(verdict.upserts) <= _ONE_FILE
            # The order in which tasks hold them is another one when one of them is lost and done again.
            rows = (rows.coalesce(1) if one else rows).sortWithinPartitions(f"{CHANGE}.id")
            files = self._lane.stage(rows.select(*columns), table).files
            entries = self._placed(found, verdict.upserts, files, table, one)
        return self._staged(verdict, table, origin, files, entries, removed)

    def _staged(
        self,
        verdict: Verdict,
        table: Any,
        origin: Origin,
        files: Sequence[Any],
        entries: Sequence[Entries],
        removed: tuple[str, ...] = (),
    ) -> StagedChanges:
        return StagedChanges(
            files,
            deletes=self._delete(table, verdict.doomed),
            removed=removed,
            entries=entries,
            gone=[*verdict.gone, *self.places.remember(verdict.marks, origin.topic_id)],
            forget=() if self.places.remembers else [mark.id for mark in verdict.marks],
            truncated=verdict.truncated,
            applied=len(verdict.upserts) + len(verdict.marks),
            snapshots=origin.position.snapshots,
            repeated=None if origin.steps or verdict.truncate is not None else verdict.repeated,
        )

    def _judge(self, found: Records, replay: bool) -> Verdict:
        """Which rows go, which records come too late, which keys are to be remembered as deleted."""
        verdict = Verdict(truncated=self.places.index.truncated)
        truncate = found.truncate
        if truncate is not None:
            self._judge_truncate(verdict, truncate)
        numbers = found.sorted_by_key()
        ids = [found.ids[n] for n in numbers]
        before = self.places.index.find(ids)
        applies = np.ones(len(ids), np.bool_)
        if replay or found.has_positions or truncate is not None:
            for at, n in enumerate(numbers):
                applies[at] = not self._is_late(found, int(n), before, at, verdict, truncate, replay)
            verdict.stale = [who for who, applied in zip(ids, applies, strict=True) if not applied]
        replaced = applies & before.live
        for file in np.unique(before.file[replaced]):
            path = self.places.index.path(int(file))
            if path in self.places.live:
                here = np.flatnonzero(replaced & (before.file == file))
                verdict.doomed[path] = BitMap64(before.pos[here].astype(np.uint64))
                verdict.doomed_ids += [ids[at] for at in here]
        for n in numbers[applies & found.delete[numbers]]:
            mark = Mark(found.ids[n], int(found.partition[n]), int(found.offset[n]), found.order(n))
            verdict.marks.append(mark)
        upserts = numbers[applies & found.upsert[numbers]]
        verdict.upserts = upserts
        verdict.differs = bool(found.differs[upserts].any())
        verdict.has_generations = bool(found.generation[upserts].any())
        if found.orders is not None:
            gone = (int(at) for at in np.flatnonzero(replaced))
            verdict.repeated = sum(
                generation_of(before.orders[at]) < found.generation[numbers[at]] for at in gone
            )
        return verdict

    def _is_late(
        self,
        found: Records,
        n: int,
        before: Found,
        at: int,
        verdict: Verdict,
        truncate: Mapping[str, Any] | None,
        replay: bool,
    ) -> bool:
        partition, offset, order = int(found.partition[n]), int(found.offset[n]), found.order(n)
        if is_truncated(verdict, partition, offset, order, truncate):
            return True
        if not before.known[at]:
            return False
        place = Place(None, 0, int(before.partition[at]), int(before.offset[at]), before.orders[at])
        return comes_late(partition, offset, order, place, replay)

    @staticmethod
    def _judge_truncate(verdict: Verdict, truncate: Mapping[str, Any]) -> None:
        order = truncate["order"]
        if order < verdict.truncated.get(source_of(order), b""):
            return  # it has come before
        verdict.truncate = order
        if source_of(order):
            verdict.truncated = {**verdict.truncated, source_of(order): order}
        verdict.marks.append(Mark(b"", truncate["partition"], truncate["offset"], order))

    def _truncate(self, verdict: Verdict, table: Any) -> None:
        """Every row that was there before the truncate goes."""
        rows = self.places.rows(table, table.currentSnapshot())
        order = [name for name in ORDER_COLUMNS if name in rows.columns]
        asked = ["_file", "_pos", PARTITION, OFFSET, *order]
        found = rows.select(self.places.id_of(rows).alias("id"), *asked).toArrow()
        doomed = set(verdict.doomed_ids)
        for row, theirs in zip(found.to_pylist(), orders_of(found), strict=True):
            later = comparable(theirs, verdict.truncate or b"") and theirs > (verdict.truncate or b"")
            if not later and row["id"] not in doomed:
                verdict.doom(row["id"], row["_file"], row["_pos"])
                verdict.gone.append((row["id"], Place(None, 0, row[PARTITION], row[OFFSET], theirs)))

    def _hold_columns(self, verdict: Verdict, table: Any) -> None:
        """Columns that only some tables need: for the keys of rows whose own columns say another, and for
        generations."""
        needed = {
            KEY_COLUMN: t.BinaryType() if verdict.differs else None,
            GENERATION_COLUMN: t.LongType() if verdict.has_generations else None,
        }
        present = self._lake.columns(table).names
        extra = [
            t.StructField(name, kind)
            for name, kind in needed.items()
            if kind is not None and name not in present
        ]
        if extra:
            self._lake.add_columns(table, t.StructType(extra))

    def _rewritten(self, rows: DataFrame, verdict: Verdict, table: Any) -> Sequence[Any]:
        """New files for those that hold rows which go: the others of theirs, and the new rows."""
        live = self.places.live
        with live.rows(table, [live[path] for path in verdict.doomed]) as before:
            gone = self.places.id_of(before)
            if self.places.versions:
                # Earlier versions of a key stay; only its present one goes.
                gone = f.when(self.places.is_present(before), gone)
            kept = self._less(before, gone, verdict.doomed_ids)
            return self._lane.stage(rows.unionByName(kept, allowMissingColumns=True), table).files

    def _less(self, rows: DataFrame, who: Any, ids: Sequence[bytes]) -> DataFrame:
        gone = self._lane.spark.createDataFrame(pa.table({"gone_id": pa.array(ids, pa.binary())}))
        return rows.join(f.broadcast(gone), who == f.col("gone_id"), "left_anti")

    def _placed(
        self, found: Records, upserts: Numbers, files: Sequence[Any], table: Any, one: bool = False
    ) -> list[Entries]:
        """Each task wrote its rows in the order of `upserts`, by which it has sorted them, one file after the
        other in each partition.

        The files say how many rows they hold and between which offsets: it must be so.
        """
        waiting: dict[tuple[int, ...], Numbers] = {}
        tasks = np.zeros(len(upserts), np.int64) if one else found.place[upserts] >> _TASK_SHIFT
        groups = np.stack([tasks, *(bucket[upserts] for bucket in found.buckets)], axis=1)
        for group in np.unique(groups, axis=0):
            waiting[tuple(map(int, group))] = upserts[(groups == group).all(axis=1)]
        field_id = table.schema().findField(OFFSET).fieldId()
        entries = []
        for file in sorted(files, key=lambda one: str(one.location()).rpartition("/")[2]):
            path = str(file.location())
            task = int(path.rpartition("/")[2].partition("-")[0])
            partition = file.partition()
            key = (task, *(partition.get(n, self._lake.integer) for n in range(partition.size())))
            count = file.recordCount()
            mine, waiting[key] = waiting[key][:count], waiting[key][count:]
            offsets = found.offset[mine]
            bounds = (_long(file.lowerBounds().get(field_id)), _long(file.upperBounds().get(field_id)))
            if len(mine) != count or (offsets.min(), offsets.max()) != bounds:
                raise RowsChanged(f"Topic '{self._topic}' changed while a batch of it was read.")
            ids = [found.ids[n] for n in mine]
            orders = None if found.orders is None else [found.orders[n] for n in mine]
            nought = np.zeros(count, np.int64)
            entries.append(
                Entries(ids, [path], nought, np.arange(count), found.partition[mine], offsets, orders)
            )
        if any(map(len, waiting.values())):
            raise RowsChanged(f"Topic '{self._topic}' changed while a batch of it was read.")
        return entries

    def _delete(self, table: Any, doomed: Mapping[str, BitMap64]) -> Written:
        match self._how:
            case Deletes.DELETION_VECTORS:
                return self._deletes.vectors(table, doomed, self.places.live)
            case Deletes.POSITION_DELETES:
                return self._deletes.positions(table, doomed, self.places.live)
            case Deletes.COPY_ON_WRITE:
                return Written()


def written(name: str) -> Any:
    """A column of the table, out of a change."""
    change = f.col(CHANGE)
    return f.when(change["differs"], change["id"]) if name == KEY_COLUMN else f.col(f"`{name}`")


def _long(data: Any) -> int:
    """A bound as Iceberg keeps it."""
    return int.from_bytes(bytes(data.array()), "little", signed=True)
