"""Tables whose engine dies in a batch or a replay, with new schemas and bad records under way."""

import json
import os
import shutil
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import Schema

from headgate.datagen.orders_schemas import SCHEMAS
from headgate.failpoints import POINTS
from headgate.model import OnError, TableSpec, TableState
from tests.faults.orders_load import produce_orders, snapshots_with_rows
from tests.support.ledger import Ledger
from tests.support.rounds import ENGINE_SECONDS, Drill, Rounds, nothing
from tests.support.services import wait_for
from tests.support.stream import Stream

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
OTHERS = ("replay", "rollback", "maintain", "index", "mirror", "statement")
BATCH = tuple(point for point in POINTS if not point.startswith(OTHERS))
REPLAY = tuple(point for point in POINTS if point.startswith("replay"))
# Fewer schemas are registered than this between the moment when an id is named and when it is given.
SCHEMAS_BETWEEN = 100


def enable(rounds: Rounds, stream: Stream) -> None:
    rounds.enable(TableSpec(stream.topic, freshness_seconds=1, on_error=OnError.LOG))


def die_at(rounds: Rounds, topic: str, places: tuple[str, ...], more: Any = nothing) -> Drill:
    """What is under way, begun by one engine after the other: each dies at the next of the places."""
    left = set(places)
    while left:
        place = rounds.held(topic, more)
        assert place in left
        left.remove(place)
        # The others are armed still.
        yield nothing


def killed_at_each_step(rounds: Rounds) -> Drill:
    """One batch with a new schema and bad records; then a replay."""
    steps = BATCH if SOAK else ("batch-committed",)
    stream = Stream(rounds.services.runtime, "failpoints.each")
    stream.register(1)
    enable(rounds, stream)

    def more() -> None:
        stream.send(5, version=2)
        stream.send_bad(stream.poison())

    # The table is made by the first schema, so that the second has to evolve it.
    stream.send(10)
    rounds.sync(stream.topic)
    with rounds.engine.paused():
        stream.send(40, version=2)
        later = stream.register(2) + SCHEMAS_BETWEEN
        hidden = stream.new_rows(5, version=3)
        stream.send_mixed([(None, stream.encode(row, version=3, schema_id=later)) for row in hidden])
        stream.send_bad(stream.poison())
        stream.send(10)
        more()
        rounds.arm(stream.topic, steps)
    yield from die_at(rounds, stream.topic, steps, more)
    rounds.sync(stream.topic)
    stream.check(version=2)
    stream.check_dead()

    register_as(stream, 3, later)
    replay = REPLAY if SOAK else ("replay-committed",)
    rounds.arm(stream.topic, replay)
    store = rounds.services.store
    request = store.ask(stream.topic, "replay", {})
    yield from die_at(rounds, stream.topic, replay)
    stream.rows += hidden
    wait_for("the replay", lambda: store.request(request).state == "done", ENGINE_SECONDS)
    stream.send(10, version=3)
    rounds.sync(stream.topic)
    stream.check(version=3)
    stream.check_dead(replayed=len(hidden))
    again = store.ask(stream.topic, "replay", {})
    wait_for("another replay", lambda: store.request(again).state == "done", ENGINE_SECONDS)
    assert store.request(again).result["replayed"] == 0
    stream.check(version=3)
    rounds.verify(stream.topic)


def register_as(stream: Stream, version: int, schema_id: int) -> None:
    """Registers a schema under an id that records have named already."""
    number = 0
    while number < schema_id - 1:
        # A subject each, as no two of them are compatible.
        text = json.dumps({"type": "record", "name": f"Filler_{number}", "fields": []})
        number = stream.registry.register_schema(f"{stream.topic}.filler-{number}", Schema(text, "AVRO"))
    assert stream.register(version) == schema_id, "another drill has taken the schema's id"


