"""Each kind of damage that is planted in a table is found, and a whole table of each mode is found whole."""

import binascii
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.delta.files import files_at
from headgate.maintain.erase import ERASE_KEY
from headgate.maintain.verify import Known, Verifier
from headgate.maintain.verify_files import snapshot_files
from headgate.model import FROM_KEY, OPERATION_KEY, Batch, Deletes, TableFormat, TableMode
from headgate.tables.key_index import Place
from headgate.tables.lake import FileChanges, Lake
from headgate.tables.lane import SparkLane
from headgate.tables.materialize import Materializer
from headgate.tables.mirror import DeltaMirror
from headgate.tables.position import read_position
from tests.integration.tables.drive import NUMBER, Drive, values
from tests.support.keyed import Keyed


class Verified:
    """A table of a drive, its folder, and what a verification says of it."""

    def __init__(self, drive: Drive, spark: SparkSession) -> None:
        self.drive, self.spark = drive, spark
        # Damage is planted in it.
        drive.ends_whole = False
        self.reopen()
        self.materializer: Materializer = drive.materializer()
        self.materializer._mirror = DeltaMirror(spark, drive.lake, drive.topic)
        self.steps: list[str] = []

    def reopen(self) -> None:
        """With a catalog's client that remembers no table."""
        runtime = self.drive.runtime
        lane = SparkLane(self.spark, {"kafka.bootstrap.servers": runtime.kafka})
        lake = Lake(self.spark, catalog_properties(runtime.iceberg, token=runtime.catalog_key), "local")
        self._verifier = Verifier(self.spark, lake, lane, self.drive.source, files_at)

    @property
    def table(self) -> Any:
        return self.drive.lake.load(self.drive.topic)

    @property
    def folder(self) -> Path:
        return Path(unquote(urlsplit(self.table.location()).path))

    def live(self) -> list[Any]:
        """The data files of the newest snapshot, each with its deletes."""
        table = self.table
        held = snapshot_files(self.spark, table, table.currentSnapshot(), files_at(str(table.location())))
        return [(one.file, one.deletes) for one in held.live.values()]

    def verify(self, deep: bool = True) -> dict[str, Any]:
        one = self.materializer
        return self._verifier.verify(Known(one.spec, one.places, one.record_plan), deep, self.steps.append)

    def found(self, deep: bool = True) -> set[str]:
        """The checks that found damage."""
        report = self.verify(deep)
        assert report["damaged"] == bool(report["findings"])
        return {one["check"] for one in report["findings"]}


def path_of(location: Any) -> Path:
    return Path(unquote(urlsplit(str(location)).path))


@contextmanager
def damaged(path: Path, change: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """The file is another, or none, while the block lasts."""
    before = path.read_bytes()
    after = change(before)
    path.unlink() if after is None else path.write_bytes(after)
    try:
        yield
    finally:
        path.write_bytes(before)


def with_a_row_twice(data: bytes) -> bytes:
    table = pq.read_table(pa.BufferReader(data))
    out = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), out)
    return bytes(out.getvalue())


def moved_vector(offset: int, size: int, by: int) -> Callable[[bytes], bytes]:
    """The vector's one group of positions is another: all of them lie 65,536 x `by` rows further."""

    def change(data: bytes) -> bytes:
        blob = bytearray(data[offset : offset + size])
        # Length, magic, groups (8), upper half (4); the bitmap: cookie, containers, the first one's key.
        cookie = struct.unpack_from("<I", blob, 20)[0]
        at = 28 if cookie & 0xFFFF == 12346 else 24 + (((cookie >> 16) + 1) + 7) // 8
        struct.pack_into("<H", blob, at, by)
        blob[-4:] = struct.pack(">I", binascii.crc32(bytes(blob[4:-4])))
        return data[:offset] + bytes(blob) + data[offset + size :]

    return change


