"""A table's history, read from its metadata."""

import io
import json
from typing import Any

import fastavro
import pytest

from headgate.catalog.history import history_rows, ref_rows, snapshot_rows, table_history
from headgate.catalog.manifests import file_rows, manifest_rows, partition_rows
from headgate.errors import NotFound
from headgate.model import (
    ASKED_BY_KEY,
    FROM_KEY,
    OPERATION_KEY,
    POSITION_KEY,
    ROLLED_BACK_FROM_KEY,
    ROLLED_BACK_RECORDS_KEY,
    ROLLED_BACK_TO_KEY,
    SECONDS_KEY,
    SPEC_KEY,
)


def snapshot(number: int, parent: int | None, schema: int, **summary: str) -> dict[str, Any]:
    return {
        "snapshot-id": number,
        **({} if parent is None else {"parent-snapshot-id": parent}),
        "sequence-number": number,
        "timestamp-ms": number * 1000,
        "manifest-list": "list",
        "schema-id": schema,
        "summary": {key.replace("_", "-"): text for key, text in summary.items()},
    }


def position(offset: int) -> str:
    return json.dumps({"offsets": {"0": offset}})


def batch(number: int, parent: int | None, schema: int, rows: int, total: int) -> dict[str, Any]:
    made = snapshot(
        number,
        parent,
        schema,
        operation="append",
        added_records=str(rows),
        total_records=str(total),
        added_data_files="2",
        total_data_files=str(2 * number),
        added_files_size="100",
        total_files_size=str(100 * number),
    )
    made["summary"] |= {
        OPERATION_KEY: "batch",
        FROM_KEY: position(total - rows),
        POSITION_KEY: position(total),
        SECONDS_KEY: "1.250",
    }
    return made


COMPACTED = snapshot(
    3,
    2,
    1,
    operation="replace",
    total_records="30",
    added_data_files="1",
    deleted_data_files="4",
    total_data_files="1",
    added_files_size="150",
    removed_files_size="200",
    total_files_size="150",
)
COMPACTED["summary"][OPERATION_KEY] = "compact"
METADATA: dict[str, Any] = {
    "format-version": 3,
    "current-snapshot-id": 3,
    "snapshots": [batch(1, None, 0, 10, 10), batch(2, 1, 1, 20, 30), COMPACTED],
    "snapshot-log": [{"snapshot-id": number, "timestamp-ms": number * 1000} for number in (1, 2, 9, 3)],
    "refs": {
        "main": {"type": "branch", "snapshot-id": 3},
        "audit": {"type": "tag", "snapshot-id": 2, "max-ref-age-ms": 5},
    },
    "schemas": [
        {
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "id", "type": "int"},
                {"id": 2, "name": "at", "type": "timestamptz"},
                {"id": 3, "name": "old", "type": "string"},
            ],
        },
        {
            "schema-id": 1,
            "fields": [
                {"id": 1, "name": "number", "type": "long"},
                {"id": 2, "name": "at", "type": "timestamptz"},
                {
                    "id": 4,
                    "name": "who",
                    "type": {"type": "struct", "fields": [{"id": 5, "name": "name", "type": "string"}]},
                },
            ],
        },
    ],
    "default-spec-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": [{"name": "at_day", "transform": "day", "source-id": 2}]}],
}


def test_each_snapshot_tells_what_it_did() -> None:
    found = table_history(METADATA)
    compacted, second, first = found["snapshots"]
    assert (first["operation"], first["action"], first["rows_added"], first["files_added"]) == (
        "append",
        "batch",
        10,
        2,
    )
    assert (second["from"], second["to"], second["seconds"]) == ({"0": 10}, {"0": 30}, 1.25)
    assert second["schema_changes"] == [
        "added who struct",
        "added who.name string",
        "dropped old",
        "number int is long",
        "renamed id to number",
    ]
    assert (first["before"], first["schema_changes"]) == (None, [])
    assert (compacted["action"], compacted["before"]["files"], compacted["after"]["files"]) == (
        "compact",
        4,
        1,
    )
    assert (compacted["files_removed"], compacted["bytes_removed"]) == (4, 200)
    assert (compacted["from"], compacted["seconds"]) == (None, None)
    assert [one["refs"] for one in found["snapshots"]] == [["main"], ["audit"], []]


def test_a_rollback_tells_from_where_to_where_and_who_asked() -> None:
    back = snapshot(4, 1, 1, operation="append")
    back["summary"] |= {
        OPERATION_KEY: "rollback",
        ROLLED_BACK_FROM_KEY: "3",
        ROLLED_BACK_TO_KEY: "1",
        ROLLED_BACK_RECORDS_KEY: "keep-out",
        ASKED_BY_KEY: "olga",
    }
    snapshots = [*METADATA["snapshots"], back]
    found = table_history({**METADATA, "current-snapshot-id": 4, "snapshots": snapshots})["snapshots"]
    assert (found[0]["action"], found[0]["asked_by"]) == ("rollback", "olga")
    assert found[0]["rolled_back"] == {"from": "3", "to": "1", "records": "keep-out"}
    assert [one["is_current_ancestor"] for one in found] == [True, False, False, True]
    assert (found[1]["rolled_back"], found[1]["asked_by"]) == (None, None)


