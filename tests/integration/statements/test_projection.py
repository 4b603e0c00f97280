"""A query without state: rows in, rows out, each once, in the order of their key."""

import threading
import time

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from headgate.kafka.transactional import take_over_markers
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.sink import MARKERS
from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import projection

PATIENCE_SECONDS = 20.0


def test_rows_are_there_once_and_a_restart_goes_on(bench: Bench) -> None:
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan, key=("who",)), bench.running()
    for partition in (0, 1):
        rows = [event(n, f"w{partition}-{n % 3}", n - 5) for n in range(50)]
        bench.send(source.name, rows, partition)
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 100)
    query.stop()
    bench.send(source.name, [event(n, "new", n) for n in range(100, 110)])
    again = bench.query(plan, output, running)
    again.start()
    bench.until_read(again, 10)
    again.stop()
    third = bench.query(plan, output, running)
    third.start()
    # Nothing has come since, and no batch runs: all that was read is written.
    assert bench.close_what_has_come(third).watermark_ms is None
    third.stop()
    found = bench.records(output.topic)
    expected = [(n, f"w{p}-{n % 3}", (n - 5) * 100) for p in (0, 1) for n in range(5, 50)]
    expected += [(n, "new", n * 100) for n in range(100, 110)]
    assert sorted((v["id"], v["who"], v["cents"]) for _, v in found) == sorted(expected)
    by_key: dict[str, list[int]] = {}
    for key, value in found:
        assert bench.decode(key) == {"who": value["who"]}
        by_key.setdefault(value["who"], []).append(value["id"])
    assert all(ids == sorted(ids) for ids in by_key.values())
    assert query.totals.rows_in == 100
    assert query.totals.rows_out == 90


def test_a_busy_statement_stops_between_two_batches(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next batch begins as the last one ends: whoever looks never finds it at rest."""
    at_work = property(lambda _: {"isTriggerActive": True, "message": "", "isDataAvailable": True})
    monkeypatch.setattr(StreamingQuery, "status", at_work)
    source = bench.events()
    plan = projection(source)
    output, running = bench.output(plan), bench.running(interval_seconds=0.001)
    sent: list[int] = []
    stopped = threading.Event()

    def feed() -> None:
        while not stopped.wait(0.005):
            bench.send_later(source.name, event(len(sent), "busy", len(sent) + 1), len(sent) % 2)
            bench.flush()
            sent.append(len(sent))

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        query = bench.query(plan, output, running)
        query.start()
        bench.until_read(query, 20)
        began = time.monotonic()
        query.stop(PATIENCE_SECONDS)
        took = time.monotonic() - began
    finally:
        stopped.set()
        feeder.join()
    markers = take_over_markers(bench.access, running.writer, running.tasks, MARKERS)
    reached = Checkpoint(bench.spark, running.checkpoint).reached()
    assert reached is not None
    assert max(marker.batch for marker in markers if marker is not None) <= reached.batch, "half a batch"
    assert took < PATIENCE_SECONDS / 2
    again = bench.query(plan, output, running)
    again.start()
    bench.until_read(again, len(sent) - sum(reached.offsets[source.name].values()))
    again.stop()
    assert sorted(value["id"] for value in bench.values(output.topic)) == sent
