"""The files and partitions of a snapshot, read from its manifests: Avro, as the specification has it."""

import io
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastavro

from headgate.errors import NotFound

_CONTENT = {0: "DATA", 1: "POSITION_DELETES", 2: "EQUALITY_DELETES"}
_DELETED = 2
# What a location has, None if it is gone.
Content = Callable[[str], bytes | None]


def file_rows(metadata: Mapping[str, Any], content: Content) -> list[dict[str, Any]]:
    """As `t$files`: each file of the current snapshot."""
    return [
        {
            "content": _CONTENT[file.get("content") or 0],
            "file_path": file["file_path"],
            "file_format": file["file_format"],
            "spec_id": spec_id,
            "partition": _partition(file),
            "record_count": file["record_count"],
            "file_size_in_bytes": file["file_size_in_bytes"],
        }
        for spec_id, file in _files(metadata, content)
    ]


def partition_rows(metadata: Mapping[str, Any], content: Content) -> list[dict[str, Any]]:
    """As `t$partitions`: the data files of each partition, counted; the newest partition first."""
    partitions: dict[tuple[Any, ...], dict[str, Any]] = {}
    for spec_id, file in _files(metadata, content):
        values = _partition(file)
        empty = {"partition": values, "spec_id": spec_id, "record_count": 0, "file_count": 0, "total_size": 0}
        counts = partitions.setdefault((spec_id, *values.values()), {**empty, "delete_file_count": 0})
        if file.get("content"):
            counts["delete_file_count"] += 1
            continue
        counts["record_count"] += file["record_count"]
        counts["file_count"] += 1
        counts["total_size"] += file["file_size_in_bytes"]
    return sorted(partitions.values(), key=lambda one: repr([*one["partition"].values()]), reverse=True)


def manifest_rows(metadata: Mapping[str, Any], content: Content) -> list[dict[str, Any]]:
    """As `t$manifests`."""
    return [
        {
            "content": "DELETES" if manifest.get("content") else "DATA",
            "path": manifest["manifest_path"],
            "length": manifest["manifest_length"],
            "partition_spec_id": manifest["partition_spec_id"],
            "added_snapshot_id": str(manifest["added_snapshot_id"]),
            "added_data_files_count": manifest.get("added_files_count"),
            "added_rows_count": manifest.get("added_rows_count"),
            "existing_data_files_count": manifest.get("existing_files_count"),
            "existing_rows_count": manifest.get("existing_rows_count"),
            "deleted_data_files_count": manifest.get("deleted_files_count"),
            "deleted_rows_count": manifest.get("deleted_rows_count"),
        }
        for manifest in _manifests(metadata, content)
    ]


def _manifests(metadata: Mapping[str, Any], content: Content) -> Iterator[dict[str, Any]]:
    current = metadata.get("current-snapshot-id")
    for snapshot in metadata.get("snapshots") or []:
        if snapshot["snapshot-id"] == current:
            yield from _records(snapshot["manifest-list"], content)


def _files(metadata: Mapping[str, Any], content: Content) -> Iterator[tuple[int, dict[str, Any]]]:
    """Those that are in the table, with the id of the spec by which each is laid out."""
    for manifest in _manifests(metadata, content):
        for entry in _records(manifest["manifest_path"], content):
            if entry["status"] != _DELETED:
                yield manifest["partition_spec_id"], entry["data_file"]


def _records(location: str, content: Content) -> Iterator[dict[str, Any]]:
    found = content(location)
    if found is None:
        raise NotFound(f"{location} is gone.", "The table has moved on since: ask again.")
    for record in fastavro.reader(io.BytesIO(found)):
        assert isinstance(record, dict)
        yield record


def _partition(file: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in (file.get("partition") or {}).items()}


def _plain(value: Any) -> Any:
    """In a type of JSON."""
    if isinstance(value, bytes):
        return value.hex()
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
