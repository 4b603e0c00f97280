"""A table is put back to an earlier snapshot: its records are read again, or kept out, and nothing else is
lost, doubled or changed; whatever lies beside the table says the same."""

import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from headgate.errors import InvalidRequest, StaleBatch
from headgate.model import (
    OPERATION_KEY,
    POSITION_TAG,
    ROLLBACK,
    Batch,
    Deletes,
    OnError,
    TableFormat,
    TableMode,
)
from headgate.tables import materialize, undone
from headgate.tables.lake import FileChanges
from headgate.tables.materialize import Materializer
from headgate.tables.rollback import Records, Wanted, roll_back
from tests.integration.maintain.test_verify import Verified, path_of, states_of
from tests.integration.maintain.upkeep import Upkeep
from tests.integration.tables.drive import Drive, numbers, values
from tests.integration.tables.test_dead_letters import dead, later, named, topic_of
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.keyed import Keyed
from tests.support.ledger import canonical
from tests.support.services import wait_for

AGAIN, KEEP_OUT = Records.AGAIN, Records.KEEP_OUT
BOTH = (TableFormat.ICEBERG, TableFormat.DELTA)


class Crash(Exception):
    """The engine dies here."""


def back_to(snapshot: Any, records: Records | None, number: int = 1) -> Wanted:
    return Wanted(f"asked-{number}", str(snapshot), records, "olga")


def head(drive: Drive) -> int:
    table = drive.lake.load(drive.topic)
    assert table is not None
    return int(table.currentSnapshot().snapshotId())


def delta_rows(drive: Drive) -> list[str]:
    """As two readers of Delta see them, who must agree."""
    folder = str(path_of(drive.lake.load(drive.topic).location()))  # type: ignore[union-attr]
    found = [sorted(map(canonical, read(folder))) for read in (read_delta_duckdb, read_delta_rs)]
    assert found[0] == found[1]
    return found[0]


def check_whole(verified: Verified) -> dict[str, str]:
    report = verified.verify()
    assert not report["damaged"], report["findings"]
    return states_of(report)


class Letters:
    """An append table in both formats, with dead letters of two batches and a replay between them."""

    def __init__(self, drive: Drive, spark: SparkSession) -> None:
        drive.spec = replace(drive.spec, on_error=OnError.LOG, formats=BOTH)
        drive.create(1)
        self.drive = drive
        self.schema_id = drive.register(named(drive))
        self.verified = Verified(drive, spark)
        self.materializer = self.verified.materializer
        hidden = b"\x00" + (self.schema_id + 1).to_bytes(4, "big")
        self.good(0, 3)
        drive.send(hidden + b"\xc8\x01\x00")  # 100, once its schema is there
        drive.send(b"junk 1")
        self.run()
        self.first = head(drive)
        self.good(3, 4)
        drive.send(b"junk 2")
        drive.send(hidden + b"\xca\x01\x00")  # 101
        self.good(7, 2)
        self.run()
        assert drive.register(later(drive)) == self.schema_id + 1
        assert self.materializer.replay(drive.view()).replayed == 2
        assert self.rows() == [*range(9), 100, 101]

    def good(self, first: int, count: int) -> None:
        self.drive.produce(self.schema_id, named(self.drive), values(count, first))

    def run(self) -> None:
        self.drive.flush()
        self.drive.run_all(self.materializer)

    def rows(self) -> list[int]:
        """The same in both formats."""
        found = self.drive.rows()
        assert sorted(map(canonical, found)) == delta_rows(self.drive)
        return numbers(found)

    def letters(self) -> dict[bytes, bool]:
        """Each is there once, in table and topic: whether it is dead still."""
        found = dead(self.drive)
        by_value = {bytes(row["value"]): row["replayed_at"] is None for row in found}
        assert len(by_value) == len(found) == 4
        assert Counter(value for value, _ in topic_of(self.drive)) == Counter(list(by_value))
        return by_value

    def is_dead(self) -> list[bool]:
        """Those of 100 and 101, junk 1 and 2."""
        found = self.letters()
        hidden = sorted(value for value in found if value.startswith(b"\x00"))
        return [found[value] for value in (*hidden, b"junk 1", b"junk 2")]


