"""When the loop of statements asks Spark of a query: after a batch, while closing something, else seldom."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from headgate.config import Statements as Settings
from headgate.engine.statements import QUIET_SECONDS, Query, StatementLoop, _Task
from headgate.model import StatementState
from headgate.statements.closing import Closer
from headgate.store import StatementRecord


@dataclass
class Resting:
    """A query that tells only whether it has news."""

    has_news: bool = False


@pytest.fixture
def loop() -> StatementLoop:
    nobody = cast(Any, None)
    return StatementLoop(nobody, nobody, nobody, nobody, nobody, "file:/nowhere", Settings())


def task(options: Mapping[str, Any] | None = None, detail: Mapping[str, Any] | None = None) -> _Task:
    record = StatementRecord(
        "id",
        "name",
        "insert",
        "",
        options or {},
        {},
        "running",
        0.0,
        StatementState.RUNNING,
        "",
        0.0,
        detail or {},
        0.0,
    )
    return _Task(record, watched_at=100.0)


def looks(loop: StatementLoop, task: _Task, now: float, has_news: bool = False) -> bool:
    return loop._has_to_look(task, cast(Query, Resting(has_news)), now)


def test_a_query_without_news_is_looked_at_seldom(loop: StatementLoop) -> None:
    assert not looks(loop, task(), 100.1)
    assert looks(loop, task(), 100.0 + QUIET_SECONDS)


def test_a_batch_that_has_ended_is_taken_in_at_once(loop: StatementLoop) -> None:
    assert looks(loop, task(), 100.1, has_news=True)


def test_a_request_to_close_is_followed_until_it_is_answered(loop: StatementLoop) -> None:
    assert looks(loop, task({"finish": "one"}), 100.1)
    assert looks(loop, task({"finish": "two"}, {"finished": {"request": "one"}}), 100.1)
    assert not looks(loop, task({"finish": "one"}, {"finished": {"request": "one"}}), 100.1)


def test_a_closing_that_is_under_way_is_followed(loop: StatementLoop) -> None:
    closing = task()
    closing.closer = Closer(cast(Any, None), None)
    assert not looks(loop, closing, 100.1)
    closing.closer._closing = cast(Any, object())
    assert looks(loop, closing, 100.1)
