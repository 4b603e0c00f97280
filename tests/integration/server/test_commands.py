"""The table commands against a real server; the test says what the engine would."""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from headgate.cli.main import app
from headgate.embedded.broker import Broker
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable, TableStopped
from headgate.kafka.topics import Topics
from headgate.model import TableState
from headgate.store import TableRecord
from tests.integration.server.conftest import Served

Act = Callable[[Callable[[TableRecord], bool]], None]


@pytest.fixture
def topic(broker: Broker) -> str:
    return Topics(broker.bootstrap).create(f"cli.{uuid.uuid4()}", partitions=2).name


@pytest.fixture
def engine(served: Served, topic: str) -> Iterator[Act]:
    """Calls what it is given with the table's record, again and again, until that is done with it."""
    threads: list[threading.Thread] = []

    def start(act: Callable[[TableRecord], bool]) -> None:
        def loop() -> None:
            deadline = time.monotonic() + 30
            while not act(served.store.table(topic)) and time.monotonic() < deadline:
                time.sleep(0.05)

        threads.append(threading.Thread(target=loop))
        threads[-1].start()

    yield start
    for thread in threads:
        thread.join()


def headgate(served: Served, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--data", str(served.data)])


def test_status_as_text_and_json(served: Served) -> None:
    text = headgate(served, "status")
    assert text.exit_code == 0, text.output
    assert ["api", served.runtime.api] in [line.split() for line in text.stdout.splitlines()]
    assert [line.split()[:2] for line in text.stdout.splitlines() if line.startswith("server ")] == [
        ["server", "ready"]
    ]

    found = json.loads(headgate(served, "status", "--json").stdout)
    assert found["addresses"] == served.runtime.addresses
    assert {"tables", "statements", "processes"} <= set(found)


def test_a_table_from_enable_to_disable(served: Served, topic: str, engine: Act) -> None:
    enabled = headgate(served, "table", "enable", topic, "--from", "latest", "--freshness", "5s")
    assert enabled.exit_code == 0, enabled.output
    assert enabled.stdout == f"{topic} is enabled: Pending, waiting for the engine\n"
    assert topic in headgate(served, "table", "list").stdout

    def catch_up(record: TableRecord) -> bool:
        if record.sync_request is None:
            return False
        position = {"cluster": "a-cluster", "topic": "a-topic", "offsets": {"0": 40}}
        detail = {"rows": 40, "lag": 60, "position": position}
        served.store.report(topic, TableState.SYNCING, "", detail)
        done = detail | {"rows": 100, "lag": 0, "synced": record.sync_request}
        served.store.report(topic, TableState.RUNNING, "", done)
        return True

    engine(catch_up)
    synced = headgate(served, "table", "sync", topic)
    assert (synced.exit_code, synced.stdout) == (0, f"{topic} is caught up, 100 rows\n"), repr(
        synced.exception
    )

    shown = headgate(served, "table", "show", topic).stdout
    assert "position          0:40" in shown
    assert "from              latest" in shown
    assert "synced" not in shown
    assert json.loads(headgate(served, "table", "show", topic, "--json").stdout)["rows"] == 100

    assert headgate(served, "table", "suspend", topic).exit_code == 0
    assert served.store.table(topic).desired == "suspended"
    assert headgate(served, "table", "resume", topic).exit_code == 0
    assert served.store.table(topic).desired == "enabled"

    def remove(record: TableRecord) -> bool:
        if record.desired == "enabled":
            return False
        served.store.remove_table(topic)
        return True

    engine(remove)
    disabled = headgate(served, "table", "disable", topic)
    assert (disabled.exit_code, disabled.stdout) == (0, f"{topic} is disabled\n")
    assert isinstance(headgate(served, "table", "show", topic).exception, NotFound)


@pytest.mark.parametrize("state", [TableState.SUSPENDED, TableState.FAILED])
def test_a_sync_of_a_table_that_stops_fails_with_the_reason(
    served: Served, topic: str, engine: Act, state: TableState
) -> None:
    headgate(served, "table", "enable", topic)

    def stop(record: TableRecord) -> bool:
        if record.sync_request is not None:
            served.store.report(topic, state, "offset 7 cannot be decoded", {})
        return record.sync_request is not None

    engine(stop)
    failed = headgate(served, "table", "sync", topic)

    assert isinstance(failed.exception, TableStopped)
    assert str(failed.exception) == f"Table '{topic}' is {state.value}: offset 7 cannot be decoded"


def test_a_sync_gives_up_in_time(served: Served, topic: str) -> None:
    headgate(served, "table", "enable", topic)

    failed = headgate(served, "table", "sync", topic, "--timeout", "500ms")

    assert isinstance(failed.exception, ServerUnavailable)
    assert "is not caught up" in str(failed.exception)


@pytest.mark.parametrize(
    ("option", "value", "supported"),
    [
        ("--formats", "iceberg,paimon", "iceberg, delta"),
        ("--mode", "merge", "auto, append, upsert, scd2"),
        ("--on-error", "ignore", "suspend, skip, log"),
    ],
)
def test_what_is_not_there_yet_is_refused_with_what_is(
    served: Served, topic: str, option: str, value: str, supported: str
) -> None:
    failed = headgate(served, "table", "enable", topic, option, value)

    assert isinstance(failed.exception, InvalidRequest)
    assert f"Supported now: {supported}." in str(failed.exception)


def test_a_purge_is_asked_about(served: Served, topic: str) -> None:
    headgate(served, "table", "enable", topic)

    refused = headgate(served, "table", "disable", topic, "--purge")

    assert isinstance(refused.exception, InvalidRequest)
    assert served.store.table(topic).desired == "enabled"