def test_records_are_read_again_and_letters_are_dead_again(drive: Drive, spark: SparkSession) -> None:
    one = Letters(drive, spark)
    plan = one.materializer.rollback(drive.view(), back_to(one.first, None))
    assert (plan["rows"], plan["rows_after"], plan["offsets"], plan["refused"]) == (11, 3, 8, {})
    assert plan["undone"] == {"batch": 1, "replay": 1}
    assert plan["dead_letters"] == 2
    assert one.rows() == [*range(9), 100, 101], "a plan changes nothing"
    before: Any = one.materializer.facts
    done = one.materializer.rollback(drive.view(), back_to(one.first, AGAIN))
    assert (done["rows_before"], done["rows"], done["offsets"], done["records"]) == (11, 3, 8, "again")
    assert one.rows() == [0, 1, 2]
    assert one.is_dead() == [True] * 4
    assert one.materializer.facts["records_materialized"] == before["records_materialized"]
    # The same request, as after an engine that did not live to answer it.
    assert one.materializer.rollback(drive.view(), back_to(one.first, AGAIN)) == done
    # In several batches, none of which brings a letter a second time.
    drive.max_rows = 3
    again = drive.materializer()
    again._mirror = one.materializer._mirror
    one.materializer = one.verified.materializer = again
    one.run()
    assert again.position is not None
    assert again.position.reread == {}
    assert one.rows() == list(range(9))
    assert one.is_dead() == [True] * 4
    assert check_whole(one.verified)["records"] == "ok"
    assert one.materializer.replay(drive.view()).replayed == 2
    one.good(9, 2)
    one.run()
    assert one.rows() == [*range(11), 100, 101]
    assert check_whole(one.verified)["records"] == "ok"


def test_records_stay_out_and_no_replay_brings_them_back(drive: Drive, spark: SparkSession) -> None:
    one = Letters(drive, spark)
    position = one.materializer.position
    done = one.materializer.rollback(drive.view(), back_to(one.first, KEEP_OUT))
    assert done["rows"] == 3
    assert one.materializer.position == position
    one.run()
    assert one.rows() == [0, 1, 2]
    assert one.is_dead() == [True, False, True, False]
    report = one.verified.verify()
    assert not report["damaged"], report["findings"]
    (records,) = (check for check in report["checks"] if check["name"] == "records")
    assert "8 more kept out by rollbacks" in records["detail"]
    assert one.materializer.replay(drive.view()).replayed == 1
    one.good(9, 2)
    one.run()
    assert one.rows() == [0, 1, 2, 9, 10, 100]
    assert check_whole(one.verified)["records"] == "ok"
    # And back behind that: what was kept out is read again, its letters are dead again.
    one.materializer.rollback(drive.view(), back_to(one.first, AGAIN, 2))
    assert one.is_dead() == [True] * 4
    one.run()
    assert one.rows() == list(range(11))
    assert one.is_dead() == [True] * 4
    assert check_whole(one.verified)["records"] == "ok"


class Rows:
    """An upsert table that remembers its deletes, and the ledger of its topic."""

    def __init__(self, drive: Drive, spark: SparkSession, deletes: Deletes, mode: TableMode) -> None:
        formats = BOTH if deletes is Deletes.DELETION_VECTORS else (TableFormat.ICEBERG,)
        drive.spec = replace(drive.spec, mode=mode, deletes=deletes, on_error=OnError.LOG, formats=formats)
        self.drive = drive
        self.keyed = Keyed(drive.runtime, drive.topic)
        self.verified = Verified(drive, spark)

    @property
    def materializer(self) -> Materializer:
        return self.verified.materializer

    def more(self, seed: int, count: int = 120) -> int:
        """A batch of them; where the table stands then."""
        self.keyed.random(count, keys=20, seed=seed)
        self.drive.run_all(self.materializer)
        return head(self.drive)

    def again(self) -> None:
        """Another engine, whose index is what the disk has."""
        self.drive.index.close()
        mirror = self.materializer._mirror
        self.verified.materializer = self.drive.materializer()
        self.materializer._mirror = mirror

    def check(self) -> None:
        found = sorted(map(canonical, self.drive.rows()))
        assert found == sorted(map(canonical, self.keyed.state()))
        if TableFormat.DELTA in self.drive.spec.formats:
            assert delta_rows(self.drive) == found
        states = check_whole(self.verified)
        assert (states["keys"], states["index"]) == ("ok", "ok")


