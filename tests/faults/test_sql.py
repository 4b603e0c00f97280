"""Queries of every kind as statements of a real engine, which is killed at random: what they wrote is what a
plain computation gives. tests/integration/sql/test_streams.py shows that a batch query gives the same."""

import io
import json
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from uuid import uuid4

import fastavro
import httpx
import pytest
from confluent_kafka import Message, Producer

from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.store import StatementRecord, Statements
from tests.faults.mishaps import PATIENCE_SECONDS, Mishaps
from tests.integration.statements.bench import framed
from tests.support.queries import DELAY, ENDS, KINDS, NOBODY, NOTHING, Event, Kind, at, is_end, plain
from tests.support.services import Process, Services, wait_for

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
# Data sets, and kinds of queries that read each: cases are their product.
SETS, KINDS_OF_A_SET = (20, 10) if SOAK else (1, 10)
AT_ONCE = 2 if SOAK else 1
# For how long batches are awaited that a copy of a checkpoint does not know.
MORE_SECONDS = 120.0 if SOAK else 15.0
# How often an engine dies among rows that are late; elsewhere, how often topics are then created again, and
# statements are given a copy of their checkpoint that was made a while before.
AMONG_LATE, BEFALLEN = (0.35, 0.7) if SOAK else (0.25, 1.0)
# Batches of an engine that was stopped for a while take longer.
IDLE_SECONDS = 4
# Statements of a set that end where its topics end before the kill, and where an engine dies of them.
ENDING = 2
PLACES = ("bounded-computed", "bounded-written")
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "k", "type": "int"},
        {"name": "v", "type": "long"},
        {"name": "w", "type": "string"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_TABLE = re.compile(r"\b(FROM|JOIN|TABLE)( )([ab])\b(?!\.)|(,)( )([ab])\b(?!\.)")


@dataclass
class Topic:
    """Events of one table: generated, and sent a few at a time."""

    name: str
    events: list[Event]
    #: Sent when event time has passed them.
    late: list[Event]
    sent: int = 0


@dataclass
class Set:
    """Two tables and the queries that read them."""

    a: Topic
    b: Topic
    kinds: dict[str, Kind] = field(default_factory=dict)

    def sql(self, query: str) -> str:
        """The query on these topics."""

        def named(found: re.Match[str]) -> str:
            word, table = (found[1], found[3]) if found[1] else (found[4], found[6])
            topic = self.a.name if table == "a" else self.b.name
            alias = "" if word == "TABLE" else f" AS {table}"
            return f"{word} `{topic}`{alias}"

        return _TABLE.sub(named, query)


def generated(chance: random.Random) -> list[Event]:
    """Out of order, but none later than the watermark allows, in either partition."""
    found: list[Event] = []
    base = chance.randint(0, 5)
    for place in range(chance.randint(20, 60)):
        base += chance.randint(0, 4)
        t = base - chance.randint(0, DELAY - 1)
        found.append(Event(chance.randint(0, 6), chance.randint(-2, 9), chance.choice("xyz"), t, place))
    return found


def late_events(chance: random.Random, events: list[Event]) -> list[Event]:
    """Rows of the same times and keys as all others."""
    return [
        Event(chance.randint(0, 6), chance.randint(-2, 9), chance.choice("xyz"), chance.randint(0, 60), place)
        for place in range(len(events), len(events) + chance.randint(1, 6))
    ]


class Drill:
    #: Whether some of its queries are statements that end, too.
    makes_ending = True

    def __init__(self, services: Services, schemas: SchemaSource, chance: random.Random) -> None:
        self.services = services
        self.schemas = schemas
        self.chance = chance
        self.statements = Statements(services.store.engine)
        self.sets: list[Set] = []
        #: By the name of each statement: whether it leaves rows out that are late.
        self.leaves_out: dict[str, bool] = {}
        #: Topics that are deleted and created again when the engine is killed.
        self.doomed: set[str] = set()
        #: By output: from where on it is looked at, after all was written a second time.
        self.since: dict[str, Mapping[int, int]] = {}
        #: By the name of each statement that ends: what it should have written, and whether its rows change.
        self.ending: dict[str, tuple[list[str], bool]] = {}
        self._sent: Counter[tuple[str, int]] = Counter()
        self._parsed = fastavro.parse_schema(SCHEMA)
        # Of what statements write, by id.
        self._written: dict[int, Any] = {}
        self._ids: dict[str, int] = {}
        self._producer = self._new_producer()

    def _new_producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.services.runtime.kafka, "enable.idempotence": True})

    def make(self) -> None:
        """Two topics, and statements that read them."""
        name = f"any-{uuid4().hex[:6]}"
        a, b = (self._topic(f"{name}.{table}") for table in "ab")
        for table in (a, b):
            Topics(self.services.runtime.kafka).create(table.name, 2, config={"retention.ms": "-1"})
            self._ids[table.name] = self.schemas.register(
                f"{table.name}-value", SchemaType.AVRO, json.dumps(SCHEMA)
            )
            self.run(f"ALTER TABLE `{table.name}` MODIFY WATERMARK FOR t AS t - INTERVAL '{DELAY}' SECOND")
        made = Set(a, b)
        for kind in self.chance.sample(sorted(KINDS), KINDS_OF_A_SET):
            key = "(PRIMARY KEY (k) NOT ENFORCED)" if KINDS[kind].changes else ""
            ttl = "SET 'sql.state-ttl' = '1 hour';" if self.chance.random() < 0.5 else ""
            self.run(
                f"SET 'client.statement-name' = '{name}.{kind}'; {ttl}"
                f"SET 'sql.tables.scan.idle-timeout' = '{self.idle_timeout()}';"
                f"CREATE TABLE `{name}.{kind}` {key} AS {made.sql(KINDS[kind].sql)}"
            )
            made.kinds[f"{name}.{kind}"] = KINDS[kind]
            self.leaves_out[f"{name}.{kind}"] = not (KINDS[kind].late or KINDS[kind].changes)
        self.sets.append(made)

    def idle_timeout(self) -> str:
        """Of a statement: most have one that batches exceed."""
        return self.chance.choice((f"{IDLE_SECONDS} s", f"{IDLE_SECONDS} s", "1 hour"))

    def make_ending(self) -> None:
        """Statements of what was sent until now, of all sets: they end there."""
        for made in self.sets:
            names = [name for name in sorted(made.kinds) if not self._is_doomed(made, name)]
            for name in self.chance.sample(names, min(ENDING, len(names))):
                kind, sent = made.kinds[name], (topic.events[: topic.sent] for topic in (made.a, made.b))
                key = "(PRIMARY KEY (k) NOT ENFORCED)" if kind.changes else ""
                self.run(
                    f"SET 'sql.snapshot.mode' = 'now'; SET 'client.statement-name' = '{name}.ends';"
                    f"CREATE TABLE `{name}.ends` {key} AS {made.sql(kind.sql)}"
                )
                self.ending[f"{name}.ends"] = (plain(kind.rows(*sent)), kind.changes)

    def _is_doomed(self, made: Set, name: str) -> bool:
        return any(topic in made.sql(made.kinds[name].sql) for topic in self.doomed)

    def check_ending(self) -> None:
        for name, (wanted, changes) in self.ending.items():
            wait_for(f"{name} to end", partial(self._has_ended, name), PATIENCE_SECONDS)
            assert plain(self.rows(name, changes)) == wanted, name

    def _has_ended(self, name: str) -> bool:
        record = self.statements.get(name)
        assert record.state.value != "Failed", (name, record.reason)
        return record.state.value == "Completed"

    def _topic(self, name: str) -> Topic:
        events = generated(self.chance)
        return Topic(name, events, late_events(self.chance, events))

    def run(self, text: str) -> None:
        api = self.services.runtime.api
        answer = httpx.post(f"{api}/sql", json={"sql": text}, trust_env=False, timeout=300)
        assert answer.is_success, (text, answer.text)

    def send_some(self) -> None:
        """A few events more, of each table: no partition is silent that has more to come."""
        for topic in self.topics():
            for event in topic.events[topic.sent : topic.sent + self.chance.randint(2, 12)]:
                self._send(topic.name, event.place % 2, (event.k, event.v, event.w, event.t))
                topic.sent += 1
        assert self._producer.flush(120) == 0

    def send_rest(self) -> None:
        while any(topic.sent < len(topic.events) for topic in self.topics()):
            self.send_some()
        for end in ENDS:
            for topic in self.topics():
                for partition in (0, 1):
                    self._send(topic.name, partition, (NOBODY, NOTHING, "end", end))
            assert self._producer.flush(120) == 0

    def send_late(self) -> None:
        """When the ends have moved event time everywhere, rows that it has passed: no batch that reads them
        can have an earlier watermark. Until then nothing was late."""
        for name, leaves_out in self.leaves_out.items():
            wait_for(f"event time of {name}", partial(self._passed, name, leaves_out), PATIENCE_SECONDS)
            assert self.statements.get(name).detail["late_rows"] == 0, name
        self.produce_late()
        assert self._producer.flush(120) == 0

    def _passed(self, name: str, timed: bool) -> bool:
        record = self.statements.get(name)
        assert record.state.value != "Failed", (name, record.reason)
        if not timed:
            return self._has_read_all(name)
        reached = record.detail.get("watermark")
        return reached is not None and datetime.fromisoformat(reached) >= at(ENDS[0] - DELAY)

    def _has_read_all(self, name: str) -> bool:
        offsets = self.statements.get(name).detail.get("offsets") or {}
        return bool(offsets) and all(
            int(offset) == self._sent[topic, int(partition)]
            for topic, ends in offsets.items()
            for partition, offset in ends.items()
        )

    def produce_late(self) -> None:
        for topic in self.topics():
            for event in topic.late:
                self._send(topic.name, event.place % 2, (event.k, event.v, event.w, event.t))

    def topics(self) -> list[Topic]:
        return [topic for made in self.sets for topic in (made.a, made.b)]

    def _send(self, topic: str, partition: int, values: tuple[int, int, str, int]) -> None:
        k, v, w, t = values
        row = {"k": k, "v": v, "w": w, "t": int(at(t).timestamp() * 1000)}
        self._producer.produce(topic, framed(self._ids[topic], self._parsed, row), partition=partition)
        self._sent[topic, partition] += 1

    # -- what happens to topics and checkpoints

    def doom(self) -> None:
        """Chooses what is to be created again."""
        # Fewer statements read the second one.
        self.doomed = {(self.chance.choice((made.a, made.b)) if SOAK else made.b).name for made in self.sets}

    def recreate(self, topic: str) -> None:
        """Another topic of the same name; what was sent is sent once more."""
        topics = Topics(self.services.runtime.kafka)
        partitions, config = topics.describe(topic).partitions, topics.config_overrides(topic)
        topics.delete(topic)
        topics.create(topic, len(partitions), config=config)
        for partition in partitions:
            self._sent[topic, partition] = 0
        self._producer = self._new_producer()
        self.send_again(topic)
        assert self._producer.flush(120) == 0

    def send_again(self, topic: str) -> None:
        (own,) = (one for one in self.topics() if one.name == topic)
        for event in own.events[: own.sent]:
            self._send(topic, event.place % 2, (event.k, event.v, event.w, event.t))

    def have_run(self) -> bool:
        """A statement that did nothing yet has nothing to lose."""
        records = self._running()
        assert not [record.reason for record in records if record.state.value == "Failed"]
        return all((record.detail.get("batches") or 0) > 0 for record in records)

    def share_sent(self) -> float:
        """Of the rows that are in time. What comes after copies were made, they do not know."""
        topics = self.topics()
        return sum(topic.sent for topic in topics) / sum(len(topic.events) for topic in topics)

    def batches(self) -> int:
        return sum(record.detail.get("batches") or 0 for record in self._running())

    def _running(self) -> list[StatementRecord]:
        """Of the statements that do not end by themselves."""
        return [record for record in self.statements.all() if record.name in self.leaves_out]

    def appends(self, name: str) -> bool:
        """Whether no row of it ever replaces another."""
        return any(name in made.kinds and not made.kinds[name].changes for made in self.sets)

    # -- what came of it

    def expected(self) -> Iterator[tuple[str, list[str], Callable[[], list[str]]]]:
        """Statements, what they should have written, and what they have."""
        for made in self.sets:
            for name, kind in made.kinds.items():
                wanted = plain(
                    kind.rows(*(kind.given(topic.events, topic.late) for topic in (made.a, made.b)))
                )
                yield name, wanted, partial(self.written, name, kind.changes)

    def written(self, name: str, changes: bool) -> list[str]:
        return plain([row for row in self.rows(name, changes) if not is_end(row)])

    def check(self) -> None:
        for name, wanted, found in self.expected():

            def there(
                name: str = name, wanted: list[str] = wanted, found: Callable[[], list[str]] = found
            ) -> bool:
                record = self.statements.get(name)
                assert record.state.value != "Failed", (name, record.reason)
                return self._has_read_all(name) and found() == wanted

            try:
                wait_for(f"the rows of {name}", there, PATIENCE_SECONDS)
            except AssertionError:
                assert found() == wanted, name
            late = self.statements.get(name).detail["late_rows"]
            assert (late > 0) == self.leaves_out[name], (name, late)
        for name, wanted, found in self.expected():
            assert found() == wanted, f"{name}, when all others were done"

    def rows(self, topic: str, changes: bool) -> list[tuple[Any, ...]]:
        """What is committed; of rows that change, as they are."""
        found: list[tuple[Any, ...]] = []
        last: dict[bytes, tuple[Any, ...] | None] = {}
        for message in self.messages(topic):
            value = message.value()
            row = None if value is None else tuple(self._decode(bytes(value)).values())
            if changes:
                last[bytes(message.key() or b"")] = row
            elif row is not None:
                found.append(row)
        return [row for row in last.values() if row is not None] if changes else found

    def messages(self, topic: str) -> Iterator[Message]:
        """What is committed, since its statement has begun again, if it has."""
        kafka = self.services.runtime.kafka
        places = self.since.get(topic) or dict.fromkeys(Topics(kafka).describe(topic).partitions, 0)
        return committed_records(kafka, topic, places, idle_seconds=None)

    def _decode(self, data: bytes) -> Mapping[str, Any]:
        number = int.from_bytes(data[1:5], "big")
        if number not in self._written:
            self._written[number] = fastavro.parse_schema(json.loads(self.schemas.schema(number).text))
        read: Any = fastavro.schemaless_reader(io.BytesIO(data[5:]), self._written[number], None)
        return read  # type: ignore[no-any-return]

    def send_after(self) -> None:
        """What comes behind those rows that were late."""

    def end(self) -> None:
        for record in self.statements.all():
            self.statements.want(record.name, "deleted")
        wait_for("the statements to be gone", lambda: not self.statements.all(), PATIENCE_SECONDS)
        self.sets.clear()
        self.leaves_out.clear()
        self.ending.clear()
        self.doomed.clear()
        self.since.clear()


