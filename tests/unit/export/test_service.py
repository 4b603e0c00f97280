"""Runs from their schedule to the mail: made once, carried out once, gone on with after anything."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.config import Settings, load_settings
from headgate.errors import InvalidRequest, ServerUnavailable
from headgate.export import run as run_module
from headgate.export.definition import parse_options
from headgate.export.links import Links
from headgate.export.mail import Mailer
from headgate.export.notify import Notifier
from headgate.export.places import Destinations
from headgate.export.prune import surplus
from headgate.export.run import Surroundings
from headgate.export.service import Scheduler, Worker
from headgate.storage import Place as StoragePlace
from headgate.storage import Storages
from headgate.storage.aws import s3_client
from headgate.store import Exports, RunRecord, RunState, Store
from headgate.store.export_records import ERASED
from tests.support.mails import PASSWORD, MailServer
from tests.unit.export.lake import SALES, MemoryRows, MemoryTables
from tests.unit.export.test_webhook import Receiver, receiver

__all__ = ["receiver"]
KEY = "a key of masks"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
SPEC: dict[str, Any] = {
    "sql": "SELECT * FROM sales WHERE at >= :from AND at < :to",
    "zone": "Europe/Oslo",
    "masks": {"mail": {"mask": "hash", "secret": "key"}},
    "mail": {"to": ["a@example.org", "b@example.org"]},
    "retries": 2,
}


@dataclass
class Clock:
    """Time as a test sets it."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass
class Place:
    """A control state, a lake, a folder and a mail server, and workers on them."""

    exports: Exports
    clock: Clock
    root: Path
    mails: MailServer
    settings: Settings
    storages: Storages
    client_of: Callable[[StoragePlace], Any] = s3_client
    tables: MemoryTables = field(default_factory=MemoryTables)
    rows: MemoryRows = field(default_factory=MemoryRows)
    stop: threading.Event = field(default_factory=threading.Event)
    secrets: dict[str, str] = field(default_factory=dict)
    tagged: frozenset[str] = frozenset()

    def worker(self) -> Worker:
        def secret(name: str) -> str:
            return {"key": KEY, "mail": PASSWORD, **self.secrets}[name]

        destinations = Destinations(self.root, self.storages, self.client_of)
        around = Surroundings(
            self.tables,
            self.rows,
            secret,
            destinations.of,
            "local",
            lambda _: self.tables.kind,
            self.exports.last_increment,
            lambda _: self.tagged,
        )
        mailer = Mailer(self.settings.export.smtp, secret)
        notifier = Notifier(
            mailer, Links("key of links", "https://h.example/"), secret, 3600, destinations.read
        )
        return Worker(self.exports, around, notifier, 0.001, self.stop)

    def work(self, times: int = 1) -> None:
        for _ in range(times):
            self.clock.now += 60.0
            assert self.worker().work()

    def ask(self, **said: Any) -> RunRecord:
        self.exports.create("weekly", SPEC | said)
        return self.again()

    def again(self) -> RunRecord:
        return self.exports.request("weekly", NOW - 86_400, NOW)

    def file(self, run: RunRecord) -> bytes:
        return Path(self.exports.run(run.id).detail["file"]).read_bytes()


@pytest.fixture
def place(settings: Settings, tmp_path: Path) -> Iterator[Place]:
    store = Store.open(settings.store_url)
    clock = Clock()
    with MailServer(tmp_path / "mail") as mails:
        sending = load_settings(environment=mails.environment, data=tmp_path / "data")
        yield Place(
            Exports(store.engine, clock), clock, tmp_path / "exports", mails, sending, Storages(store.engine)
        )
    store.close()


def test_a_run_ends_with_a_file_its_manifest_and_a_mail(place: Place) -> None:
    run = place.ask()
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.reason, done.detail["rows"]) == (RunState.DONE, "", 10)
    content = place.file(run)
    assert content.count(b"\r\n") == 11
    assert b"example.org" not in content
    manifest = json.loads(Path(f"{done.detail['file']}.manifest.json").read_text())
    assert manifest["snapshots"] == {"local.sales": "7"}
    assert manifest["file"]["sha256"] == done.detail["sha256"]
    assert (manifest["masked"], manifest["repeatable"]) == ({"mail": "hash"}, True)
    assert place.tables.tags == {(SALES, f"headgate-export-{run.id}"): 7}
    (asked,) = place.rows.asked
    assert "`lake`.`local`.`sales` VERSION AS OF 7" in asked
    assert "TIMESTAMP_LTZ '2026-11-15 12:00:00.000000Z'" in asked
    assert asked.endswith("ORDER BY `id` ASC NULLS FIRST, `mail` ASC NULLS FIRST, `town` ASC NULLS FIRST")
    (mail,) = place.mails.mails
    assert mail["Message-ID"] == done.detail["message_id"] == f"<headgate-export-{run.id}@headgate.example>"
    (attachment,) = mail.iter_attachments()
    assert attachment.get_payload(decode=True) == content


