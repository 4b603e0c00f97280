"""What a statement says while nothing comes out of it."""

from dataclasses import replace

from headgate.statements.progress import Totals
from headgate.statements.waiting import Holdup, Standing, why_nothing_comes

NOON = 1_700_049_600_000
WAITS = Standing(0, 1791, NOON + 5000, NOON, Holdup("orders", [1]))
CALM = Standing(0, 0, NOON, NOON, Holdup("orders", [1]))
READ = Totals(rows_in=2000, rows_out=209)


def said(*steps: Standing, totals: Totals = READ, empty: bool = False) -> str:
    return why_nothing_comes(steps, totals, ["orders"], empty)


def test_rows_that_wait_say_for_what_and_what_moves_it() -> None:
    assert said(WAITS) == (
        "1,791 rows wait for event time to pass 2023-11-15 12:00:05 UTC; it moves with the next record of "
        "partition 1 of 'orders'"
    )
    assert said(replace(WAITS, waiting_rows=1, holdup=None)) == (
        "1 row waits for event time to pass 2023-11-15 12:00:05 UTC"
    )
    several = replace(WAITS, holdup=Holdup("orders", [0, 1, 2, 3, 4, 5]))
    assert said(several).endswith("the next records of partitions 0, 1, 2, 3 and 2 more of 'orders'")
    unseen = replace(WAITS, holdup=Holdup("orders", [3], 60.0))
    assert said(unseen).endswith(
        "it moves with the first record of partition 3 of 'orders', or without after 60 s of silence"
    )


def test_the_first_step_whose_rows_wait_is_named() -> None:
    assert said(CALM, WAITS).startswith("step 2 of 2: 1,791 rows wait")


def test_what_is_not_read_yet_comes_first() -> None:
    assert said(replace(WAITS, lag=12_000), CALM) == "12,000 records are still to be read"


def test_a_topic_without_records_says_so() -> None:
    assert said(CALM, totals=Totals(), empty=True) == "'orders' is empty"
    assert said(CALM, totals=Totals()) == "no record has come to 'orders' since the statement began there"
    two = why_nothing_comes([CALM], Totals(), ["orders", "rates"], True)
    assert two == "'orders' and 'rates' are empty"


def test_a_topic_at_its_end_says_so() -> None:
    assert said(CALM) == "'orders' is read to the end"


def test_late_rows_and_filtered_ones_are_told_apart() -> None:
    assert said(CALM, totals=Totals(rows_in=12, late_rows=12)) == (
        "12 of 12 rows came behind event time, which is at 2023-11-15 12:00:00 UTC, and were left out"
    )
    assert said(CALM, totals=Totals(rows_in=12)) == (
        "of 12 rows none has come out: no condition or join of the query lets one through"
    )


def test_rows_far_ahead_wait_for_the_wall_clock() -> None:
    ahead = replace(WAITS, watermark_ms=NOON + 5000, waiting_rows=2)
    assert said(ahead, totals=replace(READ, ahead_rows=2)) == (
        "2 rows wait for event time to come to where they are: they are more than an hour ahead of the wall "
        "clock"
    )
