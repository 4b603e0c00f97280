"""The engine is killed on the way of an erasure: the next one ends it, and maintains the table by itself."""

import os
from pathlib import Path

import pytest

from headgate.failpoints import POINTS
from headgate.model import TableSpec
from tests.faults.test_failpoints import ENGINE_SECONDS, arm, die, die_at_all
from tests.support.services import Services, wait_for
from tests.support.stream import Stream

ALL = tuple(point for point in POINTS if point.startswith("maintain"))
# Each costs the start of an engine.
ARMED = ALL if os.environ.get("HEADGATE_SOAK") == "1" else ("maintain-tagged",)
# An engine that looks after its tables all the time.
EAGER = {"HEADGATE_MAINTENANCE__EVERY": "1s", "HEADGATE_MAINTENANCE__SMALL_FILES": "5"}


@pytest.mark.soak
def test_killed_on_the_way_of_an_erasure(services: Services, tmp_path: Path) -> None:
    stream = Stream(services.runtime, "maintain.killed")
    with services.table(TableSpec(stream.topic, freshness_seconds=1)):
        stream.register(1)
        stream.send(20)
        folder = tmp_path / "points"
        with services.engine(failpoints=folder) as engine:
            services.sync(stream.topic, ENGINE_SECONDS)
            arm(folder, ARMED)
            request = services.store.ask(stream.topic, "erase", {"where": "n in (3, 4)"})
            places = [die(services, engine, folder, ARMED)]
        assert {*places, *die_at_all(services, folder)} == set(ARMED)
        with services.process("headgate.engine", **EAGER):
            wait_for("the erasure", lambda: services.store.request(request).state == "done", ENGINE_SECONDS)
            stream.rows = [row for row in stream.rows if row["n"] not in (3, 4)]
            for _ in range(5):
                stream.send(4)
                services.sync(stream.topic, ENGINE_SECONDS)
            wait_for("a compaction that nobody asked for", lambda: compacted(services, stream.topic))
            stream.send(4)
            services.sync(stream.topic, ENGINE_SECONDS)
            stream.check()


def compacted(services: Services, topic: str) -> bool:
    events = services.store.events(topic)
    return any(e["kind"] == "compact done" and "by itself" in e["message"] for e in events)