def other_rows(offset: int, size: int) -> Callable[[bytes], bytes]:
    """The vector deletes one row that is live and leaves out one that is not: as many, of the same file."""

    def change(data: bytes) -> bytes:
        blob = bytearray(data[offset : offset + size])
        before = BitMap.deserialize(bytes(blob[20:-4]))
        for gone in before:
            for row in range(max(before)):
                other = (before - BitMap([gone])) | BitMap([row])
                other.run_optimize()
                if row not in before and len(other.serialize()) == len(blob) - 24:
                    blob[20:-4] = other.serialize()
                    blob[-4:] = struct.pack(">I", binascii.crc32(bytes(blob[4:-4])))
                    return data[:offset] + bytes(blob) + data[offset + size :]
        raise AssertionError("no vector of the same length")

    return change


def with_a_page_damaged(data: bytes) -> bytes:
    """Behind the magic number at its beginning; footer, length and count are as they were."""
    return data[:30] + bytes(byte ^ 0xFF for byte in data[30:60]) + data[60:]


def without_an_add(data: bytes) -> bytes:
    lines = data.decode().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith('{"add"'))
    return "".join(lines[:at] + lines[at + 1 :]).encode()


def with_a_range_that_begins(by: int) -> Callable[[bytes], bytes]:
    """The newest batch says that it began so many records behind where it did."""

    def change(data: bytes) -> bytes:
        metadata = json.loads(data)
        current = metadata["current-snapshot-id"]
        (summary,) = (one["summary"] for one in metadata["snapshots"] if one["snapshot-id"] == current)
        begun = json.loads(summary[FROM_KEY])
        partition = next(p for p, offset in begun["offsets"].items() if offset + by >= 0)
        begun["offsets"][partition] += by
        summary[FROM_KEY] = json.dumps(begun)
        return json.dumps(metadata).encode()

    return change


def metadata_of(verified: Verified) -> Path:
    return path_of(verified.table.operations().current().metadataFileLocation())


def states_of(report: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["state"] for check in report["checks"]}


def append_twice(verified: Verified) -> None:
    """The rows of a file a second time, under another name, by a hand that calls itself a replay."""
    table = verified.table
    file, _ = verified.live()[0]
    copy = f"{file.location()}".replace(".parquet", "-again.parquet")
    shutil.copy(path_of(file.location()), path_of(copy))
    files: Any = verified.spark._jvm
    builder = files.org.apache.iceberg.DataFiles.builder(table.specs().get(file.specId())).copy(file)
    again = builder.withPath(copy).build()
    summary = {OPERATION_KEY: "replay"}
    verified.drive.lake.change(
        table, verified.drive.topic, FileChanges((again,)), summary, table.currentSnapshot()
    )


@pytest.fixture
def append(drive: Drive, spark: SparkSession) -> Verified:
    drive.spec = replace(drive.spec, formats=(TableFormat.ICEBERG, TableFormat.DELTA))
    drive.create(2)
    schema_id = drive.register(NUMBER)
    found = Verified(drive, spark)
    for first in (0, 10):
        drive.produce(schema_id, NUMBER, values(10, first), partition=first % 3)
        drive.run_all(found.materializer)
    return found


@pytest.mark.parametrize(
    ("mode", "deletes"),
    [
        (TableMode.SCD2, Deletes.DELETION_VECTORS),
        (TableMode.UPSERT, Deletes.POSITION_DELETES),
        (TableMode.UPSERT, Deletes.COPY_ON_WRITE),
    ],
)
def test_tables_of_other_modes_are_whole(
    drive: Drive, spark: SparkSession, mode: TableMode, deletes: Deletes
) -> None:
    drive.spec = replace(drive.spec, mode=mode, deletes=deletes)
    keyed = Keyed(drive.runtime, drive.topic)
    found = Verified(drive, spark)
    for seed in range(2):
        keyed.random(60, keys=20, seed=seed)
        drive.run_all(found.materializer)
    report = found.verify()
    assert not report["damaged"], report["findings"]
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert (states["files"], states["keys"], states["index"]) == ("ok", "ok", "ok")
    if deletes is Deletes.POSITION_DELETES:
        _, (file, *_) = next((one, gone) for one, gone in found.live() if gone)
        with damaged(path_of(file.location()), lambda before: before[:-9]):
            assert found.found(deep=False) == {"deletes"}


