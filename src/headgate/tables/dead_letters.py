"""Records that are not in their table: raw, with what is wrong with them, in a table and a topic.

The dead-letter commit of a batch comes before the batch's own and records the range that it judged. A retry
judges the same range again; what is in the dead letters already stays dead, so a record is in exactly one of
the two. An engine claims the dead letters before it reads a table's position: one that was stopped and wakes
up finds another's claim and writes nothing.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import StaleBatch
from headgate.failpoints import failpoint
from headgate.model import DEAD_LETTERS_KEY, OPERATION_KEY, Batch, Metadata, Position
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane
from headgate.tables.records import METADATA_TYPES, SOURCE, TIMESTAMP_TYPES, all_headers

ENGINE_KEY = "headgate.engine"
SOURCE_KEY = "headgate.source"
SOURCE_FROM_KEY = "headgate.source-from"
SOURCE_TO_KEY = "headgate.source-to"

COLUMNS = t.StructType(
    [
        t.StructField("topic", t.StringType()),
        t.StructField("topic_id", t.StringType()),
        t.StructField("table_id", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("offset", t.LongType()),
        t.StructField("timestamp", t.TimestampType()),
        t.StructField("timestamp_type", t.StringType()),
        t.StructField("key", t.BinaryType()),
        t.StructField("value", t.BinaryType()),
        t.StructField("headers", METADATA_TYPES[Metadata.HEADERS]),
        t.StructField("schema_id", t.IntegerType()),
        t.StructField("error_class", t.StringType()),
        t.StructField("error_message", t.StringType()),
        t.StructField("failed_at", t.TimestampType()),
        # Set when a replay takes it up, and when its row is in the table.
        t.StructField("replay_id", t.StringType()),
        t.StructField("replayed_at", t.TimestampType()),
    ]
)
# Rows are changed by replays only: whole files, which every engine can read.
_PROPERTIES = {
    DEAD_LETTERS_KEY: "true",
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
}


class Publisher(Protocol):
    """Writes to the topic of the dead letters, exactly once."""

    def published(self, table_id: str) -> int:
        """The last number that was published of this table; 0 when none was."""

    def publish(self, table_id: str, number: int, rows: Iterator[Row]) -> None:
        """All of them, in one transaction that records the number."""


@dataclass(frozen=True)
class Owner:
    """A table of rows with dead letters, and under which claim of its engine it was opened.

    The same topic may have had another table before, which was purged: its letters are not this one's.
    """

    topic: str
    table_id: str
    claim: int


class DeadLetters:
    """One table and topic of dead letters; several tables of one engine may share it."""

    def __init__(self, name: str, lake: Lake, lane: SparkLane, engine: str, publisher: Publisher) -> None:
        self.name = name
        self._lake = lake
        self._lane = lane
        self._engine = engine
        self._publisher = publisher
        self._lock = threading.RLock()
        self._table: Any | None = None
        # The newest snapshot that this engine knows to follow its own claim without another's in between.
        self._head: Any | None = None
        self._session: SparkSession | None = None
        self._claims = 0

    def claim(self, topic: str, table_id: str) -> Owner:
        """From here on no engine that was here before can add anything."""
        with self._lock:
            if not self._is_claimed():
                self._claim()
            self._publish()
            return Owner(topic, table_id, self._claims)

    def _is_claimed(self) -> bool:
        if self._table is None:
            return False
        try:
            self._refreshed()
        except StaleBatch:
            return False
        return True

    def _claim(self) -> None:
        """Tables of this engine that were opened under an earlier claim must read their positions again."""
        with self._lock:
            table = self._lake.load(self.name, dead_letters=True)
            if table is None:
                table = self._lake.create(self.name, COLUMNS, (), _PROPERTIES)
            self._head = self._lake.append(
                table, self.name, (), self._summary("claim"), table.currentSnapshot()
            )
            self._table = table
            self._claims += 1

    def pending(self, owner: Owner, position: Position) -> Position | None:
        """The end of the batch that was begun and not finished. It began at this position, or before it, if
        records were accepted as lost since."""
        with self._lock:
            snapshot = self._refreshed().currentSnapshot()
            while snapshot is not None:
                summary = snapshot.summary()
                if summary.get(SOURCE_KEY) == owner.table_id:
                    begun = Position.from_json(summary.get(SOURCE_FROM_KEY))
                    end = Position.from_json(summary.get(SOURCE_TO_KEY))
                    return _rest(begun, end, position)
                snapshot = self._lake.parent(self._table, snapshot)
        return None

    def without_dead(self, source: DataFrame, owner: Owner, batch: Batch) -> DataFrame:
        """The records of a batch that is tried again, less those that are dead already."""
        dead = self._in(owner, batch).select("partition", "offset")
        return source.join(f.broadcast(dead), ["partition", "offset"], "left_anti").select(*SOURCE)

    def add(self, rows: DataFrame, owner: Owner, batch: Batch) -> int:
        """The dead letters of a batch, before its own commit; how many."""
        raw = rows.select(
            "topic",
            f.lit(batch.end.topic_id).alias("topic_id"),
            f.lit(owner.table_id).alias("table_id"),
            "partition",
            "offset",
            "timestamp",
            _timestamp_type(),
            "key",
            "value",
            all_headers(),
            "schema_id",
            "error_class",
            "error_message",
            f.current_timestamp().alias("failed_at"),
            f.lit(None).cast("string").alias("replay_id"),
            f.lit(None).cast("timestamp").alias("replayed_at"),
        )
        with self._lock:
            table = self._known()
        staged = self._lane.stage(raw, table)
        failpoint("dead-letters-staged")
        with self._lock:
            if staged.rows:
                begun = {
                    SOURCE_KEY: owner.table_id,
                    SOURCE_FROM_KEY: batch.start.to_json(),
                    SOURCE_TO_KEY: batch.end.to_json(),
                }
                table = self._refreshed()
                if owner.claim != self._claims:
                    raise StaleBatch(f"The dead letters '{self.name}' were claimed anew meanwhile.")
                summary = self._summary("dead-letters") | begun
                with self._claim_lost_on_failure():
                    self._head = self._lake.append(table, self.name, staged.files, summary, self._head)
            failpoint("dead-letters-committed")
            self._publish()
            failpoint("dead-letters-published")
        return staged.rows

    # -- replay

    def candidates(self, owner: Owner) -> list[tuple[str, DataFrame]]:
        """What no replay has taken up, as sources of records, by the id of the topic: one that was created
        again has the same coordinates once more."""
        mine = _of(owner) & f.col("replay_id").isNull()
        found = self._rows().where(mine).select("topic_id").distinct().collect()
        ids = sorted(row.topic_id for row in found)
        return [(topic_id, self._source(mine & (f.col("topic_id") == topic_id))) for topic_id in ids]

    def of_replay(self, replay_id: str) -> DataFrame:
        return self._source(f.col("replay_id") == replay_id)

    def standing(self, owner: Owner) -> tuple[int, str | None]:
        """How many are dead, and a replay that has taken up some and is not known to be done."""
        taken_up = f.col("replay_id").isNotNull()
        under_way = f.when(taken_up & f.col("replayed_at").isNull(), f.col("replay_id"))
        row = self._rows().where(_of(owner)).agg(f.count_if(~taken_up), f.max(under_way)).head()
        return (0, None) if row is None else (int(row[0]), row[1])

    def take_up(self, replay_id: str, owner: Owner, topic_id: str, chosen: DataFrame) -> int:
        """Mark these (partition, offset) of a topic as taken up by a replay, before they are written."""
        found = chosen.select("topic", "partition", "offset").toArrow()
        if found.num_rows:
            session = self._marking()
            chosen = session.createDataFrame(found).alias("chosen")
            same = " and ".join(f"chosen.{c} = {self._sql}.{c}" for c in ("topic", "partition", "offset"))
            same += f" and {self._sql}.table_id = {_text(owner.table_id)}"
            same += f" and {self._sql}.topic_id = {_text(topic_id)} and {self._sql}.replay_id is null"
            merge = chosen.mergeInto(self._sql, f.expr(same))
            self._change(lambda: merge.whenMatched().update({"replay_id": f.lit(replay_id)}).merge())
        return int(found.num_rows)

    def finish(self, replay_id: str) -> None:
        self._update(f"replayed_at = current_timestamp() where replay_id = {_text(replay_id)}")

    def give_back(self, replay_id: str) -> None:
        """A replay that was not carried out: its dead letters are dead again."""
        self._update(f"replay_id = null where replay_id = {_text(replay_id)} and replayed_at is null")

    def count(self, owner: Owner) -> int:
        """How many are dead and not replayed."""
        return self._rows().where(_of(owner) & f.col("replay_id").isNull()).count()

    # -- rollback

    def count_in(self, owner: Owner, batch: Batch) -> int:
        """How many records of a range are here, whatever became of them."""
        return self._in(owner, batch).count()

    def taken_up_by(self, owner: Owner, ids: Sequence[str]) -> list[Row]:
        """Those of replays (or of rollbacks that have kept them out): their `topic_id`, partition, offset."""
        mine = self._rows().where(_of(owner) & f.col("replay_id").isin(*ids))
        return mine.select("topic_id", "partition", "offset").collect()

    def undo(self, owner: Owner, ids: Sequence[str]) -> None:
        """The rows of these replays are in the table no more: their letters are dead again."""
        listed = ", ".join(map(_text, ids))
        mine = f"table_id = {_text(owner.table_id)} and replay_id in ({listed})"
        self._update(f"replay_id = null, replayed_at = null where {mine}")

    def keep_out(self, owner: Owner, batch: Batch, by: str) -> None:
        """No replay takes up the letters of a range, whose records stay out of the table; `by` stands for a
        replay's id."""
        if self._in(owner, batch).where(f.col("replay_id").isNull()).isEmpty():
            return
        ranges = " or ".join(
            f"(`partition` = {r.partition} and `offset` >= {r.start} and `offset` < {r.end})"
            for r in batch.ranges
        )
        mine = f"table_id = {_text(owner.table_id)} and topic_id = {_text(batch.end.topic_id)}"
        closed = f"replay_id = {_text(by)}, replayed_at = current_timestamp()"
        self._update(f"{closed} where {mine} and replay_id is null and ({ranges})")

    # -- within

    def _update(self, what: str) -> None:
        session = self._marking()
        self._change(lambda: session.sql(f"update {self._sql} set {what}"))

    def _change(self, change: Any) -> None:
        """A change by Spark itself, which commits it; it must have followed what this engine knew."""
        with self._lock:
            self._refreshed()
            with self._claim_lost_on_failure():
                change()
            self._head = self._refreshed().currentSnapshot()

    @contextmanager
    def _claim_lost_on_failure(self) -> Iterator[None]:
        """A commit that failed may still be on its way. The claim that is made again before anything else is
        read or written gives the table another head, on which no catalog takes it."""
        try:
            yield
        except BaseException:
            self._table = None
            raise

    def _marking(self) -> SparkSession:
        """A session whose every write says that it is ours."""
        if self._session is None:
            self._session = self._lane.spark.newSession()
            for key, value in self._summary("replay").items():
                self._session.conf.set(f"spark.sql.iceberg.snapshot-property.{key}", value)
        return self._session

    def _in(self, owner: Owner, batch: Batch) -> DataFrame:
        ranges = f.lit(False)
        for one in batch.ranges:
            here = (f.col("partition") == one.partition) & f.col("offset").between(one.start, one.end - 1)
            ranges = ranges | here
        mine = _of(owner) & (f.col("topic_id") == batch.end.topic_id)
        return self._rows().where(mine & ranges)

    def _source(self, which: Any) -> DataFrame:
        kind = f.lit(None).cast("int")
        for number, name in TIMESTAMP_TYPES.items():
            kind = f.when(f.col("timestamp_type") == name, f.lit(number)).otherwise(kind)
        return self._rows().where(which).withColumn("timestampType", kind).select(*SOURCE)

    def _rows(self) -> DataFrame:
        return self._lane.spark.table(self._sql)

    @property
    def _sql(self) -> str:
        return self._lake.sql_name(self.name)

    def _publish(self) -> None:
        """What the topic has not seen yet, however it came to that."""
        head = self._head
        if head is None or head.summary().get("total-records") in (None, "0"):
            return
        table_id = str(self._known().uuid())
        done = self._publisher.published(table_id)
        if head.sequenceNumber() <= done:
            return
        start = head
        while start is not None and start.sequenceNumber() > done:
            start = self._lake.parent(self._table, start)
        reader = self._lane.spark.read.format("iceberg")
        if start is None:
            rows = reader.option("versionAsOf", str(head.snapshotId())).load(self._sql)
        else:
            rows = (
                reader.option("start-snapshot-id", str(start.snapshotId()))
                .option("end-snapshot-id", str(head.snapshotId()))
                .load(self._sql)
            )
        self._publisher.publish(table_id, head.sequenceNumber(), rows.toLocalIterator())

    def _known(self) -> Any:
        if self._table is None:
            if self._claims:
                raise StaleBatch(f"The dead letters '{self.name}' must be claimed again.")
            raise AssertionError("dead letters were written before they were claimed")
        return self._table

    def _refreshed(self) -> Any:
        """The table as it is now. Another engine's hand in it ends this one's claim."""
        table = self._known()
        self._lake.refresh(table)
        snapshot = table.currentSnapshot()
        while snapshot is not None and not snapshot.equals(self._head):
            if snapshot.summary().get(ENGINE_KEY) != self._engine:
                raise StaleBatch(f"Another engine has claimed the dead letters '{self.name}'.")
            snapshot = self._lake.parent(table, snapshot)
        if snapshot is None:
            raise StaleBatch(f"The dead letters '{self.name}' were put back to an earlier state.")
        self._head = table.currentSnapshot()
        return table

    def _summary(self, operation: str) -> dict[str, str]:
        return {OPERATION_KEY: operation, ENGINE_KEY: self._engine}


