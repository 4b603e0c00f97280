"""Tables of format version 2: written, evolved and packed for readers that know no other."""

from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from headgate.maintain.actions import Actions
from headgate.maintain.compact import Compacted, Compaction, compact
from headgate.model import Deletes, TableMode
from tests.integration.maintain.test_verify import Verified
from tests.integration.tables.drive import Drive, record
from tests.support.keyed import Keyed
from tests.support.ledger import canonical, rows_of

NARROW = record(("n", "int"), ("text", "string"))
WIDE = record(("n", "long"), ("text", "string"), ("more", ["null", "string"]))


class Second:
    """A table of version 2, as three engines read it and a verification finds it."""

    def __init__(self, drive: Drive, spark: SparkSession) -> None:
        self.drive, self.spark = drive, spark
        self.verified = Verified(drive, spark)
        self.verified.materializer._mirror = None

    def run(self) -> None:
        self.drive.run_all(self.verified.materializer)

    def compact(self) -> Compacted:
        table: Any = self.drive.lake.load(self.drive.topic)
        done = compact(Actions(self.spark, self.drive.lake), table, Compaction(2**26))
        self.verified.materializer.forget()
        return done

    def check(self, expected: list[dict[str, Any]]) -> None:
        wanted = sorted(map(canonical, expected))
        assert sorted(map(canonical, self.drive.rows())) == wanted
        by_spark = self.spark.table(self.drive.lake.sql_name(self.drive.topic)).toArrow()
        assert sorted(map(canonical, rows_of(by_spark))) == wanted
        table: Any = self.drive.lake.load(self.drive.topic)
        assert table.operations().current().formatVersion() == 2
        self.verified.materializer.open(self.drive.view())
        report = self.verified.verify()
        assert not report["damaged"], report["findings"]


def test_an_append_table_of_version_2_is_evolved_and_packed(drive: Drive, spark: SparkSession) -> None:
    drive.spec = replace(drive.spec, readers=("athena", "spark"))
    drive.create(1)
    drive.set_compatibility("NONE")
    second = Second(drive, spark)
    rows: list[dict[str, Any]] = []

    def send(schema: Any, *numbers: int, **more: Any) -> None:
        new = [{"n": n, "text": f"text {n}", **more} for n in numbers]
        drive.produce(drive.register(schema), schema, new)
        rows.extend({"more": None, **row} for row in new)
        second.run()

    send(NARROW, 1, 2, 3)
    send(NARROW, 4, 5)
    send(WIDE, 2**40, more="x")
    second.check(rows)
    assert second.compact().files_after == 1
    second.check(rows)
    send(NARROW, 6)
    second.check(rows)


def test_an_upsert_table_of_version_2_is_evolved_and_packed(drive: Drive, spark: SparkSession) -> None:
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT, readers=("redshift",))
    keyed = Keyed(drive.runtime, drive.topic)
    second = Second(drive, spark)
    for seed in range(2):
        keyed.random(80, keys=15, seed=seed)
        second.run()
    second.check(keyed.state())
    keyed.evolve()
    keyed.random(80, keys=15, seed=3)
    second.run()

    def state() -> list[dict[str, Any]]:
        return [{"v2": None, **row} for row in keyed.state()]

    second.check(state())
    facts: Any = second.verified.materializer.facts
    assert facts["deletes"] == Deletes.POSITION_DELETES
    packed = second.compact()
    assert packed.delete_files_before > 0
    assert packed.files_after < packed.files_before
    second.check(state())
    keyed.random(80, keys=15, seed=4)
    second.run()
    second.check(state())
