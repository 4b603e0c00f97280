"""Upsert tables: the last record of each key, deletes, and an index that is right whatever happened to it."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from headgate.errors import TableStopped
from headgate.model import Deletes, Metadata, OnError, TableMode
from headgate.tables import upsert
from headgate.tables.records import CHANGE
from headgate.tables.upsert import StagedChanges, Upserts
from tests.integration.tables.drive import Drive
from tests.support.keyed import Keyed
from tests.support.ledger import canonical


@pytest.fixture
def keyed(drive: Drive) -> Keyed:
    drive.spec = replace(drive.spec, mode=TableMode.UPSERT)
    return Keyed(drive.runtime, drive.topic)


def check(drive: Drive, keyed: Keyed) -> None:
    """The table equals the dict replay, in two engines."""
    found, expected = drive.rows(), keyed.state()
    assert sorted(map(canonical, found)) == sorted(map(canonical, expected))


@pytest.mark.parametrize("deletes", list(Deletes))
def test_batches_replace_and_delete_rows(drive: Drive, keyed: Keyed, deletes: Deletes) -> None:
    drive.spec = replace(drive.spec, deletes=deletes)
    materializer = drive.materializer()
    for seed in range(4):
        keyed.random(300, keys=60, seed=seed)
        assert len(drive.run_all(materializer)) == 1
        check(drive, keyed)
    facts: Any = materializer.facts
    assert facts["mode"] == "upsert"
    assert facts["key"] == ["id", "region"]
    assert facts["unique_keys"] == len(keyed.state())
    # Another engine, with the index of the first and then without it.
    drive.index.close()
    again = drive.materializer()
    keyed.random(200, keys=60, seed=100)
    drive.run_all(again)
    check(drive, keyed)
    drive.index.clear()
    again = drive.materializer()
    keyed.random(200, keys=60, seed=101)
    drive.run_all(again)
    check(drive, keyed)


def test_an_index_that_is_behind_the_table_catches_up(drive: Drive, keyed: Keyed, tmp_path: Path) -> None:
    """As after an engine that died between a commit and its index, or a disk that was put back."""
    keyed.random(100, keys=30, seed=1)
    drive.run_all(drive.materializer())
    drive.index.close()
    shutil.copytree(tmp_path / "index", tmp_path / "before")
    keyed.random(100, keys=30, seed=2)
    drive.run_all(drive.materializer())
    drive.index.close()
    shutil.rmtree(tmp_path / "index")
    shutil.copytree(tmp_path / "before", tmp_path / "index")
    keyed.random(100, keys=30, seed=3)
    drive.run_all(drive.materializer())
    check(drive, keyed)


def test_marks_of_an_earlier_topic_delete_no_rows_of_the_new_one(
    drive: Drive, keyed: Keyed, tmp_path: Path
) -> None:
    """The topic is created again, and an engine dies between a commit and its index."""
    drive.spec = replace(drive.spec, on_error=OnError.LOG)
    materializer = drive.materializer()
    # The old topic's marks have greater offsets than the new topic's rows.
    keyed.random(100, keys=20, seed=1)
    keyed.put((1, "eu"), None)
    keyed.put((2, "eu"), {"id": 2, "name": "of the old topic", "amount": 0})
    keyed.flush()
    drive.run_all(materializer)
    drive.topics.delete(drive.topic)
    new = Keyed(drive.runtime, drive.topic)
    new.put((1, "eu"), {"id": 1, "name": "new", "amount": 1})
    new.flush()
    materializer.accept(drive.view(), "new-topic")
    drive.run_all(materializer)
    drive.index.close()
    shutil.copytree(tmp_path / "index", tmp_path / "before")
    drive.index.open()
    new.put((3, "eu"), {"id": 3, "name": "new", "amount": 3})
    new.flush()
    drive.run_all(materializer)
    drive.index.close()
    shutil.rmtree(tmp_path / "index")
    shutil.copytree(tmp_path / "before", tmp_path / "index")
    new.put((1, "eu"), {"id": 1, "name": "newer", "amount": 2})
    new.flush()
    again = drive.materializer()
    drive.run_all(again)
    rows = [(row["id"], row["region"], row["name"]) for row in drive.rows()]
    assert [row for row in rows if row[:2] == (1, "eu")] == [(1, "eu", "newer")]
    assert len({row[:2] for row in rows}) == len(rows), "a key has two rows"
    # What the new topic did not repeat stays, and is counted.
    assert (2, "eu", "of the old topic") in rows
    assert again.facts["rows_of_earlier_generations"] == len(rows) - 2


def test_row_positions_hold_when_rows_are_computed_again_in_another_order(
    drive: Drive, keyed: Keyed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when an executor is lost between the look at a batch's keys and the write of its rows: they are the
    same rows, but their order in the tasks that hold them is not."""
    materializer = drive.materializer()
    carry_out = Upserts._carry_out

    def moved(self: Upserts, last: DataFrame, *rest: Any) -> StagedChanges:
        spread = last.repartition(3) if upsert._ONE_FILE else last
        return carry_out(self, spread.sortWithinPartitions(f.desc(f"{CHANGE}.offset")), *rest)

    monkeypatch.setattr(Upserts, "_carry_out", moved)
    keyed.random(100, keys=30, seed=1)
    drive.run_all(materializer)
    # A big batch is written by several tasks, each of which has the keys that it had.
    monkeypatch.setattr(upsert, "_ONE_FILE", 0)
    keyed.random(50, keys=30, seed=2)
    drive.run_all(materializer)
    keyed.random(50, keys=30, seed=3)
    drive.run_all(materializer)
    check(drive, keyed)


