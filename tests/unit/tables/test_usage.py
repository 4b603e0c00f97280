"""What a table takes in storage, looked up now and then."""

import json
import logging
from typing import Any

import pytest

from headgate.model import OPERATION_KEY
from headgate.tables.usage import Usage

METADATA = {
    "snapshots": [
        {"sequence-number": 1, "timestamp-ms": 1000, "summary": {"total-files-size": "70"}},
        {
            "sequence-number": 2,
            "timestamp-ms": 2000,
            "summary": {"added-files-size": "30", "total-files-size": "30", OPERATION_KEY: "compact"},
        },
    ]
}


def test_files_of_all_snapshots_and_the_delta_log_are_counted() -> None:
    usage = Usage("orders", lambda _: json.dumps(METADATA), every=0)
    found = {"last_compaction_at": 2000, "kept_bytes": 100}
    assert usage.facts(None, lambda: 7) == found | {"delta_log_bytes": 7}
    assert usage.facts(None, lambda: None) == found | {"delta_log_bytes": None}


def test_metadata_is_read_now_and_then_and_after_maintenance() -> None:
    reads: list[Any] = []

    def read(table: Any) -> str:
        reads.append(table)
        return json.dumps(METADATA)

    usage = Usage("orders", read)
    assert usage.facts("a", lambda: 1) == usage.facts("b", lambda: 2)
    usage.forget()
    assert usage.facts("c", lambda: 3)["delta_log_bytes"] == 3
    assert reads == ["a", "c"]


def test_what_cannot_be_looked_up_is_told_and_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    usage = Usage("orders", lambda _: json.dumps(METADATA), every=0)
    before = usage.facts(None, lambda: 1)

    def broken() -> int:
        raise OSError("the bucket does not answer")

    with caplog.at_level(logging.WARNING):
        assert usage.facts(None, broken) == before
    assert "'orders' takes is not known now: the bucket does not answer" in caplog.text
