"""Where each key's row is, brought up to date from the table whenever it is opened."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from headgate.model import Metadata, Position
from headgate.tables.deleted_keys import DeletedKeys, Mark
from headgate.tables.generations import current_generation
from headgate.tables.identity import KEY_COLUMN, Identity, key_id
from headgate.tables.key_index import Entries, KeyIndex, Place, Reflected
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane
from headgate.tables.live_files import LiveFile, LiveFiles
from headgate.tables.orders import is_later, order_of, source_of
from headgate.tables.records import GENERATION_COLUMN, POSITION_COLUMN, SOURCE_COLUMN, VALID_TO

log = logging.getLogger(__name__)
PARTITION, OFFSET = Metadata.PARTITION.column, Metadata.OFFSET.column
#: What tells the order of a row's record; a table has some of them, or none.
ORDER_COLUMNS = (SOURCE_COLUMN, POSITION_COLUMN, GENERATION_COLUMN)
# Rows whose keys are read at once when the index is built: what the driver holds in memory.
_READ_ROWS = 4_000_000


class KeyPlaces:
    """The key index of a table, its live files, and the keys that are remembered as deleted."""

    def __init__(self, topic: str, lane: SparkLane, lake: Lake, index: KeyIndex) -> None:
        self._topic = topic
        self._lane = lane
        self._lake = lake
        self.index = index
        self.live = LiveFiles(lane.spark)
        self._identity: Identity | None = None
        #: Whether rows carry the position of a change event.
        self.events = False
        #: Whether rows of earlier versions are kept beside the present ones.
        self.versions = False
        self._marks: DeletedKeys | None = None
        # Of the newest snapshot that is known: marks say after which they were written.
        self._sequence = 0
        #: Rows that no record of the present generation has replaced; None where there is one generation.
        self.earlier_rows: int | None = None

    def open(
        self, table: Any, head: Any, position: Position, identity: Identity, events: bool, remember: bool
    ) -> None:
        """As of `head`. `events`: rows carry the position of a change event. `remember`: deleted keys are
        remembered, because older records of theirs may still come."""
        self._identity, self.events = identity, events
        self.versions = VALID_TO in self._lake.columns(table).names
        gateway: Any = self._lane.spark.sparkContext._gateway
        self._marks = DeletedKeys(gateway, table) if remember or events else None
        self._sequence = int(head.sequenceNumber())
        self.live.load(table)
        self.count_earlier(table, head, position, None)
        self.index.open()
        now = _reflected(table, head)
        known = self.index.reflects
        if known == now:
            return
        if known is not None and known.table_id == now.table_id and self._is_ancestor(table, head, known):
            files = self.live.since(known.sequence_number)
        else:
            log.info("table '%s': the key index is built from the table", self._topic)
            self.index.clear()
            files = [one for _, one in self.live.items()]
        # Marks first: a key that has a row again is not deleted.
        self._learn_deleted(position)
        self.index.fill(self.entries(table, head, files))
        self.index.put((), now)

    @property
    def is_open(self) -> bool:
        """Whether it is known which columns are the key, and the index can be asked."""
        return self._identity is not None and self.index.is_open

    @property
    def remembers(self) -> bool:
        """Whether deleted keys are remembered."""
        return self._marks is not None

    def remember(self, marks: list[Mark], topic_id: str) -> list[tuple[bytes, Place]]:
        """Before the commit that deletes them; what the index learns of it after that."""
        if self._marks is None or not marks:
            return []
        self._marks.add(marks, topic_id, self._sequence)
        return [(mark.id, _gone(mark)) for mark in marks if mark.id]

    def learn(
        self,
        table: Any,
        head: Any,
        rows: Sequence[Entries],
        gone: Iterable[tuple[bytes, Place]],
        truncated: Mapping[str, bytes],
        forget: Iterable[bytes],
    ) -> None:
        """What a commit has changed."""
        self._sequence = int(head.sequenceNumber())
        self.index.put(gone, _reflected(table, head), truncated, forget, rows)

    def count_earlier(self, table: Any, head: Any, position: Position, repeated: int | None) -> None:
        """Keep `earlier_rows`. `repeated`: how many of them a commit has replaced or deleted; None: the table
        is looked through."""
        if repeated is not None and self.earlier_rows is not None:
            self.earlier_rows -= repeated
            return
        present = {p: current_generation(position, p) for p in position.offsets}
        if not any(present.values()):
            self.earlier_rows = None
            return
        rows = self.rows(table, head)
        told = f.col(GENERATION_COLUMN) if GENERATION_COLUMN in rows.columns else f.lit(None)
        # Rows of partitions that the topic no longer has are of an earlier era.
        now = f.lit(max(present.values()))
        for partition, generation in present.items():
            now = f.when(f.col(PARTITION) == partition, generation).otherwise(now)
        self.earlier_rows = rows.where(f.coalesce(told.cast("long"), f.lit(0)) < now).count()

    def entries(self, table: Any, head: Any, files: Sequence[LiveFile]) -> Iterator[Entries]:
        """Where the keys of these files' rows are, by a look at the key columns of the table."""
        numbers = {str(one.file.location()): number for number, one in enumerate(files)}
        paths = list(numbers)
        for group in _grouped(files):
            chosen = [str(one.file.location()) for one in group]
            listed = pa.table({"path": chosen, "number": [numbers[path] for path in chosen]})
            found = self._placed(self.rows(table, head), self._lane.spark.createDataFrame(listed))
            yield _entries(found.toArrow(), paths)

    def rows(self, table: Any, head: Any) -> DataFrame:
        """The present row of every key, `_file` and `_pos` among the columns that can be asked for."""
        return self.present(self._lake.rows(self._lane.spark, table, self._topic, head))

    def present(self, rows: DataFrame) -> DataFrame:
        return rows.where(self.is_present(rows)) if self.versions else rows

    @staticmethod
    def is_present(rows: DataFrame) -> Any:
        return rows[VALID_TO].isNull()

    def id_of(self, rows: DataFrame) -> Any:
        """As the columns of a written row tell it."""
        names = self._who.columns
        who = key_id([(f.col(f"`{name}`"), rows.schema[name].dataType) for name in names])
        return f.coalesce(f.col(KEY_COLUMN), who) if KEY_COLUMN in rows.columns else who

    def _placed(self, rows: DataFrame, files: DataFrame) -> DataFrame:
        order = [f.col(name) for name in ORDER_COLUMNS if name in rows.columns]
        found = rows.select(self.id_of(rows).alias("id"), "_file", "_pos", PARTITION, OFFSET, *order)
        joined = found.join(f.broadcast(files), f.col("_file") == f.col("path"))
        return joined.select("id", "number", "_pos", PARTITION, OFFSET, *order)

    def _is_ancestor(self, table: Any, head: Any, known: Reflected) -> bool:
        snapshot = head
        while snapshot is not None and snapshot.snapshotId() != known.snapshot_id:
            snapshot = self._lake.parent(table, snapshot)
        return snapshot is not None

    def _learn_deleted(self, position: Position) -> None:
        if self._marks is None:
            return
        latest: dict[bytes, Mark] = {}
        truncated: dict[str, bytes] = {}
        for mark in self._marks.before(position):
            if not mark.id:
                source = source_of(mark.order)
                truncated[source] = max(truncated.get(source, b""), mark.order)
            elif mark.id not in latest or is_later(mark, _gone(latest[mark.id])):
                latest[mark.id] = mark
        ids = sorted(latest)
        known = zip(ids, self.index.get(ids), strict=True)
        marks = [latest[who] for who, place in known if is_later(latest[who], place)]
        self.index.put([(mark.id, _gone(mark)) for mark in marks], None, truncated)

    @property
    def _who(self) -> Identity:
        if self._identity is None:
            raise AssertionError("a batch was written to a table that is not open")
        return self._identity


def _reflected(table: Any, head: Any) -> Reflected:
    return Reflected(str(table.uuid()), head.snapshotId(), head.sequenceNumber())


def _gone(mark: Mark) -> Place:
    return Place(None, 0, mark.partition, mark.offset, mark.order)


def _entries(found: pa.Table, paths: Sequence[str]) -> Entries:
    number, pos, partition, offset = (
        found[name].to_numpy() for name in ("number", "_pos", PARTITION, OFFSET)
    )
    orders = orders_of(found) if set(ORDER_COLUMNS) & set(found.column_names) else None
    return Entries(found["id"].to_pylist(), paths, number, pos, partition, offset, orders)


def orders_of(rows: pa.Table) -> list[bytes]:
    """The order of each row of the table, by those of its columns that tell it."""
    source, position, generation = (
        rows[name].to_pylist() if name in rows.column_names else [None] * rows.num_rows
        for name in ORDER_COLUMNS
    )
    return [order_of(s, p, g or 0) for s, p, g in zip(source, position, generation, strict=True)]


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
