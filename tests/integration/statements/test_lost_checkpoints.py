"""A statement whose checkpoint is lost, older or another one: it repeats nothing and leaves nothing out,
unless it is reset, which says what it repeats and skips."""

import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import InvalidRequest, KafkaUnavailable, StatementFailed
from headgate.kafka.markers import Marker
from headgate.kafka.offsets import Offsets
from headgate.kafka.transactional import TransactionalWriter
from headgate.model import StatementState
from headgate.statements.query import Running, StatementQuery
from headgate.statements.resetting import Places, ResetPlan, plan_of_record
from headgate.statements.runnable import Output
from headgate.statements.sink import TopicSink
from headgate.store import StatementRecord
from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import Plan, Watermark, copies, counts, projection
from tests.integration.statements.test_life import Life


class Copy:
    """A statement that copies events, started as often as wanted, and copies of its checkpoint."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.source = bench.events()
        self.plan: Plan = projection(self.source)
        self.output: Output = bench.output(self.plan)
        self.running: Running = bench.running()
        self.folder = bench.folder / self.running.id
        self.sent = 0

    def send(self, rows: int) -> None:
        self.bench.send(self.source.name, [event(n) for n in range(self.sent, self.sent + rows)])
        self.sent += rows

    def query(self) -> StatementQuery:
        return self.bench.query(self.plan, self.output, self.running)

    def run(self, *rows: int) -> None:
        """A run with a batch for each of these counts of rows."""
        query = self.query()
        query.start()
        for count in rows:
            self.send(count)
            self.bench.until_read(query, query.totals.rows_in + count)
        query.stop()

    def ids(self) -> list[int]:
        return sorted(value["id"] for value in self.bench.values(self.output.topic))

    def refused(self) -> str:
        with pytest.raises(StatementFailed) as refusal:
            self.query().start()
        return str(refusal.value)

    def kept(self, name: str) -> Path:
        return Path(shutil.copytree(self.folder, self.bench.folder / name))

    def put_back(self, kept: Path) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(kept, self.folder)


def test_a_statement_goes_on_with_no_checkpoint_but_one_that_its_output_fits(bench: Bench) -> None:
    copy = Copy(bench)
    copy.run(5)
    two_behind = copy.kept("two-behind")
    copy.run(5)
    one_behind = copy.kept("one-behind")
    copy.run(5)
    # Spark alone would put these into batches that were written, and not write them.
    copy.send(7)
    shutil.rmtree(copy.folder)
    assert "is lost" in copy.refused()
    copy.put_back(two_behind)
    said = copy.refused()
    assert "older copy" in said
    assert "headgate statement reset" in said
    assert copy.ids() == list(range(15)), "what is refused writes nothing"
    copy.put_back(one_behind)
    query = copy.query()
    query.start()
    bench.until_read(query, 12)
    query.stop()
    assert copy.ids() == list(range(22)), "the batch that was written is planned again as it was"


class Resets(Life):
    """Statements whose checkpoints are lost."""

    def stop(self, name: str) -> StatementRecord:
        self.statements.want(name, "stopped")
        return self.until_state(name, StatementState.STOPPED)

    def lose(self, name: str, step: int | None = None) -> str:
        """Why it does not start without its checkpoint."""
        record = self.statements.get(name)
        shutil.rmtree(self.folder / (record.id if step is None else f"{record.id}.{step}"))
        self.statements.want(name, "running")
        return self.until_state(name, StatementState.FAILED).reason

    def plan(self, name: str, places: Places) -> ResetPlan:
        access = self.bench.access
        return plan_of_record(self.statements.get(name), places, access, self.bench.topics, Offsets(access))

    def reset(self, name: str, places: Places) -> ResetPlan:
        plan = self.plan(name, places)
        self.statements.reset(name, {"from": plan.places, "starts": plan.starts})
        record = self.until(name, lambda record: record.desired != "reset", "the reset")
        assert record.state is StatementState.STOPPED, record.reason
        return plan

    def start(self, name: str) -> None:
        self.statements.want(name, "running")
        self.until_state(name, StatementState.RUNNING)

    def ids(self, name: str) -> Counter[int]:
        return Counter(value["id"] for value in self.bench.values(self.jobs[name].output.topic))


@pytest.fixture
def life(bench: Bench, tmp_path: Path) -> Iterator[Resets]:
    found = Resets(bench, tmp_path)
    yield found
    found.store.close()


def test_reset_from_last_goes_on_where_the_output_stands(life: Resets) -> None:
    source = life.bench.events()
    name = life.create("copy", projection(source))
    with life.engine():
        for first in (0, 5):
            life.bench.send(source.name, [event(n) for n in range(first, first + 5)], first % 2)
            life.until_rows(name, rows_out=first + 5)
        with pytest.raises(InvalidRequest, match="Stop it first"):
            life.statements.reset(name, {"from": "earliest", "starts": {}})
        life.stop(name)
        life.bench.send(source.name, [event(n) for n in range(10, 17)])
        assert "is lost" in life.lose(name)
        life.reset(name, "last")
        life.start(name)
        life.until_rows(name, rows_out=17)
        assert life.ids(name) == dict.fromkeys(range(17), 1)
        life.stop(name)
        # What was read from here on is repeated, what comes before the new start skipped.
        plan = life.reset(name, "0:3,1:5")
        assert [(s.partition, s.start, s.end) for s in plan.repeats] == [(0, 3, 12)]
        assert plan.skips == []
        life.start(name)
        life.until_rows(name, rows_out=26)
    assert life.ids(name) == Counter(range(17)) + Counter([3, 4, *range(10, 17)])


def test_reset_from_last_rebuilds_state_in_silence(life: Resets) -> None:
    source = life.bench.events("events", 1, Watermark("ts"))
    name = life.create("windows", counts(source))
    with life.engine():
        for first in (0, 15):
            rows = [event(n, f"w{n % 2}", seconds=n * 10) for n in range(first, first + 15)]
            life.bench.send(source.name, rows)
            # The first event is 20 seconds into its minute: two windows are over, then five.
            life.until_rows(name, rows_in=first + 15, rows_out=10 if first else 4)
        life.stop(name)
        assert "is lost" in life.lose(name)
        life.reset(name, "last")
        life.start(name)
        life.bench.send(source.name, [event(n, f"w{n % 2}", seconds=n * 10) for n in range(30, 60)])
        life.bench.send(source.name, [event(99, "end", seconds=2000)])
        output = life.jobs[name].output.topic
        life.until(name, lambda _: sum(v["n"] for v in life.bench.values(output)) >= 60, "the windows")
    found = Counter((value["start"], value["who"]) for value in life.bench.values(output))
    assert set(found.values()) == {1}, "no window is there twice"
    assert sum(value["n"] for value in life.bench.values(output)) == 60


def test_reset_covers_every_step_and_comes_to_the_same_when_it_is_cut_off(
    life: Resets, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    replace = TransactionalWriter.replace_marker
    cut: list[Marker] = []

    def cut_off(writer: TransactionalWriter, marker: Marker) -> Any:
        replace(writer, marker)
        if not cut and life.statements.get(name).desired == "reset":
            cut.append(marker)
            raise KafkaUnavailable("cut off between two tasks")

    with life.engine():
        life.bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(40)])
        life.until_rows(name, rows_in=40, rows_out=40)
        life.stop(name)
        life.bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(40, 50)], 1)
        reason = life.lose(name, step=2)
        assert "Step 2 of 3" in reason
        assert "is lost" in reason
        with pytest.raises(InvalidRequest, match="several steps"):
            life.plan(name, "last")
        monkeypatch.setattr(TransactionalWriter, "replace_marker", cut_off)
        plan = life.reset(name, "earliest")
        assert cut
        assert [(s.partition, s.start, s.end) for s in plan.repeats] == [(0, 0, 40)]
        life.start(name)
        life.until_rows(name, rows_out=90)
        life.stop(name)
        plan = life.reset(name, "latest")
        assert (plan.repeats, plan.skips) == ([], [])
        life.start(name)
        life.bench.send(source.name, [event(50, "w0", 1)])
        life.until_rows(name, rows_out=91)
    expected = Counter(dict.fromkeys(range(40), 2)) + Counter(range(40, 51))
    assert life.ids(name) == expected


def test_a_topic_that_is_created_again_under_a_running_statement_stops_it(
    life: Resets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be longer by then than the one before: its first records would be left out."""
    source = life.bench.events()
    name = life.create("copy", projection(source))
    records, in_batch, created = TopicSink.records, threading.Event(), threading.Event()

    def slow(sink: TopicSink, rows: Any) -> Any:
        in_batch.set()
        assert created.wait(60)
        return records(sink, rows)

    with life.engine():
        life.bench.send(source.name, [event(n) for n in range(5)])
        life.until_rows(name, rows_out=5)
        monkeypatch.setattr(TopicSink, "records", slow)
        life.bench.send(source.name, [event(5)])
        assert in_batch.wait(60)
        life.bench.topics.delete(source.name)
        life.bench.topics.create(source.name, 2)
        life.bench.new_producer()
        life.bench.send(source.name, [event(n) for n in range(100, 110)])
        created.set()
        assert "was deleted and created again" in life.until_state(name, StatementState.FAILED).reason
        second = life.create("second", projection(source), initial_offset_from=name)
        assert "was deleted and created again" in life.until_state(second, StatementState.FAILED).reason
        before = life.ids(name)
        plan = life.reset(name, "earliest")
        assert (plan.repeats, plan.skips) == ([], [])
        life.start(name)
        life.until(name, lambda _: (life.ids(name) - before).total() >= 10, "the new topic's rows")
    assert life.ids(name) - before == dict.fromkeys(range(100, 110), 1)