@pytest.fixture
def upsert(drive: Drive, spark: SparkSession) -> Verified:
    formats = (TableFormat.ICEBERG, TableFormat.DELTA)
    drive.spec = replace(drive.spec, formats=formats, mode=TableMode.UPSERT)
    keyed = Keyed(drive.runtime, drive.topic)
    found = Verified(drive, spark)
    for seed in range(2):
        keyed.random(60, keys=20, seed=seed)
        drive.run_all(found.materializer)
    return found


def test_damage_to_an_append_table_is_found(append: Verified) -> None:
    report = append.verify()
    assert not report["damaged"], report["findings"]
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert states == {
        "offsets": "ok", "files": "ok", "deletes": "ok", "delta": "ok",
        "rows": "ok", "records": "ok", "keys": "skipped", "index": "skipped",
    }  # fmt: skip
    assert report["rows"] == 20
    assert "files" in append.steps

    data = path_of(append.live()[0][0].location())
    with damaged(data, lambda _: None):
        assert append.found() == {"files"}
    with damaged(data, lambda before: before[:-9]):
        assert append.found(deep=False) == {"files"}
    with damaged(data, with_a_row_twice):
        assert append.found(deep=False) == {"files"}
    with damaged(data, lambda before: before[:-4] + b"junk"):
        assert append.found(deep=False) == {"files"}
    with damaged(data, with_a_page_damaged):
        assert append.found() == {"rows"}
    snapshot = append.table.currentSnapshot()
    manifests = [path_of(one.path()) for one in snapshot.allManifests(append.table.io())]
    changes: tuple[Callable[[bytes], bytes | None], ...] = (lambda _: None, lambda _: b"junk")
    for manifest in (path_of(snapshot.manifestListLocation()), *manifests):
        for change in changes:
            with damaged(manifest, change):
                report = append.verify()
                assert {one["where"] for one in report["findings"]} == {f"metadata/{manifest.name}"}
                others = {"deletes", "delta", "rows", "records", "keys", "index"}
                assert {states_of(report)[name] for name in others} == {"skipped"}
    log = append.folder / "_delta_log"
    newest = max(log.glob("*.json"))
    with damaged(newest, lambda _: b""):
        assert append.found(deep=False) == {"delta"}
    with damaged(log / f"{0:020d}.json", lambda _: None):
        assert append.found(deep=False) == {"delta"}
    added = max(path for path in log.glob("*.json") if b'{"add"' in path.read_bytes())
    with damaged(added, without_an_add):
        assert append.found(deep=False) == {"delta"}
    metadata = metadata_of(append)
    # Hadoop's own checksum lies beside it.
    checksum = metadata.with_name(f".{metadata.name}.crc")
    for by in (1, -1):
        with damaged(checksum, lambda _: None), damaged(metadata, with_a_range_that_begins(by)):
            append.reopen()
            assert append.found(deep=False) == {"offsets"}
    append.reopen()
    assert append.found() == set()
    append_twice(append)
    assert append.found() == {"records"}


def test_rows_that_are_gone_are_found_after_a_restart_too(append: Verified) -> None:
    """Before its first batch an engine does not know how records are read."""
    append.materializer = append.drive.materializer()
    append.materializer.open(append.drive.view())
    assert append.materializer.record_plan is None
    assert append.found() == set()
    file, _ = append.live()[0]
    table = append.table
    gone = FileChanges(removed=(file,))
    append.drive.lake.change(
        table, append.drive.topic, gone, {OPERATION_KEY: "replay"}, table.currentSnapshot()
    )
    assert append.found() == {"records"}


def test_rows_that_were_erased_by_request_are_no_damage(append: Verified) -> None:
    """Also between the deletion and the expiry of what was before it, and where a branch keeps that."""
    table, (file, _) = append.table, append.live()[0]
    said = {OPERATION_KEY: "erase", ERASE_KEY: "one"}
    append.drive.lake.change(
        table, append.drive.topic, FileChanges(removed=(file,)), said, table.currentSnapshot()
    )
    report = append.verify()
    assert not report["damaged"], report["findings"]
    assert states_of(report)["records"] == "skipped"


