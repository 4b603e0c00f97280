"""The engine of statements is killed: a reader of committed records sees each result once.

First where a batch is written and Spark does not know it yet: without its marker every record of it would be
written twice, and by chance a kill seldom comes there. Then at random times. At last in the middle of a
rebuild, where a statement of several steps takes over from another.
"""

import io
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import fastavro
import pytest
from confluent_kafka import Message, Producer

from headgate.kafka.records import committed_records
from headgate.kafka.topics import Topics
from headgate.registry.client import SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.statements.stages import PREFIX
from headgate.store import StatementRecord, Statements
from tests.integration.statements.bench import EVENT_SCHEMA, event, framed
from tests.support.services import Process, Services, wait_for

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
KILLS = 20 if SOAK else 1
WRITTEN, REBUILDING = "statement-written", "statement-rebuilding"
RATE = 60
WINDOW = 60
# The last two run as several queries, joined by internal topics.
PLANS = ("projection", "counts", "copies", "totals")
COPIES = ("projection", "copies")


class Feed:
    """Events that go on until told to end, and the ledger of those that the broker has acknowledged."""

    def __init__(self, kafka: str, topic: str, schema_id: int) -> None:
        self.ledger: list[dict[str, Any]] = []
        self._topic = topic
        self._schema_id = schema_id
        self._parsed = fastavro.parse_schema(EVENT_SCHEMA)
        self._producer = Producer({"bootstrap.servers": kafka, "enable.idempotence": True})
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join()
        assert self._producer.flush(60) == 0

    def _run(self) -> None:
        number = 0
        while not self._end.wait(1 / RATE):
            # Both partitions go through the same time.
            self._send(event(number, f"w{number % 7}", number % 100, seconds=number * 0.5), number % 2)
            number += 1

    def _send(self, row: dict[str, Any], partition: int) -> None:
        def told(error: object, _: Message) -> None:
            assert error is None, error
            self.ledger.append(row)

        value = framed(self._schema_id, self._parsed, row)
        self._producer.produce(self._topic, value, partition=partition, on_delivery=told)
        self._producer.poll(0)


def committed(services: Services, schemas: SchemaSource, topic: str) -> list[dict[str, Any]]:
    found: list[Any] = []
    parsed: dict[int, Any] = {}
    for message in committed_records(services.runtime.kafka, topic, {0: 0, 1: 0}, idle_seconds=None):
        data = bytes(message.value() or b"")
        number = int.from_bytes(data[1:5], "big")
        if number not in parsed:
            parsed[number] = fastavro.parse_schema(json.loads(schemas.schema(number).text))
        found.append(fastavro.schemaless_reader(io.BytesIO(data[5:]), parsed[number], None))
    return found


