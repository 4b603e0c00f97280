"""The engine is killed at random times while records of three kinds arrive: appended ones, bad ones among
good ones under new schemas, and rows that are upserted. Each table equals the ledger of what was acked."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

import pytest

from headgate.datagen.orders import Orders
from headgate.datagen.orders_schemas import SCHEMAS
from headgate.datagen.produce import prepare_topics, produce
from headgate.kafka.topics import Topics
from tests.support.keyed import Keyed, check_keyed
from tests.support.ledger import Ledger, read_pyiceberg
from tests.support.stack import Stack
from tests.support.stream import Stream, mixed

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
KILLS = 6 if SOAK else 1
# Orders give a little more payments than themselves, and a record for each order.
ORDERS, ORDER_RATE = (200_000, 4_000) if SOAK else (4_000, 800)
ROWS, ROUND, ROW_RATE = (100_000, 200, 1_000) if SOAK else (2_000, 200, 400)
OPERATIONS, KEYS, PIECE = (1_000_000, 1_000, 20_000) if SOAK else (4_000, 200, 500)


class Load(Protocol):
    """Records for tables of one kind, and the ledger of them."""

    def enable(self) -> None:
        """Makes the tables, with a first batch in them: what is killed is work, not only the start of it."""
        ...

    def send(self, goes_on: Callable[[], bool]) -> None:
        """Sends what the load is made of, and more for as long as it `goes_on`."""
        ...

    def check(self) -> None:
        """Waits until the tables have caught up, and compares them with the ledger."""
        ...


class Shop:
    """Orders and their payments, appended."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self._stack = stack
        self._seed = seed
        self._ledger = Ledger(SCHEMAS)
        self._topics = ("kills.orders", "kills.payments")

    def enable(self) -> None:
        prepare_topics(Topics(self._stack.runtime.kafka), [f"kills.{topic}" for topic in SCHEMAS])
        for topic in self._topics:
            self._stack.run("table", "enable", topic, "--freshness", "1s")

    def send(self, goes_on: Callable[[], bool]) -> None:
        self._produce(self._seed, ORDERS)
        more = self._seed
        while goes_on():
            more += 1
            self._produce(more, ORDER_RATE)

    def _produce(self, seed: int, limit: int) -> None:
        runtime = self._stack.runtime
        produce(
            Orders(seed),
            runtime.kafka,
            runtime.registry,
            limit=limit,
            prefix="kills.",
            rate=ORDER_RATE,
            ledger=self._ledger,
        )

    def check(self) -> None:
        for topic in self._topics:
            self._stack.run("table", "sync", topic, "--timeout", "300s")
            assert self._ledger.count(topic) >= ORDERS * 0.9
            self._ledger.check(topic, self._stack.runtime.iceberg)
            self._stack.verify(topic)


class Poisoned:
    """Good rows of newer and newer schemas, and bad ones between them that become dead letters."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self._stack = stack
        self._chance = random.Random(seed)
        self._stream = Stream(stack.runtime, "kills.log")

    def enable(self) -> None:
        self._stack.run("table", "enable", self._stream.topic, "--freshness", "1s", "--on-error", "log")
        self._stream.send_mixed(mixed(self._stream, ROUND, 0.05, self._chance))
        self._stack.run("table", "sync", self._stream.topic, "--timeout", "300s")

    def send(self, goes_on: Callable[[], bool]) -> None:
        stream = self._stream
        while goes_on() or len(stream.rows) < ROWS:
            version = min(4, 1 + len(stream.rows) * 4 // ROWS)
            written_by = self._chance.randint(1, version)
            stream.send_mixed(mixed(stream, ROUND, 0.05, self._chance, written_by))
            time.sleep(ROUND / ROW_RATE)
        stream.send(1, version=4)

    def check(self) -> None:
        self._stack.run("table", "sync", self._stream.topic, "--timeout", "300s")
        self._stream.check(version=4)
        self._stream.check_dead()
        self._stack.verify(self._stream.topic)


class Upserted:
    """Rows by key, changed and deleted at random; some records without a key, which are dead letters."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self._stack = stack
        self._seed = seed
        self._keyed = Keyed(stack.runtime, "upsert.kills", partitions=4)

    def enable(self) -> None:
        options = ("--mode", "upsert", "--freshness", "1s", "--on-error", "log")
        self._stack.run("table", "enable", self._keyed.topic, *options)
        self._keyed.random(PIECE, KEYS // 2, self._seed, null_keys=0.01)
        self._stack.run("table", "sync", self._keyed.topic, "--timeout", "300s")

    def send(self, goes_on: Callable[[], bool]) -> None:
        sent = PIECE
        while goes_on() or sent < OPERATIONS:
            self._keyed.random(PIECE, KEYS // 2, self._seed + sent, null_keys=0.01)
            sent += PIECE
            if not SOAK:
                time.sleep(PIECE / 2_000)

    def check(self) -> None:
        keyed, iceberg = self._keyed, self._stack.runtime.iceberg
        self._stack.run("table", "sync", keyed.topic, "--timeout", "600s")
        check_keyed(keyed, iceberg)
        letters = len(list(read_pyiceberg(iceberg, "local", f"{keyed.topic}.dlq")))
        assert letters == keyed.null_keys > 0
        shown = self._stack.json("table", "show", keyed.topic)["detail"]
        assert (shown["mode"], shown["unique_keys"]) == ("upsert", len(keyed.state()))
        self._stack.verify(keyed.topic)


@pytest.mark.soak
def test_killed_at_random_times(stack: Stack) -> None:
    seed = int(os.environ.get("DRILL_SEED") or random.randrange(10**6))
    print(f"seed {seed}")
    loads: list[Load] = [Shop(stack, seed), Poisoned(stack, seed), Upserted(stack, seed)]
    for load in loads:
        load.enable()
    url = stack.runtime.settings.store_url
    command = [sys.executable, "-m", "tests.support.killer", url, str(KILLS), str(seed)]
    failed: list[BaseException] = []

    def send(load: Load) -> None:
        try:
            load.send(lambda: killer.poll() is None and not failed)
        except BaseException as error:
            failed.append(error)
            raise

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as killer:
        senders = [threading.Thread(target=send, args=(load,)) for load in loads]
        try:
            for sender in senders:
                sender.start()
            said, _ = killer.communicate(timeout=900)
        finally:
            killer.kill()
            for sender in senders:
                sender.join()
    assert not failed
    assert said.count("killed") == KILLS
    for load in loads:
        load.check()