@pytest.mark.parametrize("deletes", list(Deletes))
def test_rows_of_keys_go_back_and_come_again(
    drive: Drive, spark: SparkSession, deletes: Deletes, tmp_path: Path
) -> None:
    rows = Rows(drive, spark, deletes, TableMode.UPSERT)
    rows.more(1)
    first = head(drive)
    was = rows.keyed.state()
    # The index as it was then: what an engine may find that died in between.
    drive.index.close()
    shutil.copytree(tmp_path / "index", tmp_path / "before")
    drive.index.open()
    sent = len(rows.keyed._acked)
    rows.more(2)
    rows.more(3)
    rows.materializer.rollback(drive.view(), back_to(first, AGAIN))
    assert sorted(map(canonical, drive.rows())) == sorted(map(canonical, was))
    rows.more(4)
    rows.check()
    # Kept out, as if they had never been written; the index of the first batch is as good as none.
    rows.materializer.rollback(drive.view(), back_to(first, KEEP_OUT, 2))
    del rows.keyed._acked[sent:]
    drive.index.close()
    shutil.rmtree(tmp_path / "index")
    shutil.copytree(tmp_path / "before", tmp_path / "index")
    rows.again()
    rows.more(5)
    rows.check()
    rows.more(6)
    rows.check()


def test_versions_go_back_and_come_again(drive: Drive, spark: SparkSession) -> None:
    rows = Rows(drive, spark, Deletes.DELETION_VECTORS, TableMode.SCD2)
    first = rows.more(1)
    rows.more(2)
    expected = Counter(map(canonical, drive.rows()))
    rows.materializer.rollback(drive.view(), back_to(first, AGAIN))
    assert Counter(map(canonical, drive.rows())) != expected
    drive.run_all(rows.materializer)
    assert Counter(map(canonical, drive.rows())) == expected
    assert check_whole(rows.verified)["keys"] == "ok"


PLACES = ("rollback-planned", "rollback-committed", "rollback-marks-dropped", "rollback-letters-returned")
DEATHS = [(place, records) for place in PLACES for records in Records]
if os.environ.get("HEADGATE_SOAK") != "1":
    DEATHS = [
        ("rollback-planned", AGAIN),
        ("rollback-committed", KEEP_OUT),
        ("rollback-marks-dropped", AGAIN),
    ]


