"""Control state: the life of a table, what processes say, and many at once."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from headgate.errors import AlreadyExists, NotFound
from headgate.model import Start, StartKind, TableSpec, TableState
from headgate.store import SqlObjects, Store

SPEC = TableSpec(
    "orders",
    start=Start(StartKind.OFFSETS, offsets={0: 12, 1: 40}),
    freshness_seconds=3,
    format_version=3,
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'folder' / 'control.db'}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    store = Store.open(url)
    yield store
    store.close()


def kinds(store: Store, subject: str) -> list[str]:
    return [event["kind"] for event in reversed(store.events(subject))]


def test_a_new_table_is_pending_with_its_spec_as_it_was_given(store: Store) -> None:
    store.enable_table(SPEC)

    record = store.table("orders")
    assert record.spec == SPEC
    assert (record.desired, record.status.state, record.sync_request) == ("enabled", TableState.PENDING, None)
    assert store.tables() == [record]


@pytest.mark.parametrize(
    ("declared", "column"),
    [({"column": "ts", "delay_ms": 0}, "ts"), ({"column": "$rowtime", "delay_ms": 0}, None), (None, None)],
)
def test_a_table_knows_the_watermark_that_its_topic_declares(
    store: Store, declared: dict[str, object] | None, column: str | None
) -> None:
    SqlObjects(store.engine).put("orders", "table", {"watermark": declared})
    store.enable_table(SPEC)
    assert store.table("orders").spec == replace(SPEC, watermark=column)


def test_a_table_is_enabled_once(store: Store) -> None:
    store.enable_table(SPEC)

    with pytest.raises(AlreadyExists, match="'orders' is a table already"):
        store.enable_table(TableSpec("orders"))

    assert store.table("orders").spec == SPEC


def test_what_the_engine_reports_is_what_one_reads(store: Store) -> None:
    store.enable_table(SPEC)

    store.report("orders", TableState.RUNNING, "", {"rows": 10, "position": {"0": 5}})

    status = store.table("orders").status
    assert (status.state, status.reason) == (TableState.RUNNING, "")
    assert status.detail == {"rows": 10, "position": {"0": 5}}


def test_since_moves_with_the_state_and_not_with_each_report(store: Store) -> None:
    store.enable_table(SPEC)
    store.report("orders", TableState.RUNNING, "", {"rows": 1})
    first = store.table("orders").status

    store.report("orders", TableState.RUNNING, "", {"rows": 2})
    second = store.table("orders").status
    store.report("orders", TableState.SUSPENDED, "bad records", {})
    third = store.table("orders").status

    assert second.since == first.since < third.since
    assert second.updated_at > first.updated_at
    assert kinds(store, "orders") == ["enabled", "Running", "Suspended"]


def test_resuming_keeps_what_is_known_of_the_table(store: Store) -> None:
    store.enable_table(SPEC)
    store.report("orders", TableState.SUSPENDED, "bad records", {"rows": 7})
    store.set_desired("orders", "suspended")

    store.set_desired("orders", "enabled")

    record = store.table("orders")
    assert (record.desired, record.status.state) == ("enabled", TableState.PENDING)
    assert record.status.detail == {"rows": 7}


def test_a_sync_is_asked_for_by_token(store: Store) -> None:
    store.enable_table(SPEC)

    store.request_sync("orders", "token")

    assert store.table("orders").sync_request == "token"


def test_a_removed_table_is_gone_and_stays_gone(store: Store) -> None:
    store.enable_table(SPEC)

    store.remove_table("orders")
    store.report("orders", TableState.RUNNING, "", {})

    assert store.tables() == []
    assert kinds(store, "orders") == ["enabled", "disabled"]
    store.enable_table(SPEC)
    assert store.table("orders").status.state is TableState.PENDING


def test_what_is_not_there_is_not_found(store: Store) -> None:
    for call in (
        lambda: store.table("nope"),
        lambda: store.set_desired("nope", "suspended"),
        lambda: store.request_sync("nope", "token"),
        lambda: store.remove_table("nope"),
    ):
        with pytest.raises(NotFound, match="no table for topic 'nope'"):
            call()


def test_a_process_is_stopped_until_it_beats(store: Store) -> None:
    assert store.process("engine").state == "stopped"
    before = time.time()

    store.beat("engine", "one", 123, "ready", {"jobs": 2})

    found = store.process("engine")
    assert (found.instance, found.pid, found.state, found.detail) == ("one", 123, "ready", {"jobs": 2})
    assert before <= found.beat_at <= time.time()


def test_wanting_and_beating_do_not_undo_each_other(store: Store) -> None:
    store.want("query")
    store.beat("query", "one", 1, "ready")
    assert store.process("query").wanted

    store.want("query", False)
    assert (store.process("query").wanted, store.process("query").state) == (False, "ready")


def test_an_instance_that_was_replaced_learns_of_it(store: Store) -> None:
    store.beat("engine", "one", 1, "ready")
    store.beat("engine", "two", 2, "starting")

    assert not store.keep("engine", "one", "ready")
    assert store.process("engine").state == "starting"
    assert store.keep("engine", "two", "ready")
    assert store.process("engine").state == "ready"


def test_events_are_the_newest_first_by_subject(store: Store) -> None:
    for number in range(5):
        store.log("engine" if number % 2 else "broker", "restarted", str(number))

    assert [event["message"] for event in store.events()] == ["4", "3", "2", "1", "0"]
    assert [event["message"] for event in store.events("engine")] == ["3", "1"]
    assert [event["message"] for event in store.events(limit=2)] == ["4", "3"]


def test_opening_again_finds_everything(store: Store, url: str) -> None:
    store.enable_table(SPEC)

    again = Store.open(url)

    assert again.table("orders").spec == SPEC
    again.close()


def test_of_many_that_enable_at_once_one_wins(store: Store) -> None:
    def enable(_: int) -> bool:
        try:
            store.enable_table(SPEC)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(enable, range(16)))

    assert won.count(True) == 1
    assert kinds(store, "orders") == ["enabled"]


WRITER = """
import sys
from headgate.store import Store
store = Store.open(sys.argv[1])
for number in range(100):
    store.log(sys.argv[2], "count", str(number))
