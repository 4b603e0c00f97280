"""The application on a store of the test's own. No Kafka answers it."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from headgate.access.peers import PEER
from headgate.config import Settings
from headgate.embedded.runtime import Runtime
from headgate.server.app import create_app
from headgate.store import Store
from tests.support.peers import own_peer


@pytest.fixture
def runtime(settings: Settings) -> Runtime:
    return Runtime.of(settings, server_port=8080, connect_port=15002, broker_port=1)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store.open(settings.store_url)
    yield store
    store.close()


@pytest.fixture
def client(runtime: Runtime, store: Store) -> Iterator[TestClient]:
    app = create_app(runtime, store, instance="this-one")
    with TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False) as client:
        client.app_state[PEER] = own_peer()
        yield client
