"""The query history: what a driver wrote is kept as long as it may be, and nothing runs for a dead one."""

from collections.abc import Iterator

import pytest

from headgate.config import Settings
from headgate.errors import NotFound
from headgate.store import Store
from headgate.store.queries import (
    DRIVER_GONE,
    LONGEST_SQL,
    QueryFilter,
    QueryHistory,
    QueryRecord,
    QueryState,
)


@pytest.fixture
def history(settings: Settings) -> Iterator[QueryHistory]:
    store = Store.open(settings.store_url)
    yield QueryHistory(store.engine)
    store.close()


def record(query_id: str, at: float, instance: str = "now", sql: str = "SELECT 1") -> QueryRecord:
    return QueryRecord(query_id, "lake", sql, "hg1", "ada", instance, started_at=at)


def ids(history: QueryHistory, wanted: QueryFilter | None = None) -> list[str]:
    return [one.id for one in history.list(wanted or QueryFilter(), "now", 100)]


def test_a_query_is_kept_with_what_came_of_it(history: QueryHistory) -> None:
    history.begin(record("a", 1.0))
    assert history.get("a", "now").state is QueryState.RUNNING
    tables = [{"table": "local.orders", "snapshot_id": "9007199254740993"}]
    history.end("a", QueryState.FINISHED, 3.0, "", tables, {"rows": 2})
    kept = history.get("a", "now")
    assert (kept.state, kept.ended_at, kept.figures, kept.tables) == (
        QueryState.FINISHED,
        3.0,
        {"rows": 2},
        tables,
    )


def test_what_runs_in_a_driver_that_is_gone_has_failed(history: QueryHistory) -> None:
    history.begin(record("lost", 1.0, "killed"))
    history.begin(record("runs", 2.0))
    for alive in ("now", None):
        assert history.get("lost", alive).state is QueryState.FAILED
    assert history.get("runs", None).state is QueryState.FAILED, "no driver runs"
    assert ids(history, QueryFilter(state=QueryState.RUNNING)) == ["runs"]
    assert ids(history, QueryFilter(state=QueryState.FAILED)) == ["lost"]
    assert history.abandon("now") == 1
    found = history.get("lost", "killed")
    assert (found.state, found.error) == (QueryState.FAILED, DRIVER_GONE), "written down for good"
    assert history.get("runs", "now").state is QueryState.RUNNING


def test_old_queries_are_forgotten_and_the_newest_kept(history: QueryHistory) -> None:
    for number in range(6):
        history.begin(record(f"q{number}", float(number)))
        if number != 1:
            history.end(f"q{number}", QueryState.FINISHED, number + 0.5)
    history.forget(older_than=1.0, most=100)
    assert ids(history) == ["q5", "q4", "q3", "q2", "q1"]
    history.forget(older_than=0.0, most=2)
    assert ids(history) == ["q5", "q4", "q1"], "q1 runs"


def test_whose_they_are_is_told_apart(history: QueryHistory) -> None:
    history.begin(record("a", 1.0))
    assert history.get("a", "now", "hg1").principal == "ada"
    with pytest.raises(NotFound):
        history.get("a", "now", "hg2")
    assert ids(history, QueryFilter(owner="hg2")) == []


def test_a_very_long_text_is_cut(history: QueryHistory) -> None:
    history.begin(record("a", 1.0, sql="x" * (LONGEST_SQL + 1)))
    assert history.get("a", "now").sql == "x" * LONGEST_SQL + "…"
