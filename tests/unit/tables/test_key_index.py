"""The key index: where each key's row is, and which snapshot that is true of."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from headgate.tables.key_index import Entries, KeyIndex, Place, Reflected

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
FIRST, SECOND = Reflected("table", 1, 1), Reflected("table", 2, 2)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[KeyIndex]:
    made = KeyIndex(tmp_path / "index")
    made.open()
    yield made
    made.close()


def reopened(index: KeyIndex) -> KeyIndex:
    index.close()
    index.open()
    return index


def rows(path: str, *ids: bytes) -> Entries:
    count = len(ids)
    zeros, numbers = np.zeros(count, np.int64), np.arange(count)
    return Entries(ids, [path], zeros, numbers, zeros + 3, numbers + 100)


def test_rows_are_found_at_their_file_and_row_position(index: KeyIndex) -> None:
    index.put((), FIRST, rows=[rows("one.parquet", A, B)])
    index.put((), SECOND, rows=[rows("two.parquet", B)])
    for found in (index, reopened(index)):
        assert found.get([A, B, C]) == [
            Place("one.parquet", 0, 3, 100),
            Place("two.parquet", 0, 3, 100),
            None,
        ]
        assert found.reflects == SECOND


def test_files_keep_their_numbers_when_more_come_after_a_restart(index: KeyIndex) -> None:
    index.put((), FIRST, rows=[rows("one.parquet", A)])
    reopened(index).put((), SECOND, rows=[rows("two.parquet", B)])
    assert [place.path for place in index.get([A, B]) if place] == ["one.parquet", "two.parquet"]


def test_a_deleted_key_is_known_and_has_no_row(index: KeyIndex) -> None:
    index.put((), FIRST, rows=[rows("one.parquet", A, B)])
    assert list(index.live()) == [("one.parquet", 0), ("one.parquet", 1)]
    index.put([(A, Place(None, 0, 3, 200, b"order"))], SECOND, forget=[B])
    assert list(index.live()) == []
    for found in (index, reopened(index)):
        assert found.get([A, B]) == [Place(None, 0, 3, 200, b"order"), None]
        assert found.find([A]).known.tolist() == [True]
        assert found.find([A]).live.tolist() == [False]


def test_an_index_that_was_being_built_stands_for_no_snapshot(index: KeyIndex) -> None:
    index.put((), FIRST, rows=[rows("one.parquet", A)])
    index.fill([rows("two.parquet", B)])
    assert reopened(index).reflects is None


def test_a_cleared_index_knows_nothing(index: KeyIndex) -> None:
    index.put((), FIRST, {"source": b"\x01"}, rows=[rows("one.parquet", A)])
    assert reopened(index).truncated == {"source": b"\x01"}
    index.clear()
    assert index.get([A]) == [None]
    assert index.reflects is None
    assert index.truncated == {}