class Killed(BaseException):
    """As SIGKILL: nothing after it is done."""


@pytest.mark.parametrize(
    "at",
    [
        "export-taken",
        "export-chosen",
        "export-held",
        "export-writing",
        "export-written",
        "export-recorded",
        "export-moved",
        "export-manifest",
    ],
)
@pytest.mark.parametrize("sql", [SPEC["sql"], "SELECT *, rand() AS r FROM sales WHERE at < :to"])
def test_a_run_that_is_broken_off_at_a_step_goes_on_to_one_file(
    place: Place, at: str, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = place.ask(sql=sql)

    def die(name: str) -> None:
        if name == at:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "failpoint", die)
        with pytest.raises(Killed):
            place.worker().work()
    # The table has moved on; what was chosen is still what is read.
    first = place.exports.run(run.id).detail.get("snapshots")
    place.tables.current[SALES] = 8
    place.tables.there.add(8)
    assert not place.worker().work(), "the lease of who was killed still holds"
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.detail["rows"]) == (RunState.DONE, 10)
    assert done.detail["snapshots"] == (first or {"local.sales": 8})
    folder = sorted(path.name for path in place.root.iterdir() if not path.name.endswith(".part"))
    name = Path(done.detail["file"]).name
    assert folder == [name, f"{name}.manifest.json"]
    assert not [path for path in place.root.iterdir() if path.name.endswith(".part")]
    assert len(place.mails.taken) == 1


@pytest.mark.parametrize("said", [{}, {"part_bytes": 50}])
def test_a_file_of_snapshots_that_are_gone_is_not_taken_for_one_of_those_chosen_now(
    place: Place, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = place.ask(**said)

    def die(name: str) -> None:
        if name == "export-moved":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(run_module, "failpoint", die)
        with pytest.raises(Killed):
            place.worker().work()
    # An erasure takes the tag and the snapshot away.
    place.tables.tags.clear()
    place.tables.there = {8}
    place.tables.current[SALES] = 8
    place.rows.rows = place.rows.rows[:4]
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.detail["rows"]) == (RunState.DONE, 4)
    manifest = json.loads(Path(str(place.root / done.detail["manifest"])).read_text())
    assert (manifest["snapshots"], manifest["file"]["rows"]) == ({"local.sales": "8"}, 4)
    files = [path for path in place.root.iterdir() if path.name != done.detail["manifest"]]
    assert b"".join(path.read_bytes() for path in files).count(b"Delft") == 4


def test_a_run_that_goes_on_during_an_erasure_stays_marked(place: Place) -> None:
    run = place.ask()
    batches = place.rows._batches

    def erased() -> Iterator[pa.RecordBatch]:
        place.exports.note_erasure([run.id])
        yield from batches()

    place.rows._batches = erased  # type: ignore[method-assign]
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, done.detail["unrepeatable"]) == (RunState.DONE, [ERASED])


def test_a_mail_whose_record_was_lost_is_sent_again_under_the_same_id(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = place.ask()

    def die(name: str) -> None:
        if name == "export-mailed":
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("headgate.export.notify.failpoint", die)
        with pytest.raises(Killed):
            place.worker().work()
    before = place.file(run)
    place.work()
    assert place.exports.run(run.id).state is RunState.DONE
    assert len({mail["Message-ID"] for mail in place.mails.mails}) == 1
    assert (len(place.mails.taken), place.file(run)) == (2, before)
    assert len(place.rows.asked) == 1


def test_a_failure_that_may_pass_is_tried_again_and_then_told(place: Place) -> None:
    error = ServerUnavailable("The query driver was cut off.")
    place.rows.errors = [(1, error)]
    run = place.ask()
    place.work(2)
    assert place.exports.run(run.id).state is RunState.DONE
    assert not [path for path in place.root.iterdir() if path.name.startswith(".")]
    place.rows.errors = [(0, error)] * 3
    lost = place.again()
    place.work(3)
    failed = place.exports.run(lost.id)
    assert (failed.state, failed.reason) == (RunState.FAILED, "The query driver was cut off.")
    mail = place.mails.mails[-1]
    assert "has failed" in mail["Subject"]
    assert mail["Message-ID"] == f"<headgate-export-{lost.id}.failed@headgate.example>"
    assert {tag for _, tag in place.tables.tags} == {f"headgate-export-{run.id}"}


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"columns": ["id"]}, "columns 'mail', 'town', which may not leave"),
        ({"personal": ["town"]}, "'town' is personal and would leave unmasked"),
        ({"masks": {"post": {"mask": "redact"}}}, "masks names column 'post'"),
        ({"masks": {}, "strict": True}, "column 'mail' looks like a mail address, by its name"),
        ({"masks": {"id": {"mask": "email"}}}, "Mask email hides a text"),
        (
            {"sql": "WITH sales AS (SELECT * FROM `local`.`sales`) SELECT * FROM sales"},
            "as a table is called",
        ),
    ],
)
def test_what_may_not_leave_stops_the_run_at_once(place: Place, said: dict[str, Any], reason: str) -> None:
    run = place.ask(**said)
    place.work()
    failed = place.exports.run(run.id)
    assert failed.state is RunState.FAILED
    assert reason in failed.reason
    assert not place.root.exists() or not list(place.root.iterdir())
    assert place.tables.tags == {}


