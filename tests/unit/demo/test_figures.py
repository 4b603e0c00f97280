"""A demo that waits for its figures: what it takes for done, what it gives up on, and what it refuses."""

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from headgate.demo import Demo, figures, run_demo
from headgate.demo.figures import differences, wait_for_figures
from headgate.demo.ports import shown_command
from headgate.errors import InvalidRequest, StatementFailed, TableStopped, TerminalError
from headgate.worlds import WORLDS, Figure

SALES = WORLDS["sales"]
WANTED = SALES.expected(100)


class Quiet:
    """A screen that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.rows: list[Sequence[object]] = []

    def step(self, text: str) -> None:
        self.said.append(text)

    say = step

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.rows += rows

    @contextmanager
    def progress(self, text: str) -> Iterator["Quiet"]:
        yield self

    def update(self, text: str, done: float | None = None, total: float | None = None) -> None:
        self.said.append(text)


class Played:
    """A Headgate whose table grows each time somebody looks."""

    def __init__(self, records: int = 0, table: str = "Running", statement: str = "Running") -> None:
        self.records = records
        self.typed: list[Sequence[str]] = []
        self.looks = 0
        self._table_state, self._statement_state = table, statement
        #: The sums that queries give, one after the other; the last one again and again.
        self.sums = [WANTED.figures["clean_sales"].total]
        self.most = WANTED.figures["clean_sales"].rows

    def run(self, words: Sequence[str]) -> None:
        self.typed.append(words)
        if words[0] == "datagen":
            self.records = WANTED.records["sales"]

    def get(self, *path: str) -> Any:
        match path:
            case ("topics", "sales"):
                return {"offsets": [{"partition": 0, "earliest": 0, "end": self.records}]}
            case ("tables",):
                self.looks += 1
                rows = min(self.looks * 40, self.most)
                return [{"topic": "clean_sales", "rows": rows, "state": self._table_state, "reason": "so"}]
            case ("statements",):
                return [{"name": "clean-sales", "state": self._statement_state, "reason": "so"}]
            case ("status",):
                return {"addresses": {"console": "http://127.0.0.1:1/"}}
        raise AssertionError(path)

    def prepare_queries(self) -> None: ...

    def query(self, sql: str) -> list[dict[str, Any]]:
        total = self.sums.pop(0) if len(self.sums) > 1 else self.sums[0]
        return [{"name": "clean_sales", "n": self.most, "total": None if total is None else str(total)}]


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(figures, "PATIENCE_SECONDS", 0.05)


def test_it_waits_for_rows_and_then_for_rows_that_change() -> None:
    played = Played()
    right = WANTED.figures["clean_sales"].total
    played.sums = [Decimal(1), Decimal(2), Decimal(2), right]
    assert wait_for_figures(SALES, WANTED.figures, played, Quiet()) == WANTED.figures
    assert played.looks >= 3


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Played(table="Suspended"), TableStopped),
        (Played(statement="Failed"), StatementFailed),
    ],
)
def test_what_is_broken_is_named_at_once(fault: Played, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"clean.sales' is .*: so"):
        wait_for_figures(SALES, WANTED.figures, fault, Quiet())


def test_rows_that_never_come_are_counted() -> None:
    played = Played()
    played.most -= 1
    with pytest.raises(TerminalError, match="clean_sales has 99 of 100 rows"):
        wait_for_figures(SALES, WANTED.figures, played, Quiet())


def test_a_sum_that_stays_wrong_is_told_with_the_right_one() -> None:
    played = Played()
    played.sums = [Decimal("1.00")]
    with pytest.raises(
        TerminalError, match=r"clean_sales has 100 rows of 1\.00, and the seed says 100 rows of"
    ):
        wait_for_figures(SALES, WANTED.figures, played, Quiet())


def test_only_what_differs_is_told() -> None:
    expected = {"a": Figure(1, None), "b": Figure(2, Decimal(3))}
    assert differences(expected, expected) == ""
    assert (
        differences(expected, {**expected, "a": Figure(4, None)}) == "a has 4 rows, and the seed says 1 rows"
    )


def test_a_world_is_applied_filled_and_compared() -> None:
    played, screen = Played(), Quiet()
    run_demo(Demo("sales", Path("d"), limit=100), played, screen)
    assert [words[0] for words in played.typed] == ["apply", "datagen"]
    assert played.typed[1] == ("datagen", "sales", "--limit", "100", "--seed", "7")
    ((table, rows, _, _, same),) = screen.rows
    assert (table, rows, same) == ("clean_sales", "100", "the same")


def test_records_that_are_there_are_not_made_again() -> None:
    played = Played(records=WANTED.records["sales"])
    run_demo(Demo("sales", Path("d"), limit=100), played, Quiet())
    assert [words[0] for words in played.typed] == ["apply"]


def test_a_world_on_other_records_is_refused() -> None:
    played = Played(records=5)
    with pytest.raises(InvalidRequest, match="have other records: sales 5"):
        run_demo(Demo("sales", Path("d"), limit=100), played, Quiet())
    assert [words[0] for words in played.typed] == ["apply"]


def test_a_command_is_shown_as_a_shell_takes_it() -> None:
    words = ("query", "SELECT 'a' FROM t")
    assert shown_command(words) == "headgate query \"SELECT 'a' FROM t\""
    for odd in ("it's $HOME", 'it\'s "so"', "plain", "two words"):
        assert shlex.split(shown_command(("query", odd))) == ["headgate", "query", odd]
