"""Runs about what was committed since the run before: each begins where the last file ends."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.errors import ServerUnavailable
from headgate.export import run as run_module
from headgate.export.incremental import Increment, TableKind, relation
from headgate.export.lake import SnapshotState, TableColumn
from headgate.export.service import Scheduler
from headgate.model import TableMode
from headgate.store import Exports, RunRecord, RunState
from tests.unit.export.lake import SALES
from tests.unit.export.test_service import Place, made, place

__all__ = ["place"]
SQL = "SELECT * FROM sales"
CHANGE_FIELD = pa.field("_change", pa.string())
KEYED = TableKind(TableMode.UPSERT, ("id",))


def ask(place: Place, **said: Any) -> RunRecord:
    return place.ask(**{"sql": SQL, "incremental": "sales", "mail": None, "file_name": "{run}", **said})


def commit(place: Place, snapshot: int) -> None:
    place.tables.current[SALES] = snapshot
    place.tables.there.add(snapshot)


def increment_of(place: Place, run: RunRecord) -> tuple[Any, ...]:
    found = place.exports.run(run.id).detail["increment"]
    return tuple(found.get(name) for name in ("number", "since", "snapshot", "done"))


def test_a_run_reads_what_was_committed_since_the_one_before(place: Place) -> None:
    first = ask(place)
    place.work()
    commit(place, 9)
    second = place.again()
    place.work()
    assert increment_of(place, first) == (1, None, 7, True)
    assert increment_of(place, second) == (2, 7, 9, True)
    whole, part = place.rows.asked
    assert "FROM `lake`.`local`.`sales` VERSION AS OF 7 AS `sales`" in whole
    assert (
        "(SELECT * FROM `lake`.`local`.`sales` VERSION AS OF 9 WHERE _last_updated_sequence_number > 70)"
        " AS `sales`" in part
    )
    manifest = Path(f"{place.exports.run(second.id).detail['file']}.manifest.json").read_text()
    assert '"since": "7"' in manifest


def test_a_run_that_fails_leaves_its_rows_to_the_next(place: Place) -> None:
    ask(place)
    place.work()
    commit(place, 9)
    place.rows.errors = [(0, ServerUnavailable("The query driver was cut off."))] * 3
    lost = place.again()
    place.work(3)
    assert place.exports.run(lost.id).state is RunState.FAILED
    commit(place, 11)
    third = place.again()
    place.work()
    assert increment_of(place, third) == (2, 7, 11, True)


def test_a_run_whose_mail_waits_holds_none_up(place: Place) -> None:
    first = ask(place, mail={"to": ["a@example.org"]})
    place.mails.busy = 1
    place.work()
    assert place.exports.run(first.id).state is RunState.WRITTEN
    commit(place, 9)
    second = place.again()
    place.work(2)
    assert increment_of(place, second) == (2, 7, 9, True)
    assert {run.state for run in place.exports.runs()} == {RunState.DONE}


def test_a_run_that_is_tried_again_goes_before_later_ones(place: Place) -> None:
    place.rows.errors = [(0, ServerUnavailable("The query driver was cut off."))]
    first = ask(place)
    second = place.again()
    place.clock.now += 60.0
    worker = place.worker()
    assert worker.work()
    # The first waits for its next try; the second must not take its rows meanwhile.
    assert not worker.work()
    place.work(2)
    assert increment_of(place, first) == (1, None, 7, True)
    assert increment_of(place, second) == (2, 7, 7, True)


def test_a_run_that_fails_behind_its_file_takes_the_file_away(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise ServerUnavailable("no manifest")

    run = ask(place)
    with monkeypatch.context() as patched:
        patched.setattr(run_module, "manifest_text", fail)
        place.work(3)
    assert place.exports.run(run.id).state is RunState.FAILED
    assert list(place.root.iterdir()) == []
    again = place.again()
    place.work()
    assert increment_of(place, again) == (1, None, 7, True)


def test_a_file_that_is_never_recorded_as_written_leaves_its_rows_to_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Exports.note

    def fail(exports: Exports, run_id: str, owner: str, state: RunState, *said: Any) -> bool:
        if state is RunState.WRITTEN:
            raise OSError("the control state is away")
        return noted(exports, run_id, owner, state, *said)

    run = ask(place, retries=0)
    with monkeypatch.context() as patched:
        patched.setattr(Exports, "note", fail)
        place.work()
    assert place.exports.run(run.id).state is RunState.FAILED
    assert list(place.root.glob("*.csv")) == []
    again = place.again()
    place.work()
    assert increment_of(place, again) == (1, None, 7, True)


def test_the_whole_table_is_read_again_when_asked_for(place: Place) -> None:
    ask(place)
    place.work()
    commit(place, 9)
    run = place.exports.request("weekly", place.clock.now - 60, place.clock.now, whole=True)
    place.work()
    assert increment_of(place, run) == (2, None, 9, True)


def test_missed_times_are_one_run(place: Place) -> None:
    place.exports.create("weekly", {"sql": SQL, "incremental": "sales", "zone": "Europe/Oslo"})
    place.clock.now += 3 * 7 * 86_400
    Scheduler(place.exports, place.clock).look()
    assert made(place) == ["11-29"]


def test_changes_of_an_upsert_table_are_told_between_two_snapshots_that_are_held(place: Place) -> None:
    place.tables.kind = KEYED
    place.rows.schema = place.rows.schema.append(CHANGE_FIELD)
    ask(place)
    place.work()
    commit(place, 9)
    run = place.again()
    place.work()
    assert place.exports.run(run.id).state is RunState.DONE
    assert place.tables.tags[SALES, f"headgate-export-{run.id}"] == 9
    assert place.tables.tags[SALES, f"headgate-export-{run.id}-since"] == 7
    assert "LEFT ANTI JOIN" in place.rows.asked[-1]


@pytest.mark.parametrize(
    ("kind", "changed", "reason"),
    [
        (KEYED, {}, "without what became of them"),
        (TableKind(TableMode.SCD2, ("id",)), {}, "keeps versions of its rows"),
        (None, {}, "is disabled"),
        (TableKind(), {"format_version": 2}, "has format version 2"),
    ],
)
def test_what_cannot_be_told_is_refused(
    place: Place, kind: TableKind | None, changed: dict[str, Any], reason: str
) -> None:
    place.tables.kind = kind
    vars(place.tables).update(changed)
    run = ask(place)
    place.work()
    failed = place.exports.run(run.id)
    assert (failed.state, reason in failed.reason) == (RunState.FAILED, True), failed.reason


def test_another_table_of_the_same_name_is_no_more_of_the_same(place: Place) -> None:
    ask(place)
    place.work()
    place.tables.uuid = "two"
    run = place.again()
    place.work()
    assert "is another one than the run before has read" in place.exports.run(run.id).reason


def test_an_upsert_table_without_the_snapshot_before_is_an_error_that_says_what_helps(place: Place) -> None:
    place.tables.kind = KEYED
    place.rows.schema = place.rows.schema.append(CHANGE_FIELD)
    ask(place)
    place.work()
    place.tables.there = {9}
    place.tables.current[SALES] = 9
    run = place.again()
    place.work()
    assert "no longer has the snapshot" in place.exports.run(run.id).reason
    assert "--whole" in place.exports.run(run.id).reason


def test_a_column_that_was_renamed_or_has_become_another_struct_is_told_by_its_id() -> None:
    before = SnapshotState(
        "u", True, 3, 1, (TableColumn(1, "id", "int"), TableColumn(2, "a", "int"), TableColumn(3, "s", "{1}"))
    )
    columns = (
        TableColumn(1, "id", "long"),
        TableColumn(2, "b`", "long"),
        TableColumn(3, "s", "{2}"),
        TableColumn(4, "new", "string"),
    )
    text = relation(
        SALES,
        Increment(2, "u", ("id",), 9, 2, since=7, since_sequence=1),
        SnapshotState("u", True, 3, 2, columns),
        before,
    )
    assert "`_headgate_old`.`id` AS `id`, `_headgate_old`.`a` AS `b```, NULL AS `s`, NULL AS `new`" in text
