"""Upsert tables: a batch is reduced to the last record of each key, and only the files that hold those keys'
rows are changed, as the key index tells them.
"""

import hashlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyroaring import BitMap64
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import RowsChanged
from headgate.model import Deletes, Metadata, Position
from headgate.tables.deleted_keys import DeletedKeys, Mark
from headgate.tables.identity import KEY_COLUMN, Identity, key_id
from headgate.tables.key_index import KeyIndex, Place, Reflected
from headgate.tables.lake import FileChanges, Lake
from headgate.tables.lane import SparkLane, Staged
from headgate.tables.live_files import LiveFile, LiveFiles
from headgate.tables.records import (
    BAD_RECORD,
    CHANGE,
    DELETE,
    IGNORE,
    POSITION_COLUMN,
    SOURCE_COLUMN,
    TRUNCATE,
    UPSERT,
    RecordPlan,
)
from headgate.tables.row_deletes import RowDeletes, Written

log = logging.getLogger(__name__)

PARTITION, OFFSET = Metadata.PARTITION.column, Metadata.OFFSET.column
# Rows whose keys are read at once when the index is built: what the driver holds in memory.
_READ_ROWS = 4_000_000
# Spark numbers rows by task and place in it, in one number.
_TASK_SHIFT = 33


@dataclass(frozen=True)
class StagedChanges(Staged):
    """Files of a batch, and what else its commit does to the table."""

    deletes: Written = field(default_factory=Written)
    #: Paths of data files that leave the table.
    removed: tuple[str, ...] = ()
    #: What the index learns when the commit is done.
    entries: Sequence[tuple[bytes, Place]] = ()
    forget: Sequence[bytes] = ()
    truncated: Mapping[str, bytes] = field(default_factory=dict)
    #: Records that change a row or delete one.
    applied: int = 0

    @property
    def rows(self) -> int:
        return self.applied

    def changes(self, live: LiveFiles) -> FileChanges:
        removed = tuple(live[path].file for path in self.removed)
        # What applied to a file that leaves the table leaves with it.
        gone = tuple(delete for path in self.removed for delete in live[path].deletes if _is_own(delete))
        return FileChanges(tuple(self.files), self.deletes.added, (*self.deletes.replaced, *gone), removed)


@dataclass
class _Verdict:
    """What the index says of a batch's keys."""

    #: Rows that go, by file and position, and their keys.
    doomed: dict[str, BitMap64] = field(default_factory=dict)
    doomed_ids: list[bytes] = field(default_factory=list)
    #: Keys whose record comes after a later one.
    stale: list[bytes] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    #: Records that are written, in the order in which tasks hold them.
    upserts: list[dict[str, Any]] = field(default_factory=list)
    differs: bool = False
    #: The order of a truncate; empty where its source does not tell it.
    truncate: bytes | None = None
    truncated: Mapping[str, bytes] = field(default_factory=dict)


