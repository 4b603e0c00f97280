"""The files of one snapshot: there, of the length and row count that the metadata says, vectors inside."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate.delta.files import Files
from headgate.delta.log import VECTORS as VECTORS_FOLDER
from headgate.delta.log import DeltaLog
from headgate.delta.state import live_rows
from headgate.delta.vectors import checked, file_name, uuid_of
from headgate.errors import MirrorStopped
from headgate.maintain.findings import Report
from headgate.tables.live_files import LiveFile

# Files that are looked at together: each look waits for the storage.
TOGETHER = 8
# What the files of manifests begin with.
_AVRO = b"Obj\x01"


@dataclass(frozen=True)
class SnapshotFiles:
    """The live files of a snapshot by their paths in the table's folder, and the folder itself."""

    root: str
    files: Files
    live: Mapping[str, LiveFile]

    @property
    def is_exact(self) -> bool:
        """Whether the metadata says for each data file how many of its rows are deleted."""
        deletes = [delete for one in self.live.values() for delete in one.deletes]
        return all(delete.referencedDataFile() is not None for delete in deletes)

    @property
    def rows(self) -> int:
        """As the metadata says: the deleted ones not counted."""
        return sum(live_count(one) for one in self.live.values())

    def relative(self, location: str) -> str:
        return plain(location).removeprefix(self.root)


def live_count(one: LiveFile) -> int:
    return int(one.file.recordCount()) - sum(int(delete.recordCount()) for delete in one.deletes)


def plain(location: str) -> str:
    """One spelling for the several that files of a disk have."""
    return "/" + location.removeprefix("file:").lstrip("/") if location.startswith("file:") else location


def snapshot_files(spark: SparkSession, table: Any, snapshot: Any, files: Files) -> SnapshotFiles:
    """By a scan of the snapshot's metadata."""
    root = plain(str(table.location())).rstrip("/") + "/"
    live: dict[str, LiveFile] = {}
    tasks = table.newScan().useSnapshot(snapshot.snapshotId()).planFiles()
    lists = cast(Any, spark._jvm).org.apache.iceberg.relocated.com.google.common.collect.Lists
    try:
        listed = lists.newArrayList(tasks)
    finally:
        tasks.close()
    for index in range(listed.size()):
        file, deletes = listed.get(index).file(), listed.get(index).deletes()
        one = LiveFile(file, tuple(deletes.get(number) for number in range(deletes.size())))
        live[plain(str(file.location())).removeprefix(root)] = one
    return SnapshotFiles(root, files, live)


def listed_files(
    report: Report, spark: SparkSession, table: Any, snapshot: Any, files: Files
) -> SnapshotFiles | None:
    """The snapshot's files; None where its manifests are damaged, which is reported."""
    try:
        if check_manifests(report, table, snapshot, files):
            return snapshot_files(spark, table, snapshot, files)
    except Py4JJavaError as error:
        # They begin as manifests do, and have their length: what is within is not what was written.
        why = str(error.java_exception.getClass().getSimpleName())
        report.add("files", f"snapshot {snapshot.snapshotId()}", f"its manifests cannot be read: {why}")
        report.passed("files", "its manifests cannot be read")
    return None


def check_manifests(report: Report, table: Any, snapshot: Any, files: Files) -> bool:
    """The manifest list and every manifest are there, with the length that is told; whether they are, as
    nobody can list the snapshot's files without them."""
    root = plain(str(table.location())).rstrip("/") + "/"
    listed = plain(str(snapshot.manifestListLocation())).removeprefix(root)
    problems = {listed: _look_at_manifest(files, listed, None)}
    if problems[listed] is None:
        wanted = {
            plain(str(one.path())).removeprefix(root): int(one.length())
            for one in snapshot.allManifests(table.io())
        }
        with ThreadPoolExecutor(TOGETHER) as looks:
            found = looks.map(lambda one: _look_at_manifest(files, *one), wanted.items())
            problems |= dict(zip(wanted, found, strict=True))
    damaged = {path: problem for path, problem in problems.items() if problem is not None}
    for path, problem in damaged.items():
        report.add("files", path, problem)
    if damaged:
        report.passed("files", f"{len(damaged)} of {len(problems)} manifests are damaged")
    return not damaged


def _look_at_manifest(files: Files, path: str, size: int | None) -> str | None:
    if not files.exists(path):
        return "is not there"
    with files.open(path) as file:
        begins = file.read(len(_AVRO))
        length = file.seek(0, 2)
    if size is not None and length != size:
        return f"has {length} bytes, the manifest list says {size}"
    return None if begins == _AVRO else "is no manifest"


def check_files(report: Report, held: SnapshotFiles) -> None:
    """Every data file is there, with its length and its row count."""
    wanted = [
        (path, int(one.file.fileSizeInBytes()), int(one.file.recordCount()))
        for path, one in held.live.items()
    ]
    with ThreadPoolExecutor(TOGETHER) as looks:
        for (path, _, _), problem in zip(
            wanted, looks.map(lambda one: _look(held.files, *one), wanted), strict=True
        ):
            if problem is not None:
                report.add("files", path, problem)
    report.passed("files", f"{len(held.live)} data files")


def _look(files: Files, path: str, size: int, rows: int) -> str | None:
    if not files.exists(path):
        return "is not there"
    with files.open(path) as file:
        length = file.seek(0, 2)
        if length != size:
            return f"has {length} bytes, the metadata says {size}"
        try:
            found = pq.ParquetFile(pa.PythonFile(file, mode="r")).metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            return f"is no Parquet file: {str(error).splitlines()[0]}"
    return None if found == rows else f"has {found} rows, the metadata says {rows}"


