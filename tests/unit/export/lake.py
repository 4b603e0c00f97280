"""A lake of one table in memory, behind the ports that runs have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.export.incremental import TableKind
from headgate.export.lake import SnapshotState, TableColumn
from headgate.export.sql import TableName

SALES = TableName(("local",), "sales")
SCHEMA = pa.schema([("id", pa.int64()), ("mail", pa.string()), ("town", pa.string())])


def sale(number: int) -> dict[str, Any]:
    return {"id": number, "mail": f"p{number}@example.org", "town": "Delft"}


@dataclass
class MemoryTables:
    """The current snapshot of each table, and the tags that were set."""

    current: dict[TableName, int] = field(default_factory=lambda: {SALES: 7})
    there: set[int] = field(default_factory=lambda: {7})
    tags: dict[tuple[TableName, str], int] = field(default_factory=dict)
    kind: TableKind | None = field(default_factory=TableKind)
    uuid: str = "one"
    format_version: int = 3

    def exists(self, table: TableName) -> bool:
        return table in self.current

    def snapshot(self, table: TableName) -> int:
        return self.current[table]

    def state(self, table: TableName, snapshot: int) -> SnapshotState | None:
        """The snapshot with number 7 is the 70th commit."""
        if snapshot not in self.there:
            return None
        columns = tuple(TableColumn(n, name, "string") for n, name in enumerate(SCHEMA.names))
        return SnapshotState(self.uuid, True, self.format_version, snapshot * 10, columns)

    def hold(self, table: TableName, tag: str, snapshot: int, seconds: float) -> bool:
        if snapshot not in self.there:
            return False
        self.tags.setdefault((table, tag), snapshot)
        return self.tags[table, tag] == snapshot

    def release(self, table: TableName, tag: str) -> None:
        self.tags.pop((table, tag), None)


@dataclass
class MemoryRows:
    """The rows, cut into batches of `size`; `fails_at` is raised once, before that batch."""

    rows: list[Mapping[str, Any]] = field(default_factory=lambda: [sale(number) for number in range(10)])
    schema: pa.Schema = SCHEMA
    size: int = 3
    errors: list[tuple[int, Exception]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def shape(self, sql: str, zone: str, name: str) -> pa.Schema:
        return self.schema

    @contextmanager
    def batches(self, sql: str, zone: str, name: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        self.asked.append(sql)
        yield self.schema, self._batches()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        error = self.errors.pop(0) if self.errors else None
        for number, start in enumerate(range(0, len(self.rows), self.size)):
            if error is not None and error[0] == number:
                raise error[1]
            yield pa.RecordBatch.from_pylist(self.rows[start : start + self.size], schema=self.schema)
