"""Spark's word on a batch, and what can be set for a statement."""

from typing import Any

import pytest

from headgate.errors import InvalidRequest
from headgate.statements.options import StatementOptions
from headgate.statements.progress import Progress, Totals, ran

TOLD: dict[str, Any] = {
    "batchId": 7,
    "durationMs": {"addBatch": 1200, "triggerExecution": 1500},
    "eventTime": {"watermark": "2023-11-14T22:13:20.000Z"},
    "stateOperators": [
        {"numRowsTotal": 3, "memoryUsedBytes": 100, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 4, "memoryUsedBytes": 50, "numRowsDroppedByWatermark": 0},
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[shop.orders]]",
            "startOffset": {"shop.orders": {"0": 1}},
            "endOffset": {"shop.orders": {"0": 10, "1": 4}},
            "latestOffset": {"shop.orders": {"0": 15, "1": 4}},
        }
    ],
}


def test_a_batch() -> None:
    found = Progress.of(TOLD)
    assert found.offsets == {"shop.orders": {0: 10, 1: 4}}
    assert found.behind == {"shop.orders": {0: 5, 1: 0}}
    assert (found.lag, found.seconds, found.watermark_ms) == (5, 1.5, 1_700_000_000_000)
    assert (found.state_rows, found.state_bytes) == (7, 150)


def test_a_batch_that_is_done_again_does_not_know_the_ends() -> None:
    again = {**TOLD, "sources": [TOLD["sources"][0] | {"latestOffset": None}], "eventTime": {}}
    found = Progress.of(again)
    assert (found.lag, found.watermark_ms) == (0, None)


def test_of_a_topic_that_is_read_twice_the_reading_that_is_behind_counts() -> None:
    """What it has not read yet is not closed, and its partitions are not silent."""
    (ahead,) = TOLD["sources"]
    behind = ahead | {
        "endOffset": {"shop.orders": {"0": 8, "1": 4}},
        "latestOffset": {"shop.orders": {"0": 14, "1": 4}},
    }
    for sources in ([ahead, behind], [behind, ahead]):
        found = Progress.of({**TOLD, "sources": sources})
        assert found.offsets == {"shop.orders": {0: 8, 1: 4}}
        assert found.behind == {"shop.orders": {0: 6, 1: 0}}
    # A partition that only one of them knows is not read by the other.
    new = ahead | {"endOffset": {"shop.orders": {"0": 10}}, "latestOffset": {"shop.orders": {"0": 10}}}
    assert Progress.of({**TOLD, "sources": [ahead, new]}).offsets == {"shop.orders": {0: 10}}


def test_totals_go_on() -> None:
    totals = Totals.from_dict({"rows_in": 5, "lag": 3})
    totals.add(TOLD, [{"rows": 10, "bad": 1}, {"rows": 2, "ahead": 1, "without_row": 1}], {"rows": 4})
    assert totals.to_dict() == {
        "batches": 1,
        "rows_in": 17,
        "rows_out": 4,
        "late_rows": 2,
        "bad_rows": 1,
        "ahead_rows": 1,
        "events_without_row": 1,
    }
    assert Totals.from_dict(totals.to_dict()) == totals


def test_late_rows_of_an_aggregate_are_counted_as_rows() -> None:
    """Its operator counts groups; the operators of what is read come last."""

    def late(*counted: int, drops: tuple[int, ...]) -> int:
        names = ("stateStoreSave", "symmetricHashJoin", "stateStoreSave")
        operators = [
            {"operatorName": name, "numRowsDroppedByWatermark": dropped}
            for name, dropped in zip(names[-len(drops) :], drops, strict=True)
        ]
        totals = Totals()
        totals.add({"stateOperators": operators}, [], {}, [{"rows": rows} for rows in counted])
        return totals.late_rows

    assert late(drops=(21,)) == 21
    assert late(17_000, drops=(21,)) == 17_000
    assert late(5, drops=(0,)) == 0, "nothing was left out"
    assert late(17_000, drops=(3, 2, 21)) == 17_005


def test_options_are_checked() -> None:
    kept = StatementOptions(idle_seconds=5.0, on_bad_record="skip")
    assert StatementOptions.from_dict(kept.to_dict()) == kept
    for wrong, said in (
        ({"idle": 5}, "'idle' is no option"),
        ({"on_bad_record": "maybe"}, "'maybe'"),
        ({"idle_seconds": 0}, "idle_seconds must be more than 0"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            StatementOptions.from_dict(wrong)


def test_waiting_is_no_batch() -> None:
    ran_before = Progress.of(TOLD)
    waits = {**TOLD, "batchId": TOLD["batchId"] + 1, "durationMs": {"latestOffset": 1, "triggerExecution": 2}}
    assert not ran(waits)
    found = Progress.of(waits, ran_before)
    assert (found.batch, found.seconds) == (ran_before.batch, ran_before.seconds)
    assert Progress.of(waits).batch == TOLD["batchId"]
