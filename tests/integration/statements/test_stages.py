"""Statements of several steps: one to their owner, each result once, nothing left behind."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import types as t

from headgate.engine import statements as engine_statements
from headgate.errors import InvalidRequest
from headgate.kafka.offsets import Offsets
from headgate.kafka.topics import check_topic_name
from headgate.model import Start, StartKind, StatementState
from headgate.statements.query import Running
from headgate.statements.runnable import Job, Stage
from headgate.statements.staged import running_of
from headgate.statements.stages import PREFIX
from headgate.statements.standing import Standing, standing_of
from headgate.statements.tables import TopicTables
from headgate.store import StatementRecord
from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import (
    Plan,
    Table,
    Watermark,
    changes_of_last,
    copies,
    copy_of,
    counts,
    internal,
    keep_last,
    projection,
    staged,
    windows_then_totals,
)
from tests.integration.statements.test_life import Life
from tests.support.services import wait_for


@pytest.fixture
def life(bench: Bench, tmp_path: Path) -> Iterator[Life]:
    found = Life(bench, tmp_path)
    yield found
    found.store.close()


def internal_topics(life: Life, record: StatementRecord) -> list[str]:
    return list(life.bench.topics.beginning_with(f"{PREFIX}{record.id}."))


def earliest(life: Life, topic: str) -> dict[int, int]:
    found = life.bench.topics.describe(topic)
    return dict(Offsets(life.bench.access).start_offsets(Start(StartKind.EARLIEST), found))


def read_to_the_end(life: Life, name: str, rows_in: int, rows_out: int) -> StatementRecord:
    """All of it read, by all steps."""
    life.until_rows(name, rows_in=rows_in, rows_out=rows_out)
    return life.until(name, lambda record: record.detail.get("lag") == 0, "no lag")


def latest(records: list[tuple[bytes | None, Any]]) -> dict[str, tuple[int, int]]:
    return {value["who"]: (value["windows"], value["n"]) for _, value in records}


def test_windows_and_then_totals_of_them(life: Life) -> None:
    source = life.bench.events("events", 1, Watermark("ts"))
    name = life.create("totals", windows_then_totals(source))
    output = life.jobs[name].output.topic
    with life.engine():
        life.until_state(name, StatementState.RUNNING)
        life.bench.send(source.name, [event(n, f"w{n % 3}", seconds=n * 10) for n in range(60)])
        read_to_the_end(life, name, 60, 3)
        record = life.until(name, lambda found: _sum(life, output) == 58, "the windows that are over")
        assert record.detail["rows_in"] == 60, "what steps read of each other does not count"
        assert record.detail["offsets"] == {source.name: {"0": 60}}
        assert list(record.detail["lags"]) == [source.name]
        assert [step["reads"] for step in record.detail["steps"]] == [[source.name], ["step 1"]]
        assert record.detail["state_rows"] == sum(step["state_rows"] for step in record.detail["steps"])
        assert record.settled["topics"].keys() == {source.name, *internal_topics(life, record)}
        (topic,) = internal_topics(life, record)
        assert len(life.bench.topics.describe(topic).partitions) == record.settled["tasks"] == 2
        said = life.bench.topics.config_overrides(topic)
        assert (said["retention.ms"], said["retention.bytes"], said["compression.type"]) == (
            "-1",
            "-1",
            "lz4",
        )
    expected: dict[str, Counter[int]] = {f"w{n}": Counter() for n in range(3)}
    for n in range(58):
        # The first event is 20 seconds into its minute, so the last two are in one that is not over.
        expected[f"w{n % 3}"][(1_700_000_000 + n * 10) // 60] += 1
    assert latest(life.bench.records(output)) == {
        who: (len(windows), sum(windows.values())) for who, windows in expected.items()
    }


def _sum(life: Life, output: str) -> int:
    return sum(n for _, n in latest(life.bench.records(output)).values())


def test_a_finite_topic_gives_its_results_through_all_steps(life: Life) -> None:
    """By request, also one that no engine was there for; and after a silence. Nothing is there twice."""
    source = life.bench.events("events", 2, Watermark("ts"))
    asked = life.create("asked", windows_then_totals(source))
    silent = life.create("silent", windows_then_totals(source), idle_flush_seconds=1.0)
    life.bench.send(source.name, [event(n, f"w{n % 3}", seconds=n * 10) for n in range(60)])
    with life.engine():
        life.until_rows(asked, rows_in=60)
        life.until(silent, lambda _: _sum(life, life.jobs[silent].output.topic) == 60, "all of them")
    assert _sum(life, life.jobs[asked].output.topic) == 0, "the other partition has shown nothing"
    # 60 events in some ten minutes, of three.
    groups = len({(n % 3, (1_700_000_000 + n * 10) // 60) for n in range(60)})
    assert life.statements.get(asked).detail["waiting"] == (
        f"step 1 of 2: {groups} rows wait for event time to pass 2023-11-14 22:24:00 UTC; it moves with the "
        f"first record of partition 1 of '{source.name}', or without after 600 s of silence"
    )
    request = life.statements.finish(asked).options["finish"]
    with life.engine():
        record = life.until(asked, lambda found: "finished" in found.detail, "the answer")
        assert _sum(life, life.jobs[asked].output.topic) == 60
        assert record.detail["finished"]["request"] == request
        assert record.state is StatementState.RUNNING
        said = [e["message"] for e in life.store.events(f"statement {asked}", 10) if e["kind"] == "closed"]
        assert said == [
            f"all that was read is written; rows before {record.detail['finished']['watermark']} are late "
            "from now on"
        ]
        # It goes on, and says so when rows are late.
        life.bench.send(source.name, [event(60, "w0", seconds=0), event(61, "w0", seconds=2000)], 1)
        life.until(silent, lambda _: _sum(life, life.jobs[silent].output.topic) == 61, "the next one")
        life.until_rows(asked, rows_in=62, late_rows=1)


def test_three_steps_stopped_and_started(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    output = life.jobs[name].output.topic
    with life.engine():
        life.bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(100)], 0)
        read_to_the_end(life, name, 100, 100)
        life.statements.want(name, "stopped")
        stopped = life.until_state(name, StatementState.STOPPED)
        assert len(stopped.detail["steps"]) == 3
        assert not [query for query in life.bench.spark.streams.active if stopped.id in (query.name or "")]
        life.bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(100, 150)], 1)
        life.statements.want(name, "running")
        read_to_the_end(life, name, 150, 150)
    # Another engine goes on.
    life.bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(150, 200)], 0)
    with life.engine():
        read_to_the_end(life, name, 200, 200)
    found = [(value["id"], value["who"], value["cents"]) for value in life.bench.values(output)]
    assert sorted(found) == [(n, f"w{n % 5}", n * 100) for n in range(200)]


def test_changes_of_an_updating_step_in_order(life: Life) -> None:
    source = life.bench.events("events", 1)
    name = life.create(
        "changes", changes_of_last(source), life.bench.output(changes_of_last(source), partitions=1)
    )
    output = life.jobs[name].output.topic
    with life.engine():
        for number, amount in enumerate([5, 6, None, 7]):
            life.bench.send(source.name, [event(number, "ann", amount), event(number, "bob", number)])
            read_to_the_end(life, name, 2 * (number + 1), 2 * (number + 1))
    found = [(value["who"], value["amount"], value["op"]) for value in life.bench.values(output)]
    assert [one[1:] for one in found if one[0] == "ann"] == [(5, "u"), (6, "u"), (None, "d"), (7, "u")]
    assert [one[1:] for one in found if one[0] == "bob"] == [(n, "u") for n in range(4)]


def test_rows_of_a_key_stay_in_order_and_null_is_a_key(life: Life) -> None:
    """The last of each in the order of the topic, through a step that only passes rows on."""
    source = life.bench.events("events", 1)
    odd = t.StructType([t.StructField("wh.o `x`", t.StringType()), t.StructField("amount", t.IntegerType())])

    def named(rows: Any) -> Any:
        return rows.selectExpr(
            "nullif(who, 'w0') AS `wh.o ``x```", "amount", "`$rowtime`", "`$partition`", "`$offset`"
        )

    first = Plan(odd, [source], named)
    back = Table("$stage1", odd)

    def renamed(rows: Any) -> Any:
        shown = rows.selectExpr(
            "coalesce(`wh.o ``x```, 'nobody') AS who", "amount", "`$partition`", "`$offset`"
        )
        return keep_last(source).make(shown)

    last = replace(keep_last(back), make=renamed)
    name = life.create("last", staged(Stage("$stage1", first, ("wh.o `x`",)), last=last))
    output = life.jobs[name].output.topic
    with life.engine():
        life.bench.send(source.name, [event(n, f"w{n % 4}", n) for n in range(400)])
        read_to_the_end(life, name, 400, 4)
    found = {value["who"]: value["amount"] for value in life.bench.values(output)}
    assert found == {"nobody": 396, "w1": 397, "w2": 398, "w3": 399}


def test_delete_leaves_nothing(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    with life.engine():
        life.bench.send(source.name, [event(n) for n in range(10)])
        record = read_to_the_end(life, name, 10, 10)
        folders = {life.folder / f"{record.id}{ending}" for ending in ("", ".1", ".2")}
        assert set(life.folder.iterdir()) == folders
        assert len(internal_topics(life, record)) == 2
        life.statements.want(name, "deleted")
        wait_for("the statement to be gone", lambda: life.statements.all() == [])
    assert internal_topics(life, record) == []
    assert list(life.folder.iterdir()) == []
    assert not [query for query in life.bench.spark.streams.active if record.id in (query.name or "")]
    assert len(life.bench.values(life_output(life, name))) == 10, "what it wrote stays"


def life_output(life: Life, name: str) -> str:
    return life.jobs[name].output.topic


def test_what_is_read_is_deleted_and_no_more(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_statements, "CLEAN_SECONDS", 0.2)
    source = life.bench.events("events", 1)
    name = life.create("copies", copies(source))
    with life.engine():
        life.bench.send(source.name, [event(n, f"w{n}", n) for n in range(50)])
        record = read_to_the_end(life, name, 50, 50)
        topics = internal_topics(life, record)

        def gone() -> bool:
            return all(sum(earliest(life, topic).values()) >= 50 for topic in topics)

        wait_for("what was read to be gone", gone)
        life.statements.want(name, "stopped")
        life.until_state(name, StatementState.STOPPED)
        life.bench.send(source.name, [event(n, f"w{n}", n) for n in range(50, 80)])
        life.statements.want(name, "running")
        read_to_the_end(life, name, 80, 80)
    assert sorted(value["id"] for value in life.bench.values(life_output(life, name))) == list(range(80))


def test_records_that_a_reader_has_not_done_with_stay(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reader fails over and over: what it has not read is not deleted, though another has."""
    monkeypatch.setattr(engine_statements, "CLEAN_SECONDS", 0.1)
    source = life.bench.events("events", 1)
    first = projection(source)
    table = internal("$stage1", first)

    def raising(rows: Any) -> Any:
        place = ("`$rowtime`", "`$partition`", "`$offset`")
        return rows.selectExpr("IF(id < 20, id, raise_error('no further')) AS id", "who", "cents", *place)

    second = Plan(first.columns, [table], raising)
    plan = staged(
        Stage("$stage1", first, ("id",)),
        Stage("$stage2", second, ("id",)),
        last=copy_of(internal("$stage2", second)),
    )
    name = life.create("stuck", plan)
    with life.engine():
        life.bench.send(source.name, [event(n, "ann", n) for n in range(20)])
        read_to_the_end(life, name, 20, 20)
        life.bench.send(source.name, [event(n, "ann", n) for n in range(20, 30)])
        failing = life.until(name, lambda record: "no further" in record.reason, "its reason")
        assert "Step 2 of 3" in failing.reason
        assert failing.state in (StatementState.PENDING, StatementState.FAILED)
        time.sleep(1.0)
        topic = internal_topics(life, failing)[0]
        ends = Offsets(life.bench.access).start_offsets(
            Start(StartKind.LATEST), life.bench.topics.describe(topic)
        )
        kept = sum(ends.values()) - sum(earliest(life, topic).values())
        assert kept >= 10


