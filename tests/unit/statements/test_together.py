"""What several queries tell, as one statement."""

from dataclasses import replace

from headgate.statements.progress import Progress, Totals

STEP = Progress(
    batch=3,
    seconds=0.5,
    watermark_ms=None,
    offsets={"a": {0: 10, 1: 20}},
    behind={"a": {0: 1, 1: 0}},
    state_rows=5,
    state_bytes=50,
)


def test_the_one_that_is_behind_counts() -> None:
    other = replace(
        STEP,
        batch=7,
        seconds=2.0,
        watermark_ms=1000,
        offsets={"a": {0: 8, 1: 25}, "internal": {0: 4}},
        behind={"a": {0: 3, 1: 0}, "internal": {0: 6}},
    )
    found = Progress.together([STEP, other])
    assert found == Progress(
        batch=7,
        seconds=2.0,
        watermark_ms=1000,
        offsets={"a": {0: 8, 1: 20}, "internal": {0: 4}},
        behind={"a": {0: 3, 1: 0}, "internal": {0: 6}},
        state_rows=10,
        state_bytes=100,
    )
    assert found.lag == 9
    assert Progress.together([replace(STEP, watermark_ms=5), other]).watermark_ms == 5


def test_rows_that_stay_within_a_statement_do_not_count() -> None:
    totals = Totals()
    told = {"stateOperators": [{"numRowsDroppedByWatermark": 2}]}
    totals.add(told, [{"rows": 10, "bad": 1}], None)
    totals.add(told, [], {"rows": 4})
    assert totals == Totals(batches=1, rows_in=10, rows_out=4, late_rows=4, bad_rows=1)
