"""Statements as the engine runs them: wanted, started, stopped, failed, taken over, deleted."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headgate.errors import HeadgateError, StatementFailed
from headgate.kafka.markers import Marker, prepare_markers
from headgate.kafka.transactional import Row, TransactionalWriter
from headgate.model import StatementState
from headgate.statements.checkpoint import Checkpoint
from headgate.statements.recovery import NO_BATCH
from headgate.statements.runnable import Job
from headgate.statements.sink import MARKERS
from headgate.statements.takeover import reached_whole
from headgate.store import StatementRecord, Statements, Store
from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import Plan, Watermark, counts, interval_join, keep_last, projection
from tests.support.services import wait_for


class Life:
    """A store of its own, and an engine's loop that knows plans by name."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.store = Store.open(f"sqlite:///{folder / 'control.db'}")
        self.statements = Statements(self.store.engine)
        self.jobs: dict[str, Job] = {}
        self.folder = folder / "checkpoints"

    def engine(self) -> AbstractContextManager[None]:
        return self.bench.engine(self.statements, self.make, self.folder)

    def make(self, record: StatementRecord) -> Job:
        return self.jobs[record.name]

    def create(self, name: str, plan: Plan, output: Any = None, **options: Any) -> str:
        """The name, made unlike all others; the job's output topic is new unless given."""
        found = f"{name}-{uuid4().hex[:6]}"
        self.jobs[found] = Job(plan, output or self.bench.output(plan))
        self.statements.create(found, "insert", f"-- {name}", options)
        return found

    def until(
        self, name: str, done: Callable[[StatementRecord], Any], what: str = "its state"
    ) -> StatementRecord:
        def looked() -> StatementRecord | None:
            record = self.statements.get(name)
            return record if done(record) else None

        found: StatementRecord = wait_for(f"{what} of {name}", looked, 120)
        return found

    def until_state(self, name: str, state: StatementState) -> StatementRecord:
        return self.until(name, lambda record: record.state is state, state.value)

    def until_rows(self, name: str, **counts: int) -> StatementRecord:
        def reached(record: StatementRecord) -> bool:
            assert record.state is not StatementState.FAILED, record.reason
            return all((record.detail.get(key) or 0) >= count for key, count in counts.items())

        return self.until(name, reached, str(counts))


@pytest.fixture
def life(bench: Bench, tmp_path: Path) -> Iterator[Life]:
    found = Life(bench, tmp_path)
    yield found
    found.store.close()


def test_stop_start_and_delete(life: Life) -> None:
    source = life.bench.events()
    plan = projection(source)
    name = life.create("copy", plan)
    topic = life.jobs[name].output.topic
    with life.engine():
        life.until_state(name, StatementState.RUNNING)
        life.bench.send(source.name, [event(n) for n in range(5)])
        life.until_rows(name, rows_out=5)
        life.statements.want(name, "stopped")
        stopped = life.until_state(name, StatementState.STOPPED)
        assert stopped.detail["offsets"] == {source.name: {"0": 5, "1": 0}}
        assert stopped.settled["tasks"] == 2
        life.bench.send(source.name, [event(n) for n in range(5, 8)])
        life.statements.want(name, "running")
        running = life.until_rows(name, rows_in=8, rows_out=8)
        assert running.detail["lag"] == 0
        folder = life.folder / running.id
        assert folder.exists()
        life.statements.want(name, "deleted")
        wait_for("the statement to be gone", lambda: life.statements.all() == [])
        assert not folder.exists()
    assert sorted(value["id"] for value in life.bench.values(topic)) == list(range(8))