store.close()
"""


def test_two_processes_write_at_once_and_nothing_is_lost(store: Store, url: str) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, name]) for name in ("one", "two")]
    for number in range(100):
        store.log("three", "count", str(number))

    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    for name in ("one", "two", "three"):
        found = [int(event["message"]) for event in store.events(name, limit=1000)]
        assert found == list(reversed(range(100)))


def test_two_that_open_a_new_database_at_once_both_can(url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        processes = list(
            pool.map(
                lambda name: subprocess.run([sys.executable, "-c", WRITER, url, name], check=False),
                ("a", "b"),
            )
        )

    assert [process.returncode for process in processes] == [0, 0]


def test_requests_wait_until_they_are_answered(store: Store) -> None:
    store.enable_table(SPEC)
    before = store.wants()
    first = store.ask("orders", "replay", {})
    second = store.ask("orders", "accept", {"what": "lost"})
    assert store.wants() != before
    waiting = store.waiting()["orders"]
    assert [(one.id, one.kind) for one in waiting] == [(first, "replay"), (second, "accept")]
    store.answer(waiting[0], "done", {"replayed": 3})
    assert [one.id for one in store.waiting()["orders"]] == [second]
    assert store.request(first).result == {"replayed": 3}
    assert "replay done" in kinds(store, "orders")
    with pytest.raises(NotFound):
        store.ask("nothing", "replay", {})
    with pytest.raises(NotFound):
        store.request("nothing")


def test_an_altered_table_is_noticed(store: Store) -> None:
    store.enable_table(SPEC)
    before = store.wants()
    store.alter_table(TableSpec("orders", freshness_seconds=60))
    assert store.wants() != before
    assert store.table("orders").spec.freshness_seconds == 60


def test_a_topic_that_was_disabled_is_declined_until_it_is_enabled(store: Store) -> None:
    store.enable_table(SPEC, origin="pattern")
    assert store.table("orders").origin == "pattern"
    store.ask("orders", "replay", {})
    store.remove_table("orders")
    assert (store.declined(), store.waiting()) == ({"orders"}, {})
    store.enable_table(SPEC)
    assert store.declined() == set()


def test_errors_of_the_database_show_no_values(store: Store) -> None:
    """They are logged, and among the values are the keys that sign tokens."""
    insert = text("insert into signing_keys (id, secret, created_at) values (:id, :secret, 0)")
    with store.engine.begin() as connection:
        connection.execute(insert, {"id": "one", "secret": "hush"})
        with pytest.raises(IntegrityError) as failure:
            connection.execute(insert, {"id": "one", "secret": "hush"})
    assert "hush" not in str(failure.value)
