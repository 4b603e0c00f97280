"""A real server, for its schema registry and for the commands, on the tests' broker."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from headgate.embedded.broker import Broker
from tests.integration.server.conftest import Served, serve


@pytest.fixture(scope="package")
def served(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = serve(tmp_path_factory.mktemp("datagen-server"), broker.bootstrap)
    yield served
    served.process.terminate()
    assert served.process.wait(timeout=30) == 0
    served.store.close()


@pytest.fixture
def registry(served: Served) -> str:
    return served.runtime.registry


@pytest.fixture
def prefix() -> str:
    """Topics of the test's own."""
    return f"gen-{uuid4().hex[:8]}-"