def test_a_column_that_holds_mail_addresses_is_a_warning_without_any_of_them(place: Place) -> None:
    place.rows.rows = [{"id": 1, "mail": "", "town": "jan@example.org"}]
    run = place.ask()
    place.work()
    done = place.exports.run(run.id)
    assert done.detail["warnings"] == ["column 'town' holds what looks like mail addresses"]
    assert "jan@" not in json.dumps(done.detail["warnings"])
    text = place.mails.mails[0].get_body(("plain",))
    assert text is not None
    assert "Note: column 'town' holds" in text.get_content()


def test_a_file_of_somebody_else_is_not_touched(place: Place) -> None:
    run = place.ask()
    place.work()
    name = Path(place.exports.run(run.id).detail["file"])
    other = place.again()
    taken = name.with_name(name.name.replace(".csv", ".2.csv"))
    taken.write_text("mine")
    place.work()
    failed = place.exports.run(other.id)
    assert (failed.state, "is there already" in failed.reason) == (RunState.FAILED, True)
    assert taken.read_text() == "mine"
    third = place.again()
    place.work()
    assert Path(place.exports.run(third.id).detail["file"]).name.endswith(".3.csv")
    assert place.file(third) == place.file(run)


def test_snapshots_that_expired_before_they_were_held_are_chosen_again(place: Place) -> None:
    run = place.ask()
    place.tables.there = {9}

    snapshots = iter([7, 9])
    place.tables.snapshot = lambda table: next(snapshots)  # type: ignore[method-assign]
    place.work()
    assert place.exports.run(run.id).detail["snapshots"] == {"local.sales": 9}


def test_who_was_told_is_not_told_again(place: Place) -> None:
    run = place.ask()
    place.mails.refusals = {"a@example.org": "550 nobody here"}
    place.work()
    done = place.exports.run(run.id)
    assert done.state is RunState.DONE
    assert done.detail["told"] == {"a@example.org": "refused: 550 nobody here", "b@example.org": "sent"}


def test_who_is_put_off_gets_the_mail_later_and_the_others_once(place: Place) -> None:
    run = place.ask()
    place.mails.refusals = {"a@example.org": "450 greylisted"}
    place.work()
    assert place.exports.run(run.id).detail["told"] == {"b@example.org": "sent"}
    place.mails.refusals = {}
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, set(done.detail["told"])) == (RunState.DONE, {"a@example.org", "b@example.org"})
    assert [recipients for recipients, _ in place.mails.taken] == [["b@example.org"], ["a@example.org"]]
    assert len({mail["Message-ID"] for mail in place.mails.mails}) == 1


def test_a_mail_is_sent_however_long_its_server_takes_none(place: Place, receiver: Receiver) -> None:
    url = f"http://127.0.0.1:{receiver.server_port}/hook"
    run = place.ask(webhook={"url": url, "secret": "key"})
    place.mails.busy = 6
    place.work(6)
    waiting = place.exports.run(run.id)
    assert (waiting.state, "451" in waiting.reason) == (RunState.WRITTEN, True)
    assert len(receiver.posted) == 1, "others are told meanwhile"
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, len(place.mails.taken), len(receiver.posted)) == (RunState.DONE, 1, 1)


def test_a_failure_is_told_however_long_the_mail_server_takes_none(place: Place) -> None:
    run = place.ask(masks={}, strict=True)
    place.mails.busy = 4
    place.work()
    failed = place.exports.run(run.id)
    assert (failed.state, failed.ended_at) == (RunState.FAILED, place.clock.now)
    place.work(4)
    told = place.exports.run(run.id)
    assert (told.state, told.reason, told.ended_at) == (RunState.FAILED, failed.reason, failed.ended_at)
    assert "by its name" in told.reason
    (mail,) = place.mails.mails
    assert mail["Message-ID"] == f"<headgate-export-{run.id}.failed@headgate.example>"
    assert not place.worker().work(), "all know"


