"""The engine is killed at each step of the mirror: the next one brings the log to where the table is."""

import os
from pathlib import Path

import pytest

from headgate.failpoints import POINTS
from headgate.model import TableFormat, TableMode, TableSpec
from tests.faults.test_failpoints import ENGINE_SECONDS, arm, die, die_at_all
from tests.support.delta import read_delta_duckdb, read_delta_rs
from tests.support.keyed import Keyed, check_keyed
from tests.support.ledger import canonical
from tests.support.services import Services, wait_for

ALL = tuple(point for point in POINTS if point.startswith("mirror"))
# On the way of an expiry, of a batch that changes rows; the others are on that of a new table.
OF_EXPIRY = ("mirror-checkpointed", "mirror-truncating")
OF_CHANGES = ("mirror-vectors-written",)
SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Each costs the start of an engine.
OF_CREATION = tuple(point for point in ALL if point not in (*OF_EXPIRY, *OF_CHANGES)) if SOAK else ()
ON_EXPIRY = OF_EXPIRY if SOAK else ("mirror-truncating",)


def check_delta(services: Services, keyed: Keyed) -> None:
    """The log shows what the table is, and that is what was acknowledged."""
    check_keyed(keyed, services.runtime.iceberg)
    location = services.store.table(keyed.topic).status.detail["location"]
    folder = "/" + str(location).removeprefix("file:").lstrip("/")
    expected = sorted(map(canonical, keyed.state()))
    for read in (read_delta_duckdb, read_delta_rs):
        rows = [{k: v for k, v in row.items() if k != "_kafka_timestamp"} for row in read(folder)]
        assert sorted(map(canonical, rows)) == expected, read.__name__


@pytest.mark.soak
def test_killed_at_each_step_of_the_mirror(services: Services, tmp_path: Path) -> None:
    keyed = Keyed(services.runtime, "mirror.killed")
    formats = (TableFormat.ICEBERG, TableFormat.DELTA)
    spec = TableSpec(keyed.topic, formats=formats, mode=TableMode.UPSERT, freshness_seconds=1)
    seeds = iter(range(100))
    with services.table(spec):
        keyed.random(300, 40, seed=next(seeds))
        folder = tmp_path / "points"
        arm(folder, OF_CREATION)
        assert set(die_at_all(services, folder)) == set(OF_CREATION)
        with services.engine(failpoints=folder) as engine:
            services.sync(keyed.topic, ENGINE_SECONDS)
            arm(folder, OF_CHANGES)
            keyed.random(50, 40, next(seeds))
            died = die(services, engine, folder, OF_CHANGES, lambda: keyed.random(50, 40, next(seeds)))
            assert (died,) == OF_CHANGES
        with services.engine(failpoints=folder) as engine:
            services.sync(keyed.topic, ENGINE_SECONDS)
            check_delta(services, keyed)
            arm(folder, ON_EXPIRY)
            request = services.store.ask(keyed.topic, "expire", {"older_than": "0s", "keep_last": 1})
            places = [die(services, engine, folder, ON_EXPIRY)]
        assert {*places, *die_at_all(services, folder)} == set(ON_EXPIRY)
        with services.engine():
            wait_for("the expiry", lambda: services.store.request(request).state == "done", ENGINE_SECONDS)
            keyed.random(50, 40, next(seeds))
            services.sync(keyed.topic, ENGINE_SECONDS)
            check_delta(services, keyed)