def test_null_keys_are_dead_letters(drive: Drive, keyed: Keyed) -> None:
    drive.spec = replace(drive.spec, on_error=OnError.LOG)
    materializer = drive.materializer()
    keyed.random(300, keys=40, seed=1, null_keys=0.1)
    drive.run_all(materializer)
    check(drive, keyed)
    dead = drive.rows(f"{drive.topic}.dlq")
    assert len(dead) == keyed.null_keys > 0
    assert {row["error_class"] for row in dead} == {"NullKey"}


def test_a_value_that_names_another_key_keeps_its_own_row(drive: Drive, keyed: Keyed) -> None:
    """Value fields win over key fields of the same name; the row is still the key's."""
    materializer = drive.materializer()
    keyed.put((1, "eu"), {"id": 99, "name": "odd", "amount": 1})
    keyed.put((2, "eu"), {"id": 2, "name": "even", "amount": 2})
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(99, "odd"), (2, "even")}
    drive.index.clear()
    materializer = drive.materializer()
    keyed.put((1, "eu"), {"id": 98, "name": "odder", "amount": 1})
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(98, "odder"), (2, "even")}
    keyed.put((1, "eu"), None)
    keyed.flush()
    drive.run_all(materializer)
    assert {(row["id"], row["name"]) for row in drive.rows()} == {(2, "even")}


