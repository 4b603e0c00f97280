"""Every embedded part replaced by a URL: one code path, other addresses. And many tables that are silent."""

import os
import time
from collections.abc import Iterator
from functools import partial

import httpx
import psutil
import pytest

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS
from headgate.datagen.produce import produce
from headgate.kafka.topics import Topics
from headgate.model import TableState
from tests.support.ledger import Ledger
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.stream import Stream
from tests.support.trespass import showing

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
TABLES, SECONDS = (200, 60.0) if SOAK else (10, 10.0)
# Of one core. The strict bound is for a machine that does nothing else; the small count shows the way.
MOST = 0.10 if SOAK else 0.60
FRESHNESS, SLACK = 5.0, 15.0 if SOAK else 30.0
NAMESPACE = "east"
CONFIG = """
tables:
  - match: "idle.*"
    freshness: 5s
  - match: "idle.*0"
    on_error: log
  - match: "idle.left-out*"
    exclude: true
"""


@pytest.fixture(scope="module")
def guest(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Headgate on Kafka, registry and catalog of another, which are somebody else's to it."""
    theirs = stack.runtime
    folder = tmp_path_factory.mktemp("guest")
    config = folder / "headgate.yaml"
    config.write_text(CONFIG)
    addresses = {
        "HEADGATE_KAFKA__BOOTSTRAP": theirs.kafka,
        "HEADGATE_REGISTRY__URL": theirs.registry,
        "HEADGATE_CATALOG__URI": theirs.iceberg,
        # Managed tables are made by who shows the key of an engine.
        "HEADGATE_CATALOG__PROPERTIES__TOKEN": theirs.catalog_key or "",
        "HEADGATE_CLUSTER__NAME": NAMESPACE,
    }
    with Stack(folder / "data", config, **addresses) as guest:
        yield guest


def test_kafka_registry_and_catalog_of_ones_own(stack: Stack, guest: Stack) -> None:
    theirs = stack.runtime
    ledger = Ledger(SCHEMAS)
    produce(Orders(11), theirs.kafka, theirs.registry, limit=200, prefix="own.", ledger=ledger)
    status = guest.json("status")
    assert status["addresses"]["kafka"] == theirs.kafka
    assert status["addresses"]["registry"] == theirs.registry
    assert status["addresses"]["iceberg"] == theirs.iceberg
    assert "broker" not in {p["name"] for p in status["processes"] if p["state"] == "ready"}
    own = guest.runtime.api.removesuffix("/api/v1")
    assert httpx.get(f"{own}/registry/subjects", trust_env=False).status_code == 404
    assert httpx.get(f"{own}/iceberg/v1/config", trust_env=False).status_code == 404
    topics = ("own.orders", "own.payments")
    for topic in topics:
        guest.run("table", "enable", topic, "--freshness", "1s")
        guest.run("table", "sync", topic, "--timeout", "120s")
        # The namespace is the cluster's name.
        ledger.check(topic, theirs.iceberg, namespace=NAMESPACE)
    found = guest.run("query", f"SELECT count(*) AS n FROM {NAMESPACE}.`own.orders`", "--output", "csv")
    assert found.stdout.split() == ["n", str(ledger.count("own.orders"))]
    # The key that the catalog takes is no argument, and in no driver's environment.
    assert showing(guest.data, [theirs.catalog_key or ""]) == []
    for topic in topics:
        guest.run("table", "disable", topic)
    wait_for("the tables to be disabled", lambda: not guest.store.tables())


def seconds_of(group: int) -> float:
    """What all processes of the group have spent, the JVM included."""
    spent = 0.0
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == group:
                times = process.cpu_times()
                spent += times.user + times.system
        except (psutil.Error, ProcessLookupError):
            continue
    return spent


def running(stack: Stack, topics: list[str]) -> bool:
    found = {record.spec.topic: record.status for record in stack.store.tables()}
    return all(topic in found and found[topic].state is TableState.RUNNING for topic in topics)


@pytest.mark.soak
def test_idle_tables_cost_almost_nothing(guest: Stack) -> None:
    streams = [Stream(guest.runtime, f"idle.t{number}", partitions=1) for number in range(TABLES)]
    topics = Topics(guest.runtime.kafka)
    for other in ("idle.left-out", "idle.some.dlq", "other.topic"):
        topics.create(other, 1)
    for stream in streams:
        stream.register(1)
    names = [stream.topic for stream in streams]
    wait_for("all tables", lambda: running(guest, names), 900 if SOAK else 240)
    # A table's own dead letters are no topic to make a table of, and neither is what Headgate keeps.
    assert {record.spec.topic for record in guest.store.tables()} == set(names)
    streams[0].send(3)
    streams[0].send_bad([b"junk"])
    guest.run("table", "sync", names[0], "--timeout", "120s")
    streams[0].check_dead()

    engine = guest.store.process("engine")
    assert engine.pid is not None
    group = os.getpgid(engine.pid)
    time.sleep(5 if SOAK else 2)
    before, started = seconds_of(group), time.monotonic()
    time.sleep(SECONDS)
    share = (seconds_of(group) - before) / (time.monotonic() - started)
    print(f"{TABLES} idle tables: {share:.1%} of one core")
    assert share < MOST

    for stream in (streams[0], streams[TABLES // 2], streams[-1]):
        stream.send(1)
        sent = time.monotonic()
        wait_for("a new record", partial(is_there, guest, stream), FRESHNESS + SLACK)
        print(f"{stream.topic}: visible after {time.monotonic() - sent:.1f} s")
        stream.check()
    assert {record.spec.topic for record in guest.store.tables()} == set(names)


def is_there(stack: Stack, stream: Stream) -> bool:
    detail = stack.store.table(stream.topic).status.detail
    return bool(detail.get("rows") == len(stream.rows))
