"""How far event time has come, and what holds it up."""

from headgate.statements.clock import Clock, SourceClock

IDLE = 10.0


def source(*partitions: int, delay_ms: int = 0, now: float = 0.0) -> SourceClock:
    found = SourceClock(delay_ms, IDLE)
    found.know(partitions, now)
    return found


def test_the_slowest_partition_says_how_far_it_is() -> None:
    clock = source(0, 1, delay_ms=5)
    clock.see({0: 1000}, 1)
    assert clock.watermark(1) is None, "the other one has shown nothing yet"
    clock.see({1: 300}, 2)
    assert clock.watermark(2) == 295
    clock.see({1: 200}, 3)
    assert clock.watermark(3) == 295, "out of order is not backwards"


def test_a_silent_partition_does_not_count() -> None:
    clock = source(0, 1)
    clock.see({0: 1000}, 9.0)
    assert clock.watermark(9.9) is None
    assert clock.watermark(10.0) == 1000
    clock.see({1: 400}, 12)
    assert clock.watermark(12) == 400, "it is back"


def test_a_partition_with_a_backlog_is_not_silent() -> None:
    clock = source(0, 1)
    for second in range(0, 60, 5):
        clock.see({0: 1000 + second}, second)
        clock.hear({0: 0, 1: 7}, second)
    assert clock.watermark(55) is None
    clock.hear({0: 0, 1: 0}, 60)
    assert clock.watermark(55 + IDLE) == 1055


def test_when_all_are_silent_the_farthest_counts() -> None:
    clock = source(0, 1)
    clock.see({0: 1000, 1: 300}, 0)
    assert clock.watermark(9) == 300
    assert clock.watermark(10) == 1000
    assert clock.is_idle(10)
    assert source(0).watermark(10) is None


def test_a_partition_that_is_added_holds_event_time() -> None:
    clock = source(0)
    clock.see({0: 1000}, 0)
    clock.know([0, 1], 1)
    clock.see({0: 2000}, 1)
    assert clock.watermark(1) is None


def test_the_slowest_input_that_is_awake_counts() -> None:
    facts, rates = source(0), source(0)
    clock = Clock({"facts": facts, "rates": rates})
    facts.see({0: 1000}, 0)
    assert clock.watermark(0) is None
    rates.see({0: 200}, 0)
    assert clock.watermark(1) == 200
    facts.see({0: 5000}, 11)
    assert clock.watermark(11) == 5000, "the rates are silent"
    rates.see({0: 300}, 12)
    assert clock.watermark(12) == 5000, "it never goes back"


def test_when_all_inputs_are_silent_the_least_counts() -> None:
    one, other = source(0), source(0)
    clock = Clock({"one": one, "other": other})
    one.see({0: 1000}, 0)
    other.see({0: 700}, 0)
    assert clock.watermark(20) == 700