def test_a_replayed_letter_is_applied_only_if_nothing_later_was(drive: Drive, keyed: Keyed) -> None:
    drive.spec = replace(drive.spec, on_error=OnError.LOG)
    materializer = drive.materializer()
    later = keyed.next_schema_id()
    for name in ("overtaken", "deleted", "waiting", "new", "renewed"):
        if name != "new":
            keyed.put((1, name), {"id": 1, "name": "first", "amount": 1})
        keyed.put_hidden((1, name), {"id": 1, "name": "hidden", "amount": 2}, later)
    keyed.put((1, "overtaken"), {"id": 1, "name": "last", "amount": 3})
    keyed.put((1, "deleted"), None)
    keyed.flush()
    drive.run_all(materializer)
    known = {"overtaken": "last", "waiting": "first", "renewed": "first"}
    assert {row["region"]: row["name"] for row in drive.rows()} == known
    # A record of a topic that was created again is later than any letter of the old one, whatever its offset.
    drive.topics.delete(drive.topic)
    keyed = Keyed(drive.runtime, drive.topic)
    keyed.put((1, "renewed"), {"id": 1, "name": "of the new topic", "amount": 4})
    keyed.flush()
    materializer.accept(drive.view(), "new-topic")
    drive.run_all(materializer)
    assert keyed.reveal() == later, "another test has taken the schema's id"
    # The index is made anew: what was deleted is remembered beside the table.
    drive.index.clear()
    materializer = drive.materializer()
    done = materializer.replay(drive.view())
    assert (done.replayed, done.dead) == (2, 0)
    expected = {"overtaken": "last", "waiting": "hidden", "new": "hidden", "renewed": "of the new topic"}
    assert {row["region"]: row["name"] for row in drive.rows()} == expected
    assert materializer.replay(drive.view()).replayed == 0
    keyed.put((1, "new"), None)
    keyed.flush()
    drive.run_all(materializer)
    assert {row["region"] for row in drive.rows()} == {"overtaken", "waiting", "renewed"}


def test_a_key_of_declared_columns(drive: Drive, keyed: Keyed) -> None:
    """Without Kafka's key; partitioned by it, in the only way that an upsert table can be."""
    drive.spec = replace(drive.spec, key=("id",), partition=("bucket(4, id)",))
    materializer = drive.materializer()
    for number in range(60):
        value = {"id": number % 20, "name": f"name {number}", "amount": number}
        keyed.put((number % 20, "eu"), value)
    keyed.flush()
    drive.run_all(materializer)
    expected = {number % 20: f"name {number}" for number in range(60)}
    assert {row["id"]: row["name"] for row in drive.rows()} == expected
    for number in range(0, 20, 2):
        keyed.put((number, "eu"), {"id": number, "name": "again", "amount": None})
    keyed.flush()
    drive.run_all(materializer)
    expected |= dict.fromkeys(range(0, 20, 2), "again")
    assert {row["id"]: row["name"] for row in drive.rows()} == expected
    table = drive.lake.load(drive.topic)
    assert table is not None
    assert [str(field.transform()) for field in table.spec().fields()] == ["bucket[4]"]


@pytest.mark.parametrize(
    "partition", ["day(_kafka_timestamp)", "name", "bucket(4, name)"], ids=["time", "identity", "value"]
)
def test_other_partitions_are_refused(drive: Drive, keyed: Keyed, partition: str) -> None:
    drive.spec = replace(drive.spec, partition=(partition,), metadata=(Metadata.TIMESTAMP,))
    keyed.put((1, "eu"), {"id": 1, "name": "one", "amount": 1})
    keyed.flush()
    with pytest.raises(TableStopped, match="a record that deletes a row says nothing but its key"):
        drive.run_all(drive.materializer())
    assert drive.lake.load(drive.topic) is None, "nothing was changed"


@pytest.mark.parametrize(
    ("deletes", "version"),
    [(Deletes.DELETION_VECTORS, 3), (Deletes.COPY_ON_WRITE, 3), (Deletes.POSITION_DELETES, 2)],
)
def test_the_table_follows_its_schema(drive: Drive, keyed: Keyed, deletes: Deletes, version: int) -> None:
    drive.spec = replace(drive.spec, deletes=deletes)
    materializer = drive.materializer()
    for number in range(4):
        keyed.put((number, "eu"), {"id": number, "name": "first", "amount": number})
    keyed.flush()
    drive.run_all(materializer)
    later = keyed.reveal()
    keyed.put_hidden((1, "eu"), {"id": 1, "name": "second", "amount": 5, "v2": 7}, later)
    keyed.put((2, "eu"), None)
    keyed.flush()
    drive.run_all(materializer)
    found = {row["id"]: (row["name"], row["v2"]) for row in drive.rows()}
    assert found == {0: ("first", None), 1: ("second", 7), 3: ("first", None)}
    assert materializer.facts["format_version"] == version
    table: Any = drive.lake.load(drive.topic)
    assert table.operations().current().formatVersion() == version
