"""What a result that changes means for who sees it."""

import pytest

from headgate.cli.asking import Changes, _checked
from headgate.cli.output import LiveTable
from headgate.errors import ServerUnavailable, StatementFailed


def test_rows_without_a_key_all_stay() -> None:
    changes = Changes(None)
    assert (changes.take("insert", {"a": 1})) == [("+", {"a": 1})]
    assert (changes.take("insert", {"a": 1})) == [("+", {"a": 1})]
    assert changes.rows == {}


def test_without_a_key_one_that_is_the_same_goes() -> None:
    changes = Changes(None)
    assert changes.take("insert", {"a": 1}) == [("+", {"a": 1})]
    assert changes.take("delete", {"a": 1}) == [("-", {"a": 1})]


def test_a_row_is_replaced_and_goes() -> None:
    changes = Changes(["k"])
    one, other, two = {"k": 1, "n": 1}, {"k": 1, "n": 2}, {"k": None, "n": 9}
    assert (changes.take("upsert", one)) == [("+", one)]
    assert (changes.take("upsert", two)) == [("+", two)]
    assert (changes.take("upsert", other)) == [("-", one), ("+", other)]
    assert (changes.take("upsert", other)) == [], "nothing has changed"
    assert (changes.take("delete", {"k": 1, "n": None})) == [("-", other)]
    assert (changes.take("delete", {"k": 1, "n": None})) == [], "it was not there"
    assert list(changes.rows.values()) == [two]


def test_a_result_of_one_row() -> None:
    changes = Changes([])
    assert (changes.take("upsert", {"n": 1})) == [("+", {"n": 1})]
    assert (changes.take("upsert", {"n": 2})) == [("-", {"n": 1}), ("+", {"n": 2})]


def test_how_lines_end() -> None:
    end = {"op": "end", "state": "Completed"}
    assert list(_checked(iter([{"op": "insert"}, end]))) == [{"op": "insert"}, end]
    with pytest.raises(StatementFailed, match="odd"):
        list(_checked(iter([{"op": "error", "error": "StatementFailed", "message": "odd"}])))
    with pytest.raises(ServerUnavailable):
        list(_checked(iter([{"op": "insert"}])))


def test_a_table_that_changes_has_room_for_some(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[number, f"row\x1b{number}"] for number in range(100)]
    with LiveTable(["n", "text"], lambda: rows):
        pass
    shown = capsys.readouterr().out.split()
    assert (shown[0], shown[1]) == ("n", "text")
    assert r"row\x1b99" in shown
    assert r"row\x1b0" not in shown
    assert "more" in shown