class Upserts:
    """Writes the batches of one upsert table."""

    def __init__(self, topic: str, lane: SparkLane, lake: Lake, index: KeyIndex, deletes: Deletes) -> None:
        self._topic = topic
        self._lane = lane
        self._lake = lake
        self._index = index
        self._how = deletes
        self._live = LiveFiles(lane.spark)
        self._deletes = RowDeletes(lane.spark)
        self._identity: Identity | None = None
        self._events = False
        self._marks: DeletedKeys | None = None

    # -- what is known

    def open(
        self, table: Any, head: Any, position: Position, identity: Identity, events: bool, remember: bool
    ) -> None:
        """Know where each key's row is, as of `head`. `events`: rows carry the position of a change event.
        `remember`: keys that are deleted are remembered, because older records of theirs may still come."""
        self._identity, self._events = identity, events
        gateway: Any = self._lane.spark.sparkContext._gateway
        self._marks = DeletedKeys(gateway, table) if remember or events else None
        self._live.load(table)
        self._index.open()
        now = Reflected(str(table.uuid()), head.snapshotId(), head.sequenceNumber())
        known = self._index.reflects
        if known == now:
            return
        if known is not None and known.table_id == now.table_id and self._is_ancestor(table, head, known):
            files = self._live.since(known.sequence_number)
        else:
            log.info("table '%s': the key index is built from the table", self._topic)
            self._index.clear()
            files = [one for _, one in self._live.items()]
        # Marks first: a key that has a row again is not deleted.
        self._remember_deleted(position)
        self._index.fill(self._entries(table, head, files))
        self._index.put((), now)

    def close(self) -> None:
        self._index.close()

    def facts(self) -> dict[str, Any]:
        return {"index_bytes": self._index.size()} if self._index.is_open else {}

    def _is_ancestor(self, table: Any, head: Any, known: Reflected) -> bool:
        snapshot = head
        while snapshot is not None and snapshot.snapshotId() != known.snapshot_id:
            snapshot = self._lake.parent(table, snapshot)
        return snapshot is not None

    def _remember_deleted(self, position: Position) -> None:
        if self._marks is None:
            return
        latest: dict[bytes, Mark] = {}
        truncated: dict[str, bytes] = {}
        for mark in self._marks.before(position):
            if not mark.id:
                source = mark.order[:_SOURCE_LENGTH].hex()
                truncated[source] = max(truncated.get(source, b""), mark.order)
                continue
            before = latest.get(mark.id)
            if before is None or _is_later(
                mark, Place(None, 0, before.partition, before.offset, before.order)
            ):
                latest[mark.id] = mark
        ids = sorted(latest)
        known = self._index.get(ids)
        marks = [latest[who] for who, place in zip(ids, known, strict=True) if _is_later(latest[who], place)]
        self._index.fill((m.id, Place(None, 0, m.partition, m.offset, m.order)) for m in marks)
        self._index.put((), None, truncated)

    def _entries(self, table: Any, head: Any, files: Sequence[LiveFile]) -> Iterator[tuple[bytes, Place]]:
        """Where the keys of these files' rows are, by a look at the key columns of the table."""
        numbers = {str(one.file.location()): number for number, one in enumerate(files)}
        paths = list(numbers)
        for group in _grouped(files):
            chosen = [str(one.file.location()) for one in group]
            listed = pa.table({"path": chosen, "number": [numbers[path] for path in chosen]})
            rows = self._lake.rows(self._lane.spark, table, self._topic, head)
            found = self._placed(rows, self._lane.spark.createDataFrame(listed)).toArrow()
            yield from _places(found, paths)

    def _placed(self, rows: DataFrame, files: DataFrame) -> DataFrame:
        order = [f.col(SOURCE_COLUMN), f.col(POSITION_COLUMN)] if self._events else []
        found = rows.select(self._id(rows).alias("id"), "_file", "_pos", PARTITION, OFFSET, *order)
        joined = found.join(f.broadcast(files), f.col("_file") == f.col("path"))
        return joined.select("id", "number", "_pos", PARTITION, OFFSET, *order)

    def _id(self, rows: DataFrame) -> Any:
        """As the columns of a written row tell it."""
        names = self._who.columns
        who = key_id([(f.col(f"`{name}`"), rows.schema[name].dataType) for name in names])
        return f.coalesce(f.col(KEY_COLUMN), who) if KEY_COLUMN in rows.columns else who

    # -- a batch

    def write(
        self, plan: RecordPlan, source: DataFrame, table: Any, topic_id: str, replay: bool = False
    ) -> StagedChanges | None:
        """Stage all records; None, and no files, when some record is bad."""
        try:
            return self._stage(plan.changes(source), table, topic_id, replay)
        except (PySparkException, Py4JJavaError) as error:
            if BAD_RECORD in str(error):
                return None
            raise

    def write_good(self, plan: RecordPlan, source: DataFrame, table: Any, topic_id: str) -> StagedChanges:
        """Only the good records; bad ones are another's business."""
        rows = plan.judged(source).where(f.col("problem").isNull()).select("row.*")
        return self._stage(rows, table, topic_id, replay=False)

    def changes(self, staged: StagedChanges) -> FileChanges:
        """What the commit does to the table."""
        return staged.changes(self._live)

    def committed(self, staged: StagedChanges, table: Any, head: Any) -> None:
        """The index follows the commit; an engine that dies before this catches up from the table."""
        self._live.change(staged.files, staged.removed, staged.deletes.applies)
        now = Reflected(str(table.uuid()), head.snapshotId(), head.sequenceNumber())
        entries: Iterable[tuple[bytes, Place]] = staged.entries
        if staged.removed:
            # Rows that were kept have moved.
            moved = self._entries(table, head, [self._live[str(file.location())] for file in staged.files])
            entries = [*entries, *moved]
        self._index.put(entries, now, staged.truncated, staged.forget)

    def _stage(self, changes: DataFrame, table: Any, topic_id: str, replay: bool) -> StagedChanges:
        last = self._reduced(changes).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            found = self._collected(last, table)
            lacking = {row["id"] for row in found if row["missing"]}
            if lacking:
                filled = self._filled(last, changes, lacking, table)
                last.unpersist()
                last = filled
                found = self._collected(last, table)
            verdict = self._judge(found, replay)
            if verdict.truncate is not None:
                self._truncate(verdict, table)
            if verdict.differs and KEY_COLUMN not in self._lake.columns(table).names:
                extra = t.StructType([t.StructField(KEY_COLUMN, t.BinaryType())])
                self._lake.add_columns(table, extra)
            return self._write_out(last, verdict, table, topic_id)
        finally:
            last.unpersist()

    def _collected(self, last: DataFrame, table: Any) -> list[dict[str, Any]]:
        """What the records do, with the place of each in its task, and the partition that it falls into."""
        place = f.monotonically_increasing_id().alias("place")
        buckets = [column.alias(f"bucket_{n}") for n, column in enumerate(self._lake.partition_of(table))]
        change = [f.col(f"{CHANGE}.{name}") for name in _COLLECTED]
        found: list[dict[str, Any]] = last.select(*change, place, *buckets).toArrow().to_pylist()
        return found

    def _reduced(self, changes: DataFrame) -> DataFrame:
        """The last record of each key: by partition and offset, or by the position at its source."""
        rows, order = self._ordered(changes)
        latest = Window.partitionBy(f"{CHANGE}.id").orderBy(*(column.desc() for column in order))
        ranked = rows.withColumn("_headgate_rank", f.row_number().over(latest))
        found = ranked.where(f.col("_headgate_rank") == 1)
        return found.drop("_headgate_rank", "_headgate_stretch", "_headgate_source")

    def _ordered(self, changes: DataFrame) -> tuple[DataFrame, list[Any]]:
        """All records of a key in one task, and what they are ordered by."""
        who, change = f.col(f"{CHANGE}.id"), f.col(CHANGE)
        rows = changes.repartition(self._parallel, who)
        order = [change["partition"], change["offset"]]
        if self._events:
            # Positions compare within a stretch of one source; a record without one begins another stretch,
            # because Kafka's order decides about it.
            in_kafka = Window.partitionBy(who).orderBy(*order)
            rows = rows.withColumn("_headgate_source", f.lag(change["source"]).over(in_kafka))
            same = change["source"].eqNullSafe(f.col("_headgate_source")) & change["position"].isNotNull()
            rows = rows.withColumn("_headgate_stretch", f.sum(f.when(same, 0).otherwise(1)).over(in_kafka))
            order = [f.col("_headgate_stretch"), f.coalesce(change["position"], f.lit(b"")), *order]
            # What is about no row comes before all others. A filter would be pushed down, and decode twice.
            order = [change["op"] != IGNORE, *order]
        return rows, order

    def _filled(self, last: DataFrame, changes: DataFrame, lacking: set[bytes], table: Any) -> DataFrame:
        """Values that an event does not have are those of the event before it, or of the row that is there.

        What neither has stays Debezium's placeholder: there is nothing else to say.
        """
        # Kept, so that what follows is not planned into the decoding.
        changes = changes.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            return self._fill(last, changes, lacking, table)
        finally:
            changes.unpersist()

    def _fill(self, last: DataFrame, changes: DataFrame, lacking: set[bytes], table: Any) -> DataFrame:
        spark, names = self._lane.spark, [name for name in last.columns if name != CHANGE]
        ids = f.broadcast(spark.createDataFrame(pa.table({"who": pa.array(sorted(lacking), pa.binary())})))
        rows, order = self._ordered(changes.join(ids, f.col(f"{CHANGE}.id") == f.col("who"), "left_semi"))
        so_far = Window.partitionBy(f"{CHANGE}.id").orderBy(*order)
        latest = Window.partitionBy(f"{CHANGE}.id").orderBy(*(column.desc() for column in order))
        missing = f.col(f"{CHANGE}.missing")
        told = [
            f.last(
                f.when(~f.array_contains(missing, f.lit(name)), f.struct(f.col(f"`{name}`").alias("v"))), True
            )
            .over(so_far)
            .alias(f"told_{number}")
            for number, name in enumerate(names)
        ]
        chain = rows.select(
            f.col(f"{CHANGE}.id").alias("told_id"), f.row_number().over(latest).alias("r"), *told
        )
        filled = last.join(
            f.broadcast(chain.where("r = 1")), f.col(f"{CHANGE}.id") == f.col("told_id"), "left"
        )
        places = [place for place in self._index.get(sorted(lacking)) if place is not None]
        paths = sorted(
            {place.path for place in places if place.path is not None and place.path in self._live}
        )
        kept = [f.struct(f.lit(None).cast(last.schema[name].dataType).alias("v")) for name in names]
        with ExitStack() as reading:
            if paths:
                old = reading.enter_context(self._live.rows(table, [self._live[path] for path in paths]))
                kept = [f.col(f"kept_{number}") for number in range(len(names))]
                values = [
                    f.struct(f.col(f"`{name}`").alias("v")).alias(f"kept_{number}")
                    for number, name in enumerate(names)
                ]
                before = old.select(self._id(old).alias("kept_id"), *values).join(
                    ids, f.col("kept_id") == f.col("who"), "left_semi"
                )
                filled = filled.join(f.broadcast(before), f.col(f"{CHANGE}.id") == f.col("kept_id"), "left")
            columns = [
                f.when(
                    f.array_contains(missing, f.lit(name)),
                    f.coalesce(f.col(f"told_{number}")["v"], kept[number]["v"], f.col(f"`{name}`")),
                )
                .otherwise(f.col(f"`{name}`"))
                .alias(name)
                for number, name in enumerate(names)
            ]
            found = filled.select(*columns, CHANGE).persist(StorageLevel.MEMORY_AND_DISK)
            # While the files can still be read by their names.
            found.count()
        return found

    def _truncate(self, verdict: _Verdict, table: Any) -> None:
        """Every row that was there before the truncate goes."""
        order = verdict.truncate or b""
        head = table.currentSnapshot()
        rows = self._lake.rows(self._lane.spark, table, self._topic, head)
        found = rows.select(self._id(rows).alias("id"), "_file", "_pos", SOURCE_COLUMN, POSITION_COLUMN)
        for row in found.toArrow().to_pylist():
            theirs = _order(row[SOURCE_COLUMN], row[POSITION_COLUMN])
            later = bool(order) and theirs[:_SOURCE_LENGTH] == order[:_SOURCE_LENGTH] and theirs > order
            if not later:
                verdict.doomed.setdefault(row["_file"], BitMap64()).add(row["_pos"])
                verdict.doomed_ids.append(row["id"])

    @property
    def _parallel(self) -> int:
        return int(self._lane.spark.sparkContext.defaultParallelism)

    def _judge(self, found: Sequence[dict[str, Any]], replay: bool) -> _Verdict:
        """Which rows go, which records come too late, which keys are to be remembered as deleted."""
        rows = [row for row in found if row["op"] in (UPSERT, DELETE)]
        rows.sort(key=itemgetter("id"))
        verdict = _Verdict()
        truncated = self._index.truncated
        truncate = next((row for row in found if row["op"] == TRUNCATE), None)
        if truncate is not None:
            order = _order(truncate["source"], truncate["position"])
            if order >= truncated.get(order[:_SOURCE_LENGTH].hex(), b""):
                verdict.truncate = order
                truncated |= {order[:_SOURCE_LENGTH].hex(): order} if order else {}
                verdict.truncated = truncated
                verdict.marks.append(Mark(b"", truncate["partition"], truncate["offset"], order))
        for row, place in zip(rows, self._index.get([row["id"] for row in rows]), strict=True):
            order = _order(row["source"], row["position"])
            gone = order < truncated.get(order[:_SOURCE_LENGTH].hex(), b"") if order else False
            if truncate is not None and not (order and verdict.truncate):
                gone = row["partition"] == truncate["partition"] and row["offset"] < truncate["offset"]
            if gone or (place is not None and _comes_late(row, order, place, replay)):
                verdict.stale.append(row["id"])
                continue
            if place is not None and place.path is not None and place.path in self._live:
                verdict.doomed.setdefault(place.path, BitMap64()).add(place.pos)
                verdict.doomed_ids.append(row["id"])
            if row["op"] == DELETE:
                verdict.marks.append(Mark(row["id"], row["partition"], row["offset"], order))
            else:
                verdict.upserts.append({**row, "order": order})
                verdict.differs |= row["differs"]
        verdict.upserts.sort(key=itemgetter("place"))
        return verdict

    def _write_out(self, last: DataFrame, verdict: _Verdict, table: Any, topic_id: str) -> StagedChanges:
        rows = last.where(f.col(f"{CHANGE}.op") == UPSERT)
        if verdict.stale:
            rows = self._less(rows, f.col(f"{CHANGE}.id"), verdict.stale)
        columns = self._lake.columns(table).names
        rows = rows.select(*(self._written(name).alias(name) for name in columns))
        removed: tuple[str, ...] = ()
        entries: list[tuple[bytes, Place]] = []
        files: Sequence[Any] = ()
        if self._how is Deletes.COPY_ON_WRITE and verdict.doomed:
            removed = tuple(verdict.doomed)
            with self._live.rows(table, [self._live[path] for path in removed]) as before:
                kept = self._less(before, self._id(before), verdict.doomed_ids)
                files = self._lane.stage(rows.unionByName(kept, allowMissingColumns=True), table).files
        elif verdict.upserts:
            files = self._lane.stage(rows, table).files
            entries = list(self._written_places(verdict.upserts, files, table))
        marked = []
        if self._marks is not None and verdict.marks:
            self._marks.add(verdict.marks, topic_id)
            marked = [(m.id, Place(None, 0, m.partition, m.offset, m.order)) for m in verdict.marks if m.id]
        return StagedChanges(
            files,
            deletes=self._delete(table, verdict.doomed),
            removed=removed,
            entries=[*entries, *marked],
            forget=() if self._marks is not None else [mark.id for mark in verdict.marks],
            truncated=verdict.truncated,
            applied=len(verdict.upserts) + len(verdict.marks),
        )

    def _less(self, rows: DataFrame, who: Any, ids: Sequence[bytes]) -> DataFrame:
        gone = self._lane.spark.createDataFrame(pa.table({"gone_id": pa.array(ids, pa.binary())}))
        return rows.join(f.broadcast(gone), who == f.col("gone_id"), "left_anti")

    def _written_places(
        self, upserts: Sequence[Mapping[str, Any]], files: Sequence[Any], table: Any
    ) -> Iterator[tuple[bytes, Place]]:
        """Each task wrote its rows in the order that they have, one file after the other in each partition.

        The files say how many rows they hold and between which offsets: it must be so.
        """
        waiting: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
        for row in upserts:
            buckets = (row[name] for name in row if name.startswith("bucket_"))
            waiting.setdefault((row["place"] >> _TASK_SHIFT, *buckets), []).append(row)
        offset = table.schema().findField(OFFSET).fieldId()
        for file in sorted(files, key=lambda one: str(one.location()).rpartition("/")[2]):
            path = str(file.location())
            task = int(path.rpartition("/")[2].partition("-")[0])
            partition = file.partition()
            key = (task, *(partition.get(n, self._lake.integer) for n in range(partition.size())))
            count = file.recordCount()
            mine, waiting[key] = waiting[key][:count], waiting[key][count:]
            offsets = [row["offset"] for row in mine]
            bounds = (_long(file.lowerBounds().get(offset)), _long(file.upperBounds().get(offset)))
            if len(mine) != count or (min(offsets), max(offsets)) != bounds:
                raise RowsChanged(f"Topic '{self._topic}' changed while a batch of it was read.")
            for pos, row in enumerate(mine):
                yield row["id"], Place(path, pos, row["partition"], row["offset"], row["order"])
        if any(waiting.values()):
            raise RowsChanged(f"Topic '{self._topic}' changed while a batch of it was read.")

    @staticmethod
    def _written(name: str) -> Any:
        change = f.col(CHANGE)
        return f.when(change["differs"], change["id"]) if name == KEY_COLUMN else f.col(f"`{name}`")

    def _delete(self, table: Any, doomed: Mapping[str, BitMap64]) -> Written:
        match self._how:
            case Deletes.DELETION_VECTORS:
                return self._deletes.vectors(table, doomed, self._live)
            case Deletes.POSITION_DELETES:
                return self._deletes.positions(table, doomed, self._live)
            case Deletes.COPY_ON_WRITE:
                return Written()

    @property
    def _who(self) -> Identity:
        if self._identity is None:
            raise AssertionError("a batch was written to a table that is not open")
        return self._identity


