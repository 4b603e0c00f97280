"""Two engines, lost replies, a registry that is away: the table equals the ledger all the same.

One engine serves them: it reaches the catalog and the registry through proxies that the tests instruct.
"""

import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest

from headgate.datagen.orders_schemas import SCHEMAS
from headgate.model import OnError, TableSpec, TableState
from scripts.readers import pyiceberg_on
from tests.faults.orders_load import live_files, produce_orders, snapshots_with_rows
from tests.support.ledger import Ledger
from tests.support.proxy import After, Before, is_batch, proxy
from tests.support.services import Process, Services, wait_for
from tests.support.stream import Stream


@dataclass
class Between:
    """What stands between the engine and the catalog, and whether the registry answers."""

    before: Before = lambda *_: None
    after: After = lambda *_: True
    registry_up: threading.Event = field(default_factory=threading.Event)

    def reset(self) -> None:
        self.before, self.after = lambda *_: None, lambda *_: True
        self.registry_up.set()


@dataclass(frozen=True)
class Proxied:
    """An engine behind proxies."""

    engine: Process
    between: Between


@pytest.fixture(scope="module")
def shared_engine(services: Services) -> Iterator[Proxied]:
    between = Between()
    between.reset()
    with (
        proxy(
            services.runtime.iceberg, lambda *call: between.before(*call), lambda *call: between.after(*call)
        ) as iceberg,
        proxy(
            services.runtime.registry, lambda *_: None, lambda *_: between.registry_up.is_set()
        ) as registry,
        services.engine(iceberg, registry) as engine,
    ):
        yield Proxied(engine, between)


@pytest.fixture
def proxied(shared_engine: Proxied) -> Iterator[Proxied]:
    yield shared_engine
    shared_engine.between.reset()


def waits_for_the_registry(services: Services, topic: str) -> bool:
    status = services.store.table(topic).status
    assert status.state is not TableState.SUSPENDED, status.reason
    return status.state in (TableState.DEGRADED, TableState.FAILED) and "registry" in status.reason


def dead_records(services: Services, topic: str) -> int:
    catalog = pyiceberg_on(services.runtime.iceberg)
    name = ("local", f"{topic}.dlq")
    return catalog.load_table(name).scan().to_arrow().num_rows if catalog.table_exists(name) else 0


def test_a_reply_lost_after_the_commit_and_its_batch_sent_again(services: Services, proxied: Proxied) -> None:
    """The catalog has committed, the engine never hears of it: one snapshot, every file there. The same batch
    again is unknown and never refused: on a 4xx the client would delete files that are the table's."""
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "lost.", 2, ledger)
    lost = threading.Event()
    batches: list[tuple[str, bytes]] = []

    def remember(method: str, path: str, body: bytes) -> None:
        if is_batch(method, body):
            batches.append((path, body))

    def lose(method: str, path: str, body: bytes) -> bool:
        if is_batch(method, body) and not lost.is_set():
            lost.set()
            return False
        return True

    proxied.between.before, proxied.between.after = remember, lose
    with services.table(TableSpec(topic, freshness_seconds=1)):
        assert lost.wait(60), "no commit came by"
        services.sync(topic)
        assert len(snapshots_with_rows(services, topic)) == 1
        assert all(file.exists() for file in live_files(services, topic))
        ledger.check(topic, services.runtime.iceberg)

        # And it goes on from there.
        produce_orders(services, "lost.", 3, ledger)
        services.sync(topic)
        ledger.check(topic, services.runtime.iceberg)
        root = services.runtime.iceberg.removesuffix("/iceberg")
        key = services.runtime.catalog_key
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        # The one whose reply was lost, and the newest.
        for path, body in (batches[0], batches[-1]):
            answer = httpx.post(root + path, content=body, headers=headers, trust_env=False)
            assert answer.status_code >= 500, answer.text
        ledger.check(topic, services.runtime.iceberg)
        services.verify(topic)


def test_the_registry_is_down_cold_and_warm(services: Services, proxied: Proxied) -> None:
    """Before the engine knows a schema and after: no good record is a dead letter."""
    stream = Stream(services.runtime, "registry.down")
    stream.register(2)
    stream.send(40, version=1)
    stream.send(40, version=2)
    up = proxied.between.registry_up
    up.clear()
    with services.table(TableSpec(stream.topic, freshness_seconds=1, on_error=OnError.LOG)):
        # Cold: the engine has never seen a schema, and cannot make the table.
        wait_for("the cold table", lambda: waits_for_the_registry(services, stream.topic))
        stream.send_bad(stream.poison())
        assert dead_records(services, stream.topic) == 0
        up.set()
        services.sync(stream.topic)
        stream.check(version=2)
        stream.check_dead()

        # Warm: what it knows it goes on reading.
        up.clear()
        before = len(stream.dead)
        stream.send(30, version=1)
        stream.send(30, version=2)
        services.sync(stream.topic)
        stream.check(version=2)
        # A schema that it does not know, and one that does not exist: nobody can say which is which.
        stream.send(30, version=3)
        stream.send_bad(stream.poison())
        wait_for("the warm table", lambda: waits_for_the_registry(services, stream.topic))
        assert dead_records(services, stream.topic) == before
        up.set()
        services.sync(stream.topic)
        stream.check(version=3)
        stream.check_dead()
        services.verify(stream.topic)


def test_an_engine_stopped_and_woken_writes_nothing_twice(services: Services, proxied: Proxied) -> None:
    """The first engine is stopped with its commit on the way; a second does its work; the first is woken.

    The last of them: the engine that they share steps down."""
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "woken.", 1, ledger)
    held, go_on = threading.Event(), threading.Event()

    def hold(method: str, path: str, body: bytes) -> None:
        if is_batch(method, body) and not held.is_set():
            held.set()
            assert go_on.wait(120)

    first = proxied.engine
    proxied.between.before = hold
    services.store.enable_table(TableSpec(topic, freshness_seconds=1))
    assert held.wait(60), "the first engine never committed"
    first.signal(signal.SIGSTOP)

    with services.engine() as second:
        services.sync(topic)
        ledger.check(topic, services.runtime.iceberg)
        before = set(live_files(services, topic))

        # Woken, and its request let through: it carries a batch that the table already has.
        first.signal(signal.SIGCONT)
        go_on.set()
        wait_for("the first engine to step down", lambda: first.popen.poll() is not None)
        assert first.popen.returncode == 0
        assert second.popen.poll() is None

        assert set(live_files(services, topic)) == before
        assert all(file.exists() for file in before)
        assert len(snapshots_with_rows(services, topic)) == 1
        ledger.check(topic, services.runtime.iceberg)
        services.verify(topic)