@contextmanager
def engine(services: Services, **more: str) -> Iterator[Process]:
    quick = {"HEADGATE_STATEMENTS__INTERVAL": "0.7s", "HEADGATE_STATEMENTS__TASKS": "2", **more}
    with services.process("headgate.engine", **quick) as process:

        def ready() -> bool:
            assert process.popen.poll() is None, "the engine ended: see engine.log"
            known = services.store.process("engine")
            return known.pid == process.pid and known.state == "ready"

        wait_for("the engine", ready, PATIENCE_SECONDS)
        yield process


def kill_at_random(services: Services, kind: type[Drill], sets: int, at_once: int, cases: int) -> None:
    """Sets of statements, so many at once, each under an engine that is killed; then what is written."""
    seed = int(os.environ.get("DRILL_SEED") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    with SchemaSource(services.runtime.registry) as schemas:
        drill = kind(services, schemas, chance)
        mishaps = Mishaps(drill, chance)
        for number in range(sets // at_once):
            print(f"{number * at_once * cases} of {sets * cases} cases are done", flush=True)
            for _ in range(at_once):
                drill.make()
            # It dies among rows that are in time, or among those that are late.
            among_late = chance.random() < AMONG_LATE
            # Topics and state that are rebuilt would see late rows too: none were sent yet.
            if befall := not among_late and chance.random() < BEFALLEN:
                drill.doom()
            drill.send_some()
            if drill.makes_ending:
                drill.make_ending()
            points = Path(mkdtemp(dir=services.data))
            if drill.makes_ending and not among_late and (not befall or chance.random() < 0.5):
                # There at the latest, if it comes there.
                (points / chance.choice(PLACES)).touch()
            with engine(services, HEADGATE_FAILPOINTS=str(points)) as process:
                send_and_pause(drill, process, chance, mishaps if befall else None)
                if among_late:
                    drill.send_rest()
                    drill.send_late()
                    time.sleep(chance.uniform(0, 4))
                process.kill()
            if befall:
                mishaps.befall()
            if not among_late:
                drill.send_rest()
            mishaps.begins()
            with engine(services):
                mishaps.go_on()
                if not among_late:
                    drill.send_late()
                drill.send_after()
                drill.check_ending()
                drill.check()
                drill.end()


def send_and_pause(drill: Drill, process: Process, chance: random.Random, mishaps: Mishaps | None) -> None:
    """Rows come while the engine works. Meanwhile it does nothing for longer than an idle timeout, whatever
    batches it is in; so its checkpoints can be copied."""
    begun = time.monotonic()
    until = begun + chance.uniform(8, 30)
    pause_at, patience = begun + chance.uniform(4, until - begun), MORE_SECONDS if mishaps else 0.0
    least: int | None = None
    while process.popen.poll() is None:
        now = time.monotonic()
        if least is None and now >= pause_at and (drill.have_run() or now >= until + patience):
            with process.paused():
                drill.send_some()
                if mishaps is not None:
                    mishaps.copy_checkpoints()
                time.sleep(IDLE_SECONDS + chance.uniform(0.5, 3))
            # And the copies are behind what is written in the end.
            least = drill.batches() + 2 * len(drill.leaves_out)
        elif least is not None and now >= until and (drill.batches() >= least or now >= until + patience):
            return
        if mishaps is None or least is not None or drill.share_sent() < 0.5:
            drill.send_some()
        time.sleep(chance.uniform(0.1, 4))


@pytest.mark.soak
def test_whatever_is_asked_and_however_often_it_is_killed(services: Services) -> None:
    kill_at_random(services, Drill, SETS, AT_ONCE, KINDS_OF_A_SET)