def _long(data: Any) -> int:
    """A bound as Iceberg keeps it."""
    return int.from_bytes(bytes(data.array()), "little", signed=True)


def _comes_late(row: Mapping[str, Any], order: bytes, place: Place, replay: bool) -> bool:
    """Whether a later record of the key was applied before."""
    if order and place.order and order[:_SOURCE_LENGTH] == place.order[:_SOURCE_LENGTH]:
        return _is_stale(order, place.order)
    # Batches go forward. A dead letter that is replayed may be older; nobody can tell across partitions.
    return replay and (row["partition"] != place.partition or row["offset"] <= place.offset)


_SOURCE_LENGTH = 8
_COLLECTED = ("id", "op", "partition", "offset", "differs", "source", "position", "missing")


def _order(source: str | None, position: bytes | None) -> bytes:
    """Sortable within a source."""
    if source is None or position is None:
        return b""
    return hashlib.sha256(source.encode()).digest()[:_SOURCE_LENGTH] + position


def _is_later(mark: Mark, place: Place | None) -> bool:
    """Whether a mark says something newer of its key than is known."""
    if place is None:
        return True
    if mark.order and place.order and mark.order[:_SOURCE_LENGTH] == place.order[:_SOURCE_LENGTH]:
        return mark.order > place.order
    return mark.partition == place.partition and mark.offset > place.offset


