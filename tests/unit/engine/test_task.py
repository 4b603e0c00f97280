"""When a batch is due."""

from collections.abc import Mapping
from typing import cast

import pytest

from headgate.engine.task import FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, TableTask
from headgate.model import Batch, Position, TableSpec, Topic
from headgate.tables.materialize import BatchReport, Materializer, TopicView
from headgate.tables.plan import lag


class AtPosition:
    """A materializer as the task sees it: a position, and what records weigh."""

    def __init__(self, offset: int) -> None:
        self.spec = TableSpec("t", freshness_seconds=10, flush_bytes=1000)
        self.position = Position("C", "T", {0: offset})
        self.record_bytes = 10.0
        self.facts: Mapping[str, object] = {}
        self.mirror_trouble: Exception | None = None

    def lag(self, view: TopicView) -> int:
        return lag(self.position, view.ends)


def view(end: int) -> TopicView:
    return TopicView("C", Topic("t", "T", (0,)), {0: 0}, {0: end})


def opened(offset: int) -> TableTask:
    """Whose last batch has just come to its end, at 100."""
    task = TableTask(cast(Materializer, AtPosition(offset)), opened=True, ended_at=100)
    task.see(view(offset), now=0, wall=0)
    return task


def test_a_table_that_was_never_opened_is_due() -> None:
    assert TableTask(cast(Materializer, AtPosition(0))).due(0, now=0)


def test_an_idle_table_is_never_due() -> None:
    task = opened(5)
    assert not task.due(task.see(view(5), now=1e6, wall=0), now=1e6)


def test_freshness() -> None:
    task = opened(5)
    assert not task.due(task.see(view(6), now=100, wall=0), now=100)
    assert not task.due(task.see(view(7), now=109, wall=0), now=109)
    assert task.due(task.see(view(7), now=110, wall=0), now=110)


def test_after_a_silence_nothing_is_waited_for() -> None:
    task = opened(5)
    assert task.due(task.see(view(6), now=500, wall=0), now=500)


def test_a_slow_batch_begins_earlier() -> None:
    task = opened(5)
    task.batch_seconds = 4
    assert not task.due(task.see(view(6), now=100, wall=0), now=100)
    assert task.due(task.see(view(6), now=106, wall=0), now=106)


def test_size_comes_before_freshness() -> None:
    task = opened(5)
    assert task.due(task.see(view(105), now=100, wall=0), now=100)


def test_a_delta_log_that_waits_is_tried_again_and_less_often() -> None:
    task = opened(5)
    cast(AtPosition, task.materializer).mirror_trouble = OSError("full")
    assert task.due(0, now=100)
    task.finished(None, now=100, wall=0)
    assert not task.due(0, now=100 + FIRST_RETRY_SECONDS / 2)
    assert task.due(0, now=100 + FIRST_RETRY_SECONDS)
    task.finished(None, now=101, wall=0)
    assert not task.due(0, now=101 + FIRST_RETRY_SECONDS)
    assert task.due(0, now=101 + 2 * FIRST_RETRY_SECONDS)
    cast(AtPosition, task.materializer).mirror_trouble = None
    assert not task.due(0, now=200)


def test_one_batch_at_a_time_and_none_before_its_retry() -> None:
    task = opened(5)
    task.retry_at = 200
    behind = task.see(view(500), now=100, wall=0)
    assert not task.due(behind, now=199)
    assert task.due(behind, now=200)


def test_a_batch_cut_at_its_bounds_is_followed_at_once() -> None:
    task = opened(5)
    task.see(view(20), now=100, wall=0)
    start = Position("C", "T", {0: 5})
    report = BatchReport(Batch(start, start.advanced_to({0: 10})), 1, 5, 50, 1.0)
    cast(AtPosition, task.materializer).position = report.batch.end
    task.finished(report, now=101, wall=0)
    assert task.due(task.see(view(20), now=101, wall=0), now=101)
    task.finished(BatchReport(Batch(start, start.advanced_to({0: 20})), 2, 10, 100, 1.0), now=101, wall=0)
    cast(AtPosition, task.materializer).position = start.advanced_to({0: 20})
    assert not task.due(task.see(view(21), now=102, wall=0), now=102)


def test_a_sync_is_due_at_once_and_ends_at_what_was_there() -> None:
    task = opened(5)
    behind = task.see(view(8), now=100, wall=0)
    task.request_sync("token", view(8))
    assert task.due(behind, now=100)
    assert task.synced is None
    cast(AtPosition, task.materializer).position = Position("C", "T", {0: 8})
    task.request_sync("token", view(50))
    assert task.synced == "token"
    assert not task.due(task.see(view(9), now=101, wall=0), now=101)


def test_a_sync_with_nothing_to_do_ends_at_once() -> None:
    task = opened(5)
    task.request_sync("token", view(5))
    assert task.synced == "token"


@pytest.mark.parametrize("failures", [1, 3, 20])
def test_back_off_grows_to_a_bound(failures: int) -> None:
    task = opened(5)
    for _ in range(failures):
        task.failed(now=0)
    assert task.retry_at == min(LONGEST_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** (failures - 1))


def test_an_outage_of_many_hours_is_waited_out() -> None:
    """At 30 s each, 1,025 failures are about nine hours."""
    task = opened(5)
    for _ in range(2_000):
        task.failed(now=0)
    assert task.retry_at == LONGEST_RETRY_SECONDS
