"""Queries with state: updates by key, deletes as tombstones."""

from pathlib import Path
from typing import Any, cast

from tests.integration.statements.bench import Bench, event
from tests.integration.statements.plans import keep_last


def stores(bench: Bench, *, bounded: bool) -> int:
    """How many stores of RocksDB share the memory that all of them have, or have their own."""
    jvm = cast(Any, bench.spark._jvm)
    kind = jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.state.RocksDBMemoryManager$")
    return int(kind.getField("MODULE$").get(None).getNumRocksDBInstances(bounded))


def test_the_last_row_of_a_key_and_its_deletion(bench: Bench) -> None:
    source = bench.events()
    plan = keep_last(source)
    output, running = bench.output(plan), bench.running()
    bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(50)])
    query = bench.query(plan, output, running)
    query.start()
    bench.until(query, "the first rows", lambda: query.totals.rows_in == 50 and query.totals.rows_out >= 5)
    bench.send(source.name, [event(50, "w1", None), event(51, "w2", 7)])
    bench.until_read(query, 52)
    assert stores(bench, bounded=True) > 0
    assert stores(bench, bounded=False) == 0, "each has memory of its own, and nobody knows how much in all"
    query.stop()
    assert bench.topics.config(output.topic)["cleanup.policy"] == "compact"
    last: dict[str, object] = {}
    for key, value in bench.records(output.topic):
        who = bench.decode(key)["who"]
        assert value is None or value["who"] == who
        last[who] = None if value is None else value["amount"]
    assert last == {"w0": 45, "w1": None, "w2": 7, "w3": 48, "w4": 49}
    assert query.progress is not None
    assert query.progress.state_rows == 5


def test_a_first_batch_that_was_cut_off_before_it_was_planned(bench: Bench) -> None:
    """The engine was killed while it wrote down where the batch ends: nothing was done yet, and nothing of it
    stands in the way."""
    source = bench.events()
    plan = keep_last(source)
    output, running = bench.output(plan), bench.running()
    bench.send(source.name, [event(n, f"w{n % 5}", n) for n in range(10)])
    offsets = Path(running.checkpoint.removeprefix("file:")) / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.half.tmp").write_text("v1")
    query = bench.query(plan, output, running)
    query.start()
    bench.until(query, "the rows", lambda: query.totals.rows_in == 10 and query.totals.rows_out >= 5)
    query.stop()