@pytest.mark.soak
@pytest.mark.parametrize(("place", "records"), DEATHS)
def test_an_engine_that_dies_on_the_way_leaves_the_rest_to_the_next(
    drive: Drive, spark: SparkSession, place: str, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(drive, spark, Deletes.DELETION_VECTORS, TableMode.UPSERT)
    first = rows.more(1, 60)
    sent = len(rows.keyed._acked)
    rows.more(2, 60)

    def die(name: str) -> None:
        if name == place:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(materialize, "failpoint", die)
        patch.setattr(undone, "failpoint", die)
        with pytest.raises(Crash):
            rows.materializer.rollback(drive.view(), back_to(first, records))
    drive.engine = "engine-2"
    rows.again()
    if place == "rollback-planned":
        # Nothing was done: the table goes on, and what is asked for still is done later.
        rows.more(3, 30)
    rows.materializer.rollback(drive.view(), back_to(first, records))
    if records is KEEP_OUT:
        del rows.keyed._acked[sent:]
    rows.more(4, 60)
    rows.check()


def test_a_commit_under_way_comes_before_or_is_refused(upkeep: Upkeep) -> None:
    """By the head, and by the snapshot that the table is put back to: both have another one on them."""
    drive = upkeep.drive
    late = upkeep.batches(2)
    first, second = head(drive), late.position
    upkeep.batch(late)
    position = late.position
    assert position is not None
    assert second is not None
    made_for_head, made_for_first = drive.lake.load(drive.topic), drive.lake.load(drive.topic)
    assert made_for_head is not None
    assert made_for_first is not None
    old_head = made_for_head.snapshot(head(drive))
    # A commit comes first: the plan was made for another head.
    other = drive.materializer()
    other.rollback(drive.view(), back_to(first, AGAIN))
    for table, start, on in (
        (made_for_head, position, old_head),
        (made_for_first, second, made_for_first.snapshot(first)),
    ):
        batch = Batch(start, start)
        with pytest.raises(StaleBatch):
            drive.lake.commit(table, drive.topic, FileChanges(), batch, on)
    with pytest.raises(StaleBatch):
        upkeep.batch(late)
    late.forget()
    drive.run_all(late)
    upkeep.check()
    upkeep.check_restart()


def test_a_commit_between_plan_and_rollback_is_not_undone_unseen(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = upkeep.drive
    materializer = upkeep.batches(2)
    first = head(drive)
    upkeep.batch(materializer)

    def after_a_compaction(*arguments: Any) -> Any:
        upkeep.compact()
        return roll_back(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(materialize, "roll_back", after_a_compaction)
        with pytest.raises(StaleBatch):
            materializer.rollback(drive.view(), back_to(first, AGAIN))
    upkeep.check()
    materializer.forget()
    done = materializer.rollback(drive.view(), back_to(first, AGAIN))
    assert done["offsets"] == 5
    drive.run_all(materializer)
    upkeep.check()


def test_what_kafka_has_no_more_can_only_be_kept_out(upkeep: Upkeep) -> None:
    drive = upkeep.drive
    materializer = upkeep.batches(2)
    first = head(drive)
    upkeep.batch(materializer)
    ends = drive.view().ends
    gone = [TopicPartition(drive.topic, p, end) for p, end in ends.items()]
    admin = AdminClient({"bootstrap.servers": drive.runtime.kafka})
    for future in admin.delete_records(gone).values():
        future.result(30)
    plan = materializer.rollback(drive.view(), back_to(first, None))
    assert "no longer has the records" in plan["refused"]["again"]
    with pytest.raises(InvalidRequest, match="partition 0: 5 to 9"):
        materializer.rollback(drive.view(), back_to(first, AGAIN))
    materializer.rollback(drive.view(), back_to(first, KEEP_OUT))
    del upkeep.sent[10:]
    upkeep.batch(materializer)
    upkeep.check()
    upkeep.check_restart()


def test_of_a_compacted_topic_all_records_must_be_there(upkeep: Upkeep) -> None:
    drive = upkeep.drive
    materializer = upkeep.batches(1)
    first = head(drive)
    upkeep.batch(materializer)
    drive.topics.configure(drive.topic, {"cleanup.policy": "compact"})
    plan = materializer.rollback(drive.view(), back_to(first, None))
    assert plan["refused"] == {}, "no offset is without a record"
    # The end of a transaction has an offset too; nobody can tell it from a record that is gone.
    before = sum(drive.view().ends.values())
    producer = drive.transaction(drive.topic)
    # With a key: a compacted topic takes no record without.
    producer.produce(drive.topic, b"\x00", key=b"none", partition=0)
    assert producer.flush(30) == 0
    producer.abort_transaction(30)
    wait_for("the end of the transaction", lambda: sum(drive.view().ends.values()) == before + 2)
    drive.run_all(materializer)
    plan = materializer.rollback(drive.view(), back_to(first, None))
    assert "is compacted" in plan["refused"]["again"]
    upkeep.check()


def test_the_tag_of_the_position_goes_along_and_expiry_keeps_the_rest(upkeep: Upkeep) -> None:
    drive = upkeep.drive
    materializer = upkeep.batches(4)
    upkeep.expire(keep_last=3)
    table = upkeep.table
    target = table.currentSnapshot().parentId()
    # As another tool may have left it: on a snapshot that is to go.
    table.manageSnapshots().replaceTag(POSITION_TAG, table.currentSnapshot().snapshotId()).commit()
    materializer.forget()
    materializer.rollback(drive.view(), back_to(target, AGAIN))
    assert upkeep.tagged() == head(drive)
    assert upkeep.table.currentSnapshot().summary().get(OPERATION_KEY) == ROLLBACK
    materializer.forget()
    drive.run_all(materializer)
    upkeep.check()
    upkeep.expire()
    upkeep.check_restart()
