"""History and metadata of a table that PyIceberg has written: as PyIceberg itself tells it."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField

from headgate.catalog.history import history_rows, ref_rows, snapshot_rows, table_history
from headgate.catalog.manifests import file_rows, manifest_rows, partition_rows

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "ts", DateType()))


def content(location: str) -> bytes | None:
    path = Path(location.removeprefix("file://"))
    return path.read_bytes() if path.exists() else None


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("lake")
    catalog = SqlCatalog("t", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("local")
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "ts_day"))
    table = catalog.create_table("local.orders", SCHEMA, partition_spec=spec)
    for day in (5, 6, 7):
        table.append(pa.table({"id": list(range(day)), "ts": [date(2026, 1, day)] * day}))
    with table.update_schema() as update:
        update.add_column("more", LongType())
    table.append(pa.table({"id": [1], "ts": [date(2026, 1, 7)], "more": [2]}))
    yield table
    catalog.close()


@pytest.fixture(scope="module")
def metadata(table: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content(table.metadata_location) or b"")
    return found


def test_snapshots_history_and_refs_are_pyicebergs(table: Any, metadata: dict[str, Any]) -> None:
    known = table.inspect.snapshots().to_pylist()
    assert [(int(one["snapshot_id"]), one["operation"]) for one in reversed(snapshot_rows(metadata))] == [
        (one["snapshot_id"], one["operation"]) for one in known
    ]
    assert [
        (int(one["snapshot_id"]), one["is_current_ancestor"]) for one in reversed(history_rows(metadata))
    ] == [(one["snapshot_id"], one["is_current_ancestor"]) for one in table.inspect.history().to_pylist()]
    assert [(one["name"], one["type"]) for one in ref_rows(metadata)] == [
        (one["name"], one["type"]) for one in table.inspect.refs().to_pylist()
    ]


def test_files_partitions_and_manifests_are_pyicebergs(table: Any, metadata: dict[str, Any]) -> None:
    columns = ("file_path", "record_count", "file_size_in_bytes")
    assert sorted(tuple(one[name] for name in columns) for one in file_rows(metadata, content)) == sorted(
        tuple(one[name] for name in columns) for one in table.inspect.files().to_pylist()
    )
    assert [
        (one["partition"]["ts_day"], one["record_count"], one["file_count"], one["total_size"])
        for one in partition_rows(metadata, content)
    ] == sorted(
        (
            (
                str(one["partition"]["ts_day"]),
                one["record_count"],
                one["file_count"],
                one["total_data_file_size_in_bytes"],
            )
            for one in table.inspect.partitions().to_pylist()
        ),
        reverse=True,
    )
    assert sorted(
        (one["path"], one["length"], one["added_data_files_count"])
        for one in manifest_rows(metadata, content)
    ) == sorted(
        (one["path"], one["length"], one["added_data_files_count"])
        for one in table.inspect.manifests().to_pylist()
    )


def test_history_tells_of_the_column_that_came(table: Any, metadata: dict[str, Any]) -> None:
    found = table_history(metadata)
    newest = found["snapshots"][0]
    assert newest["schema_changes"] == ["added more long"]
    assert (newest["rows_added"], newest["after"]["rows"], newest["before"]["rows"]) == (1, 19, 18)
    assert found["kept_bytes"] == sum(one["file_size_in_bytes"] for one in file_rows(metadata, content))
    assert found["partition_specs"] == [{"spec_id": 0, "fields": ["ts"]}]
