"""Many enabled tables whose topics are silent cost next to nothing, and hear a new record at once."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from headgate.kafka.topics import Topics
from headgate.model import TableState
from tests.support.services import wait_for
from tests.support.stack import Stack
from tests.support.stream import Stream

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
TABLES, SECONDS = (200, 60.0) if SOAK else (10, 10.0)
# Of one core. The strict bound is for a machine that does nothing else; the small count shows the way.
MOST = 0.10 if SOAK else 0.60
FRESHNESS, SLACK = 5.0, 15.0 if SOAK else 30.0
CONFIG = """
tables:
  - match: "idle.*"
    freshness: 5s
  - match: "idle.*0"
    on_error: log
  - match: "idle.left-out*"
    exclude: true
"""


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Stack]:
    config = tmp_path / "headgate.yaml"
    config.write_text(CONFIG)
    with Stack(tmp_path / "data", config) as stack:
        yield stack


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
def test_idle_tables_cost_almost_nothing(idle: Stack) -> None:
    streams = [Stream(idle.runtime, f"idle.t{number}", partitions=1) for number in range(TABLES)]
    topics = Topics(idle.runtime.kafka)
    for other in ("idle.left-out", "idle.some.dlq", "other.topic"):
        topics.create(other, 1)
    for stream in streams:
        stream.register(1)
    names = [stream.topic for stream in streams]
    wait_for("all tables", lambda: running(idle, names), 900 if SOAK else 240)
    # A table's own dead letters are no topic to make a table of, and neither is what Headgate keeps.
    assert {record.spec.topic for record in idle.store.tables()} == set(names)
    streams[0].send(3)
    streams[0].send_bad([b"junk"])
    idle.run("table", "sync", names[0], "--timeout", "120s")
    streams[0].check_dead()

    engine = idle.store.process("engine")
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
        wait_for("a new record", partial(is_there, idle, stream), FRESHNESS + SLACK)
        print(f"{stream.topic}: visible after {time.monotonic() - sent:.1f} s")
        stream.check()
    assert {record.spec.topic for record in idle.store.tables()} == set(names)


def is_there(stack: Stack, stream: Stream) -> bool:
    detail = stack.store.table(stream.topic).status.detail
    return bool(detail.get("rows") == len(stream.rows))