def test_a_snapshot_tells_that_files_are_laid_out_otherwise() -> None:
    specs = [
        *METADATA["partition-specs"],
        {
            "spec-id": 1,
            "fields": [
                {"name": "at_hour", "transform": "hour", "source-id": 2},
                {"name": "number_bucket", "transform": "bucket[16]", "source-id": 1},
                {"name": "at_day", "transform": "void", "source-id": 2},
                {"name": "old", "transform": "identity", "source-id": 3},
            ],
        },
        {"spec-id": 2, "fields": []},
    ]
    of_snapshots = (None, "0", None, "1", "1", "2", None)
    snapshots = []
    for number, spec in enumerate(of_snapshots, 1):
        snapshots.append(snapshot(number, number - 1 or None, 1, operation="append"))
        if spec is not None:
            snapshots[-1]["summary"][SPEC_KEY] = spec
    metadata = {**METADATA, "current-snapshot-id": 7, "snapshots": snapshots, "partition-specs": specs}
    found = {int(one["snapshot_id"]): one["partition_change"] for one in table_history(metadata)["snapshots"]}
    assert found == {**dict.fromkeys(range(1, 8)), 4: "hour(at), bucket(16, number), old", 6: "none"}


def test_the_table_tells_what_it_takes() -> None:
    found = table_history(METADATA)
    assert found["last_compaction_at"] == 3000
    assert found["kept_bytes"] == 100 + 100 + 150, "files of older snapshots are there too"
    assert found["partition_specs"] == [{"spec_id": 0, "fields": ["day(at)"]}]
    empty = table_history({"format-version": 3, "current-snapshot-id": -1, "snapshots": []})
    assert (empty["snapshots"], empty["kept_bytes"], empty["last_compaction_at"]) == ([], 0, None)


def test_metadata_tables_have_the_rows_of_the_metadata() -> None:
    assert [row["snapshot_id"] for row in snapshot_rows(METADATA)] == ["3", "2", "1"]
    assert snapshot_rows(METADATA)[0]["operation"] == "replace"
    assert [
        (row["snapshot_id"], row["parent_id"], row["is_current_ancestor"]) for row in history_rows(METADATA)
    ] == [
        ("3", "2", True),
        ("9", None, False),
        ("2", "1", True),
        ("1", None, True),
    ]
    assert [(row["name"], row["type"], row["max_reference_age_in_ms"]) for row in ref_rows(METADATA)] == [
        ("audit", "TAG", 5),
        ("main", "BRANCH", None),
    ]


def avro(schema: dict[str, Any], rows: list[dict[str, Any]]) -> bytes:
    written = io.BytesIO()
    fastavro.writer(written, schema, rows)
    return written.getvalue()


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


DAY = {"type": "int", "logicalType": "date"}
LIST = record(
    "manifest_file",
    manifest_path="string",
    manifest_length="long",
    partition_spec_id="int",
    content="int",
    added_snapshot_id="long",
    added_files_count="int",
)
ENTRY = record(
    "manifest_entry",
    status="int",
    data_file=record(
        "r2",
        content="int",
        file_path="string",
        file_format="string",
        partition=record("r102", at_day=["null", DAY]),
        record_count="long",
        file_size_in_bytes="long",
    ),
)


def entry(status: int, content: int, path: str, day: int | None, rows: int) -> dict[str, Any]:
    file = {"content": content, "file_path": path, "file_format": "PARQUET", "partition": {"at_day": day}}
    return {"status": status, "data_file": {**file, "record_count": rows, "file_size_in_bytes": 10 * rows}}


MANIFEST = {
    "manifest_path": "one",
    "manifest_length": 7,
    "partition_spec_id": 0,
    "content": 0,
    "added_snapshot_id": 3,
    "added_files_count": 3,
}
FILES = {
    "list": avro(LIST, [MANIFEST]),
    "one": avro(
        ENTRY,
        [
            entry(1, 0, "a", 20_000, 5),
            entry(0, 0, "b", 20_000, 6),
            entry(2, 0, "gone", 20_000, 100),
            entry(1, 0, "c", 20_001, 7),
            entry(1, 1, "d", 20_001, 2),
        ],
    ),
}


def test_files_and_partitions_are_those_of_the_manifests() -> None:
    files = file_rows(METADATA, FILES.get)
    assert [(file["file_path"], file["content"]) for file in files] == [
        ("a", "DATA"),
        ("b", "DATA"),
        ("c", "DATA"),
        ("d", "POSITION_DELETES"),
    ]
    newest, older = partition_rows(METADATA, FILES.get)
    assert newest["partition"] == {"at_day": "2024-10-05"}
    assert (newest["record_count"], newest["file_count"], newest["delete_file_count"]) == (7, 1, 1)
    assert (older["record_count"], older["file_count"], older["total_size"]) == (11, 2, 110)
    (manifest,) = manifest_rows(METADATA, FILES.get)
    assert (manifest["path"], manifest["added_snapshot_id"], manifest["added_data_files_count"]) == (
        "one",
        "3",
        3,
    )


def test_a_manifest_that_is_gone_is_named() -> None:
    with pytest.raises(NotFound, match="one is gone"):
        file_rows(METADATA, {"list": FILES["list"]}.get)
    assert file_rows({"current-snapshot-id": -1, "snapshots": []}, FILES.get) == []
