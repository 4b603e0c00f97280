"""A table whose engine dies in an erasure: the next one ends it, and maintains the table by itself."""

import os

from headgate.failpoints import POINTS
from headgate.model import TableSpec
from tests.faults.drills_on_batches import die_at
from tests.support.rounds import ENGINE_SECONDS, Drill, Rounds, nothing
from tests.support.services import Services, wait_for
from tests.support.stream import Stream

ALL = tuple(point for point in POINTS if point.startswith("maintain"))
ARMED = ALL if os.environ.get("HEADGATE_SOAK") == "1" else ("maintain-tagged",)
# An engine that looks after its tables all the time.
EAGER = {"HEADGATE_MAINTENANCE__EVERY": "1s", "HEADGATE_MAINTENANCE__SMALL_FILES": "5"}


def killed_on_the_way_of_an_erasure(rounds: Rounds) -> Drill:
    services = rounds.services
    stream = Stream(services.runtime, "maintain.killed")
    stream.register(1)
    stream.send(20)
    rounds.enable(TableSpec(stream.topic, freshness_seconds=1))
    rounds.sync(stream.topic)
    rounds.arm(stream.topic, ARMED)
    request = services.store.ask(stream.topic, "erase", {"where": "n in (3, 4)"})
    yield from die_at(rounds, stream.topic, ARMED)
    wait_for("the erasure", lambda: services.store.request(request).state == "done", ENGINE_SECONDS)
    stream.rows = [row for row in stream.rows if row["n"] not in (3, 4)]
    stream.check()
    # The engines of the first rounds do only what they are asked for.
    yield nothing
    for _ in range(5):
        stream.send(4)
        rounds.sync(stream.topic)
    wait_for("a compaction that nobody asked for", lambda: compacted(services, stream.topic))
    stream.send(4)
    rounds.sync(stream.topic)
    stream.check()
    rounds.verify(stream.topic)


def compacted(services: Services, topic: str) -> bool:
    events = services.store.events(topic)
    return any(e["kind"] == "compact done" and "by itself" in e["message"] for e in events)