def _rest(begun: Position, end: Position, now: Position) -> Position | None:
    """Where a batch from `begun` to `end` ends for a table that is at `now`; None if it is not in it.

    A partition where another leader has written other records at these offsets since is no part of it.
    """
    if (begun.cluster_id, begun.topic_id) != (now.cluster_id, now.topic_id):
        return None
    same = {p for p in end.offsets if begun.earlier == now.earlier or _leads_still(end, now, p)}
    if any(now.offsets.get(p, 0) < offset for p, offset in begun.offsets.items() if p in same):
        return None
    ahead = {p: offset for p, offset in end.offsets.items() if p in same and offset > now.offsets.get(p, 0)}
    if not ahead:
        return None
    # By which leader they were judged: another one since may have other records there.
    led = {p: end.epochs[p] for p in ahead if p in end.epochs}
    return replace(now.advanced_to(ahead), epochs={**now.epochs, **led})


def _leads_still(end: Position, now: Position, partition: int) -> bool:
    return partition not in end.epochs or now.epochs.get(partition) == end.epochs[partition]


def _of(owner: Owner) -> Column:
    return f.col("table_id") == owner.table_id


def _timestamp_type() -> Any:
    found = f.lit(None).cast("string")
    for number, name in TIMESTAMP_TYPES.items():
        found = f.when(f.col("timestampType") == number, f.lit(name)).otherwise(found)
    return found.alias("timestamp_type")


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