def test_a_failure_names_its_step(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    with life.engine():
        life.until_state(name, StatementState.RUNNING)
        life.bench.send_raw(source.name, b"\x00\x00\x00\x00\x01rubbish", 1)
        life.bench.flush()
        failed = life.until_state(name, StatementState.FAILED)
        assert failed.reason.startswith("Step 1 of 3: The record of topic")
        active = [query.name for query in life.bench.spark.streams.active if failed.id in (query.name or "")]
        assert active == [], "none goes on alone"


def test_a_topic_that_grows_and_a_schema_that_is_new(life: Life) -> None:
    from tests.integration.statements.test_records import widened

    source = life.bench.events("events", 1, Watermark("ts"))
    name = life.create("totals", windows_then_totals(source))
    output = life_output(life, name)
    with life.engine():
        life.bench.send(source.name, [event(0, seconds=0), event(1, seconds=100)])
        life.until_rows(name, rows_in=2)
        life.bench.send(source.name, [event(2, seconds=110) | {"note": "x"}], schema=widened())
        life.until_rows(name, rows_in=3)
        life.bench.grow(source.name, 2)
        life.bench.send(source.name, [event(3, seconds=120)], 1)

        def passed(_: StatementRecord) -> bool:
            # What the run before has read moves event time on with the next record.
            for partition in (0, 1):
                life.bench.send(source.name, [event(4, seconds=600)], partition)
            return _sum(life, output) >= 4

        life.until(name, passed, "the windows that are over")
    assert latest(life.bench.records(output)) == {"ann": (2, 4)}


def test_an_internal_topic_that_is_gone(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    with life.engine():
        life.bench.send(source.name, [event(1)])
        record = read_to_the_end(life, name, 1, 1)
        life.statements.want(name, "stopped")
        life.until_state(name, StatementState.STOPPED)
        life.bench.topics.delete(internal_topics(life, record)[0])
        life.statements.want(name, "running")
        failed = life.until_state(name, StatementState.FAILED)
        assert "is gone" in failed.reason
        life.statements.want(name, "deleted")
        wait_for("the statement to be gone", lambda: life.statements.all() == [])
    assert internal_topics(life, record) == []


def test_other_steps_than_before_are_refused(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    with life.engine():
        life.until_state(name, StatementState.RUNNING)
        life.statements.want(name, "stopped")
        life.until_state(name, StatementState.STOPPED)
        output = life.jobs[name].output
        life.jobs[name] = Job(projection(source), output)
        life.statements.want(name, "running")
        assert "in other steps now" in life.until_state(name, StatementState.FAILED).reason


def stopped_at_its_end(life: Life, name: str) -> None:
    life.statements.want(name, "stopped")
    life.until_state(name, StatementState.STOPPED)


def test_one_query_and_several_take_over_from_each_other(life: Life) -> None:
    source = life.bench.events()
    first = life.create("first", projection(source))
    output = life.jobs[first].output
    with life.engine():
        name, sent = first, 0
        for plan in (projection(source), copies(source), projection(source)):
            if sent:
                stopped_at_its_end(life, name)
                name = life.create("next", plan, output, initial_offset_from=name)
            life.bench.send(
                source.name, [event(n, f"w{n % 5}", n) for n in range(sent, sent + 30)], sent % 4 // 2
            )
            sent += 30
            life.until_rows(name, rows_in=30, rows_out=30)
    assert sorted(value["id"] for value in life.bench.values(output.topic)) == list(range(sent))


@pytest.mark.parametrize("steps", [1, 2])
def test_steps_with_state_are_rebuilt_in_silence(life: Life, steps: int) -> None:
    """Windows and then their totals, from a statement of the same steps, or from one of windows alone."""
    source = life.bench.events("events", 1, Watermark("ts"))
    plan = windows_then_totals(source)
    first = life.create("first", plan if steps == 2 else counts(source))
    output = life.jobs[first].output if steps == 2 else life.bench.output(plan)
    with life.engine():
        life.bench.send(source.name, [event(n, f"w{n % 3}", seconds=n * 10) for n in range(60)])
        life.until_rows(first, rows_in=60, rows_out=3)
        if steps == 2:
            life.until(first, lambda _: _sum(life, output.topic) == 58, "the windows that are over")
        stopped_at_its_end(life, first)
        before = life.bench.records(output.topic) if steps == 2 else []
        second = life.create("second", plan, output, initial_offset_from=first)
        record = life.until_state(second, StatementState.RUNNING)
        assert record.settled["rebuild"]["offsets"] == {source.name: {"0": 60}}
        assert life.bench.records(output.topic) == before
        # One that was started again has nothing to rebuild.
        stopped_at_its_end(life, second)
        life.statements.want(second, "running")
        life.until_state(second, StatementState.RUNNING)
        life.bench.send(source.name, [event(n, f"w{n % 3}", seconds=n * 10) for n in range(60, 120)])
        life.until(second, lambda _: _sum(life, output.topic) == 118, "the windows of both")
    expected: dict[str, Counter[int]] = {f"w{n}": Counter() for n in range(3)}
    for n in range(118):
        expected[f"w{n % 3}"][(1_700_000_000 + n * 10) // 60] += 1
    found = life.bench.records(output.topic)
    assert latest(found) == {who: (len(windows), sum(windows.values())) for who, windows in expected.items()}
    for who in expected:
        said = [value["windows"] for _, value in found if value["who"] == who]
        assert said == sorted(set(said)), "what was said before is not said again"
        assert steps == 2 or said[0] >= 9, "it goes on from windows that the other one has given"


def aborted(life: Life, topic: str) -> None:
    settings = {"bootstrap.servers": life.bench.access.bootstrap, "transactional.id": topic}
    producer = Producer(settings)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"a row that was never committed", partition=0)
    producer.flush()
    producer.abort_transaction()


def standing(life: Life, record: StatementRecord) -> Standing:
    found = Running(record.id, f"{life.folder.as_uri()}/{record.id}", 2)
    steps = len(record.settled["steps"]) + 1
    runnings = [running_of(found, step, steps) for step in range(1, steps + 1)]
    return standing_of(life.bench.spark, life.bench.access, record.name, runnings, False)


def test_rows_under_way_between_steps_are_not_taken_over(life: Life) -> None:
    source = life.bench.events("events", 1)
    first = life.create("first", copies(source))
    with life.engine():
        life.bench.send(source.name, [event(1)])
        record = read_to_the_end(life, first, 1, 1)
        stopped_at_its_end(life, first)
        # What a batch that was cut off has left is no row.
        topic = internal_topics(life, record)[1]
        aborted(life, topic)
        assert standing(life, record).offsets == {source.name: {0: 1}}
        life.bench.send_raw(topic, b"a row that nobody has read")
        life.bench.flush()
        onto = life.create("onto", copies(source), initial_offset_from=first)
        failed = life.until_state(onto, StatementState.FAILED)
        assert "rows are under way between its steps" in failed.reason
        assert internal_topics(life, failed) == [], "nothing was made"


def test_internal_topics_are_hidden(life: Life) -> None:
    source = life.bench.events()
    name = life.create("copies", copies(source))
    with life.engine():
        record = life.until_state(name, StatementState.RUNNING)
        topics = internal_topics(life, record)
    listed = {topic.name for topic in life.bench.topics.list()}
    assert source.name in listed
    assert not [topic for topic in listed if topic.startswith("__headgate")]
    assert set(topics) <= {topic.name for topic in life.bench.topics.list(include_internal=True)}
    tables = TopicTables(life.bench.topics, life.bench.schemas)
    # Even with a schema of its name it is no table.
    life.bench.register(topics[0], {"type": "record", "name": "R", "fields": []})
    assert tables.get(topics[0]) is None
    assert not set(topics) & set(tables.names())
    with pytest.raises(InvalidRequest, match="Headgate's own"):
        check_topic_name(topics[0])
