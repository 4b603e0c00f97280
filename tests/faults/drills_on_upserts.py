"""Upsert tables whose engine dies on the way to the key index, or at a step of the mirror."""

import os
import shutil

from headgate.failpoints import POINTS
from headgate.model import OnError, TableFormat, TableMode, TableSpec
from tests.faults.drills_on_batches import die_at
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.keyed import Keyed, check_keyed
from tests.support.ledger import canonical
from tests.support.rounds import ENGINE_SECONDS, Drill, Rounds
from tests.support.services import Services, wait_for

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
OF_MIRROR = tuple(point for point in POINTS if point.startswith("mirror"))
# On the way of an expiry, of a batch that changes rows; the others are on that of a new table.
OF_EXPIRY = ("mirror-checkpointed", "mirror-truncating")
OF_CHANGES = ("mirror-vectors-written",)
OF_CREATION = tuple(point for point in OF_MIRROR if point not in (*OF_EXPIRY, *OF_CHANGES)) if SOAK else ()
ON_EXPIRY = OF_EXPIRY if SOAK else ("mirror-truncating",)
OF_INDEX = ("batch-committed", "index-written", "files-staged") if SOAK else ("batch-committed",)


def check_delta(services: Services, keyed: Keyed) -> None:
    """The log shows what the table is, and that is what was acknowledged."""
    check_keyed(keyed, services.runtime.iceberg)
    location = services.store.table(keyed.topic).status.detail["location"]
    folder = "/" + str(location).removeprefix("file:").lstrip("/")
    expected = sorted(map(canonical, keyed.state()))
    for read in (read_delta_duckdb, read_delta_rs):
        rows = [{k: v for k, v in row.items() if k != "_kafka_timestamp"} for row in read(folder)]
        assert sorted(map(canonical, rows)) == expected, read.__name__


def killed_at_each_step_of_the_mirror(rounds: Rounds) -> Drill:
    """The next engine brings the log to where the table is."""
    services = rounds.services
    keyed = Keyed(services.runtime, "mirror.killed")
    formats = (TableFormat.ICEBERG, TableFormat.DELTA)
    seeds = iter(range(1000))

    def more() -> None:
        keyed.random(50, 40, next(seeds))

    keyed.random(300, 40, seed=next(seeds))
    rounds.arm(keyed.topic, OF_CREATION)
    rounds.enable(TableSpec(keyed.topic, formats=formats, mode=TableMode.UPSERT, freshness_seconds=1))
    yield from die_at(rounds, keyed.topic, OF_CREATION, more)
    rounds.sync(keyed.topic)
    rounds.arm(keyed.topic, OF_CHANGES)
    more()
    yield from die_at(rounds, keyed.topic, OF_CHANGES, more)
    rounds.sync(keyed.topic)
    check_delta(services, keyed)
    rounds.arm(keyed.topic, ON_EXPIRY)
    request = services.store.ask(keyed.topic, "expire", {"older_than": "0s", "keep_last": 1})
    yield from die_at(rounds, keyed.topic, ON_EXPIRY)
    wait_for("the expiry", lambda: services.store.request(request).state == "done", ENGINE_SECONDS)
    more()
    rounds.sync(keyed.topic)
    check_delta(services, keyed)
    rounds.verify(keyed.topic)


def killed_between_commit_and_index_and_the_index_deleted(rounds: Rounds) -> Drill:
    """The index is made again from the table, whatever is left of it."""
    services = rounds.services
    keyed = Keyed(services.runtime, "upsert.index")
    indexes = services.data / "indexes"
    keyed.random(300, 40, seed=1)
    rounds.enable(TableSpec(keyed.topic, mode=TableMode.UPSERT, freshness_seconds=1, on_error=OnError.LOG))
    numbers = iter(range(100, 200))

    def more() -> None:
        keyed.random(200, 40, seed=next(numbers))

    rounds.sync(keyed.topic)
    rounds.arm(keyed.topic, OF_INDEX)
    more()
    yield from die_at(rounds, keyed.topic, OF_INDEX, more)
    rounds.sync(keyed.topic)
    check_keyed(keyed, services.runtime.iceberg)
    # Under the engine's feet.
    shutil.rmtree(indexes)
    for seed in (2, 3):
        keyed.random(200, 40, seed)
        rounds.sync(keyed.topic)
    check_keyed(keyed, services.runtime.iceberg)

    def delete_index() -> None:
        # What is left of it, if anything: RocksDB goes on with files that have no name any more.
        shutil.rmtree(indexes, ignore_errors=True)
        keyed.random(200, 40, seed=4)

    yield delete_index
    rounds.sync(keyed.topic)
    check_keyed(keyed, services.runtime.iceberg)
    rounds.verify(keyed.topic)
