"""Packed, expired and cleaned, a table has the same rows and goes on where it stood."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.catalog.history import table_history
from headgate.config import Maintenance as Settings
from headgate.errors import InvalidRequest, StaleBatch
from headgate.maintain.clean import clean
from headgate.maintain.compact import Compaction, compact
from headgate.maintain.erase import erase
from headgate.maintain.service import Maintenance
from headgate.model import POSITION_KEY
from headgate.store import Store
from tests.integration.maintain.upkeep import TARGET, Upkeep


def test_compacted_twice_and_expired_it_goes_on(upkeep: Upkeep) -> None:
    materializer = upkeep.batches(4)
    first = upkeep.compact()
    assert (first.files_before, first.files_after) == (4, 1)
    assert first.bytes_after < first.bytes_before
    materializer.forget()
    upkeep.batch(materializer)
    assert upkeep.compact().files_after == 1
    assert upkeep.compact().files_rewritten == 0
    assert POSITION_KEY not in upkeep.table.currentSnapshot().summary()
    expired = upkeep.expire()
    assert expired.snapshots_after == 1
    assert expired.data_files_removed == 6
    assert len(upkeep.parquet()) == 1
    upkeep.check()
    upkeep.check_restart()


def history_of(upkeep: Upkeep) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table_history(json.loads(upkeep.drive.lake.metadata_json(upkeep.table)))[
        "snapshots"
    ]
    return found


def test_history_tells_who_asked_and_by_what_files_are_laid_out(upkeep: Upkeep) -> None:
    upkeep.batches(2)
    upkeep.compact(asked_by="olga")
    drive = upkeep.drive
    drive.spec = replace(drive.spec, partition=("bucket(4, n)",))
    materializer = drive.materializer()
    upkeep.batch(materializer)
    upkeep.compact(everything=True)
    told = [(one["action"], one["asked_by"], one["partition_change"]) for one in history_of(upkeep)]
    assert told[:4] == [
        ("compact", None, None),
        ("batch", None, "bucket(4, n)"),
        ("compact", "olga", None),
        ("batch", None, None),
    ]
    erase(upkeep.actions, upkeep.table, drive.topic, "n = 3", TARGET, "one", asked_by="paul")
    assert [(one["action"], one["asked_by"]) for one in history_of(upkeep)] == [("pin", "paul")]
    upkeep.sent = [row for row in upkeep.sent if row["n"] != 3]
    upkeep.check()


def test_the_writer_goes_on_beside_a_compaction(upkeep: Upkeep) -> None:
    """As when another engine compacts: the next batch loses once, looks again, and nothing is doubled."""
    materializer = upkeep.batches(2)
    upkeep.compact()
    rows = len(upkeep.sent)
    with pytest.raises(StaleBatch):
        upkeep.batch(materializer)
    assert len(upkeep.sent) == rows + 5
    materializer.forget()
    upkeep.drive.run_all(materializer)
    upkeep.check()


def test_a_compaction_that_loses_leaves_the_table_and_nothing_else(
    upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer deletes rows of the very files that are being rewritten."""
    upkeep.batches(2)
    stale = upkeep.table
    upkeep.delete("n = 1")
    files = upkeep.parquet()
    with monkeypatch.context() as patched:
        patched.setattr(upkeep.drive.lake, "refresh", lambda _: None)
        with pytest.raises(StaleBatch, match="tried again"):
            compact(upkeep.actions, stale, Compaction(TARGET, everything=True))
    assert upkeep.parquet() == files
    upkeep.check()
    assert upkeep.compact().files_after == 1
    upkeep.check_restart()


def test_by_itself_when_the_thresholds_say_so(upkeep: Upkeep, spark: SparkSession, tmp_path: Path) -> None:
    materializer = upkeep.batches(5)
    topic = upkeep.drive.topic
    settings = Settings(every=60, small_files=5, snapshots_older_than=0, keep_snapshots=1)
    store = Store.open(f"sqlite:///{tmp_path / 'control.db'}")
    maintenance = Maintenance(spark, upkeep.drive.lake, settings, store)
    assert not maintenance.is_due(topic, 100)
    assert maintenance.is_due(topic, 160)
    assert maintenance.look(topic)
    kinds = [event["kind"] for event in store.events(topic)]
    assert kinds == ["clean done", "expire done", "compact done"]
    assert len(upkeep.parquet()) == 1
    assert not maintenance.look(topic)
    materializer.forget()
    upkeep.batch(materializer)
    upkeep.check()
    store.close()


