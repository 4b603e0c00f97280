"""Plain output: what a pipe, a log or a file gets."""

import io
import json

import pytest

from headgate.cli.output import (
    _PlainProgress,
    age,
    complain,
    print_fields,
    print_json,
    print_table,
    printable,
    progress,
)


def test_a_table_without_a_terminal_is_neither_cut_nor_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 300

    print_table("Tables", ("TOPIC", "ROWS"), [("orders", 12), (long, None)])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["TOPIC", "ROWS"]
    assert lines[1].split() == ["orders", "12"]
    assert lines[2] == long
    assert lines[0].index("ROWS") == lines[1].index("12")


def test_no_rows_are_headings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Tables", ("TOPIC", "ROWS"), [])

    assert capsys.readouterr().out == "TOPIC  ROWS\n"


def test_json_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"topic": "größe", "rows": [1, None]})

    assert json.loads(capsys.readouterr().out) == {"topic": "größe", "rows": [1, None]}


def test_fields_can_be_searched_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields("READY", [("kafka", "127.0.0.1:9092"), ("spark_connect", "sc://localhost:1")])

    assert capsys.readouterr().out.splitlines() == [
        "READY",
        "  kafka          127.0.0.1:9092",
        "  spark_connect  sc://localhost:1",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("plain ü", "plain ü"), (None, ""), (3, "3"), ("\x1b[31mred", "\\x1b[31mred"), ("a\nb", "a\\nb")],
)
def test_data_cannot_steer_the_terminal(value: object, shown: str) -> None:
    assert printable(value) == shown


def test_errors_go_to_stderr_under_our_name(capsys: pytest.CaptureFixture[str]) -> None:
    complain("The engine died.\n\x1b[2Jlog")

    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "headgate: The engine died.\n\\x1b[2Jlog\n"


def test_progress_without_a_terminal_says_each_text_once(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("starting") as shown:
        for text in ("starting", "starting broker", "starting broker", "broker is ready"):
            shown.update(text)

    assert capsys.readouterr().err.splitlines() == ["starting", "starting broker", "broker is ready"]


def test_numbers_that_move_are_said_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    shown = _PlainProgress(out)
    for done in range(1000):
        shown.update("orders", done, 1000)
    assert out.getvalue().splitlines() == ["orders (0 of 1000)"]

    monkeypatch.setattr("headgate.cli.output.PLAIN_INTERVAL", 0.0)
    shown.update("orders", 1000, 1000)
    assert out.getvalue().splitlines()[-1] == "orders (1000 of 1000)"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0.4, "0 s"), (119, "119 s"), (180, "3 min"), (9000, "2.5 h"), (700_000, "8 d")],
)
def test_ages(seconds: float | None, text: str) -> None:
    assert age(seconds) == text
