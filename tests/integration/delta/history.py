"""A table whose rows are known, changed in every way that Iceberg has, and read back in both formats."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from headgate.delta.files import files_at
from headgate.delta.log import DeltaLog
from headgate.maintain.actions import Actions
from headgate.maintain.compact import Compaction, compact
from headgate.maintain.expire import expire
from headgate.model import OPERATION_KEY, Batch, Position
from headgate.tables.lake import FileChanges, Lake
from headgate.tables.mirror import DeltaMirror
from tests.support.delta import counted, read_delta_duckdb, read_delta_rs, read_delta_spark
from tests.support.ledger import read_duckdb, read_pyiceberg, rows_of

Row = dict[str, Any]
COLUMNS = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("name", t.StringType()),
        t.StructField("n", t.IntegerType()),
        t.StructField("price", t.DecimalType(12, 2)),
        t.StructField("at", t.TimestampType()),
    ]
)


class History:
    """One table; `rows` is what it must hold."""

    def __init__(self, spark: SparkSession, lake: Lake, iceberg: str, topic: str, **properties: str) -> None:
        self.spark = spark
        self.lake = lake
        self.iceberg = iceberg
        self.topic = topic
        self.columns = COLUMNS
        self.rows: list[Row] = []
        self.saved: dict[int, tuple[t.StructType, list[Row]]] = {}
        self._next = 0
        self.table = lake.create(topic, COLUMNS, (), properties)
        position = Position("cluster", "topic", {0: 0})
        lake.commit(self.table, topic, FileChanges(), Batch(position, position), None)
        self.mirror = DeltaMirror(spark, lake, topic)
        self.actions = Actions(spark, lake)
        self._session = spark.newSession()
        self._session.conf.set(f"spark.sql.iceberg.snapshot-property.{OPERATION_KEY}", "test")
        self._session.conf.set("spark.sql.caseSensitive", "true")

    @property
    def sql_name(self) -> str:
        return self.lake.sql_name(self.topic)

    @property
    def folder(self) -> Path:
        return Path("/" + str(self.table.location()).removeprefix("file:").lstrip("/"))

    @property
    def snapshot(self) -> int:
        return int(self.table.currentSnapshot().snapshotId())

    def sql(self, text: str) -> None:
        self._session.sql(text)
        self.table.refresh()

    # -- what changes rows

    def append(self, count: int) -> None:
        new = [self.row(self._next + number) for number in range(count)]
        self._next += count
        frame = self._session.createDataFrame([tuple(row.values()) for row in new], self.columns)
        frame.repartition(1 + count % 2).writeTo(self.sql_name).append()
        self.rows += new
        self._after()

    def row(self, number: int) -> Row:
        return {field.name: _value(field.dataType, number) for field in self.columns.fields}

    def delete(self, remainder: int, of: int = 7) -> None:
        self.sql(f"delete from {self.sql_name} where pmod(id, {of}) = {remainder} and length(_file) > 0")
        self.rows = [row for row in self.rows if row["id"] % of != remainder]
        self._after()

    def update(self, remainder: int, of: int = 5) -> None:
        """As upserts do: rows go, and come again with other values."""
        self.sql(f"update {self.sql_name} set id = -id - 1 where id >= 0 and id % {of} = {remainder}")
        for row in self.rows:
            if row["id"] >= 0 and row["id"] % of == remainder:
                row["id"] = -row["id"] - 1
        self._after()

    # -- what changes columns

    def add(self, name: str, kind: t.DataType) -> None:
        self.sql(f"alter table {self.sql_name} add column `{name}` {kind.simpleString()}")
        self.columns = t.StructType([*self.columns.fields, t.StructField(name, kind)])
        self.rows = [{**row, name: None} for row in self.rows]
        self._after()

    def drop(self, name: str) -> None:
        self.sql(f"alter table {self.sql_name} drop column `{name}`")
        self.columns = t.StructType([field for field in self.columns.fields if field.name != name])
        self.rows = [{key: value for key, value in row.items() if key != name} for row in self.rows]
        self._after()

    def rename(self, old: str, new: str) -> None:
        self.sql(f"alter table {self.sql_name} rename column `{old}` to `{new}`")
        self.columns = t.StructType(
            [t.StructField(new if f.name == old else f.name, f.dataType) for f in self.columns.fields]
        )
        self.rows = [{(new if key == old else key): value for key, value in row.items()} for row in self.rows]
        self._after()

    def widen(self, name: str, kind: t.DataType) -> None:
        self.sql(f"alter table {self.sql_name} alter column `{name}` type {kind.simpleString()}")
        self.columns = t.StructType(
            [t.StructField(f.name, kind if f.name == name else f.dataType) for f in self.columns.fields]
        )
        self._after()

    def partition(self, field: str) -> None:
        self.sql(f"alter table {self.sql_name} add partition field {field}")
        self._after()

    # -- what changes neither

    def compact(self, everything: bool = False) -> None:
        compact(self.actions, self.table, Compaction(64 * 1024**2, everything=everything))
        self._after()

    def expire(self, keep_last: int) -> None:
        now = int(time.time() * 1000) + 1
        expire(self.actions, self.table, self.topic, now, keep_last, self.mirror)
        self._after()

    def rollback(self, snapshot: int) -> None:
        self.sql(f"call lake.system.set_current_snapshot('{self.lake.namespace}.`{self.topic}`', {snapshot})")
        _, rows = self.saved[snapshot]
        # The schema does not go back with the rows.
        names = [field.name for field in self.columns.fields]
        self.rows = [{name: row.get(name) for name in names} for row in rows]
        self._after()

    def ancestors(self) -> Iterator[int]:
        """Of the newest snapshot, as far as they are there: where a rollback may go."""
        snapshot = self.table.currentSnapshot()
        while snapshot is not None:
            yield int(snapshot.snapshotId())
            parent = snapshot.parentId()
            snapshot = None if parent is None else self.table.snapshot(parent)

    def _after(self) -> None:
        self.table.refresh()
        if self.table.currentSnapshot() is not None:
            self.saved.setdefault(self.snapshot, (self.columns, [dict(row) for row in self.rows]))

    # -- what is read

    def follow(self, readers: Mapping[str, bool] | None = None) -> None:
        self.mirror.catch_up(self.table)
        self.check(readers)

    def check_time_travel(self) -> list[int]:
        """Each version of the log shows the snapshot that it says: by its number in DuckDB and delta-rs, by
        its time in Spark, where a read costs as much as ten of theirs; the last one there by number too."""
        log = DeltaLog(files_at(str(self.table.location())), self.topic)
        found = []
        for version, entry in log.history():
            assert entry.snapshot is not None
            columns, rows = self.saved[entry.snapshot]
            expected = counted(rows)
            folder = str(self.folder)
            state = log.state_at(version)
            shown = json.loads(state.metadata["schemaString"])["fields"]
            if [field["name"] for field in shown] != columns.names:
                continue  # the snapshot was shown again by other columns
            for read in (read_delta_rs, read_delta_duckdb):
                same(f"version {version} by {read.__name__}", expected, counted(read(folder, version)))
            moment = datetime.fromtimestamp(state.timestamp / 1000, UTC).isoformat(" ", "milliseconds")
            by_time = counted(read_delta_spark(self.spark, folder, at=moment.removesuffix("+00:00")))
            same(f"version {version} at {moment}", expected, by_time)
            found.append(version)
        by_number = counted(read_delta_spark(self.spark, folder, version=found[-1]))
        same(f"version {found[-1]} in Spark", expected, by_number)
        return found

    def check(self, readers: Mapping[str, bool] | None = None) -> None:
        """Every reader sees the rows, in both formats."""
        expected = counted(self.rows)
        wanted = readers or {}
        folder = str(self.folder)
        found: dict[str, Callable[[], Iterable[Row]]] = {
            "Iceberg in Spark": lambda: rows_of(self.spark.table(self.sql_name).toArrow()),
            "Delta in Spark": lambda: read_delta_spark(self.spark, folder),
            "Iceberg in DuckDB": lambda: read_duckdb(self.iceberg, self.lake.namespace, self.topic),
            "Delta in DuckDB": lambda: read_delta_duckdb(folder),
            "PyIceberg": lambda: read_pyiceberg(self.iceberg, self.lake.namespace, self.topic),
            "delta-rs": lambda: read_delta_rs(folder),
        }
        for reader, read in found.items():
            if wanted.get(reader, True):
                same(reader, expected, counted(read()))


def same(reader: str, expected: Counter[str], found: Counter[str]) -> None:
    lost, extra = expected - found, found - expected
    assert not lost, f"{reader}: {lost.total()} of {expected.total()} rows lost: {list(lost)[:2]}"
    assert not extra, f"{reader}: {extra.total()} rows too many or changed: {list(extra)[:2]}"


def _value(kind: t.DataType, number: int) -> Any:
    match kind:
        case t.LongType() | t.IntegerType():
            return number
        case t.StringType():
            return f"name of {number:08} that is long enough to be cut"
        case t.DecimalType():
            return (Decimal(number) / 100).quantize(Decimal("0.01"))
        case t.TimestampType():
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number, microseconds=number)
        case t.DoubleType() | t.FloatType():
            return number / 8
    raise AssertionError(kind)
