"""What changed between two snapshots: the rows, and by column how many values."""

from collections import Counter
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from headgate.model import TableMode
from headgate.query.changes import changes, summary
from headgate.spark import CATALOG
from tests.integration.tables.conftest import drive
from tests.integration.tables.drive import Drive, record, values
from tests.support.keyed import Keyed

__all__ = ["drive"]
KEY = ("id", "region")


def session_of(spark: SparkSession) -> SparkSession:
    """As the query driver's: tables are named by their topics."""
    session = spark.newSession()
    session.sql(f"use `{CATALOG}`.`local`")
    return session


def head(drive: Drive) -> str:
    table = drive.lake.load(drive.topic)
    assert table is not None
    return str(table.currentSnapshot().snapshotId())


def counted(spark: SparkSession, drive: Drive, key: tuple[str, ...], start: str | None) -> dict[str, Any]:
    rows = summary(session_of(spark), drive.topic, key, start, None).collect()
    return {row["column"]: (row["inserted"], row["updated"], row["deleted"]) for row in rows}


def by_hand(keyed: Keyed, was: list[dict[str, Any]], columns: list[str]) -> dict[str, Any]:
    """The same, from what was acknowledged."""
    before = {tuple(row[name] for name in KEY): row for row in was}
    after = {tuple(row[name] for name in KEY): row for row in keyed.state()}
    found: dict[str, list[int]] = {name: [0, 0, 0] for name in ("*", *columns)}
    place = ("_kafka_partition", "_kafka_offset")
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None:
            if [old[name] for name in place] == [new[name] for name in place]:
                continue
            which, differ = 1, [name for name in columns if old.get(name) != new.get(name)]
        else:
            row = new or old or {}
            which, differ = (0 if old is None else 2), [n for n in columns if row.get(n) is not None]
        for name in ("*", *differ):
            found[name][which] += 1
    return {name: tuple(counts) for name, counts in found.items()}


def test_values_are_counted_by_column(drive: Drive, spark: SparkSession) -> None:
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT)
    keyed = Keyed(drive.runtime, drive.topic)
    table = drive.materializer()
    keyed.random(60, keys=15, seed=1)
    drive.run_all(table)
    was, start = keyed.state(), head(drive)
    # With a column that was not there yet.
    keyed.evolve()
    keyed.put((3, "eu"), {"id": 3, "name": "new", "amount": None, "v2": 7})
    keyed.random(60, keys=20, seed=2)
    drive.run_all(table)
    told = changes(session_of(spark), drive.topic, KEY, start, None)
    kinds = Counter(row["_change"] for row in told.select("_change").collect())
    found = counted(spark, drive, KEY, start)
    assert found["*"] == (kinds["insert"], kinds["update_after"], kinds["delete"])
    assert found["*"][1] > 0
    columns = [name for name in told.columns if name != "_change"]
    assert found == by_hand(keyed, was, columns)
    from_nothing = counted(spark, drive, KEY, None)
    assert from_nothing["*"] == (len(keyed.state()), 0, 0)


def test_rows_without_a_key_come_and_go_and_maps_are_compared(drive: Drive, spark: SparkSession) -> None:
    drive.create(1)
    schema = record(("n", "int"), ("m", {"type": "map", "values": "int"}))
    number = drive.register(schema)
    table = drive.materializer()
    drive.produce(number, schema, [{**row, "m": {"a": 1}} for row in values(3)])
    drive.run_all(table)
    start = head(drive)
    drive.produce(number, schema, [{**row, "m": {}} for row in values(2, 3)])
    drive.run_all(table)
    assert counted(spark, drive, (), start) == {"*": (2, 0, 0), "n": (2, 0, 0), "m": (2, 0, 0)}
