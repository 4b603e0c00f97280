"""The engine is killed at each step of its work, with new schemas and bad records under way."""

import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from headgate.failpoints import POINTS
from headgate.model import OnError, TableSpec, TableState
from tests.support.services import Process, Services, wait_for
from tests.support.stream import Stream

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
REPLAY = tuple(point for point in POINTS if point.startswith("replay"))[0 if SOAK else 1 :]
OTHERS = ("replay", "maintain", "index", "mirror", "statement")
BATCH = tuple(point for point in POINTS if not point.startswith(OTHERS))
# Each costs the start of an engine: a few of them tell as much as a short test can.
ARMED = BATCH if SOAK else ("batch-committed",)
ENGINE_SECONDS = 180.0
MORE_SECONDS = 60.0
LogTable = Callable[[Stream], None]


def arm(folder: Path, points: tuple[str, ...]) -> None:
    folder.mkdir(exist_ok=True)
    for point in points:
        (folder / point).touch()


def armed(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def die_at_all(services: Services, folder: Path, more: Callable[[], None] = lambda: None) -> list[str]:
    """Engine after engine, each killed at the next place that is armed; the places in their order.

    Before each, `more` sends something: a place may not be on the way of a batch that was begun. Nor need it
    be on that of a batch that is tried again by the same engine, after Kafka did not answer: so now and then
    it sends more.
    """
    places: list[str] = []
    while before := armed(folder):
        more()
        with services.doomed_engine(folder) as engine:
            places.append(die(services, engine, folder, before, more))
    return places


def die(
    services: Services,
    engine: Process,
    folder: Path,
    before: Iterable[str],
    more: Callable[[], None] = lambda: None,
) -> str:
    """Until an engine is killed at one of the places that were armed before; which."""
    deadline = time.monotonic() + ENGINE_SECONDS
    while engine.popen.poll() is None:
        if time.monotonic() > deadline:
            pytest.fail(f"the engine lives on: {states(services)}\n{engine.last_words()}")
        with suppress(subprocess.TimeoutExpired):
            engine.popen.wait(MORE_SECONDS)
            break
        more()
    # SIGKILL, as nobody else gives it here.
    assert engine.popen.returncode == -9, f"ended with {engine.popen.returncode}: see engine.log"
    (gone,) = set(before) - armed(folder)
    return gone


def states(services: Services) -> dict[str, tuple[str, str]]:
    return {r.spec.topic: (r.status.state.value, r.status.reason) for r in services.store.tables()}


@pytest.fixture
def log_table(services: Services) -> Iterator[LogTable]:
    """Enables a table under `log`; later engines have nothing to do with it."""
    with ExitStack() as tables:

        def enable(stream: Stream) -> None:
            spec = TableSpec(stream.topic, freshness_seconds=1, on_error=OnError.LOG)
            tables.enter_context(services.table(spec))

        yield enable


@pytest.mark.soak
def test_killed_at_each_step(services: Services, tmp_path: Path, log_table: LogTable) -> None:
    """One batch, begun by one engine after the other; then a replay likewise."""
    stream = Stream(services.runtime, "failpoints.each")
    stream.register(1)
    folder = tmp_path / "points"
    log_table(stream)

    def more() -> None:
        stream.send(5, version=2)
        stream.send_bad(stream.poison())

    # The table is made by the first schema, so that the second has to evolve it.
    stream.send(10)
    with services.engine(failpoints=folder) as engine:
        services.sync(stream.topic, ENGINE_SECONDS)
        with engine.paused():
            stream.send(40, version=2)
            later = stream.register(2) + 1
            hidden = stream.new_rows(5, version=3)
            stream.send_mixed([(None, stream.encode(row, version=3, schema_id=later)) for row in hidden])
            stream.send_bad(stream.poison())
            stream.send(10)
            more()
            arm(folder, ARMED)
        places = [die(services, engine, folder, ARMED, more)]
    places += die_at_all(services, folder, more)
    print("killed at", places)
    assert set(places) == set(ARMED)
    with services.engine(failpoints=folder) as engine:
        services.sync(stream.topic, ENGINE_SECONDS)
        stream.check(version=2)
        stream.check_dead()

        assert stream.register(3) == later, "another test has taken the schema's id"
        arm(folder, REPLAY)
        request = services.store.ask(stream.topic, "replay", {})
        places = [die(services, engine, folder, REPLAY)]
    places += die_at_all(services, folder)
    assert set(places) == set(REPLAY)
    stream.rows += hidden
    with services.engine():
        wait_for("the replay", lambda: services.store.request(request).state == "done", ENGINE_SECONDS)
        stream.send(10, version=3)
        services.sync(stream.topic, ENGINE_SECONDS)
        stream.check(version=3)
        stream.check_dead(replayed=len(hidden))
        again = services.store.ask(stream.topic, "replay", {})
        wait_for("another replay", lambda: services.store.request(again).state == "done", ENGINE_SECONDS)
        assert services.store.request(again).result["replayed"] == 0
    stream.check(version=3)


@pytest.mark.soak
@pytest.mark.parametrize("others", ["with-bad", "alone"] if SOAK else ["with-bad"])
def test_good_in_the_first_try_and_bad_in_the_second(
    services: Services, tmp_path: Path, log_table: LogTable, others: str
) -> None:
    """Its schema is deleted between the two: such a row is in exactly one of table and dead letters."""
    stream = Stream(services.runtime, f"failpoints.deleted-{others}", partitions=1)
    stream.send(10)
    log_table(stream)
    folder = tmp_path / "points"
    stream.register(2)
    rows = stream.new_rows(20, version=2)
    # They are sent as bad ones: what becomes of them is what this is about.
    records: list[tuple[dict[str, Any] | None, bytes]] = [(None, stream.encode(r, version=2)) for r in rows]
    stream.send_mixed(records)
    if others == "with-bad":
        stream.send_bad(stream.poison())
    stream.send(10)

    # The first try has read them all and written the files of the good ones.
    arm(folder, ("files-staged",))
    die_at_all(services, folder)
    delete_version(stream, 2)
    with services.engine():
        services.sync(stream.topic, ENGINE_SECONDS)
    # In the second try nobody can read them: all are dead, and none is in the table.
    stream.check(version=2)
    stream.check_dead()


def test_retention_overtakes_a_batch_that_was_begun(
    services: Services, tmp_path: Path, log_table: LogTable
) -> None:
    """Its dead letters are written, then records go before and between them: none is dead twice."""
    stream = Stream(services.runtime, "failpoints.overtaken", partitions=1)
    store = services.store
    log_table(stream)
    stream.send(10)
    stream.send_bad(stream.poison())
    lost = stream.ends()[0]
    stream.send(10)
    stream.send_bad(stream.poison())
    stream.send(10)
    folder = tmp_path / "points"
    # Not where they are published: an engine that Kafka did not answer there publishes them when it tries
    # again, and never comes by that place.
    arm(folder, ("dead-letters-committed",))
    die_at_all(services, folder)
    admin = AdminClient({"bootstrap.servers": services.runtime.kafka})
    for future in admin.delete_records([TopicPartition(stream.topic, 0, lost)]).values():
        future.result(30)
    stream.send(10)
    stream.rows = stream.rows[10:]
    with services.engine():
        wait_for("the gap", lambda: store.table(stream.topic).status.state is TableState.SUSPENDED)
        request = store.ask(stream.topic, "accept", {"what": "lost"})
        store.set_desired(stream.topic, "enabled")
        wait_for("the answer", lambda: store.request(request).state != "waiting")
        assert store.request(request).state == "done", store.request(request).result
        services.sync(stream.topic, ENGINE_SECONDS)
    stream.check()
    stream.check_dead()


def delete_version(stream: Stream, version: int) -> None:
    """For good: the registry knows its id no more."""
    stream.registry.delete_version(stream.subject, version)
    stream.registry.delete_version(stream.subject, version, permanent=True)
