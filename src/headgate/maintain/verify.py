"""`headgate table verify`: whether one snapshot of a table is whole, while batches go on beside it.

Everything is compared with something written by another hand: files with the metadata, offset ranges with
one another, rows with the records in Kafka, the Delta log and the key index with the table.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from py4j.protocol import Py4JJavaError
from pyroaring import BitMap64
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from headgate.delta.files import Files
from headgate.errors import ForeignTable, HeadgateError, InvalidRequest
from headgate.maintain.erase import ERASE_KEY
from headgate.maintain.findings import Report
from headgate.maintain.verify_files import (
    SnapshotFiles,
    VectorCheck,
    check_delta,
    check_files,
    listed_files,
)
from headgate.maintain.verify_ranges import ancestors, check_ranges
from headgate.model import (
    FROM_KEY,
    POSITION_KEY,
    ROLLED_BACK_RECORDS_KEY,
    SKIPPED_KEY,
    Batch,
    Position,
    TableMode,
    TableSpec,
)
from headgate.tables.key_places import KeyPlaces
from headgate.tables.lake import Lake
from headgate.tables.lane import SparkLane
from headgate.tables.materialize import Source
from headgate.tables.records import SKIPPED, RecordPlan
from headgate.tables.rollback import Records
from headgate.tables.settle import MODE_KEY

Progress = Callable[[str], None]
# Keys that are named when they have several rows.
NAMED = 5
APPEND_TABLE = "an append table has none"
# The checks that take files from the snapshot's manifests.
OF_FILES = ("deletes", "delta", "rows", "records", "keys", "index")
NOT_OPEN = "the engine has not opened the table, and does not know its keys"


@dataclass(frozen=True)
class Known:
    """What the table's materializer knows of it: where keys are, and how records are read. Of a table that is
    suspended, or that no engine could open, neither is known."""

    spec: TableSpec
    places: KeyPlaces | None = None
    plan: RecordPlan | None = None


class Verifier:
    """Reads tables, and changes nothing."""

    def __init__(
        self, spark: SparkSession, lake: Lake, lane: SparkLane, source: Source, files: Callable[[str], Files]
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._lane = lane
        self._source = source
        self._files = files

    def verify(self, known: Known, deep: bool, progress: Progress = lambda _: None) -> dict[str, Any]:
        """The newest snapshot's checks; once more for a damaged one that is not the newest in the end: it may
        have expired, or dead letters of its records been replayed."""
        for last in (False, True):
            table = self._lake.load(known.spec.topic)
            if table is None or table.currentSnapshot() is None:
                raise InvalidRequest(f"Table '{known.spec.topic}' has no snapshot yet: nothing to verify.")
            snapshot = table.currentSnapshot()
            report = Report()
            held = self._check(report, table, snapshot, known, deep, progress)
            self._lake.refresh(table)
            if last or not report.is_damaged or table.currentSnapshot().equals(snapshot):
                break
        found = {"snapshot_id": str(snapshot.snapshotId()), "deep": deep}
        return found | {"files": len(held.live), "rows": held.rows} | report.to_dict()

    def _check(
        self, report: Report, table: Any, snapshot: Any, known: Known, deep: bool, progress: Progress
    ) -> SnapshotFiles:
        files = self._files(str(table.location()))
        progress("offset ranges")
        check_ranges(report, table, snapshot, not _has_keys(table))
        progress("files")
        held = listed_files(report, self._spark, table, snapshot, files)
        if held is None:
            for name in OF_FILES:
                report.skipped(name, "the snapshot's files cannot be listed")
            return SnapshotFiles("", files, {})
        check_files(report, held)
        progress("deletes")
        VectorCheck(self._spark, report, held).run()
        if known.spec.has_delta:
            progress("Delta log")
            check_delta(report, self._spark, table, known.spec.topic, files)
        if not deep:
            return held
        broken = any(one.check in ("files", "deletes") for one in report.findings)
        if broken:
            report.skipped("rows", "they are not read: files or deletes are damaged")
        else:
            progress("rows")
            broken = not self._rows(report, table, snapshot, known, held)
        for name, check in (
            ("records", self._records),
            ("keys", self._keys),
            ("index", self._index),
        ):
            if broken:
                report.skipped(name, "rows cannot be read")
                continue
            progress(name)
            check(report, table, snapshot, known, held)
        return held

    def _rows(self, report: Report, table: Any, snapshot: Any, known: Known, held: SnapshotFiles) -> bool:
        """As many rows can be read as the metadata says; whether they can be read at all."""
        rows = self._lake.rows(self._spark, table, known.spec.topic, snapshot)
        try:
            # Every column, not the footers alone: Spark takes a count of what is never NULL from those.
            hashed = f.xxhash64(*map(_column, rows.columns))
            found = rows.agg(f.count(f.lit(1)), f.bit_xor(hashed)).head()
        except (PySparkException, Py4JJavaError) as error:
            report.add(
                "rows", f"snapshot {snapshot.snapshotId()}", f"cannot be read: {str(error).splitlines()[0]}"
            )
            report.passed("rows", "not readable")
            return False
        count = int(found[0]) if found is not None else 0
        if held.is_exact and count != held.rows:
            where = f"snapshot {snapshot.snapshotId()}"
            report.add("rows", where, f"has {count} rows, the metadata says {held.rows}")
        report.passed("rows", f"{count} rows read")
        return True

    def _records(self, report: Report, table: Any, snapshot: Any, known: Known, held: SnapshotFiles) -> None:
        """Append tables: rows = records - dead - filtered, as long as Kafka has all that the table read."""
        topic = known.spec.topic
        if _has_keys(table):
            report.skipped("records", "rows of an upsert table are keys, not records")
            return
        summaries = [one.summary() for one in ancestors(table, snapshot)]
        ranged = [said for said in summaries if POSITION_KEY in said]
        if not ranged or int(summaries[-1].get("total-records") or 0):
            report.skipped("records", "the table's first snapshots have expired")
            return
        if any(ERASE_KEY in said for said in summaries):
            report.skipped("records", "rows were erased by request")
            return
        start = Position.from_json(ranged[-1].get(FROM_KEY))
        end = Position.from_json(ranged[0].get(POSITION_KEY))
        gone = self._gone_from_kafka(topic, start, end)
        if gone is not None:
            report.skipped("records", gone)
            return
        least, most = self._count_records(Batch(start, end), known)
        kept_out = 0
        for batch in _kept_out(summaries):
            fewest, out = self._count_records(batch, known)
            least, most, kept_out = least - fewest, most - out, kept_out + out
        dead, taken_up = self._count_dead(table, known, end)
        skipped = sum(int(said.get(SKIPPED_KEY) or 0) for said in summaries)
        records = str(most) if least == most else f"{least} to {most}"
        if not least - dead - taken_up <= held.rows + skipped <= most - dead:
            said = f"{records} records, {dead} of them dead and {skipped} skipped, but {held.rows} rows"
            report.add("records", f"snapshot {snapshot.snapshotId()}", said)
        by_rollbacks = f", {kept_out} more kept out by rollbacks" if kept_out else ""
        report.passed("records", f"{records} records, {dead} dead, {skipped} skipped{by_rollbacks}")

    def _gone_from_kafka(self, topic: str, start: Position, end: Position) -> str | None:
        """Why Kafka no longer has all records that the table was made from; None if it has."""
        try:
            view = self._source.view(topic)
        except HeadgateError as error:
            # It does not answer, or the topic is gone.
            return error.message
        if (start.topic_id, end.topic_id) != (view.topic.id, view.topic.id):
            return "the table was made from another topic of this name"
        if end.earlier:
            return "the table holds records that the topic has lost to another leader"
        if any(view.earliest.get(p, 0) > start.offsets.get(p, 0) for p in end.offsets):
            return "Kafka no longer has all records that the table was made from"
        if "compact" in self._source.cleanup_policy(topic):
            return "Kafka compacts the topic: records that the table was made from may be gone"
        return None

    def _count_records(self, batch: Batch, known: Known) -> tuple[int, int]:
        """How many of a range the table should have, at least and at most: before a first batch nobody has
        said whether records without a value are left out."""
        if not batch.ranges:
            return 0, 0
        source = self._lane.read(batch, known.spec.topic)
        if known.plan is None:
            row = source.agg(f.count("value"), f.count("offset")).head()
            return (0, 0) if row is None else (int(row[0]), int(row[1]))
        problem = f.col("problem")
        kept = known.plan.judged(source).where(problem.isNull() | (problem["class"] != SKIPPED)).count()
        return kept, kept

    def _count_dead(self, table: Any, known: Known, end: Position) -> tuple[int, int]:
        """The dead letters of what is before `end`, and those that a replay under way has taken up: those of
        a batch that is not committed yet are no part of this snapshot."""
        name = known.spec.dead_letters_name
        try:
            if self._lake.load(name, dead_letters=True) is None:
                return 0, 0
        except ForeignTable:
            return 0, 0
        before = f.lit(False)
        for partition, offset in end.offsets.items():
            before = before | ((f.col("partition") == partition) & (f.col("offset") < offset))
        mine = (f.col("table_id") == str(table.uuid())) & f.col("replayed_at").isNull() & before
        letters = self._spark.table(self._lake.sql_name(name)).where(mine)
        row = letters.agg(f.count("offset"), f.count("replay_id")).head()
        return (0, 0) if row is None else (int(row[0]) - int(row[1]), int(row[1]))

    def _keys(self, report: Report, table: Any, snapshot: Any, known: Known, held: SnapshotFiles) -> None:
        """Upsert tables: a key has one present row."""
        places = known.places
        if places is None or not places.is_open:
            report.skipped("keys", NOT_OPEN if _has_keys(table) else APPEND_TABLE)
            return
        rows = places.rows(table, snapshot)
        ids = rows.select(f.hex(places.id_of(rows)).alias("id"), "_file", "_pos")
        several = ids.groupBy("id").agg(f.count(f.lit(1)).alias("n"), f.first("_file").alias("file"))
        doubled = several.where("n > 1").cache()
        try:
            for row in doubled.limit(NAMED).collect():
                report.add("keys", held.relative(row.file), f"key {row.id} has {row.n} rows")
            total = doubled.count()
        finally:
            doubled.unpersist()
        report.passed("keys", f"{total} keys with several rows")

    def _index(self, report: Report, table: Any, snapshot: Any, known: Known, held: SnapshotFiles) -> None:
        """Upsert tables: the key index says of each row where it is."""
        places = known.places
        if places is None or not places.is_open:
            report.skipped("index", NOT_OPEN if _has_keys(table) else APPEND_TABLE)
            return
        index = places.index
        reflects = index.reflects if index.is_open else None
        if reflects is None or reflects.snapshot_id != snapshot.snapshotId():
            report.skipped("index", "it stands for another snapshot than the one that is verified")
            return
        rows = wrong = 0
        positions: dict[str, BitMap64] = {}
        for entries in places.entries(table, snapshot, list(held.live.values())):
            found = index.find(entries.ids)
            paths = np.array([entries.paths[number] for number in entries.file], object)
            indexed = np.array(
                [index.path(int(n)) if live else "" for n, live in zip(found.file, found.live, strict=True)],
                object,
            )
            bad = ~found.live | (indexed != paths) | (found.pos != entries.pos)
            rows, wrong = rows + len(entries.ids), wrong + int(bad.sum())
            for path in set(paths):
                positions.setdefault(path, BitMap64()).update(entries.pos[paths == path].astype(np.uint64))
            for at in np.flatnonzero(bad)[:NAMED]:
                place = (
                    f"row {found.pos[at]} of {held.relative(indexed[at])}" if found.live[at] else "nowhere"
                )
                said = f"key {entries.ids[at].hex()} is in row {entries.pos[at]}, by the index {place}"
                report.add("index", held.relative(paths[at]), said)
        # An entry of a row that was deleted says nothing wrong; one of a row that is another key's does.
        keys = sum(pos in positions.get(path, ()) for path, pos in index.live())
        if keys > rows:
            report.add("index", "the key index", f"has {keys - rows} keys whose rows are those of others")
        if index.reflects != reflects:
            report.findings = [one for one in report.findings if one.check != "index"]
            report.skipped("index", "the table has moved on while the index was read")
            return
        report.passed("index", f"{rows} rows, {wrong} of them wrong")


def _has_keys(table: Any) -> bool:
    """Whether a row is that of a key, by the mode that the table was made with."""
    return TableMode(table.properties().get(MODE_KEY) or TableMode.APPEND) is not TableMode.APPEND


def _kept_out(summaries: Sequence[Mapping[str, str]]) -> Iterator[Batch]:
    """The ranges whose records a rollback has kept out of the table."""
    for said in summaries:
        if said.get(ROLLED_BACK_RECORDS_KEY) == Records.KEEP_OUT:
            yield Batch(Position.from_json(said[FROM_KEY]), Position.from_json(said[POSITION_KEY]))


def _column(name: str) -> Any:
    return f.col("`" + name.replace("`", "``") + "`").cast("string")
