"""Event time goes on with the slowest partition that is not silent; what comes behind it is counted."""

import random
import time
from dataclasses import replace

from headgate.sql.planner import plan
from headgate.sql.script import parse_statement
from headgate.sql.statements import Select
from headgate.sql.tables import Catalog, TableInfo
from headgate.sql.tables import Watermark as Declared
from headgate.statements.closing import Closer
from headgate.statements.runnable import Output
from headgate.statements.waiting import why_nothing_comes
from tests.integration.statements.bench import Bench, at_once, event
from tests.integration.statements.plans import Watermark, counts, interval_join
from tests.support.services import wait_for

NOW = Watermark("ts")


def by_window(values: list[dict[str, object]]) -> dict[tuple[int, str], int]:
    """What each window counted; none may be there twice."""
    found: dict[tuple[int, str], int] = {}
    for value in values:
        at = (int(value["start"].timestamp()), str(value["who"]))  # type: ignore[attr-defined]
        assert at not in found, f"{at} is there twice"
        found[at] = int(value["n"])  # type: ignore[call-overload]
    return found


def test_a_partition_that_is_ahead_makes_no_others_late(bench: Bench) -> None:
    """One partition holds an hour in little, the other the same hour in much: they are read side by side."""
    source = bench.events(watermark=NOW)
    chance = random.Random(7)
    few = [event(n, "few", seconds=n * 36) for n in range(100)]
    many = [event(n, "many", seconds=n * 1.8 + chance.uniform(-0.9, 0.9)) for n in range(2000)]
    many.sort(key=lambda row: row["ts"])
    bench.send(source.name, few, 0)
    bench.send(source.name, many, 1)
    plan = counts(source)
    output = bench.output(plan)
    # Spark gives each partition a share of the bound that follows its length, and at least one record.
    query = bench.query(plan, output, bench.running(max_rows=300, idle_seconds=600))
    query.start()
    bench.until_read(query, 2100)
    end = [event(9999, "end", seconds=10_000)]
    bench.send(source.name, end, 0)
    bench.send(source.name, end, 1)
    bench.until(query, "the windows", lambda: query.totals.rows_out >= 120)
    query.stop()
    assert query.totals.late_rows == 0
    found = by_window(bench.values(output.topic))
    expected: dict[tuple[int, str], int] = {}
    for row in (*few, *many):
        at = (row["ts"] // 1000 // 60 * 60, row["who"])
        expected[at] = expected.get(at, 0) + 1
    assert found == expected


def test_batches_longer_than_the_idle_timeout_drop_no_row(bench: Bench) -> None:
    """Two partitions with ten hours between them, read side by side: neither is ever silent."""
    source = bench.events(watermark=NOW)
    rows = {
        partition: [event(n, f"p{partition}", seconds=hours * 3600 + n * 2) for n in range(2000)]
        for partition, hours in ((0, 0), (1, 10))
    }
    for partition, some in rows.items():
        bench.send(source.name, some, partition)
    plan = counts(source)
    output = bench.output(plan)
    query = bench.query(plan, output, bench.running(max_rows=500, idle_seconds=0.2))
    query.start()
    bench.until_read(query, 4000)
    expected: dict[tuple[int, str], int] = {}
    for row in (*rows[0], *rows[1]):
        at = (row["ts"] // 1000 // 60 * 60, row["who"])
        expected[at] = expected.get(at, 0) + 1
    bench.close_what_has_come(query)
    query.stop()
    assert query.totals.late_rows == 0
    assert by_window(bench.values(output.topic)) == expected


def test_a_backfill_after_a_pause_is_not_late(bench: Bench) -> None:
    """The topic's records have their producer's times: only records move event time, silence does not."""
    source = bench.events(watermark=NOW)
    plan = counts(source)
    output = bench.output(plan)
    bench.send(source.name, [event(1, seconds=0), event(2, seconds=500)], 0)
    bench.send(source.name, [event(3, seconds=0), event(4, seconds=70)], 1)
    query = bench.query(plan, output, bench.running(idle_seconds=0.5))
    query.start()
    bench.until(query, "the first window", lambda: query.totals.rows_out == 1)
    time.sleep(1)
    query.poll()
    assert query.watermarks() == {source.name: event(0, seconds=70)["ts"]}
    bench.send(source.name, [event(5, seconds=75), event(6, seconds=500)], 1)
    bench.until_read(query, 6)
    bench.close_what_has_come(query)
    query.stop()
    assert query.totals.late_rows == 0
    assert sorted(by_window(bench.values(output.topic)).values()) == [2, 2, 2]


def test_what_has_come_is_closed_also_after_a_restart(bench: Bench) -> None:
    source = bench.events(watermark=NOW)
    plan = counts(source)
    output, running = bench.output(plan), bench.running(idle_seconds=600)
    bench.send(source.name, [event(1, seconds=0), event(2, seconds=100)], 0)
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 2)
    query.stop()
    assert query.totals.rows_out == 0, "the other partition has shown nothing"
    again = bench.query(plan, output, running)
    again.start()
    closed = bench.close_what_has_come(again)
    assert closed.watermark_ms == (event(0, seconds=100)["ts"] // 60_000 + 1) * 60_000 + 1
    assert again.totals.rows_out == 2
    # Rows before that are late from then on, after another restart too; those behind it are not.
    again.stop()
    third = bench.query(plan, output, running)
    third.start()
    bench.send(source.name, [event(3, seconds=101), event(4, seconds=200)], 1)
    bench.until_read(third, 2)
    bench.close_what_has_come(third)
    third.stop()
    assert third.totals.late_rows == 1
    assert sorted(by_window(bench.values(output.topic)).values()) == [1, 1, 1]


def test_what_was_due_when_a_query_ended_comes_out_of_the_next_without_a_record(bench: Bench) -> None:
    source = bench.events(partitions=1, watermark=NOW)
    plan = counts(source)
    output, running = bench.output(plan), bench.running()
    # It ends after the batch that moves event time and before the one that this makes due.
    ends = replace(plan, settings={"spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    bench.send(source.name, [event(1, seconds=0), event(2, seconds=500)])
    query = bench.query(ends, output, running)
    query.start()
    bench.until_read(query, 2)
    query.stop()
    assert query.totals.rows_out == 0
    again = bench.query(plan, output, running)
    again.start()
    bench.until(again, "the window", lambda: again.totals.rows_out == 1)
    again.stop()
    assert list(by_window(bench.values(output.topic)).values()) == [1]


def test_a_silent_partition_holds_the_others_up_until_it_is_idle(bench: Bench) -> None:
    source = bench.events(watermark=Watermark("ts", 5000))
    plan = counts(source)
    output = bench.output(plan)
    bench.send(source.name, [event(1, seconds=0), event(2, seconds=500)], 0)
    query = bench.query(plan, output, bench.running(idle_seconds=8))
    began = time.monotonic()
    query.start()
    bench.until_read(query, 2)
    time.sleep(1)
    query.poll()
    assert query.totals.rows_out == 0
    # No record comes any more: the window is closed all the same.
    bench.until(query, "the window to close", lambda: query.totals.rows_out >= 1)
    assert time.monotonic() - began >= 8
    assert query.progress is not None
    assert query.progress.watermark_ms == event(0, seconds=495)["ts"]
    # And what comes behind it now is late.
    bench.send(source.name, [event(3, seconds=1)], 1)
    bench.until(query, "the late row", lambda: query.totals.late_rows == 1)
    query.stop()
    assert [value["n"] for value in bench.values(output.topic)] == [1]


def test_event_time_goes_on_after_a_restart(bench: Bench) -> None:
    source = bench.events(watermark=NOW)
    plan = counts(source)
    output, running = bench.output(plan), bench.running(idle_seconds=600)
    for partition in (0, 1):
        bench.send(source.name, [event(1, seconds=30), event(2, seconds=100)], partition)
    query = bench.query(plan, output, running)
    query.start()
    bench.until(query, "the first window", lambda: query.totals.rows_out == 1)
    query.stop()
    again = bench.query(plan, output, running)
    again.start()
    # Behind what the checkpoint knows, though this clock has seen nothing yet.
    bench.send(source.name, [event(3, seconds=40), event(4, seconds=130)], 0)
    bench.until_read(again, 2)
    bench.until(again, "the late row", lambda: again.totals.late_rows == 1)
    bench.send(source.name, [event(5, seconds=300)], 0)
    bench.send(source.name, [event(6, seconds=300)], 1)
    bench.until(again, "the next window", lambda: again.totals.rows_out == 1)
    again.stop()
    assert sorted(by_window(bench.values(output.topic)).values()) == [2, 3]


def test_a_partition_that_is_added_counts(bench: Bench) -> None:
    source = bench.events(partitions=1, watermark=NOW)
    plan = counts(source)
    output, running = bench.output(plan), bench.running(idle_seconds=600)
    bench.send(source.name, [event(1, seconds=0)])
    query = bench.query(plan, output, running)
    query.start()
    bench.until_read(query, 1)
    bench.grow(source.name, 2)
    bench.send(source.name, [event(2, seconds=0)], 1)
    bench.until(query, "the partition to be noticed", lambda: query.is_outgrown)
    bench.send(source.name, [event(3, seconds=500)], 0)
    bench.until_read(query, 3)
    assert query.totals.rows_out == 0, "the new partition holds event time"
    query.stop()
    again = bench.query(plan, output, running)
    again.start()
    bench.send(source.name, [event(4, seconds=600)], 0)
    bench.send(source.name, [event(5, seconds=600)], 1)
    bench.until(again, "the windows", lambda: again.totals.rows_out == 2)
    again.stop()
    assert sorted(by_window(bench.values(output.topic)).values()) == [1, 2]


def test_inputs_are_joined_and_none_is_late(bench: Bench) -> None:
    left, right = bench.events("left", watermark=NOW), bench.events("right", watermark=NOW)
    plan = interval_join(left, right, seconds=60)
    output = bench.output(plan)
    chance = random.Random(11)
    rights = [event(n, f"r{n}", seconds=n * 10) for n in range(300)]
    lefts = [event(n, f"l{n}", seconds=n * 10 + chance.uniform(-30, 90)) for n in range(300)]
    for row in rights:
        bench.send_later(right.name, row, row["id"] % 2)
    # The left is far behind the right when the query begins.
    bench.flush()
    query = bench.query(plan, output, bench.running(max_rows=100, idle_seconds=600))
    query.start()
    bench.until_read(query, 300)
    for row in sorted(lefts, key=lambda row: row["ts"]):
        bench.send_later(left.name, row, row["id"] % 2)
    bench.flush()
    bench.until_read(query, 600)
    wanted = {
        (one["id"], f"{one['who']}-{other['who']}")
        for one, other in zip(lefts, rights, strict=True)
        if one["ts"] - 60_000 <= other["ts"] <= one["ts"]
    }
    bench.until(query, "the pairs", lambda: query.totals.rows_out >= len(wanted))
    query.stop()
    found = [(value["id"], value["pair"]) for value in bench.values(output.topic)]
    assert sorted(found) == sorted(wanted)


def test_the_wall_clock_closes_a_topic_that_the_broker_dates_and_no_other(bench: Bench) -> None:
    """Once all of it is read: a record of a transaction that is open still is older than what comes later."""
    by, config = Watermark("$rowtime"), {"message.timestamp.type": "LogAppendTime"}
    dated = bench.events("dated", watermark=by, config=config)
    produced = bench.events("produced", watermark=by)
    plans = [counts(source, seconds=2, time="$rowtime") for source in (dated, produced)]
    outputs = [bench.output(plan) for plan in plans]
    queries = [
        bench.query(plan, output, bench.running(idle_seconds=1))
        for plan, output in zip(plans, outputs, strict=True)
    ]
    bench.send(produced.name, [event(1), event(2)], 0)
    bench.send(dated.name, [event(1), event(2)], 0)
    undecided = bench.begin(dated.name, event(3), 1)
    closers = [Closer(at_once, None) for _ in queries]
    for query in queries:
        query.start()
        bench.until_read(query, 2)

    def look() -> None:
        for query, closer in zip(queries, closers, strict=True):
            query.poll()
            closer.look(query.queries, None)

    until = time.monotonic() + 6
    while time.monotonic() < until:
        look()
        time.sleep(0.1)
    assert [query.totals.rows_out for query in queries] == [0, 0]
    undecided.commit_transaction()

    def has_come_out() -> bool:
        look()
        return _counted(bench, outputs[0]) == 3

    wait_for("the windows", has_come_out, 60)
    assert queries[1].totals.rows_out == 0
    for query in queries:
        query.stop()
    assert queries[0].totals.late_rows == 0


def _counted(bench: Bench, output: Output) -> int:
    return sum(by_window(bench.values(output.topic)).values())


def test_a_time_far_ahead_moves_nothing_and_is_counted(bench: Bench) -> None:
    source = bench.events(partitions=1, watermark=NOW)
    plan = counts(source)
    output = bench.output(plan)
    ahead = int(time.time() * 1000) + 7_200_000
    bench.send(source.name, [event(1, seconds=0), {**event(2), "ts": ahead}, event(3, seconds=500)])
    query = bench.query(plan, output, bench.running())
    query.start()
    bench.until(query, "the first window", lambda: query.totals.rows_out == 1)
    assert query.watermarks() == {source.name: event(0, seconds=500)["ts"]}
    bench.send(source.name, [event(4, seconds=501)])
    bench.until_read(query, 4)
    bench.close_what_has_come(query)
    query.stop()
    assert (query.totals.ahead_rows, query.totals.late_rows) == (1, 0)
    assert sorted(by_window(bench.values(output.topic)).values()) == [1, 2]
    assert "1 row waits for event time to come to where they are" in why_nothing_comes(
        [query.standing()], query.totals, [source.name], False
    )


def test_late_rows_are_counted_as_rows_though_they_are_gathered_before(bench: Bench) -> None:
    source = bench.events(partitions=1)
    table = TableInfo(source.name, source.columns, watermark=Declared("ts", 0))
    query_text = parse_statement(
        f"SELECT window_start, who, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE `{source.name}`, "
        "DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, who"
    )
    assert isinstance(query_text, Select)
    made = plan(query_text.query, Catalog({source.name: table}))
    output, running = Output(f"out-{source.name}", made.columns), bench.running()
    bench.send(source.name, [event(1, seconds=0), event(2, seconds=500)])
    query = bench.query(made, output, running)
    query.start()
    bench.until(query, "the first window", lambda: query.totals.rows_out == 1)
    # Ten of one group, in one batch.
    bench.send(source.name, [event(n, seconds=n) for n in range(10)])
    bench.until_read(query, 12)
    query.stop()
    assert query.totals.late_rows == 10
    again = bench.query(made, output, running)
    again.start()
    bench.send(source.name, [*(event(n, seconds=n) for n in range(7)), event(20, seconds=505)])
    bench.until_read(again, 8)
    bench.close_what_has_come(again)
    again.stop()
    assert again.totals.late_rows == 7
    assert sorted(value["n"] for value in bench.values(output.topic)) == [1, 2]
