"""The engine is killed at each step of its work, with new schemas and bad records under way."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from headgate.failpoints import POINTS
from headgate.model import OnError, TableSpec, TableState
from tests.support.services import Services, wait_for
from tests.support.stream import Stream

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
REPLAY = tuple(point for point in POINTS if point.startswith("replay"))[0 if SOAK else 1 :]
BATCH = tuple(point for point in POINTS if not point.startswith(("replay", "maintain", "index", "mirror")))
# Each costs the start of an engine: a few of them tell as much as a short test can.
ARMED = BATCH if SOAK else ("dead-letters-committed", "batch-committed")
ENGINE_SECONDS = 180.0
LogTable = Callable[[Stream], None]


def arm(folder: Path, points: tuple[str, ...]) -> None:
    folder.mkdir(exist_ok=True)
    for point in points:
        (folder / point).touch()


def armed(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def die_at_all(services: Services, folder: Path, more: Callable[[], None] = lambda: None) -> list[str]:
    """Engine after engine, each killed at the next place that is armed; the places in their order.

    Before each, `more` sends something: a place may not be on the way of a batch that was begun.
    """
    places: list[str] = []
    while before := armed(folder):
        more()
        with services.doomed_engine(folder) as engine:
            code = engine.ended(ENGINE_SECONDS)
            # SIGKILL, as nobody else gives it here.
            assert code == -9, f"ended with {code}: see engine.log"
        gone = before - armed(folder)
        assert len(gone) == 1, gone
        places += gone
    return places


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
    # The table is made by the first schema, so that the second has to evolve it.
    stream.send(10)
    with services.engine():
        services.sync(stream.topic, ENGINE_SECONDS)
    stream.send(40, version=2)
    later = stream.register(2) + 1
    hidden = stream.new_rows(5, version=3)
    replayed = [(None, stream.encode(row, version=3, schema_id=later)) for row in hidden]
    stream.send_mixed(replayed)
    stream.send_bad(stream.poison())
    stream.send(10)

    arm(folder, ARMED)

    def more() -> None:
        stream.send(5, version=2)
        stream.send_bad(stream.poison())

    places = die_at_all(services, folder, more)
    print("killed at", places)
    assert set(places) == set(ARMED)
    with services.engine():
        services.sync(stream.topic, ENGINE_SECONDS)
        stream.check(version=2)
        stream.check_dead()

    assert stream.register(3) == later, "another test has taken the schema's id"
    request = services.store.ask(stream.topic, "replay", {})
    arm(folder, REPLAY)
    assert set(die_at_all(services, folder)) == set(REPLAY)
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
    arm(folder, ("dead-letters-published",))
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
