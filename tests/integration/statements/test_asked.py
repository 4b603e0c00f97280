"""Queries held to their limits, and what the history says of each: how it ended, and what it gave."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.errors import TooManyRequests
from headgate.statements.asking import Asked, Caller
from headgate.store.queries import QueryHistory, QueryRecord, QueryState
from tests.integration.statements.asking import SNAPSHOT, Asking, Reader
from tests.integration.statements.bench import Bench, event
from tests.support.services import wait_for

ADA = Caller("'ada'", "hg1", limits="limits.reader")
ENDLESS = Asked("lake", "SELECT count(*) AS n FROM range(100000000000) WHERE id % 7 = rand()", caller=ADA)


@pytest.fixture
def asking(bench: Bench, spark: SparkSession, tmp_path: Path) -> Iterator[Asking]:
    found = Asking(bench, spark, tmp_path)
    yield found
    found.close()


def remembered(asking: Asking, query_id: str) -> QueryRecord:
    return QueryHistory(asking.store.engine).get(query_id, "asking")


def ended(asking: Asking, asked: Asked) -> tuple[dict[str, Any], QueryRecord]:
    """The last line of a query that ends by itself, and what is remembered of it."""
    reader = Reader(asking.queries, asking.queries.start(asked))
    wait_for("the end", lambda: reader.ended, 60)
    return reader.lines[-1], remembered(asking, reader.query.id)


def is_running(spark: SparkSession, query_id: str) -> bool:
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(query_id)]
    assert jobs, "it never ran"
    return any(job is not None and job.status == "RUNNING" for job in jobs)


def test_a_query_that_takes_too_long_is_ended_with_its_job(asking: Asking, spark: SparkSession) -> None:
    last, kept = ended(asking, replace(ENDLESS, caller=replace(ADA, seconds=1)))
    assert (last["op"], last["error"]) == ("error", "LimitReached")
    assert "limits.reader.seconds" in last["remedy"]
    assert (kept.state, kept.error) == (QueryState.FAILED, last["message"])
    assert kept.figures["seconds"] >= 1
    wait_for("its job to end", lambda: not is_running(spark, kept.id), 30)


def test_query_that_is_stopped_while_it_is_planned_runs_no_job(asking: Asking, spark: SparkSession) -> None:
    """Spark cancels the jobs that there are: this one begins behind that."""
    query = asking.queries.start(ENDLESS)
    reader = Reader(asking.queries, query)
    asking.queries.cancel(query.id, "hg1")
    wait_for("the end", lambda: reader.ended and not query.is_alive, 60)
    assert remembered(asking, query.id).state is QueryState.CANCELLED
    wait_for("nothing to be left", asking.is_nothing_left)


def test_caller_runs_so_many_queries_and_no_more(asking: Asking) -> None:
    guest = replace(ENDLESS, caller=replace(ADA, concurrent=1))
    first = Reader(asking.queries, asking.queries.start(guest))
    with pytest.raises(TooManyRequests, match="runs 1 queries already") as refused:
        asking.queries.start(guest)
    assert "limits.reader.concurrent" in refused.value.remedy
    first.leave()
    Reader(asking.queries, asking.queries.start(guest)).leave()
    wait_for("nothing to be left", asking.is_nothing_left, 60)


def test_a_query_that_gives_too_many_rows_is_ended(asking: Asking) -> None:
    sql = "SELECT id FROM range(100000)"
    last, kept = ended(asking, Asked("lake", sql, caller=replace(ADA, rows=1000)))
    assert (last["error"], "limits.reader.rows" in last["remedy"]) == ("LimitReached", True)
    assert (kept.state, kept.figures["rows"], kept.principal) == (QueryState.FAILED, 1000, "ada")


def test_a_query_that_is_stopped_is_remembered_as_cancelled(asking: Asking, spark: SparkSession) -> None:
    query = asking.queries.start(ENDLESS)
    reader = Reader(asking.queries, query)
    assert remembered(asking, query.id).state is QueryState.RUNNING
    wait_for("its job", lambda: spark.sparkContext.statusTracker().getJobIdsForGroup(query.id), 30)
    asking.queries.cancel(query.id, "hg1")
    wait_for("the end", lambda: reader.ended, 30)
    wait_for("it to be told", lambda: remembered(asking, query.id).state is QueryState.CANCELLED, 30)
    wait_for("its job to end", lambda: not is_running(spark, query.id), 30)


def test_what_fails_is_remembered_without_values(asking: Asking) -> None:
    last, kept = ended(
        asking, Asked("lake", "SELECT CAST(concat('Ada', id) AS INT) FROM range(1)", caller=ADA)
    )
    assert "Ada0" in last["message"]
    assert (kept.state, kept.error) == (QueryState.FAILED, "InvalidRequest: CAST_INVALID_INPUT")


def test_queries_of_topics_are_remembered_too(bench: Bench, asking: Asking) -> None:
    topic = bench.events(partitions=2).name
    bench.send(topic, [event(n) for n in range(7)])
    whole = asking.reader(f"SELECT id FROM `{topic}`", SNAPSHOT)
    wait_for("the end", lambda: whole.ended, 60)
    kept = remembered(asking, whole.query.id)
    assert (kept.kind, kept.state, kept.figures["rows"]) == ("snapshot", QueryState.FINISHED, 7)
    live = asking.reader(f"SELECT id FROM `{topic}`")
    wait_for("rows", lambda: len(live.lines) == 7, 60)
    live.leave()
    wait_for("it to be told", lambda: remembered(asking, live.query.id).state is QueryState.CANCELLED, 30)
    assert remembered(asking, live.query.id).kind == "live"
