"""What was committed between two snapshots of real tables, whatever maintenance has made of their files."""

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.export.incremental import CHANGE, Increment, TableKind, checked_kind, next_increment, relation
from headgate.export.lake import CatalogTables
from headgate.export.sql import TableName, exploded
from headgate.maintain.actions import Actions
from headgate.maintain.erase import erase
from headgate.model import Deletes, TableMode
from tests.integration.maintain.upkeep import TARGET, Upkeep
from tests.integration.tables.conftest import drive
from tests.integration.tables.drive import NUMBER, Drive, values
from tests.support.keyed import Keyed

__all__ = ["drive"]
KEY = ("id", "region")


class Reader:
    """The increments of one table, as runs of an export read them."""

    def __init__(self, spark: SparkSession, drive: Drive, kind: TableKind) -> None:
        self._spark = spark
        self._tables = CatalogTables(drive.runtime.iceberg, drive.runtime.catalog_key or "")
        self._table = TableName(("local",), drive.topic)
        self._kind = kind
        self._last: Increment | None = None

    def read(self) -> list[dict[str, Any]]:
        snapshot = self._tables.snapshot(self._table)
        now = self._tables.state(self._table, snapshot)
        assert now is not None
        key = checked_kind(self._table, self._kind, now).key
        increment = next_increment(self._table, snapshot, now, key, self._last, is_whole=False)
        before = None if increment.since is None else self._tables.state(self._table, increment.since)
        text = relation(self._table, increment, now, before)
        self._last = increment
        return [row.asDict(recursive=True) for row in self._spark.sql(f"SELECT * FROM {text} AS t").collect()]


@pytest.fixture
def upkeep(drive: Drive, spark: SparkSession) -> Upkeep:
    return Upkeep(drive, Actions(spark, drive.lake))


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows)


def test_rows_of_an_append_table_come_once_through_compaction_and_erasure(
    drive: Drive, spark: SparkSession, upkeep: Upkeep
) -> None:
    drive.create()
    drive.ends_whole = False
    schema_id = drive.register(NUMBER)
    reader = Reader(spark, drive, TableKind())
    taken: list[int] = []
    for first in (0, 10, 20):
        drive.produce(schema_id, NUMBER, values(10, first))
        drive.run_all(drive.materializer())
        taken += numbers(reader.read())
    assert taken == list(range(30))
    drive.produce(schema_id, NUMBER, values(10, 30))
    drive.run_all(drive.materializer())
    # The files of rows that were read, and of those that were not, become one.
    assert upkeep.compact().files_after == 1
    drive.produce(schema_id, NUMBER, values(5, 40))
    drive.run_all(drive.materializer())
    assert numbers(reader.read()) == list(range(30, 45))
    erase(upkeep.actions, upkeep.table, drive.topic, "n = 3 or n = 41", TARGET, "e")
    assert reader.read() == []
    drive.produce(schema_id, NUMBER, values(2, 45))
    drive.run_all(drive.materializer())
    upkeep.compact(everything=True)
    assert numbers(reader.read()) == [45, 46]
    assert reader.read() == []


def test_arrays_become_rows_when_asked_for(spark: SparkSession) -> None:
    lines = "array(named_struct('sku', 'a', 'n', 1), named_struct('sku', 'b', 'n', 2))"
    empty = "CAST(array() AS ARRAY<STRUCT<sku: STRING, n: INT>>)"
    text = f"SELECT 1 AS id, {lines} AS `my lines`, 'x' AS t UNION ALL SELECT 2, {empty}, 'y'"
    rows = spark.sql(exploded(text, ["my lines"]))
    assert [field.name for field in rows.schema] == ["id", "t", "my lines"]
    found = sorted((row["id"], *(row["my lines"] or (None, None))) for row in rows.collect())
    assert found == [(1, "a", 1), (1, "b", 2), (2, None, None)]


@pytest.mark.parametrize("deletes", [Deletes.DELETION_VECTORS, Deletes.COPY_ON_WRITE])
def test_changes_of_an_upsert_table_make_the_next_state_of_the_last(
    drive: Drive, spark: SparkSession, upkeep: Upkeep, deletes: Deletes
) -> None:
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT, deletes=deletes)
    keyed = Keyed(drive.runtime, drive.topic)
    reader = Reader(spark, drive, TableKind(TableMode.UPSERT, KEY))
    state: dict[Any, dict[str, Any]] = {}
    for seed in range(3):
        if seed == 2:
            keyed.evolve()
            upkeep.compact(everything=True)
        keyed.random(40, keys=12, seed=seed)
        drive.run_all(drive.materializer())
        if seed == 1:
            upkeep.compact(everything=True)
        changed = 0
        for row in reader.read():
            change, who = row.pop(CHANGE), tuple(row[name] for name in KEY)
            assert (who in state) == (change != "insert"), (change, who)
            if change == "delete":
                assert {name: row[name] for name in state[who]} == state[who]
                del state[who]
            else:
                # An update is another record's, never what was read before.
                assert state.get(who, {}).get("_kafka_offset") != row["_kafka_offset"] or (
                    state[who]["_kafka_partition"] != row["_kafka_partition"]
                )
                state[who] = row
            changed += 1
        assert changed > 0
        expected = {tuple(row[name] for name in KEY): row for row in keyed.state()}
        assert state.keys() == expected.keys()
        for who, row in expected.items():
            assert {name: state[who][name] for name in row} == row
    assert reader.read() == []