@pytest.mark.soak
def test_each_result_is_there_once(services: Services, tmp_path: Path) -> None:
    """Of statements that are one query and of those that are several. A row that is doubled or lost shows: in
    the copies, in the windows and in the sums over windows."""
    seed = int(os.environ.get("DRILL_SEED") or random.randrange(10**6))
    print(f"seed {seed}")
    chance = random.Random(seed)
    runtime, statements = services.runtime, Statements(services.store.engine)
    topics = Topics(runtime.kafka)
    name = f"killed-{uuid4().hex[:6]}"
    source = topics.create(name, 2).name
    with SchemaSource(runtime.registry) as schemas:
        schema_id = schemas.register(f"{source}-value", SchemaType.AVRO, json.dumps(EVENT_SCHEMA))
        outputs = {plan: f"{name}.{plan}" for plan in PLANS}
        names = dict(outputs)
        for plan, output in outputs.items():
            script = json.dumps({"plan": plan, "source": source, "output": output})
            statements.create(output, "insert", script, {"idle_seconds": 600})
        feed = Feed(runtime.kafka, source, schema_id)
        try:
            die_when_written(services, tmp_path / "points")
            for number in range(KILLS):
                with engine(services, tmp_path / "points") as process:
                    if number % 3 == 0:
                        # At work: it has come farther than its forerunner.
                        farther(statements, chance.choice(list(outputs.values())))
                    if number < KILLS - 1:
                        time.sleep(chance.uniform(0, 6))
                        process.kill()
                        continue
                    (tmp_path / "points" / REBUILDING).touch()
                    names["totals"] = taken_over(statements, outputs["totals"])
                    assert process.popen.wait(180) == -signal.SIGKILL, "see statement_engine.log"
        finally:
            feed.end()
        rows = feed.ledger
        windows = by_window(rows)
        with engine(services, tmp_path / "points"):
            for plan in PLANS:
                caught_up(statements, names[plan], len(rows) // 2)

            def of(plan: str) -> list[dict[str, Any]]:
                return committed(services, schemas, outputs[plan])

            # Steps tell their lags one after the other: all of them 0 does not say that all is through.
            wait_for("the totals", lambda: newest(of("totals")) == totals(windows))
            wait_for("the windows", lambda: len(of("counts")) >= len(windows))
            wait_for("the copies", lambda: all(len(of(plan)) >= len(rows) for plan in COPIES))
            copies, counts = {plan: of(plan) for plan in COPIES}, of("counts")
            for record in statements.all():
                statements.want(record.name, "deleted")
            wait_for("the statements to be gone", lambda: not statements.all())
        assert topics.beginning_with(PREFIX) == []
    for plan in COPIES:
        assert Counter((row["id"], row["who"], row["cents"]) for row in copies[plan]) == Counter(
            (row["id"], row["who"], row["amount"] * 100) for row in rows
        )
    found = {(int(row["start"].timestamp()), row["who"]): row["n"] for row in counts}
    assert len(found) == len(counts), "no window is there twice"
    assert found == windows


def die_when_written(services: Services, folder: Path) -> None:
    """An engine that is killed when records of a batch are committed, before Spark commits the batch."""
    folder.mkdir()
    (folder / WRITTEN).touch()
    with services.process("tests.support.statement_engine", HEADGATE_FAILPOINTS=str(folder)) as process:
        # SIGKILL, as nobody else gives it here.
        assert process.popen.wait(180) == -signal.SIGKILL, "it ended otherwise: see statement_engine.log"
    assert not (folder / WRITTEN).exists()


def taken_over(statements: Statements, name: str) -> str:
    """The name of a statement that goes on where this one stands, which is stopped at work."""
    wait_for("its last step to write", lambda: statements.get(name).detail.get("rows_out"), 180)
    statements.want(name, "stopped")
    wait_for("it to be stopped", lambda: statements.get(name).state.value == "Stopped", 120)
    script, found = statements.get(name).script, f"{name}-next"
    statements.create(found, "insert", script, {"idle_seconds": 600, "initial_offset_from": name})
    return found


def engine(services: Services, points: Path) -> Process:
    process = services.process("tests.support.statement_engine", HEADGATE_FAILPOINTS=str(points))

    def ready() -> bool:
        assert process.popen.poll() is None, "the engine ended: see statement_engine.log"
        known = services.store.process("engine")
        return known.pid == process.pid and known.state == "ready"

    try:
        wait_for("the engine", ready)
    except BaseException:
        process.kill()
        raise
    return process


def farther(statements: Statements, name: str) -> None:
    before = statements.get(name).detail.get("rows_in") or 0
    wait_for(f"{name} to go on", lambda: (statements.get(name).detail.get("rows_in") or 0) > before)


def caught_up(statements: Statements, name: str, least: int) -> StatementRecord:
    """Until it says that each partition is read to its end."""

    def reached() -> StatementRecord | None:
        record = statements.get(name)
        assert record.state.value != "Failed", record.reason
        offsets = next(iter((record.detail.get("offsets") or {"": {}}).values()))
        done = len(offsets) == 2 and all(offset >= least for offset in offsets.values())
        return record if done and record.detail["lag"] == 0 else None

    found: StatementRecord = wait_for(f"{name} to catch up", reached, 180)
    return found


def by_window(rows: list[dict[str, Any]]) -> dict[tuple[int, str], int]:
    """Those windows that end before both partitions' last event."""
    last = min(max(row["ts"] for row in rows if row["id"] % 2 == partition) for partition in (0, 1))
    found: Counter[tuple[int, str]] = Counter()
    for row in rows:
        start = row["ts"] // 1000 // WINDOW * WINDOW
        if (start + WINDOW) * 1000 <= last:
            found[(start, row["who"])] += 1
    return dict(found)


def totals(windows: dict[tuple[int, str], int]) -> dict[str, tuple[int, int]]:
    """Of each: how many windows, and how many events in them."""
    found: dict[str, tuple[int, int]] = {}
    for (_, who), events in windows.items():
        known = found.get(who, (0, 0))
        found[who] = known[0] + 1, known[1] + events
    return found


def newest(changes: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Totals only grow: the greatest of each is the newest."""
    found: dict[str, tuple[int, int]] = {}
    for row in changes:
        found[row["who"]] = max(found.get(row["who"], (0, 0)), (row["windows"], row["n"]))
    return found
