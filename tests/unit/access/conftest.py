"""A control state of the test's own, and a gate on it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from headgate.access.credentials import Credentials
from headgate.access.gate import Gate, LocalKeys
from headgate.access.tokens import Tokens
from headgate.config import Settings
from headgate.store import Store

KEYS = LocalKeys(engine="engine-key-of-the-tests", operator="operator-key-of-the-tests")


@dataclass
class Clock:
    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store.open(settings.store_url)
    yield store
    store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def credentials(store: Store) -> Credentials:
    return Credentials(store.engine)


@pytest.fixture
def tokens(store: Store, clock: Clock) -> Tokens:
    return Tokens(store.engine, lifetime=600, key_lifetime=3600, clock=clock)


@pytest.fixture
def gate(credentials: Credentials, tokens: Tokens) -> Gate:
    return Gate(credentials, tokens, KEYS, required=True)
