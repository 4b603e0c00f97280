"""Rows of existing files are declared gone, by file and position, as the table's readers know it."""

import binascii
import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from pyspark.sql import SparkSession

from headgate.tables.handles import delete_loader, function
from headgate.tables.live_files import LiveFiles

# A deletion vector's blob: length, magic, bitmap, checksum. Iceberg's own class reads and checks it.
_MAGIC = struct.pack("<I", 1681511377)
# Field ids that Iceberg reserves for position delete files.
_POSITION_DELETES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"}),
    ]
)


@dataclass(frozen=True)
class Written:
    """Delete files that no snapshot knows yet, those that they replace, and what then applies to a file."""

    added: tuple[Any, ...] = ()
    replaced: tuple[Any, ...] = ()
    applies: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


class RowDeletes:
    """Writes delete files of one engine."""

    def __init__(self, spark: SparkSession) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._jvm = cast(Any, spark._jvm)

    def vectors(self, table: Any, doomed: Mapping[str, BitMap64], live: LiveFiles) -> Written:
        """One deletion vector for each file, what was deleted in it before included."""
        if not doomed:
            return Written()
        iceberg = self._jvm.org.apache.iceberg
        loader = delete_loader(self._gateway, table)
        before = self._jvm.java.util.HashMap()
        lookup = function(
            self._gateway, before, "java.util.Map", "get", "java.lang.Object", "java.lang.Object"
        )
        builder = iceberg.io.OutputFileFactory.builderFor(table, 1, 1)
        factory = builder.format(iceberg.FileFormat.PUFFIN).operationId(str(uuid4())).build()
        writer = iceberg.deletes.BaseDVFileWriter(factory, lookup)
        specs: dict[int, tuple[Any, Any]] = {}
        for path, positions in doomed.items():
            one = live[path]
            if one.deletes:
                before.put(path, loader.loadPositionDeletes(self._list(one.deletes), path))
            if one.spec_id not in specs:
                spec = table.specs().get(one.spec_id)
                specs[one.spec_id] = (spec, self._template(spec, one.partition))
            spec, template = specs[one.spec_id]
            writer.delete(path, self._index(positions, spec, template), spec, one.partition)
        writer.close()
        result = writer.result()
        added = tuple(result.deleteFiles())
        applies = {str(dv.referencedDataFile()): (dv,) for dv in added}
        return Written(added, tuple(result.rewrittenDeleteFiles()), applies)

    def positions(self, table: Any, doomed: Mapping[str, BitMap64], live: LiveFiles) -> Written:
        """Position delete files of format version 2: one for each partition, beside those that are there."""
        by_partition: dict[tuple[int, str], list[str]] = {}
        for path in doomed:
            one = live[path]
            by_partition.setdefault((one.spec_id, str(one.partition)), []).append(path)
        added: list[Any] = []
        applies: dict[str, tuple[Any, ...]] = {}
        for (spec_id, _), paths in by_partition.items():
            made = self._position_file(table, {path: doomed[path] for path in sorted(paths)}, spec_id, live)
            added.append(made)
            applies |= {path: (*live[path].deletes, made) for path in paths}
        return Written(tuple(added), (), applies)

    def _position_file(
        self, table: Any, doomed: Mapping[str, BitMap64], spec_id: int, live: LiveFiles
    ) -> Any:
        paths = [path for path, positions in doomed.items() for _ in range(len(positions))]
        numbers = [pos for positions in doomed.values() for pos in positions]
        rows = pa.table([pa.array(paths), pa.array(numbers, pa.int64())], schema=_POSITION_DELETES)
        data = io.BytesIO()
        pq.write_table(rows, data, compression="zstd")
        iceberg = self._jvm.org.apache.iceberg
        spec = table.specs().get(spec_id)
        partition = live[next(iter(doomed))].partition
        name = f"{uuid4()}-deletes.parquet"
        provider = table.locationProvider()
        where = (
            provider.newDataLocation(spec, partition, name)
            if spec.isPartitioned()
            else provider.newDataLocation(name)
        )
        stream = table.io().newOutputFile(where).create()
        try:
            stream.write(data.getvalue())
        finally:
            stream.close()
        builder = iceberg.FileMetadata.deleteFileBuilder(spec).ofPositionDeletes().withFormat("parquet")
        builder = builder.withPath(where).withFileSizeInBytes(data.getbuffer().nbytes)
        builder = builder.withRecordCount(rows.num_rows)
        if spec.isPartitioned():
            builder = builder.withPartition(partition)
        if len(doomed) == 1:
            builder = builder.withReferencedDataFile(next(iter(doomed)))
        return builder.build()

    def _index(self, positions: BitMap64, spec: Any, template: Any) -> Any:
        """Iceberg's set of positions, made from bytes: a call for each position would be too slow."""
        body = _MAGIC + positions.serialize()
        blob = struct.pack(">I", len(body)) + body + struct.pack(">I", binascii.crc32(body))
        builder = self._jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec).copy(template)
        file = builder.withContentSizeInBytes(len(blob)).withRecordCount(len(positions)).build()
        return self._jvm.org.apache.iceberg.deletes.PositionDeleteIndex.deserialize(blob, file)

    def _template(self, spec: Any, partition: Any) -> Any:
        """A delete file that is none, for what Iceberg asks of one when it reads bytes."""
        builder = self._jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec).ofPositionDeletes()
        builder = builder.withFormat("puffin").withPath("bitmap.puffin").withFileSizeInBytes(1)
        builder = builder.withReferencedDataFile("bitmap").withContentOffset(0)
        builder = builder.withContentSizeInBytes(1).withRecordCount(1)
        if spec.isPartitioned():
            builder = builder.withPartition(partition)
        return builder.build()

    def _list(self, items: tuple[Any, ...]) -> Any:
        found = self._jvm.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found
