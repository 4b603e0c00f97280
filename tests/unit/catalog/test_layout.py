"""Sizes of files fall into buckets, each into one."""

from typing import Any

import pytest

from headgate.catalog import layout


def file(size: int, day: str, content: str = "DATA") -> dict[str, Any]:
    return {
        "content": content,
        "spec_id": 0,
        "partition": {"day": day},
        "record_count": 10,
        "file_size_in_bytes": size,
    }


def test_each_file_is_in_one_bucket_and_one_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [
        file(0, "01"),
        file(65_535, "01"),
        file(65_536, "02"),
        file(2**40, "02"),
        file(7, "02", "POSITION_DELETES"),
    ]
    monkeypatch.setattr(layout, "file_rows", lambda *_: files)
    found = layout.table_layout({}, lambda _: None)
    assert [(one["from"], one["files"]) for one in found["sizes"] if one["files"]] == [
        (0, 2),
        (65_536, 1),
        (2**30, 1),
    ]
    assert found["sizes"][-1]["to"] is None
    assert (found["delete_files"], found["delete_bytes"]) == (1, 7)
    assert [
        (one["partition"]["day"], one["rows"], one["files"], one["delete_files"])
        for one in found["partitions"]
    ] == [
        ("02", 20, 2, 1),
        ("01", 20, 2, 0),
    ]
