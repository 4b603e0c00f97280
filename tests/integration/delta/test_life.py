"""A Delta log that is added, removed, lost, damaged, or written to by another."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from headgate.delta.log import FOLDER, commit_name
from headgate.errors import MirrorStopped
from headgate.maintain.clean import clean
from headgate.tables.mirror import GENERATION_KEY, DeltaMirror
from tests.integration.delta.history import History
from tests.support.delta import read_delta_spark

Make = Callable[..., History]


@pytest.fixture
def one(history: Make) -> History:
    made = history()
    made.append(20)
    made.delete(3)
    made.mirror.catch_up(made.table)
    return made


def again(one: History) -> DeltaMirror:
    """As another engine finds it."""
    one.mirror = DeltaMirror(one.spark, one.lake, one.topic)
    one.table.refresh()
    return one.mirror


def test_another_engine_goes_on(one: History) -> None:
    version = one.mirror.facts["version"]
    again(one).catch_up(one.table)
    assert one.mirror.facts["version"] == version
    one.append(10)
    one.follow()
    assert one.mirror.facts["version"] == version + 1


def test_two_engines_at_once(one: History) -> None:
    other = DeltaMirror(one.spark, one.lake, one.topic)
    other.catch_up(one.table)
    one.append(10)
    one.mirror.catch_up(one.table)
    # This one still believes in the version before.
    other.catch_up(one.table)
    assert other.facts == one.mirror.facts
    one.check()


def test_no_engine_but_ours_writes(one: History) -> None:
    one.append(21)
    one.mirror.catch_up(one.table)
    folder = str(one.folder)
    before = {path for path in one.folder.rglob("*") if path.is_file()}
    version = DeltaTable(folder).version()
    for text in (
        f"insert into delta.`{folder}` select * from delta.`{folder}`",
        f"delete from delta.`{folder}` where id = 1",
        f"optimize delta.`{folder}`",
        f"vacuum delta.`{folder}` retain 200 hours",
        f"alter table delta.`{folder}` add column more int",
    ):
        with pytest.raises((PySparkException, Py4JJavaError), match="headgate"):
            one.spark.sql(text).collect()
    table = DeltaTable(folder)
    with pytest.raises(Exception, match=r"(?i)headgate|unsupported|feature"):
        write_deltalake(table, table.to_pyarrow_table(), mode="append")
    # Its VACUUM does not ask for features. Files are never old enough for it.
    for full in (False, True):
        assert table.vacuum(dry_run=False, full=full) == []
        with pytest.raises(Exception, match="retention"):
            table.vacuum(retention_hours=0, dry_run=False, full=full)
    # What they wrote before they were refused, no log knows; and nothing is gone.
    assert before <= {path for path in one.folder.rglob("*") if path.is_file()}
    assert DeltaTable(folder).version() == version
    one.check()


def test_removal_of_orphans_leaves_the_log_alone(one: History) -> None:
    orphan = one.folder / "data" / "orphan.parquet"
    orphan.write_bytes(b"no snapshot knows me")
    assert clean(one.actions, one.table, 0, force=True).orphans_removed == 1
    assert not orphan.exists()
    one.check()


def test_a_foreign_commit_is_not_built_upon(one: History) -> None:
    version = one.mirror.facts["version"]
    foreign = {"commitInfo": {"engineInfo": "Other/1", "operation": "WRITE"}}
    (one.folder / commit_name(version + 1)).write_text(json.dumps(foreign) + "\n")
    one.append(10)
    with pytest.raises(MirrorStopped, match=r"written by Other/1.*--rebuild"):
        one.mirror.catch_up(one.table)
    with pytest.raises(MirrorStopped):
        again(one).catch_up(one.table)
    one.mirror.rebuild(one.table)
    one.follow()
    assert one.mirror.facts["version"] == 0


def _lose(one: History) -> None:
    for path in (one.folder / FOLDER).iterdir():
        path.unlink()


def _tear(one: History) -> None:
    (one.folder / commit_name(one.mirror.facts["version"])).write_text('{"commitInfo":')


def _skip(one: History) -> None:
    (one.folder / commit_name(0)).unlink()


@pytest.mark.parametrize("damage", [_lose, _tear, _skip])
def test_a_log_that_is_lost_or_damaged_is_rebuilt_when_asked(
    one: History, damage: Callable[[History], None]
) -> None:
    before = _id(one)
    damage(one)
    with pytest.raises(MirrorStopped, match="--rebuild"):
        again(one).catch_up(one.table)
    one.mirror.rebuild(one.table)
    one.follow()
    assert one.mirror.facts["version"] == 0
    assert _id(one) != before
    one.append(10)
    one.follow()


def _id(one: History) -> Any:
    text = (one.folder / commit_name(0)).read_text()
    return next(json.loads(line)["metaData"]["id"] for line in text.splitlines() if "metaData" in line)


def test_a_log_that_vanishes_under_the_engine_is_not_continued(one: History) -> None:
    _lose(one)
    one.append(10)
    with pytest.raises(MirrorStopped, match=r"damaged|gone"):
        one.mirror.catch_up(one.table)
    assert not list((one.folder / FOLDER).glob("*.json"))


def test_the_format_goes_and_comes_again(one: History) -> None:
    one.mirror.remove(one.table)
    assert not list((one.folder / FOLDER).iterdir())
    assert one.table.properties().get(GENERATION_KEY) == "none 1"
    one.append(10)
    one.mirror.remove(one.table)
    one.check({"Delta in Spark": False, "Delta in DuckDB": False, "delta-rs": False})
    one.follow()
    assert one.mirror.facts["version"] == 0


def test_properties_and_comments_arrive_without_a_snapshot(one: History) -> None:
    version = one.mirror.facts["version"]
    one.sql(f"alter table {one.sql_name} set tblproperties ('team' = 'me', 'comment' = 'of orders')")
    one.sql(f"alter table {one.sql_name} alter column name comment 'as printed'")
    one.follow()
    detail = one.spark.sql(f"describe detail delta.`{one.folder}`").collect()[0]
    assert detail["properties"]["team"] == "me"
    assert detail["description"] == "of orders"
    assert one.mirror.facts["version"] == version + 1
    column = one.spark.sql(f"describe table delta.`{one.folder}`").where("col_name = 'name'").collect()[0]
    assert column["comment"] == "as printed"


def test_row_ids_are_the_same_in_both(one: History) -> None:
    one.append(10)
    one.update(1)
    one.compact(everything=True)
    one.append(5)
    one.mirror.catch_up(one.table)
    iceberg = one.spark.sql(f"select id, _row_id, _last_updated_sequence_number from {one.sql_name}")
    delta = one.spark.read.format("delta").load(str(one.folder))
    shown = delta.selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version")
    assert sorted(map(tuple, shown.collect())) == sorted(map(tuple, iceberg.collect()))


def test_statistics_let_readers_skip_files(one: History) -> None:
    one.append(1000)
    one.mirror.catch_up(one.table)
    delta = one.spark.read.format("delta").load(str(one.folder))
    assert len(delta.inputFiles()) >= 2
    assert len(delta.where("id = 700").inputFiles()) == 1
    assert len(delta.where("name > 'x'").inputFiles()) == 0
    (row,) = read_delta_spark(one.spark, str(one.folder), where="id = 700")
    assert row["id"] == 700


def test_names_that_files_cannot_have(history: Make) -> None:
    one = history()
    one.add("with space", t.IntegerType())
    one.add("ünïcode-ñame.dot", t.IntegerType())
    one.append(10)
    one.follow()


def test_paths_that_uris_cannot_have(history: Make) -> None:
    one = history()
    one.partition("name")
    one.append(3)
    values = "100, 'a/b c%d#é=1', 1, 1.00, timestamp'2026-01-01 00:00:00Z'"
    one.sql(f"insert into {one.sql_name} values ({values})")
    price, at = Decimal("1.00"), datetime(2026, 1, 1, tzinfo=UTC)
    one.rows.append({"id": 100, "name": "a/b c%d#é=1", "n": 1, "price": price, "at": at})
    one.follow()


@pytest.mark.parametrize("version", ["2"])
def test_position_deletes_of_format_two(history: Make, version: str) -> None:
    one = history(**{"format-version": version})
    one.append(30)
    one.follow()
    one.delete(3)
    one.follow()
    one.delete(5)
    one.append(10)
    one.follow()
    one.compact()
    one.follow()
