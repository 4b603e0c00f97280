"""Keys whose rows were deleted, and by which record: kept beside the table, because its rows cannot tell.

A replayed dead letter, or a change event that comes again, must not bring back what was deleted after it. The
marks of a batch are written before its commit; those of a batch that was never committed are told apart by
the table's position and by their generation. They lie in a folder whose name begins with an underscore, which
no clean-up enters.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError

from headgate.model import Position
from headgate.tables.generations import (
    generation_of,
    generation_of_mark,
    with_generation,
    without_generation,
)
from headgate.tables.lake import BESIDE_FOLDER

_SCHEMA = pa.schema(
    [
        pa.field("id", pa.binary()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("order", pa.binary()),
        pa.field("generation", pa.int64()),
    ]
)


_NAME = re.compile(r"/s(\d+)-[^/]*$")


@dataclass(frozen=True)
class Mark:
    """The record that deleted a key. An empty id stands for every key of that source up to then."""

    id: bytes
    partition: int
    offset: int
    order: bytes


class DeletedKeys:
    """The marks of one table."""

    def __init__(self, gateway: Any, table: Any) -> None:
        self._gateway = gateway
        self._io = table.io()
        self._folder = f"{str(table.location()).rstrip('/')}/{BESIDE_FOLDER}/{table.uuid()}/deleted"

    def drop(self, goes: Callable[[Mapping[str, Any]], bool], written_until: int) -> None:
        """Forget the marks that go, of those that were written up to a snapshot, by its sequence number.

        A file is written again without them before it is removed: marks may be there twice.
        """
        for location in self._files():
            sequence = _sequence_of(location)
            if sequence > written_until:
                continue
            rows = self._read(location)
            kept = [row for row in rows if not goes(row)]
            if len(kept) == len(rows):
                continue
            if kept:
                self._write(pa.Table.from_pylist(kept, schema=_SCHEMA), sequence)
            self._io.deleteFile(location)

    def add(self, marks: list[Mark], topic_id: str, sequence: int) -> None:
        """`sequence`: the number of the snapshot that the batch of these marks is to follow."""
        columns = [
            [mark.id for mark in marks],
            [topic_id] * len(marks),
            [mark.partition for mark in marks],
            [mark.offset for mark in marks],
            [without_generation(mark.order) for mark in marks],
            [generation_of(mark.order) for mark in marks],
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
        self._write(pa.table(arrays, schema=_SCHEMA), sequence)

    def _write(self, marks: pa.Table, sequence: int) -> None:
        data = io.BytesIO()
        pq.write_table(marks, data, compression="zstd")
        stream = self._io.newOutputFile(f"{self._folder}/s{sequence}-{uuid4()}.parquet").create()
        try:
            stream.write(data.getvalue())
        finally:
            stream.close()

    def before(self, position: Position) -> Iterator[Mark]:
        """The marks whose records the table has applied."""
        for location in self._files():
            for row in self._read(location):
                partition, offset = row["partition"], row["offset"]
                generation = generation_of_mark(
                    position, row["topic_id"], partition, offset, row.get("generation")
                )
                if generation is not None:
                    order = with_generation(generation, row["order"])
                    yield Mark(row["id"], partition, offset, order)

    def _files(self) -> list[str]:
        lists = self._gateway.jvm.org.apache.iceberg.relocated.com.google.common.collect.Lists
        try:
            return [str(info.location()) for info in lists.newArrayList(self._io.listPrefix(self._folder))]
        except Py4JJavaError as error:
            cause = error.java_exception.getCause()
            if cause is not None and cause.getClass().getSimpleName() == "FileNotFoundException":
                return []  # nothing was ever deleted
            raise

    def _read(self, location: str) -> list[dict[str, Any]]:
        stream = self._io.newInputFile(location).newStream()
        try:
            data = bytes(stream.readAllBytes())
        finally:
            stream.close()
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(data)).to_pylist()
        return rows


def _sequence_of(location: str) -> int:
    """Before files said so, they were written earlier than any that do."""
    found = _NAME.search(location)
    return int(found[1]) if found else 0