def _is_stale(order: bytes, before: bytes) -> bool:
    same = order[:_SOURCE_LENGTH] == before[:_SOURCE_LENGTH]
    return bool(order) and bool(before) and same and order < before


def _is_own(delete: Any) -> bool:
    """Whether it is of one data file alone, and so goes with it."""
    return delete.referencedDataFile() is not None


def _places(found: pa.Table, paths: Sequence[str]) -> Iterator[tuple[bytes, Place]]:
    for piece in found.to_batches():
        columns = [piece.column(number).to_pylist() for number in range(piece.num_columns)]
        orders: Iterable[bytes] = (
            map(_order, columns[5], columns[6]) if len(columns) > 5 else repeat(b"", piece.num_rows)
        )
        for who, number, pos, partition, offset, order in zip(*columns[:5], orders, strict=True):
            yield who, Place(paths[number], pos, partition, offset, order)


def _grouped(files: Sequence[LiveFile]) -> Iterator[list[LiveFile]]:
    """So many files at a time as the driver can hold the keys of."""
    group: list[LiveFile] = []
    rows = 0
    for one in files:
        count = one.file.recordCount()
        if group and rows + count > _READ_ROWS:
            yield group
            group, rows = [], 0
        group.append(one)
        rows += count
    if group:
        yield group
