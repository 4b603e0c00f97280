"""Small batches are written by the driver with writers that stay open, others by tasks: each row once."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from headgate.errors import KafkaUnavailable, StaleBatch
from headgate.kafka.frames import Written, write_frame
from headgate.kafka.kept import KeptWriters
from headgate.kafka.markers import Marker
from headgate.kafka.transactional import Row, TransactionalWriter
from headgate.statements import sink, small
from headgate.statements.query import StatementQuery
from headgate.statements.runnable import Output
from headgate.statements.sink import MARKERS
from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import Table, Watermark, counts, projection


class Ways:
    """How often batches were written by tasks and by the driver, and how many writers this has opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_tasks = self.by_driver = 0
        self.opened = 0
        begin, keep = TransactionalWriter.__init__, KeptWriters.write

        def counted(*arguments: Any, **more: Any) -> Written:
            self.by_tasks += 1
            return write_frame(*arguments, **more)

        def begun(writer: TransactionalWriter, *arguments: Any) -> None:
            begin(writer, *arguments)
            self.opened += 1

        def kept(writers: KeptWriters, batch: Marker, topic: str, rows: Mapping[int, Sequence[Row]]) -> int:
            written = keep(writers, batch, topic, rows)
            self.by_driver += written > 0
            return written

        monkeypatch.setattr(sink, "write_frame", counted)
        monkeypatch.setattr(KeptWriters, "write", kept)
        monkeypatch.setattr(TransactionalWriter, "__init__", begun)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Ways:
    return Ways(monkeypatch)


class Copying:
    """A statement that copies events, and the ledger of what it has to give."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.source = bench.events()
        plan = projection(self.source)
        self.output = bench.output(plan, key=("who",), changelog="append")
        self.running = bench.running()
        self.query = bench.query(plan, self.output, self.running)
        self.ledger: list[dict[str, Any]] = []

    def send(self, count: int) -> None:
        """So many events, of seven keys, in both partitions."""
        first = len(self.ledger)
        rows = [event(number, f"w{number % 7}") for number in range(first, first + count)]
        self.ledger += rows
        for partition in (0, 1):
            for row in rows[partition::2]:
                self.bench.send_later(self.source.name, row, partition)
        self.bench.flush()

    def send_and_read(self, count: int) -> None:
        self.send(count)
        self.bench.until_read(self.query, len(self.ledger))

    def start_until_written(self) -> None:
        self.query.start()
        self.bench.until(self.query, "all rows", lambda: len(self.written()) >= len(self.ledger))

    def written(self) -> list[Any]:
        return self.bench.values(self.output.topic)

    def check(self) -> None:
        expected = Counter((row["id"], row["who"], row["amount"] * 100) for row in self.ledger)
        assert Counter((row["id"], row["who"], row["cents"]) for row in self.written()) == expected
        by_key: dict[str, list[int]] = {}
        for row in self.written():
            by_key.setdefault(row["who"], []).append(row["id"])
        # Of a key and a partition of the source: the order of offsets.
        for ids in by_key.values():
            for partition in (0, 1):
                own = [number for number in ids if number % 2 == partition]
                assert own == sorted(own)


@pytest.fixture
def copying(bench: Bench) -> Copying:
    return Copying(bench)


def test_small_and_large_batches_take_turns(
    copying: Copying, ways: Ways, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying.send(40)
    copying.query.start()
    copying.send_and_read(0)
    assert ways.by_tasks >= 1, "of the first batch nobody knows where it begins"
    opened, by_tasks = ways.opened, ways.by_tasks
    for _ in range(4):
        copying.send_and_read(20)
    assert ways.by_tasks == by_tasks
    assert ways.opened == opened + copying.running.tasks, "each task's writer was opened once"
    with monkeypatch.context() as patched:
        patched.setattr(small, "MOST_OFFSETS", 0)
        copying.send_and_read(50)
    assert ways.by_tasks > by_tasks
    for _ in range(2):
        copying.send_and_read(20)
    copying.query.stop()
    copying.check()


def test_a_writer_that_was_overtaken_writes_nothing_and_the_next_start_goes_on(
    copying: Copying, ways: Ways
) -> None:
    copying.send(40)
    copying.query.start()
    # The first batch is written by tasks, whatever is in it.
    copying.send_and_read(0)
    copying.send_and_read(20)
    writers = [
        TransactionalWriter(copying.bench.access, copying.running.writer, task, MARKERS) for task in (0, 1)
    ]
    copying.send(20)
    assert isinstance(copying.bench.until_failed(copying.query), StaleBatch)
    for writer in writers:
        writer.close()
    copying.start_until_written()
    copying.query.stop()
    copying.check()


@pytest.mark.parametrize("by_tasks", [False, True])
def test_a_small_batch_that_is_half_written_is_completed(
    copying: Copying, ways: Ways, monkeypatch: pytest.MonkeyPatch, by_tasks: bool
) -> None:
    """Whichever way it is written the second time: those tasks are left out that had committed."""
    copying.send(40)
    copying.query.start()
    # The first batch is written by tasks, whatever is in it.
    copying.send_and_read(0)
    copying.send_and_read(20)
    write = TransactionalWriter.write
    done: list[bool] = []

    def cut_off(writer: TransactionalWriter, batch: int | Marker, topic: str, rows: Sequence[Row]) -> bool:
        if done:
            raise KafkaUnavailable("cut off behind the first task")
        done.append(write(writer, batch, topic, rows))
        return done[0]

    with monkeypatch.context() as patched:
        patched.setattr(TransactionalWriter, "write", cut_off)
        copying.send(20)
        assert isinstance(copying.bench.until_failed(copying.query), KafkaUnavailable)
    assert done == [True]
    assert 60 < len(copying.written()) < 80
    if by_tasks:
        monkeypatch.setattr(small, "MOST_OFFSETS", 0)
    before = ways.by_tasks
    copying.start_until_written()
    assert (ways.by_tasks > before) == by_tasks
    copying.query.stop()
    copying.check()


def has_windows(bench: Bench, topic: str, count: int) -> bool:
    return len(bench.values(topic)) >= count


def test_windows_are_written_by_the_driver_while_their_state_is_small(bench: Bench, ways: Ways) -> None:
    source = Table(bench.events().name, bench.events("other").columns, watermark=Watermark("ts"))
    plan = counts(source)
    output: Output = bench.output(plan)
    query: StatementQuery = bench.query(plan, output, bench.running(idle_seconds=600))
    query.start()
    for second in range(0, 600, 30):
        for partition in (0, 1):
            bench.send(source.name, [event(second, "ann", seconds=second)], partition)
        bench.until(query, "a window", partial(has_windows, bench, output.topic, second // 60))
    assert ways.by_driver > 0
    bench.until(query, "the last window", lambda: len(bench.values(output.topic)) >= 9)
    query.stop()
    found = Counter({row["start"].timestamp(): row["n"] for row in bench.values(output.topic)})
    assert len(bench.values(output.topic)) == len(found) == 9
    assert set(found.values()) == {4}
