"""Iceberg's own REST client, driven over py4j: it writes format 3, which PyIceberg does not."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
from pyarrow import parquet

from headgate.catalog.client import catalog_properties
from headgate.jvm import Jvm
from tests.integration.catalog.serving import ENGINE_KEY

# Iceberg finds columns in files by field id.
FILE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
    ]
)


class JavaClient:
    """A RESTCatalog. Tables have the columns `id` and `name`."""

    def __init__(
        self,
        jvm: Jvm,
        uri: str,
        extra: Mapping[str, str] | None = None,
        key: str | None = ENGINE_KEY,
    ) -> None:
        self._java = jvm.java
        self._iceberg = jvm.java.org.apache.iceberg
        configuration = jvm.java.org.apache.hadoop.conf.Configuration()
        properties = catalog_properties(uri, None, key, extra or {})
        self.catalog = self._iceberg.CatalogUtil.buildIcebergCatalog("test", properties, configuration)

    def close(self) -> None:
        self.catalog.close()

    def identifier(self, name: str) -> Any:
        """`namespace.table`; whatever comes after the first dot is the table."""
        namespace, _, table = name.partition(".")
        levels = self._iceberg.catalog.TableIdentifier.parse(f"{namespace}.x").namespace()
        return self._iceberg.catalog.TableIdentifier.of(levels, table)

    def create(self, name: str, **properties: str) -> Any:
        builder = self.catalog.buildTable(self.identifier(name), self.schema())
        for key, value in properties.items():
            builder = builder.withProperty(key.replace("_", "-"), value)
        return builder.create()

    def schema(self) -> Any:
        types = self._iceberg.types.Types
        columns = self._java.java.util.ArrayList()
        columns.add(types.NestedField.optional(1, "id", types.LongType.get()))
        columns.add(types.NestedField.optional(2, "name", types.StringType.get()))
        return self._iceberg.Schema(columns)

    def load(self, name: str) -> Any:
        return self.catalog.loadTable(self.identifier(name))

    def append(
        self, table: Any, rows: Sequence[tuple[int, str]], summary: Mapping[str, str] | None = None
    ) -> Any:
        """An append of a real Parquet file, ready to commit."""
        file = self._write(table, rows)
        operation = table.newFastAppend().appendFile(file)
        for key, value in (summary or {}).items():
            operation.set(key, value)
        return operation

    def _write(self, table: Any, rows: Sequence[tuple[int, str]]) -> Any:
        location = table.locationProvider().newDataLocation(f"{uuid.uuid4()}.parquet")
        path = Path(urlparse(location).path)
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = [pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows])]
        parquet.write_table(pa.table(columns, schema=FILE_SCHEMA), path)
        builder = self._iceberg.DataFiles.builder(table.spec()).withPath(location)
        builder = builder.withFormat(self._iceberg.FileFormat.PARQUET)
        return builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(len(rows)).build()

    def rows(self, table: Any) -> list[tuple[int, str]]:
        reading = self._iceberg.data.IcebergGenerics.read(table).build()
        found = [(record.getField("id"), record.getField("name")) for record in each(reading)]
        return sorted(found)

    def files(self, table: Any) -> set[Path]:
        """Every file that the table's current state names."""
        table.refresh()
        metadata = table.operations().current()
        locations = [metadata.metadataFileLocation(), *(f.file() for f in metadata.previousFiles())]
        for snapshot in table.snapshots():
            locations.append(snapshot.manifestListLocation())
            locations.extend(manifest.path() for manifest in snapshot.allManifests(table.io()))
        locations.extend(task.file().location() for task in each(table.newScan().planFiles()))
        return {Path(urlparse(location).path) for location in locations}


def each(closeable: Any) -> Iterator[Any]:
    """The elements of a CloseableIterable."""
    elements = closeable.iterator()
    while elements.hasNext():
        yield elements.next()
    closeable.close()