def test_records_that_kafka_has_lost_are_no_damage(append: Verified) -> None:
    """Compaction removes some of them, an unclean election of a leader replaces them."""
    drive = append.drive
    drive.topics.configure(drive.topic, {"cleanup.policy": "compact"})
    assert states_of(append.verify())["records"] == "skipped"
    drive.topics.configure(drive.topic, {"cleanup.policy": "delete"})
    table = append.table
    position = read_position(table, drive.topic)
    assert position is not None
    back = {partition: max(0, offset - 1) for partition, offset in position.offsets.items()}
    end = position.in_new_era(position.cluster_id, position.topic_id, back)
    drive.lake.commit(table, drive.topic, FileChanges(), Batch(position, end), table.currentSnapshot())
    report = append.verify()
    assert not report["damaged"], report["findings"]
    assert states_of(report)["records"] == "skipped"


def test_an_upsert_table_that_no_engine_has_opened_is_verified_without_its_keys(upsert: Verified) -> None:
    """One that is suspended, for example: which columns are the key nobody knows."""
    topic = upsert.drive.topic
    for known in (Known(upsert.drive.spec), Known(upsert.drive.spec, upsert.drive.materializer().places)):
        report = upsert._verifier.verify(known, deep=True)
        assert not report["damaged"], report["findings"]
        states = states_of(report)
        assert (states["keys"], states["index"], states["records"]) == ("skipped",) * 3
        assert states["rows"] == states["deletes"] == "ok"
    upsert.drive.topics.delete(topic)
    report = upsert._verifier.verify(Known(upsert.drive.spec), deep=True)
    assert not report["damaged"], "the topic may be gone"


def test_damage_to_an_upsert_table_is_found(upsert: Verified) -> None:
    report = upsert.verify()
    assert not report["damaged"], report["findings"]
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert (states["deletes"], states["keys"], states["index"], states["delta"]) == ("ok",) * 4

    _, (vector,) = next((file, deletes) for file, deletes in upsert.live() if deletes)
    puffin, offset, size = path_of(vector.location()), vector.contentOffset(), vector.contentSizeInBytes()
    # The Delta log has a copy of it as it was.
    with damaged(puffin, moved_vector(offset, size, 1)):
        assert upsert.found() == {"deletes", "delta"}
    with damaged(puffin, lambda data: data[: offset + 6] + b"\xff\xff" + data[offset + 8 :]):
        assert upsert.found() == {"deletes", "delta"}
    with damaged(puffin, lambda _: None):
        assert upsert.found(deep=False) == {"deletes"}
    checksum = puffin.with_name(f".{puffin.name}.crc")
    with damaged(puffin, other_rows(offset, size)):
        assert upsert.found(deep=False) == {"delta"}
        # Not to be read, by the checksum that Hadoop has beside it: nothing more is looked at.
        assert upsert.found() == {"delta", "rows"}
        with damaged(checksum, lambda _: None):
            assert upsert.found() >= {"delta", "index"}
    with damaged(next((upsert.folder / "_delta_vectors").glob("*.bin")), lambda _: None):
        assert upsert.found(deep=False) == {"delta"}

    places = upsert.materializer.places
    assert places is not None
    (entries, *_) = [one for one in places.entries(
        upsert.table, upsert.table.currentSnapshot(), [one for _, one in places.live.items()]
    ) if one.ids]  # fmt: skip
    key = entries.ids[0]
    (place,) = places.index.get([key])
    assert place is not None
    for wrong in (place._replace(pos=place.pos + 1), Place(None, 0, place.partition, place.offset)):
        places.index.put([(key, wrong)], places.index.reflects)
        assert upsert.found() == {"index"}
    places.index.put([(key, place)], places.index.reflects)
    # A key that the table does not have, with the place of another one's row.
    nobody = bytes(reversed(key))
    places.index.put([(nobody, place)], places.index.reflects)
    assert upsert.found() == {"index"}
    places.index.put((), places.index.reflects, forget=[nobody])
    assert upsert.found() == set()
    append_twice(upsert)
    assert "keys" in upsert.found()