def test_a_failure_that_needs_its_owner(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copy", projection(source))
    life.bench.send_raw(source.name, b"\x00\x00\x00\x00\x01rubbish", 1)
    life.bench.flush()
    with life.engine():
        failed = life.until_state(name, StatementState.FAILED)
        assert "partition 1, offset 0" in failed.reason
        assert failed.desired == "stopped"
        other = life.create("other", projection(life.bench.events("others")))
        life.until_state(other, StatementState.RUNNING)
        assert life.statements.get(name).state is StatementState.FAILED


def test_a_failure_that_passes_is_tried_again(life: Life) -> None:
    source = life.bench.events()
    plan = projection(source)
    name = life.create("copy", plan)
    job = life.jobs.pop(name)
    with life.engine():
        pending = life.until(name, lambda record: "trying again" in record.reason)
        assert pending.state is StatementState.PENDING
        life.jobs[name] = job
        life.until_state(name, StatementState.RUNNING)


def test_a_newer_schema_does_not_stop_a_statement(life: Life) -> None:
    from tests.integration.statements.test_records import widened

    source = life.bench.events()
    name = life.create("copy", projection(source))
    with life.engine():
        life.bench.send(source.name, [event(1)])
        life.until_rows(name, rows_out=1)
        life.bench.send(source.name, [event(2) | {"note": "x"}], schema=widened())
        life.until_rows(name, rows_out=2)


def test_a_topic_made_anew_is_another_one(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copy", projection(source))
    with life.engine():
        life.bench.send(source.name, [event(1)])
        life.until_rows(name, rows_out=1)
        life.statements.want(name, "stopped")
        life.until_state(name, StatementState.STOPPED)
        life.bench.topics.delete(source.name)
        life.bench.topics.create(source.name, 2)
        life.statements.want(name, "running")
        assert "created again" in life.until_state(name, StatementState.FAILED).reason


def test_one_without_state_goes_on_at_the_offsets_of_another(life: Life) -> None:
    source = life.bench.events()
    plan = projection(source)
    first = life.create("first", plan)
    output = life.jobs[first].output
    with life.engine():
        life.bench.send(source.name, [event(n) for n in range(10)])
        life.until_rows(first, rows_out=10)
        early = life.create("early", plan, output, initial_offset_from=first)
        assert "still runs" in life.until_state(early, StatementState.FAILED).reason
        life.statements.want(first, "stopped")
        life.until_state(first, StatementState.STOPPED)
        life.bench.send(source.name, [event(n) for n in range(10, 20)], 1)
        second = life.create("second", plan, output, initial_offset_from=first)
        found = life.until_rows(second, rows_out=10)
        assert found.detail["rows_in"] == 10
    assert sorted(value["id"] for value in life.bench.values(output.topic)) == list(range(20))


@pytest.mark.parametrize("kind", ["windows", "join", "last"])
def test_one_with_state_takes_it_over_and_says_nothing_twice(life: Life, kind: str) -> None:
    now = Watermark("ts")
    one, two = life.bench.events("one", 1, now), life.bench.events("two", 1, now)
    plan = {
        "windows": counts(one),
        "join": interval_join(one, two, 60),
        "last": keep_last(one),
    }[kind]
    name = life.create("first", plan)
    output = life.jobs[name].output
    with life.engine():
        # At 0, 10, … 190 s: those on the left find theirs on the right, which come at the same times.
        rows = [event(n, f"w{n % 4}", n, seconds=n * 10) for n in range(20)]
        life.bench.send(one.name, rows)
        if kind == "join":
            life.bench.send(two.name, [row | {"who": "r"} for row in rows[:15]])
        life.until_rows(name, rows_in=35 if kind == "join" else 20, rows_out=4)
        if kind == "windows":
            # Those that are over: what it has not given yet is given by the next one.
            life.until(
                name,
                lambda _: sum(value["n"] for value in life.bench.values(output.topic)) == 16,
                "the windows that are over",
            )
        life.statements.want(name, "stopped")
        life.until_state(name, StatementState.STOPPED)
        before = life.bench.values(output.topic)
        second = life.create("second", plan, output, initial_offset_from=name)
        rebuilt = life.until_state(second, StatementState.RUNNING)
        assert life.bench.values(output.topic) == before, "state is rebuilt in silence"
        assert rebuilt.settled["rebuild"]["offsets"][one.name] == {"0": 20}
        more = [event(n, f"w{n % 4}", n, seconds=n * 10) for n in range(20, 40)]
        life.bench.send(one.name, more)
        if kind == "join":
            life.bench.send(two.name, [row | {"who": "r"} for row in (*rows[15:], *more)])
            life.until(
                name=second, done=lambda _: len(life.bench.values(output.topic)) >= 40, what="the pairs"
            )
        elif kind == "last":
            life.until(
                name=second,
                done=lambda _: (
                    {39, 38, 37, 36} <= {value["amount"] for value in life.bench.values(output.topic)}
                ),
                what="the last rows",
            )
        else:
            life.bench.send(one.name, [event(99, "end", seconds=1000)])
            life.until(
                name=second,
                done=lambda _: sum(value["n"] for value in life.bench.values(output.topic)) >= 40,
                what="the windows",
            )
    found = life.bench.values(output.topic)
    if kind == "join":
        assert sorted(value["id"] for value in found) == list(range(40))
    elif kind == "windows":
        assert sum(value["n"] for value in found) == 40
        assert len({(value["start"], value["who"]) for value in found}) == len(found)
    else:
        last = {value["who"]: value["amount"] for value in found}
        assert last == {"w0": 36, "w1": 37, "w2": 38, "w3": 39}


def test_windows_that_were_about_to_close_are_not_lost(life: Life) -> None:
    """It was stopped when event time had passed them, and before the batch that would have given them."""
    source = life.bench.events("events", 1, Watermark("ts"))
    plan = counts(source)
    life.bench.send(source.name, [event(n, "ann", seconds=n * 10) for n in range(20)])
    # Headers are learned of on the way, in a rebuild too.
    framed = life.bench.framed(source.name, event(20, "ann", seconds=200))
    life.bench.send_raw(source.name, framed, headers=[("trace", b"x")])
    life.bench.flush()
    first = life.create("first", plan, interval_seconds=86_400)
    output = life.jobs[first].output
    with life.engine():
        life.until_rows(first, rows_in=21)
        life.statements.want(first, "stopped")
        life.until_state(first, StatementState.STOPPED)
        assert output.topic not in life.bench.topics.describe_many([output.topic]) or not life.bench.values(
            output.topic
        )
        second = life.create("second", plan, output, initial_offset_from=first)
        life.until_state(second, StatementState.RUNNING)
        life.bench.send(source.name, [event(99, "end", seconds=1000)])
        life.until(
            second,
            lambda _: sum(value["n"] for value in life.bench.values(output.topic)) >= 21,
            "the windows",
        )
    found = life.bench.values(output.topic)
    assert sum(value["n"] for value in found) == 21
    assert len({value["start"] for value in found}) == len(found)


def test_state_that_needs_another_topic_cannot_be_taken_over(life: Life) -> None:
    now = Watermark("ts")
    one, two = life.bench.events("one", 1, now), life.bench.events("two", 1, now)
    first = life.create("first", counts(one))
    with life.engine():
        life.bench.send(one.name, [event(1)])
        life.until_rows(first, rows_in=1)
        life.statements.want(first, "stopped")
        life.until_state(first, StatementState.STOPPED)
        second = life.create("second", interval_join(one, two, 60), initial_offset_from=first)
        assert two.name in life.until_state(second, StatementState.FAILED).reason


def test_a_partition_more_is_read_and_counts(life: Life) -> None:
    source = life.bench.events("grows", 1, Watermark("ts"))
    name = life.create("windows", counts(source))
    with life.engine():
        life.bench.send(source.name, [event(1, seconds=0)])
        life.until_rows(name, rows_in=1)
        life.bench.grow(source.name, 2)
        life.bench.send(source.name, [event(2, seconds=0)], 1)
        life.until(name, lambda record: len(record.detail["offsets"][source.name]) == 2, "the partition")

        def passed(record: StatementRecord) -> bool:
            # What the run before has read moves event time on with the next record.
            for partition in (0, 1):
                life.bench.send(source.name, [event(3, seconds=600)], partition)
            time.sleep(1)
            return (record.detail.get("rows_out") or 0) >= 1

        life.until(name, passed, "the window")
    found = life.bench.values(life.jobs[name].output.topic)
    assert [(value["n"]) for value in found] == [2]


def test_spark_refuses_what_it_cannot_run(life: Life) -> None:
    """A window without event time would never end."""
    name = life.create("windows", counts(life.bench.events()))
    with life.engine():
        assert "Spark does not take the query" in life.until_state(name, StatementState.FAILED).reason


def logged(life: Life, checkpoint_id: str, planned: int, done: int) -> Checkpoint:
    """A checkpoint by hand, with so many batches."""
    folder = life.folder / checkpoint_id
    found = Checkpoint(life.bench.spark, folder.as_uri())
    found.begin(checkpoint_id)
    for batch in range(planned):
        found.write_entry(batch, entry_of(batch))
    (folder / "commits").mkdir()
    for batch in range(done):
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return found


def entry_of(batch: int) -> str:
    return f'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{batch},"conf":{{}}}}\n{{"t":{{"0":{batch}}}}}'


def test_a_batch_that_is_half_written_is_not_taken_over(life: Life) -> None:
    topic, writer = life.bench.topic("half"), f"half-{uuid4().hex}"
    checkpoint = logged(life, writer, 5, 4)

    def reached() -> int:
        return reached_whole(life.bench.access, "first", writer, 2, checkpoint).batch

    prepare_markers(life.bench.access, MARKERS)
    # As before each first batch: without any marker nobody knows whether what is planned was written.
    with TransactionalWriter(life.bench.access, writer, 0, MARKERS) as task:
        task.replace_marker(Marker(NO_BATCH, writer))
    assert reached() == 3
    for batch in (3, 4):
        with TransactionalWriter(life.bench.access, writer, 1, MARKERS) as task:
            task.write(checkpoint.marker(batch), topic, [Row(b"k", b"v")])
        if batch == 3:
            assert reached() == 3
    with pytest.raises(StatementFailed, match="middle of a batch"):
        reached()


def test_a_statement_whose_checkpoint_is_an_older_copy_is_not_taken_over(life: Life) -> None:
    """Its offsets are those of an earlier time: rows would be written a second time."""
    topic, writer = life.bench.topic("older"), f"older-{uuid4().hex}"
    with TransactionalWriter(life.bench.access, writer, 1, MARKERS) as task:
        task.write(Marker(9, writer, entry_of(9), entry_of(8)), topic, [Row(b"k", b"v")])
    with pytest.raises(StatementFailed, match="older copy"):
        reached_whole(life.bench.access, "first", writer, 2, logged(life, writer, 5, 5))


def test_an_unknown_statement_cannot_be_taken_over(life: Life) -> None:
    name = life.create("copy", projection(life.bench.events()), initial_offset_from="nobody")
    with life.engine():
        assert "nobody" in life.until_state(name, StatementState.FAILED).reason
    with pytest.raises(HeadgateError):
        life.statements.get("nobody")
