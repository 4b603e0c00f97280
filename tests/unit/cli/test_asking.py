"""What a result that changes means for who sees it."""

import pytest

from headgate.cli.asking import Changes, _checked
from headgate.errors import ServerUnavailable, StatementFailed


def test_rows_without_a_key_all_stay() -> None:
    changes = Changes(None)
    assert list(changes.take("insert", {"a": 1})) == [("+", {"a": 1})]
    assert list(changes.take("insert", {"a": 1})) == [("+", {"a": 1})]
    assert changes.rows == {}


def test_a_row_is_replaced_and_goes() -> None:
    changes = Changes(["k"])
    one, other, two = {"k": 1, "n": 1}, {"k": 1, "n": 2}, {"k": None, "n": 9}
    assert list(changes.take("upsert", one)) == [("+", one)]
    assert list(changes.take("upsert", two)) == [("+", two)]
    assert list(changes.take("upsert", other)) == [("-", one), ("+", other)]
    assert list(changes.take("upsert", other)) == [], "nothing has changed"
    assert list(changes.take("delete", {"k": 1, "n": None})) == [("-", other)]
    assert list(changes.take("delete", {"k": 1, "n": None})) == [], "it was not there"
    assert list(changes.rows.values()) == [two]


def test_a_result_of_one_row() -> None:
    changes = Changes([])
    assert list(changes.take("upsert", {"n": 1})) == [("+", {"n": 1})]
    assert list(changes.take("upsert", {"n": 2})) == [("-", {"n": 1}), ("+", {"n": 2})]


def test_how_lines_end() -> None:
    end = {"op": "end", "state": "Completed"}
    assert list(_checked(iter([{"op": "insert"}, end]))) == [{"op": "insert"}, end]
    with pytest.raises(StatementFailed, match="odd"):
        list(_checked(iter([{"op": "error", "error": "StatementFailed", "message": "odd"}])))
    with pytest.raises(ServerUnavailable):
        list(_checked(iter([{"op": "insert"}])))
