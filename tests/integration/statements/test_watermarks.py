"""Event time goes on with the slowest partition that is not silent; what comes behind it is counted."""

import random
import time
from dataclasses import replace

from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import Watermark, counts, interval_join

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
