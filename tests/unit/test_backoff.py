"""How long to wait before another try."""

from headgate.backoff import Backoff


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 30.0)
    assert [backoff.after(failures) for failures in range(1, 10)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_no_number_of_failures_is_too_many() -> None:
    backoff = Backoff(0.5, 30.0)
    for failures in (1_023, 1_024, 1_025, 1_026, 10**6):
        assert backoff.after(failures) == 30.0