def test_a_mail_that_is_too_large_for_the_server_has_a_link(place: Place) -> None:
    place.rows.rows = [{"id": number, "mail": None, "town": "x" * 100} for number in range(500)]
    run = place.ask()
    place.mails.most_bytes = 20_000
    place.work()
    assert place.exports.run(run.id).state is RunState.DONE
    (mail,) = place.mails.mails
    text = mail.get_body(("plain",))
    assert text is not None
    assert "https://h.example/exports/files/" in text.get_content()
    assert not list(mail.iter_attachments())


def test_a_mail_that_is_refused_for_good_is_not_sent_again(place: Place) -> None:
    run = place.ask()
    place.mails.most_bytes = 1
    place.work()
    done = place.exports.run(run.id)
    assert (done.state, place.mails.taken) == (RunState.DONE, [])
    assert {told.split(":")[0] for told in done.detail["told"].values()} == {"refused"}
    assert "552" in done.detail["told"]["a@example.org"]


def test_a_run_is_one_workers_and_an_export_has_one_at_a_time(place: Place) -> None:
    first = place.ask()
    place.again()
    taken = place.exports.take("one", 60)
    assert taken is not None
    assert taken.id == first.id
    assert place.exports.take("two", 60) is None
    assert place.exports.keep(first.id, "one", 60)
    place.clock.now += 61
    again = place.exports.take("two", 60)
    assert again is not None
    assert again.id == first.id
    # Who comes back late changes nothing.
    assert not place.exports.note(first.id, "one", RunState.DONE, {})
    assert not place.exports.end(first.id, "one", RunState.DONE, "", {})
    place.exports.release_all("tw")
    third = place.exports.take("three", 60)
    assert third is not None
    assert third.id == first.id


def test_files_are_kept_as_many_as_are_wanted_and_none_that_was_changed(place: Place) -> None:
    runs = [place.ask(keep_files=2)]
    place.work()
    for _ in range(2):
        runs.append(place.again())
        place.work()
    changed = Path(place.exports.run(runs[1].id).detail["file"])
    changed.write_bytes(b"edited")
    runs.append(place.again())
    place.work()
    pruned = [place.exports.run(run.id).detail.get("pruned") for run in runs]
    assert pruned == ["removed", "left: it was changed", None, None]
    there = {path.name for path in place.root.iterdir()}
    kept = [Path(place.exports.run(run.id).detail["file"]).name for run in runs[1:]]
    assert there == {name for one in kept for name in (one, f"{one}.manifest.json")}
    assert changed.read_bytes() == b"edited"


def test_files_go_when_they_are_old_but_for_the_newest(place: Place) -> None:
    options = parse_options(SPEC | {"keep_for": "2d"})
    place.ask(keep_for="2d")
    place.work()
    place.again()
    place.work()
    old, newest = reversed(place.exports.runs("weekly"))
    assert surplus([newest, old], options, place.clock.now + 86_400) == []
    assert surplus([newest, old], options, place.clock.now + 3 * 86_400) == [old]


def made(place: Place) -> list[str]:
    runs = place.exports.runs()
    return sorted(datetime.fromtimestamp(run.period_start, UTC).isoformat()[5:10] for run in runs)


@pytest.mark.parametrize(
    ("catch_up", "starts"),
    [("all", ["11-15", "11-22", "11-29"]), ("last", ["11-29"]), ("none", [])],
)
def test_missed_times_are_made_up_for_as_said(place: Place, catch_up: str, starts: list[str]) -> None:
    place.exports.create("weekly", SPEC | {"catch_up": catch_up})
    place.clock.now += 3 * 7 * 86_400
    for _ in range(2):
        for _ in range(2):
            Scheduler(place.exports, place.clock).look()
        assert made(place) == starts
    assert place.exports.get("weekly").scheduled_until < place.clock.now


def test_of_several_servers_one_makes_the_runs(place: Place) -> None:
    place.exports.create("weekly", SPEC)
    place.clock.now += 2 * 7 * 86_400
    barrier = threading.Barrier(4)

    def look() -> None:
        scheduler = Scheduler(place.exports, place.clock)
        barrier.wait()
        scheduler.look()

    run_all([look] * 4)
    assert made(place) == ["11-15", "11-22"]


def run_all(steps: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=step) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_pause_is_not_made_up_for(place: Place) -> None:
    place.exports.create("weekly", SPEC)
    place.exports.set_desired("weekly", "paused")
    place.clock.now += 2 * 7 * 86_400
    Scheduler(place.exports, place.clock).look()
    place.exports.set_desired("weekly", "active")
    Scheduler(place.exports, place.clock).look()
    assert made(place) == []
    place.clock.now += 7 * 86_400
    Scheduler(place.exports, place.clock).look()
    assert made(place) == ["11-29"]


def test_a_run_that_is_removed_meanwhile_ends(place: Place) -> None:
    place.ask()
    place.rows.errors = [(1, InvalidRequest("never"))]
    place.exports.remove("weekly")
    assert not place.worker().work()