def killed_at(place: str) -> Any:
    """A batch of good and bad records of two schemas, which dies once, at the place."""

    def drill(rounds: Rounds) -> Drill:
        stream = Stream(rounds.services.runtime, f"failpoints.at-{place}")
        stream.register(1)
        enable(rounds, stream)
        stream.send(10)
        rounds.sync(stream.topic)
        rounds.arm(stream.topic, (place,))

        def more() -> None:
            with rounds.engine.paused():
                stream.send(20, version=2)
                stream.send_bad(stream.poison())
                stream.send(10)

        more()
        yield from die_at(rounds, stream.topic, (place,), more)
        rounds.sync(stream.topic)
        stream.send(5, version=2)
        rounds.sync(stream.topic)
        stream.check(version=2)
        stream.check_dead()
        rounds.verify(stream.topic)

    return drill


def good_in_the_first_try_and_bad_in_the_second(others: str) -> Any:
    """Its schema is deleted between the two: such a row is in exactly one of table and dead letters."""

    def drill(rounds: Rounds) -> Drill:
        stream = Stream(rounds.services.runtime, f"failpoints.deleted-{others}", partitions=1)
        stream.send(10)
        stream.register(2)
        rows = stream.new_rows(20, version=2)
        # They are sent as bad ones: what becomes of them is what this is about.
        records: list[tuple[dict[str, Any] | None, bytes]] = [
            (None, stream.encode(r, version=2)) for r in rows
        ]
        stream.send_mixed(records)
        if others == "with-bad":
            stream.send_bad(stream.poison())
        stream.send(10)

        # The first try has read them all and written the files of the good ones.
        rounds.arm(stream.topic, ("files-staged",))
        enable(rounds, stream)
        rounds.held(stream.topic)
        yield lambda: delete_version(stream, 2)
        rounds.sync(stream.topic)
        # In the second try nobody can read them: all are dead, and none is in the table.
        stream.check(version=2)
        stream.check_dead()
        rounds.verify(stream.topic)

    return drill


def delete_version(stream: Stream, version: int) -> None:
    """For good: the registry knows its id no more."""
    stream.registry.delete_version(stream.subject, version)
    stream.registry.delete_version(stream.subject, version, permanent=True)


def retention_overtakes_a_batch_that_was_begun(rounds: Rounds) -> Drill:
    """Its dead letters are written, then records go before and between them: none is dead twice."""
    services = rounds.services
    store = services.store
    stream = Stream(services.runtime, "failpoints.overtaken", partitions=1)
    stream.send(10)
    stream.send_bad(stream.poison())
    lost = stream.ends()[0]
    stream.send(10)
    stream.send_bad(stream.poison())
    stream.send(10)
    # Not where they are published: an engine that Kafka did not answer there publishes them when it tries
    # again, and never comes by that place.
    rounds.arm(stream.topic, ("dead-letters-committed",))
    enable(rounds, stream)
    rounds.held(stream.topic)

    def overtake() -> None:
        admin = AdminClient({"bootstrap.servers": services.runtime.kafka})
        for future in admin.delete_records([TopicPartition(stream.topic, 0, lost)]).values():
            future.result(30)
        stream.send(10)
        stream.rows = stream.rows[10:]

    yield overtake
    wait_for("the gap", lambda: store.table(stream.topic).status.state is TableState.SUSPENDED)
    request = store.ask(stream.topic, "accept", {"what": "lost"})
    store.set_desired(stream.topic, "enabled")
    wait_for("the answer", lambda: store.request(request).state != "waiting")
    assert store.request(request).state == "done", store.request(request).result
    rounds.sync(stream.topic)
    stream.check()
    stream.check_dead()
    rounds.verify(stream.topic)


def wiping_scratch_between_two_runs(rounds: Rounds) -> Drill:
    """There is no checkpoint to lose: the position is in the table."""
    services = rounds.services
    ledger = Ledger(SCHEMAS)
    topic = produce_orders(services, "wiped.", 4, ledger)
    rounds.enable(TableSpec(topic, freshness_seconds=1))
    rounds.sync(topic)

    def wipe() -> None:
        scratch = services.data / "scratch"
        assert scratch.exists()
        shutil.rmtree(scratch)
        produce_orders(services, "wiped.", 5, ledger)

    yield wipe
    rounds.sync(topic)
    ledger.check(topic, services.runtime.iceberg)
    assert len(snapshots_with_rows(services, topic)) == 2
    rounds.verify(topic)
