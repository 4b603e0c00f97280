"""Files that a table's metadata names. The server deletes such files: for a purge, and old metadata.

Whoever writes metadata could name the files of others, so what is named must be the table's own, or nobody's.
"""

import io
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import fastavro
from py4j.protocol import Py4JJavaError

from headgate.catalog.errors import CatalogError, bad_request, forbidden, from_java
from headgate.catalog.iceberg import Iceberg, TableMetadata, UpdateTableRequest
from headgate.catalog.ledger import Ledger
from headgate.catalog.locations import Footprint, Warehouse


class Files:
    def __init__(self, iceberg: Iceberg, ledger: Ledger, warehouse: Warehouse) -> None:
        self._iceberg = iceberg
        self._ledger = ledger
        self._warehouse = warehouse

    def check_added(self, request: UpdateTableRequest, table_uuid: str, footprint: Footprint) -> None:
        """What a commit would add to the metadata."""
        self._check(_added(request), table_uuid, footprint)

    def check_named(self, metadata: TableMetadata, footprint: Footprint) -> None:
        """All that the metadata of a table names itself; manifests are not opened."""
        self._check(_named(metadata), metadata.uuid(), footprint)

    def check_purge(self, metadata: TableMetadata, footprint: Footprint) -> None:
        """All that would be deleted with the table, down to its data files."""
        self._check((*_named(metadata), *self._contents(metadata)), metadata.uuid(), footprint)

    def _check(self, files: Iterable[str], table_uuid: str, footprint: Footprint) -> None:
        for file in files:
            found = self._warehouse.admit_file(file, "The file")
            if not footprint.holds(found) and self._ledger.is_anothers(found, table_uuid):
                raise forbidden(f"The file {file} lies in another table's location.")

    def _contents(self, metadata: TableMetadata) -> Iterator[str]:
        """Manifests, and the files in them, whatever is said to have become of those."""
        seen: set[str] = set()
        for snapshot in metadata.snapshots():
            for path in self._manifests(snapshot):
                if path in seen:
                    continue
                seen.add(path)
                yield path
                raw = self._content(path)
                if raw is not None:
                    yield from _content_files(path, raw)

    def _manifests(self, snapshot: Any) -> list[str]:
        try:
            return self._iceberg.manifests(snapshot)
        except Py4JJavaError as error:
            raise _unreadable(snapshot.manifestListLocation(), from_java(error).message) from error

    def _content(self, path: str) -> bytes | None:
        try:
            return self._iceberg.content(path)
        except Py4JJavaError as error:
            raise _unreadable(path, from_java(error).message) from error


def _content_files(path: str, manifest: bytes) -> list[str]:
    """Data and delete files. By Avro: Iceberg's own reader tells of live files only."""
    try:
        entries: Any = fastavro.reader(io.BytesIO(manifest))
        return [str(entry["data_file"]["file_path"]) for entry in entries]
    except (ValueError, LookupError, EOFError, TypeError, zlib.error, struct.error) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, reason: object) -> CatalogError:
    return bad_request(
        f"{path} cannot be read, so nobody can tell what a purge would delete: {reason}. "
        "Drop the table without purge."
    )


def _added(request: UpdateTableRequest) -> Iterator[str]:
    for update in request.updates():
        match update.getClass().getSimpleName():
            case "AddSnapshot":
                yield from _given(update.snapshot().manifestListLocation())
            case "SetStatistics":
                yield from _given(update.statisticsFile().path())
            case "SetPartitionStatistics":
                yield from _given(update.partitionStatisticsFile().path())


def _named(metadata: TableMetadata) -> Iterator[str]:
    for snapshot in metadata.snapshots():
        yield from _given(snapshot.manifestListLocation())
    for entry in metadata.previousFiles():
        yield from _given(entry.file())
    for file in (*metadata.statisticsFiles(), *metadata.partitionStatisticsFiles()):
        yield from _given(file.path())


def _given(location: str | None) -> Iterator[str]:
    # Snapshots of format 1 may hold their manifests themselves.
    if location is not None:
        yield location