def test_rows_keep_their_ids(upkeep: Upkeep) -> None:
    upkeep.batches(3)

    def ids() -> dict[int, tuple[int, int]]:
        query = f"select n, _row_id, _last_updated_sequence_number as s from {upkeep.sql}"
        return {row.n: (row["_row_id"], row["s"]) for row in upkeep.actions.spark.sql(query).collect()}

    before = ids()
    upkeep.compact()
    assert ids() == before
    assert len({row_id for row_id, _ in before.values()}) == 15


def test_deleted_rows_leave_the_files_and_do_not_come_back(upkeep: Upkeep) -> None:
    upkeep.batches(3)
    upkeep.delete("n in (1, 7)")
    upkeep.check()
    done = upkeep.compact(only_deleted=True)
    assert (done.delete_files_before, done.delete_files_after) == (2, 0)
    assert done.files_rewritten == 2
    assert upkeep.table.currentSnapshot().summary().get("total-records") == "13"
    upkeep.check()
    upkeep.expire()
    assert not list(upkeep.folder.rglob("*.puffin"))
    upkeep.check_restart()


def test_the_tag_moves_on_and_holds_no_old_files(upkeep: Upkeep) -> None:
    materializer = upkeep.batches(3)
    upkeep.expire(keep_last=2)
    first = upkeep.tagged()
    materializer.forget()
    upkeep.batch(materializer)
    upkeep.compact()
    upkeep.expire()
    assert upkeep.tagged() not in (None, first)
    assert upkeep.table.snapshot(first) is None
    assert len(upkeep.parquet()) == 1
    upkeep.check_restart()


def test_put_back_after_an_expiry_the_position_is_that_of_the_rows(upkeep: Upkeep) -> None:
    """The chain of parents is cut below a compaction: main is put back to it, and the tag must fit it."""
    materializer = upkeep.batches(2)
    upkeep.compact()
    compacted = upkeep.table.currentSnapshot().snapshotId()
    materializer.forget()
    upkeep.batch(materializer)
    upkeep.batch(materializer)
    upkeep.expire(keep_last=3)
    assert upkeep.table.operations().current().snapshots().size() == 4  # the tagged one too
    upkeep.table.manageSnapshots().rollbackTo(compacted).commit()
    again = upkeep.drive.materializer()
    assert sum(report.rows for report in upkeep.drive.run_all(again)) == 10
    upkeep.check()


def test_put_back_and_expired_the_tag_goes_back_too(upkeep: Upkeep) -> None:
    upkeep.batches(4)
    upkeep.expire(keep_last=3)
    table = upkeep.table
    table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()
    upkeep.compact(everything=True)
    upkeep.expire()
    again = upkeep.drive.materializer()
    assert sum(report.rows for report in upkeep.drive.run_all(again)) == 5
    upkeep.check()


def test_orphans_go_and_live_files_stay(upkeep: Upkeep) -> None:
    upkeep.batches(2)
    live = upkeep.parquet()
    orphan = upkeep.folder / "data" / "00000-0-aborted.parquet"
    shutil.copy(next(iter(live)), orphan)
    kept = upkeep.folder / "_delta_log" / "0.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    with pytest.raises(InvalidRequest, match="commit under way"):
        clean(upkeep.actions, upkeep.table, 0)
    assert clean(upkeep.actions, upkeep.table, 3600).orphans_removed == 0
    assert orphan.exists()
    assert clean(upkeep.actions, upkeep.table, 0, force=True).orphans_removed >= 1
    assert not orphan.exists()
    assert kept.exists()
    assert upkeep.parquet() == live
    upkeep.check_restart()


def test_many_manifests_become_few(upkeep: Upkeep) -> None:
    upkeep.batches(3)
    assert upkeep.compact(fewest_files="100", many_manifests=2).manifests_rewritten == 3
    assert upkeep.table.currentSnapshot().allManifests(upkeep.table.io()).size() == 1
    upkeep.check_restart()