class VectorCheck:
    """Deletes of a snapshot: each names rows that its data file has."""

    def __init__(self, spark: SparkSession, report: Report, held: SnapshotFiles) -> None:
        jvm = cast(Any, spark._jvm)
        self._bitmap = jvm.org.apache.iceberg.shaded.org.roaringbitmap.RoaringBitmap
        self._buffer = jvm.java.nio.ByteBuffer
        self._report = report
        self._held = held

    def run(self) -> None:
        count = 0
        for path, one in self._held.live.items():
            for delete in one.deletes:
                count += 1
                problem = self._problem(path, one, delete)
                if problem is not None:
                    self._report.add("deletes", path, problem)
        self._report.passed("deletes", f"{count} deletion vectors and delete files")

    def _problem(self, path: str, one: LiveFile, delete: Any) -> str | None:
        name = self._held.relative(str(delete.location()))
        if not self._held.files.exists(name):
            return f"its deletes, {name}, are not there"
        rows = int(one.file.recordCount())
        if str(delete.format().name()) != "PUFFIN":
            return self._position_deletes(name, str(one.file.location()), rows)
        data = _part(self._held.files, name, delete.contentOffset(), delete.contentSizeInBytes())
        try:
            body = checked(data, int(delete.recordCount())).data[8:-4]
        except ValueError:
            return f"its deletion vector in {name} is damaged"
        count, last = self._count_and_last(body)
        if count != int(delete.recordCount()):
            return f"its deletion vector has {count} rows, the metadata says {delete.recordCount()}"
        return None if last < rows else f"its deletion vector deletes row {last} of {rows} rows"

    def _position_deletes(self, name: str, location: str, rows: int) -> str | None:
        with self._held.files.open(name) as file:
            try:
                found = pq.read_table(pa.PythonFile(file, mode="r"), columns=["file_path", "pos"])
            except (pa.ArrowException, OSError) as error:
                return f"its deletes, {name}, are no Parquet file: {str(error).splitlines()[0]}"
        mine = found.filter(pc.equal(found["file_path"], location))["pos"]
        last = pc.max(mine).as_py() if len(mine) else -1
        return None if last < rows else f"its position deletes delete row {last} of {rows} rows"

    def _count_and_last(self, body: bytes) -> tuple[int, int]:
        """Of 64-bit positions: how many groups, then each group's upper half and its bitmap."""
        groups, at, count, last = int.from_bytes(body[:8], "little"), 8, 0, -1
        for _ in range(groups):
            upper = int.from_bytes(body[at : at + 4], "little")
            bitmap = self._bitmap()
            bitmap.deserialize(self._buffer.wrap(body[at + 4 :]))
            at += 4 + int(bitmap.serializedSizeInBytes())
            count += int(bitmap.getLongCardinality())
            last = max(last, (upper << 32) | (int(bitmap.last()) & 0xFFFFFFFF))
        return count, last


def check_delta(report: Report, spark: SparkSession, table: Any, topic: str, files: Files) -> None:
    """The Delta log shows the files and rows of the snapshot that it says it mirrors."""
    try:
        state = DeltaLog(files, topic).load()
    except MirrorStopped as error:
        report.add("delta", "_delta_log", error.message)
        report.passed("delta", "the log cannot be read")
        return
    mirrored = None if state is None else state.mirrored
    if state is None or mirrored is None:
        report.add("delta", "_delta_log", "there is no log that says what it mirrors")
        report.passed("delta", "no log")
        return
    snapshot = None if mirrored.snapshot is None else table.snapshot(mirrored.snapshot)
    if snapshot is None:
        report.skipped("delta", f"version {state.version} shows a snapshot that the table has no more")
        return
    held = snapshot_files(spark, table, snapshot, files)
    live, exact = held.live, held.is_exact
    shown = {unquote(path): add for path, add in state.files.items()}
    for path in sorted(live.keys() - shown.keys()):
        report.add("delta", path, "is in the table and not in the Delta log")
    for path in sorted(shown.keys() - live.keys()):
        report.add("delta", path, "is in the Delta log and not in the table")
    for path in sorted(live.keys() & shown.keys()):
        rows, expected = live_rows(shown[path]), live_count(live[path])
        if exact and rows != expected:
            report.add("delta", path, f"has {rows} rows in the Delta log and {expected} in the table")
        problem = _delta_vector(held, shown[path], live[path])
        if problem is not None:
            report.add("delta", path, problem)
    report.passed("delta", f"version {state.version}, {len(shown)} files, {state.rows} rows")


def _delta_vector(held: SnapshotFiles, add: Mapping[str, Any], one: LiveFile) -> str | None:
    vector = add.get("deletionVector")
    if vector is None:
        return None
    name = f"{VECTORS_FOLDER}/{file_name(uuid_of(vector['pathOrInlineDv']))}"
    if not held.files.exists(name):
        return f"its Delta deletion vector, {name}, is not there"
    data = _part(held.files, name, vector["offset"], vector["sizeInBytes"] + 8)
    try:
        checked(data, vector["cardinality"])
    except ValueError:
        return f"its Delta deletion vector in {name} is damaged"
    for delete in one.deletes:
        # The mirror copies it as it is.
        own = held.relative(str(delete.location()))
        if str(delete.format().name()) != "PUFFIN" or not held.files.exists(own):
            continue
        if _part(held.files, own, delete.contentOffset(), delete.contentSizeInBytes()) != data:
            return f"its Delta deletion vector in {name} is another one than the table's in {own}"
    return None


def _part(files: Files, name: str, offset: int, size: int) -> bytes:
    with files.open(name) as file:
        file.seek(offset)
        return file.read(size)
