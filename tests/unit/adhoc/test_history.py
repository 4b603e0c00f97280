"""The history as the query driver writes it: in order, late if it must be, and without secrets."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.errors import PySparkException
from sqlalchemy.exc import OperationalError

from headgate.adhoc.history import Ending, HistoryWriter
from headgate.adhoc.queries import Query, _first_words, _meant
from headgate.adhoc.redaction import error_text, redact_sql
from headgate.adhoc.results import Results
from headgate.config import Settings
from headgate.errors import InvalidRequest, LimitReached
from headgate.statements.asking import Asked, Caller
from headgate.store import Store
from headgate.store.queries import QueryFilter, QueryHistory, QueryState

ASKED = Asked("lake", "SELECT 1", caller=Caller("'ada'", "hg1", "token"))


@pytest.fixture
def history(settings: Settings) -> Iterator[QueryHistory]:
    store = Store.open(settings.store_url)
    yield QueryHistory(store.engine)
    store.close()


class Failing(QueryHistory):
    """A history whose database is away as long as `is_away`."""

    is_away = False

    def begin(self, *arguments: object, **more: object) -> None:
        if self.is_away:
            raise OperationalError("INSERT", {}, Exception("locked"))
        super().begin(*arguments, **more)  # type: ignore[arg-type]


def test_what_the_database_does_not_take_is_written_later(settings: Settings) -> None:
    store = Store.open(settings.store_url)
    failing = Failing(store.engine)
    writer = HistoryWriter(failing, "now", 3600, 100)
    failing.is_away = True
    writer.begin("a", ASKED, time.time())
    writer.end("a", Ending(QueryState.FINISHED, figures={"rows": 3}))
    assert failing.list(QueryFilter(), "now", 10) == []
    failing.is_away = False
    writer.tend()
    kept = failing.get("a", "now")
    assert (kept.state, kept.figures) == (QueryState.FINISHED, {"rows": 3}), "it began before it ended"
    store.close()


def test_queries_older_than_they_are_kept_go(history: QueryHistory) -> None:
    writer = HistoryWriter(history, "now", 3600, 100)
    for query_id, age in (("old", 4000), ("young", 3000)):
        writer.begin(query_id, ASKED, time.time() - age)
        writer.end(query_id, Ending(QueryState.FINISHED))
    writer.tend()
    assert [one.id for one in history.list(QueryFilter(), "now", 10)] == ["young"]


def test_a_query_is_whose_it_is(history: QueryHistory) -> None:
    writer = HistoryWriter(history, "now", 3600, 100)
    writer.begin("a", ASKED, 1.0)
    kept = history.get("a", "now")
    assert (kept.owner, kept.principal, kept.state) == ("hg1", "ada", QueryState.RUNNING)
    writer.end("a", Ending(QueryState.CANCELLED))
    assert history.get("a", "now").state is QueryState.CANCELLED


def test_a_new_driver_writes_down_that_the_old_one_is_gone(history: QueryHistory) -> None:
    HistoryWriter(history, "old", 3600, 100).begin("a", ASKED, 1.0)
    HistoryWriter(history, "new", 3600, 100)
    assert history.get("a", "old").state is QueryState.FAILED


def test_a_comparison_is_told_as_its_command(history: QueryHistory) -> None:
    wanted: dict[str, Any] = {"topic": "orders", "start": "12", "end": None, "key": []}
    HistoryWriter(history, "now", 3600, 100).begin("a", Asked("changes", "", changes=wanted), 1.0)
    assert history.get("a", "now").sql == "headgate table changes orders --from 12"


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT 'secret word'", "SELECT 'secret word'"),
        (
            "SELECT aes_decrypt(c, 'k' || 'ey', 'GCM'), 'x' FROM t",
            "SELECT aes_decrypt(c, '…' || '…', '…'), 'x' FROM t",
        ),
        (
            "SELECT try_aes_decrypt(unbase64(c), X'0102') FROM t",
            "SELECT try_aes_decrypt(unbase64(c), '…') FROM t",
        ),
        ("SELECT aes_decrypt(c, 'open", "'…'"),
        ("SELECT 'Bearer abc.def'", "SELECT '…'"),
        ("SELECT 'eyJhbGciOi.eyJzdWIi.c2ln'", "SELECT '…'"),
        ("SELECT 'AKIAIOSFODNN7EXAMPLE'", "SELECT '…'"),
        ("-- password=hunter2\nSELECT 1", "-- …\nSELECT 1"),
    ],
)
def test_keys_and_tokens_are_not_kept(sql: str, kept: str) -> None:
    assert redact_sql(sql) == kept


def test_an_error_is_kept_without_values_of_rows() -> None:
    cast = InvalidRequest("[CAST_INVALID_INPUT] The value 'Ada Lovelace' cannot be cast to INT.")
    assert error_text(ValueError("spark"), cast) == "InvalidRequest: CAST_INVALID_INPUT"
    assert error_text(ValueError("'Ada'"), ValueError("'Ada'")) == "ValueError"
    reached = LimitReached("Too much.", "Raise it.")
    assert error_text(reached, reached) == "Too much."


def test_who_wants_no_values_is_told_none_and_none_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    error = PySparkException("[CAST_INVALID_INPUT] The value 'Ada Lovelace' cannot be cast to INT.")
    for failed, said in ((error, "CAST_INVALID_INPUT"), (ValueError("'Ada Lovelace'"), "ValueError")):
        hiding = Query("q1", Asked("lake", "SELECT 1", hides_rows=True), Results())
        assert str(_meant(failed, hiding)).startswith(f"The query fails at its rows: {said}. ")
    assert "Ada" not in caplog.text
    assert "CAST_INVALID_INPUT" in caplog.text
    assert "Ada Lovelace" in str(_meant(error, Query("q2", Asked("lake", "SELECT 1"), Results())))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "[TABLE_OR_VIEW_NOT_FOUND] There is no `x`. SQLSTATE: 42P01; line 1 pos 14;\n'Project [*]",
            "[TABLE_OR_VIEW_NOT_FOUND] There is no `x`. SQLSTATE: 42P01; line 1 pos 14",
        ),
        (
            "Job aborted: Lost task 0.0: SparkException: [CAST_INVALID_INPUT] The value 'x'.\n\tat a",
            "[CAST_INVALID_INPUT] The value 'x'.",
        ),
        ("\nOdd things.\n\nJVM stacktrace:\nx", "Odd things."),
    ],
)
def test_an_error_of_spark_is_told_by_its_condition(said: str, told: str) -> None:
    assert _first_words(PySparkException(said)) == told
