"""A field that becomes wider, for readers of Delta that know no widened types: files are rewritten."""

from dataclasses import replace
from typing import Any

import pytest
from deltalake.exceptions import DeltaError
from pyspark.sql import SparkSession

from headgate.maintain.actions import Actions
from headgate.maintain.compact import Compaction, compact
from headgate.model import Deletes, TableFormat, TableMode
from headgate.tables.materialize import Materializer
from headgate.tables.mirror import DeltaMirror, NeedsWiderFiles
from tests.integration.maintain.test_verify import path_of
from tests.integration.tables.conftest import drive
from tests.integration.tables.drive import Drive, record
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.ledger import canonical

__all__ = ["drive"]
NARROW = record(("k", "int"), ("n", "int"), ("f", "float"), ("s", record(("deep", "int"), name="S")))
WIDE = record(("k", "int"), ("n", "long"), ("f", "double"), ("s", record(("deep", "long"), name="S")))


class Widened:
    """A table in both formats whose second schema is wider, and the rows that it must have."""

    def __init__(self, drive: Drive, spark: SparkSession, *readers: str) -> None:
        formats = (TableFormat.ICEBERG, TableFormat.DELTA)
        drive.spec = replace(drive.spec, formats=formats, readers=readers)
        drive.create(1)
        drive.set_compatibility("NONE")
        self.drive, self.spark = drive, spark
        self.told: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.table: Materializer = drive.materializer()
        self.table._mirror = DeltaMirror(spark, drive.lake, drive.topic)
        self.table._warn = self.told.append

    def send(self, schema: Any, *numbers: int) -> None:
        rows = [{"k": len(self.rows) + i, "n": n, "f": 0.5, "s": {"deep": n}} for i, n in enumerate(numbers)]
        self.drive.produce(self.drive.register(schema), schema, rows)
        self.rows += rows
        self.drive.run_all(self.table)

    def rewrite(self) -> None:
        """As the engine does when the mirror asks for it."""
        compact(Actions(self.spark, self.drive.lake), self.loaded, Compaction(2**26, everything=True))
        self.table.forget()
        self.table.open(self.drive.view())

    @property
    def loaded(self) -> Any:
        return self.drive.lake.load(self.drive.topic)

    @property
    def folder(self) -> str:
        return str(path_of(self.loaded.location()))

    @property
    def delta(self) -> dict[str, Any]:
        found: dict[str, Any] = self.table.facts["delta"]
        return found

    def check(self) -> None:
        expected = sorted(map(canonical, self.rows))
        assert sorted(map(canonical, self.drive.rows())) == expected
        for read in (read_delta_duckdb, read_delta_rs):
            assert sorted(map(canonical, read(self.folder))) == expected, read.__name__


def test_files_are_rewritten_for_readers_that_know_no_wider_types(drive: Drive, spark: SparkSession) -> None:
    one = Widened(drive, spark, "spark", "delta-rs")
    one.send(NARROW, 1, 2, 3)
    one.check()
    before = len(one.rows)
    one.send(WIDE, 2**40)
    # Until then they see the table as it was.
    assert isinstance(one.table.mirror_trouble, NeedsWiderFiles)
    assert "as int32, which is wider now" in str(one.table.mirror_trouble)
    assert len(list(read_delta_rs(one.folder))) == before
    one.rewrite()
    assert one.table.mirror_trouble is None
    assert one.delta["widened_types"] is False
    one.check()
    # Narrow records go on coming, and the log follows as it does.
    one.send(NARROW, 4)
    one.send(WIDE, 2**41)
    assert one.table.mirror_trouble is None
    one.check()
    assert one.told == []


def test_without_them_their_owner_is_told_before_it_is_so(
    drive: Drive, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Widened(drive, spark)
    one.send(NARROW, 1)
    assert one.told == []
    one.check()
    evolved: list[int] = []
    add_columns = drive.lake.add_columns

    def adding(*arguments: Any) -> Any:
        evolved.append(len(one.told))
        return add_columns(*arguments)

    monkeypatch.setattr(drive.lake, "add_columns", adding)
    one.send(WIDE, 2**40)
    assert evolved == [1], "told once, before the columns are others"
    assert "n: int to bigint, f: float to double, s.deep: int to bigint" in one.told[0]
    assert one.table.mirror_trouble is None
    assert one.delta["widened_types"] is True
    with pytest.raises(DeltaError, match=r"(?i)type.?widening"):
        list(read_delta_rs(one.folder))
    assert sorted(map(canonical, read_delta_duckdb(one.folder))) == sorted(map(canonical, one.rows))


def test_upsert_tables_are_rewritten_too(drive: Drive, spark: SparkSession) -> None:
    one = Widened(drive, spark, "polars")
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT, key=("k",), deletes=Deletes.DELETION_VECTORS)
    mirror = one.table._mirror
    one.table = drive.materializer()
    one.table._mirror = mirror
    one.send(NARROW, 1, 2, 3)
    one.send(WIDE, 2**40)
    assert isinstance(one.table.mirror_trouble, NeedsWiderFiles)
    one.rewrite()
    assert one.table.mirror_trouble is None
    found = sorted(row["n"] for row in read_delta_rs(one.folder))
    assert found == sorted(row["n"] for row in drive.rows()) == [1, 2, 3, 2**40]
