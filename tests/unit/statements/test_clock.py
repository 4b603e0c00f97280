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


def test_a_backlog_that_was_told_long_ago_holds_event_time() -> None:
    clock = source(0, 1)
    clock.see({0: 1000, 1: 300}, 0)
    clock.hear({0: 0, 1: 7}, 0)
    clock.see({0: 2000}, 5 * IDLE)
    assert clock.watermark(5 * IDLE) == 300


def test_a_pause_of_all_partitions_moves_nothing() -> None:
    """A backfill of the slower one after the pause is not late: only records move event time."""
    clock = Clock({"a": source(0, 1)})
    clock.see("a", {0: 900, 1: 300}, 0)
    clock.see("a", {0: 1000}, IDLE / 2)
    assert clock.watermark(9) == 300
    assert clock.watermark(1.2 * IDLE) == 300, "the other one was silent for half of it"
    assert clock.watermark(1000 * IDLE) == 300
    clock.see("a", {0: 1200}, 1000 * IDLE)
    assert clock.watermark(1000 * IDLE) == 300, "the other one's records may be in the next batch"
    clock.see("a", {0: 1300}, 1001 * IDLE)
    assert clock.watermark(1001 * IDLE) == 1300, "one speaks, and the other has not for so long"


def test_a_pause_is_excused_once_so_that_sparse_records_go_on() -> None:
    clock = Clock({"a": source(0), "b": source(0)})
    clock.see("a", {0: 1000}, 0)
    clock.see("b", {0: 300}, 0)
    clock.hear("a", {0: 4}, 3 * IDLE)
    assert clock.watermark(3 * IDLE) == 300
    clock.see("a", {0: 1200}, 6 * IDLE)
    clock.hear("a", {0: 0}, 6 * IDLE)
    assert clock.watermark(6 * IDLE) == 1200
    clock.see("b", {0: 400}, 7 * IDLE)
    clock.see("a", {0: 1400}, 9 * IDLE)
    assert clock.watermark(9 * IDLE) == 1200, "it has spoken: the pause since then is excused again"
    assert source(0).watermark(10) is None


def test_a_pause_of_all_inputs_moves_nothing() -> None:
    facts, rates = source(0, 1), source(0)
    clock = Clock({"facts": facts, "rates": rates})
    facts.see({0: 1000, 1: 600}, 0)
    rates.see({0: 700}, 2)
    assert clock.watermark(1000 * IDLE) == 600


def test_a_partition_that_never_had_a_record_is_left_out_after_the_idle_timeout() -> None:
    clock = source(0, 1)
    clock.see({0: 1000}, 1)
    assert clock.slowest(5) == [1]
    assert clock.watermark(IDLE - 1) is None
    assert clock.watermark(IDLE) == 1000
    assert clock.slowest(IDLE) == [0]


def test_the_brokers_dates_and_the_wall_clock_pass_what_is_read() -> None:
    clock = source(0, 1, delay_ms=5)
    clock.see({0: 1000, 1: 300}, 0)
    clock.passed_ms = 5000
    assert clock.watermark(1) == 4995
    clock.passed_ms = 100
    assert clock.watermark(1) == 295, "it is never behind what records have shown"


def test_what_an_earlier_run_has_seen_holds_and_moves_event_time() -> None:
    clock = source(0, 1)
    clock.recall({0: 1000, 1: 300, 7: 5})
    assert clock.watermark(1) == 300
    clock.see({1: 2000}, 2)
    assert clock.watermark(2) == 1000
    assert clock.seen == 2000


def test_silence_is_known_once_a_batch_has_told_that_nothing_waits() -> None:
    orders = source(0, 1)
    clock = Clock({"orders": orders})
    orders.see({0: 1000}, 5)
    assert clock.silent_seconds(8) == 3
    clock.batch_ended(8)
    assert clock.silent_seconds(20) == 0
    orders.hear({0: 0, 1: 3}, 20)
    assert clock.silent_seconds(30) == 0
    orders.hear({0: 0, 1: 0}, 31)
    assert clock.silent_seconds(35) == 15


def test_the_slowest_input_and_its_partitions_are_named() -> None:
    facts, rates = source(0, 1), source(0)
    clock = Clock({"facts": facts, "rates": rates})
    facts.see({0: 1000, 1: 300}, 0)
    assert clock.slowest() == ("rates", [0], True)
    rates.see({0: 700}, 0)
    assert clock.slowest() == ("facts", [1], False)


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
