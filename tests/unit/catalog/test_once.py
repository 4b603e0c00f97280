"""A request with an idempotency key acts once, however often it is sent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.catalog.idempotency import Once, Outcome
from headgate.catalog.ledger import KeyTaken, Ledger
from headgate.catalog.locks import NamedLocks
from headgate.catalog.once import Answer, Requests

KEY = Once("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "fingerprint")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    opened = Ledger(tmp_path / "catalog.db")
    yield opened
    opened.close()


class Change:
    """Counts how often it was made; each time its answer is another."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> Answer:
        self.made += 1
        return Answer(200, f"change {self.made}")


def test_a_repeated_request_is_answered_with_the_first_outcome(ledger: Ledger) -> None:
    requests, change = Requests(ledger, NamedLocks()), Change()
    answers = [requests.run_and_record(KEY, ("db",), change) for _ in range(3)]
    assert change.made == 1
    assert answers == [Answer(200, "change 1")] * 3


def test_requests_without_a_key_act_each_time(ledger: Ledger) -> None:
    requests, change = Requests(ledger, NamedLocks()), Change()
    for _ in range(2):
        requests.run_and_record(None, ("db",), change)
    assert change.made == 2


def test_the_outcome_of_another_process_with_the_same_key_is_the_answer(ledger: Ledger) -> None:
    requests = Requests(ledger, NamedLocks())

    def overtaken() -> Answer:
        ledger.record(KEY, Outcome(204))
        raise KeyTaken(KEY.key)

    assert requests.run(KEY, ("db",), overtaken) == Answer(204)
