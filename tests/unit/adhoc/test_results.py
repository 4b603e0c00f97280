"""Rows on their way: few wait, none is lost, and each side learns when the other is done."""

import json
import threading
from dataclasses import replace
from typing import Any

import pytest

from headgate.adhoc.results import PIECE_BYTES, PIECES, Closed, Results
from headgate.errors import LimitReached, StatementFailed
from headgate.statements.asking import Caller
from tests.support.services import wait_for


def read(results: Results) -> list[dict[str, Any]]:
    return [json.loads(line) for piece in results.pieces() for line in (piece or b"").splitlines()]


def test_lines_come_in_order_and_the_last_says_so() -> None:
    results = Results()
    for number in range(3):
        results.row("insert", {"n": number, "text": "Sète"})
    results.end("Completed", files=2)
    *rows, end = read(results)
    assert [line["row"]["n"] for line in rows] == [0, 1, 2]
    assert rows[0] == {"op": "insert", "row": {"n": 0, "text": "Sète"}}
    assert (end["op"], end["state"], end["rows"], end["files"]) == ("end", "Completed", 3, 2)


READER = Caller("'reader'", "hg1", limits="limits.reader")


@pytest.mark.parametrize(
    ("caller", "name", "most", "rows"),
    [(replace(READER, rows=2), "rows", 2, 2), (replace(READER, bytes=100), "bytes", 100, 3)],
)
def test_a_caller_gets_no_more_than_it_may(caller: Caller, name: str, most: int, rows: int) -> None:
    results = Results(caller=caller)
    for number in range(rows):
        results.row("insert", {"n": number})
    with pytest.raises(LimitReached, match=rf"{most} {name}.*'reader'.*limits\.reader\.{name}") as refusal:
        results.row("insert", {"n": rows})
    results.fail(refusal.value)
    *given, end = read(results)
    assert [line["row"]["n"] for line in given] == list(range(rows))
    assert (end["op"], end["error"]) == ("error", "LimitReached")


def test_of_rows_that_change_those_that_are_there_are_counted() -> None:
    results = Results(2, ("k",))
    for op, k, n in (
        ("upsert", 1, 0),
        ("upsert", 1, 1),
        ("delete", 1, 1),
        ("upsert", 2, 0),
        ("upsert", 2, 1),
    ):
        results.row(op, {"k": k, "n": n})
        assert not results.is_full
    results.row("upsert", {"k": 3, "n": 0})
    assert results.is_full
    with pytest.raises(Closed):
        results.row("upsert", {"k": 2, "n": 2})


def test_a_writer_waits_for_its_reader() -> None:
    results, text = Results(), "x" * PIECE_BYTES
    done = threading.Event()

    def write() -> None:
        for number in range(PIECES * 3):
            results.row("insert", {"n": number, "text": text})
        results.end("Completed")
        done.set()

    threading.Thread(target=write, daemon=True).start()
    wait_for("pieces to wait", lambda: results.rows == PIECES)
    assert not done.wait(0.5)
    assert results.rows == PIECES
    found = read(results)
    assert [line["row"]["n"] for line in found[:-1]] == list(range(PIECES * 3))
    assert done.wait(5)


@pytest.mark.parametrize("how", ["close", "cancel", "finish"])
def test_a_writer_that_waits_learns_that_no_more_is_wanted(how: str) -> None:
    results, text = Results(), "x" * PIECE_BYTES
    closed = threading.Event()

    def write() -> None:
        try:
            while True:
                results.row("insert", {"text": text})
        except Closed:
            closed.set()

    threading.Thread(target=write, daemon=True).start()
    wait_for("pieces to wait", lambda: results.rows == PIECES)
    getattr(results, how)()
    assert closed.wait(5)
    assert results.is_wanted == (how == "finish")


def test_who_was_stopped_is_told_the_end() -> None:
    results = Results()
    results.row("insert", {"n": 1})
    results.flush()
    results.cancel()
    with pytest.raises(Closed):
        results.row("insert", {"n": 2})
    results.end("Stopped")
    assert [line["op"] for line in read(results)] == ["insert", "end"]


def test_as_many_as_were_wanted() -> None:
    results = Results(limit=2)
    for number in range(2):
        results.row("insert", {"n": number})
    assert results.is_full
    with pytest.raises(Closed):
        results.row("insert", {"n": 2})
    results.end("Completed")
    assert [line.get("row") for line in read(results)] == [{"n": 0}, {"n": 1}, None]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (StatementFailed("It is gone.", "Ask again."), ("StatementFailed", "It is gone.", "Ask again.")),
        (ValueError("\n\nodd\nstack"), ("TerminalError", "ValueError: odd", "")),
    ],
)
def test_an_error_is_the_last_line(error: Exception, told: tuple[str, str, str]) -> None:
    results = Results()
    results.fail(error)
    (line,) = read(results)
    assert (line["op"], line["error"], line["message"], line["remedy"]) == ("error", *told)
