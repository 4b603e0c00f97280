"""Files of a snapshot that cannot be read are damage, and no failure of who looks."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError

from headgate.delta.files import files_at
from headgate.maintain.findings import Report
from headgate.maintain.verify_files import SnapshotFiles, VectorCheck, check_manifests, listed_files
from headgate.tables.live_files import LiveFile

MANIFEST = b"Obj\x01 and what it lists"


class Table:
    """A table of one manifest, its own snapshot."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def location(self) -> str:
        return f"file://{self.root}"

    def io(self) -> None:
        pass

    def snapshotId(self) -> int:  # noqa: N802
        return 7

    def manifestListLocation(self) -> str:  # noqa: N802
        return f"file:{self.root}/metadata/list.avro"

    def allManifests(self, _: None) -> list[Any]:  # noqa: N802
        path = f"file:{self.root}/metadata/m0.avro"
        return [SimpleNamespace(path=lambda: path, length=lambda: len(MANIFEST))]


def findings(root: Path, files: Mapping[str, bytes]) -> tuple[bool, dict[str, str]]:
    """Whether the manifests are whole, and what is said of each that is not."""
    (root / "metadata").mkdir()
    for name, data in files.items():
        (root / "metadata" / name).write_bytes(data)
    report, table = Report(), Table(root)
    whole = check_manifests(report, table, table, files_at(str(root)))
    assert {one.check for one in report.findings} <= {"files"}
    return whole, {one.where: one.message for one in report.findings}


@pytest.mark.parametrize(
    ("listed", "manifest", "expected"),
    [
        (MANIFEST, MANIFEST, {}),
        (None, MANIFEST, {"metadata/list.avro": "is not there"}),
        (b"junk", MANIFEST, {"metadata/list.avro": "is no manifest"}),
        (MANIFEST, None, {"metadata/m0.avro": "is not there"}),
        (MANIFEST, MANIFEST[:-1], {"metadata/m0.avro": "has 21 bytes, the manifest list says 22"}),
        (MANIFEST, b"x" * len(MANIFEST), {"metadata/m0.avro": "is no manifest"}),
    ],
    ids=["whole", "list-gone", "list-junk", "gone", "cut-short", "junk"],
)
def test_a_damaged_manifest_is_named(
    tmp_path: Path, listed: bytes | None, manifest: bytes | None, expected: dict[str, str]
) -> None:
    there = {"list.avro": listed, "m0.avro": manifest}
    present = {name: data for name, data in there.items() if data is not None}
    assert findings(tmp_path, present) == (not expected, expected)


@pytest.mark.parametrize("broken", ["allManifests", "newScan"])
def test_manifests_that_cannot_be_read_are_damage(
    tmp_path: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = SimpleNamespace(getSimpleName=lambda: "RuntimeIOException")
    cause = SimpleNamespace(_target_id="o1", getClass=lambda: java)

    def fail(*_: object) -> None:
        raise Py4JJavaError("it cannot be read", cause)

    (tmp_path / "metadata").mkdir()
    for name in ("list.avro", "m0.avro"):
        (tmp_path / "metadata" / name).write_bytes(MANIFEST)
    monkeypatch.setattr(Table, broken, fail, raising=False)
    report, table = Report(), Table(tmp_path)
    assert listed_files(report, cast(Any, None), table, table, files_at(str(tmp_path))) is None
    (found,) = report.findings
    assert (found.where, "RuntimeIOException" in found.message) == ("snapshot 7", True)


def test_position_deletes_that_are_cut_short_are_named(tmp_path: Path) -> None:
    deletes = pa.table({"file_path": [f"file:{tmp_path}/data.parquet"], "pos": [1]})
    pq.write_table(deletes, tmp_path / "deletes.parquet")
    check: Any = VectorCheck.__new__(VectorCheck)
    check._held = SnapshotFiles(f"{tmp_path}/", files_at(str(tmp_path)), {})
    data = SimpleNamespace(location=lambda: f"file:{tmp_path}/data.parquet", recordCount=lambda: 2)
    file = SimpleNamespace(
        location=lambda: f"file:{tmp_path}/deletes.parquet",
        format=lambda: SimpleNamespace(name=lambda: "PARQUET"),
    )
    live = LiveFile(cast(Any, data), (file,))
    assert check._problem("data.parquet", live, file) is None
    (tmp_path / "deletes.parquet").write_bytes((tmp_path / "deletes.parquet").read_bytes()[:-9])
    assert "deletes.parquet, are no Parquet file" in check._problem("data.parquet", live, file)
