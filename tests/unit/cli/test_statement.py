"""`headgate statement finish` waits for the answer to its own request, and says up to when rows are late."""

from typing import Any, Self

import pytest
from typer.testing import CliRunner

from headgate.cli import statement

DONE = {"request": "mine", "watermark": "2026-01-31T12:01:00.001+00:00"}


class Answers:
    """A server's answers, one after the other; the last one stays."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self._states = [{"name": "clean", "reason": "", **state} for state in states]
        self.asked: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def post(self, *path: str) -> dict[str, Any]:
        self.asked.append(path)
        return {"finish": "mine"}

    def get(self, *path: str) -> dict[str, Any]:
        return self._states.pop(0) if len(self._states) > 1 else self._states[0]


def finish(monkeypatch: pytest.MonkeyPatch, *states: dict[str, Any]) -> tuple[Answers, Any]:
    answers = Answers(*states)
    monkeypatch.setattr(statement, "connect", lambda data: answers)
    monkeypatch.setattr(statement, "POLL_SECONDS", 0.0)
    return answers, CliRunner().invoke(statement.app, ["finish", "clean"])


def test_finish_says_up_to_when_rows_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    before = {"state": "Running", "detail": {"finished": {"request": "another", "watermark": "1999"}}}
    answers, result = finish(monkeypatch, before, before, {"state": "Running", "detail": {"finished": DONE}})
    assert result.exit_code == 0, result.output
    assert answers.asked == [("statements", "clean", "finish")]
    assert "clean has written all that it had read" in result.output
    assert f"rows before {DONE['watermark']} are late from now on" in result.output


def test_finish_of_what_waits_for_no_event_time_says_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"request": "mine", "watermark": None}
    _, result = finish(monkeypatch, {"state": "Running", "detail": {"finished": nothing}})
    assert (result.exit_code, "late" in result.output) == (0, False)


def test_finish_fails_when_the_statement_does(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = finish(monkeypatch, {"state": "Failed", "reason": "no schema", "detail": {}})
    assert result.exit_code != 0
    assert "no schema" in str(result.exception)
