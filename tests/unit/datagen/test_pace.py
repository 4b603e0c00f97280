"""The rate of a run."""

import pytest

from headgate.datagen.pace import RECORDS_AT_A_TIME, Pace
from headgate.errors import InvalidRequest


def test_without_a_rate_there_is_no_wait() -> None:
    pace = Pace(None, clock=lambda: 0.0)
    assert pace.wait(10**9) == 0.0
    assert pace.records_at_a_time == RECORDS_AT_A_TIME


def test_the_next_record_is_due_by_the_rate() -> None:
    now = [100.0]
    pace = Pace(50, clock=lambda: now[0])
    assert pace.wait(100) == pytest.approx(2.0)
    now[0] = 101.5
    assert pace.wait(100) == pytest.approx(0.5)
    now[0] = 103.0
    assert pace.wait(100) < 0


@pytest.mark.parametrize(("rate", "expected"), [(0.5, 1), (10, 1), (200, 10), (10**6, RECORDS_AT_A_TIME)])
def test_a_low_rate_looks_at_the_clock_more_often(rate: float, expected: int) -> None:
    assert Pace(rate).records_at_a_time == expected


@pytest.mark.parametrize("rate", [0, -3])
def test_rates_below_anything_are_refused(rate: float) -> None:
    with pytest.raises(InvalidRequest, match="no rate"):
        Pace(rate)
