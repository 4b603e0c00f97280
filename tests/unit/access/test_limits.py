import pytest

from headgate.access.limits import MOST_REMEMBERED, PER_ADDRESS, PER_CLIENT, WINDOW_SECONDS, FailureLimit
from headgate.errors import TooManyFailures, TooManyRequests
from tests.unit.access.conftest import Clock


def test_a_client_is_stopped_at_the_address_it_fails_from(clock: Clock) -> None:
    limit = FailureLimit(clock)
    for _ in range(PER_CLIENT):
        limit.check("10.0.0.1", "a")
        limit.failed("10.0.0.1", "a")
    with pytest.raises(TooManyFailures) as found:
        limit.check("10.0.0.1", "a")
    assert 1 <= found.value.wait <= WINDOW_SECONDS
    limit.check("10.0.0.1", "b")
    limit.check("10.0.0.2", "a")
    clock.now += WINDOW_SECONDS + 1
    limit.check("10.0.0.1", "a")


def test_an_address_is_stopped_whatever_it_tries(clock: Clock) -> None:
    limit = FailureLimit(clock)
    for number in range(PER_ADDRESS):
        limit.failed("10.0.0.1", f"client-{number}")
    with pytest.raises(TooManyFailures):
        limit.check("10.0.0.1", "another")
    limit.check("10.0.0.2", "another")


def test_what_is_remembered_does_not_grow(clock: Clock) -> None:
    limit = FailureLimit(clock)
    for number in range(MOST_REMEMBERED + 10):
        limit.failed(f"10.0.{number // 250}.{number % 250}", "a")
    assert len(limit._failures) == MOST_REMEMBERED


def test_tokens_that_open_nothing_stop_an_address_but_not_its_secrets(clock: Clock) -> None:
    limit = FailureLimit(clock, per_address=3)
    for _ in range(3):
        limit.failed_token("10.0.0.1")
    with pytest.raises(TooManyFailures, match=r"limits\.address_failures"):
        limit.failed_token("10.0.0.1")
    limit.check("10.0.0.1", "a")
    limit.failed_token("10.0.0.2")


def test_a_client_is_given_so_many_tokens_in_a_minute(clock: Clock) -> None:
    limit = FailureLimit(clock, tokens=2)
    limit.take_token("a")
    limit.take_token("a")
    with pytest.raises(TooManyRequests, match=r"limits\.tokens") as refusal:
        limit.take_token("a")
    assert 1 <= refusal.value.wait <= WINDOW_SECONDS
    limit.take_token("b")
    clock.now += WINDOW_SECONDS + 1
    limit.take_token("a")
