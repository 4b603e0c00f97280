"""Real processes for the drills."""

from collections.abc import Iterator

import pytest

from headgate.embedded.broker import Broker
from tests.support.services import Services


@pytest.fixture(scope="module")
def services(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """A server on a data folder of the module's own, and no engine yet."""
    services = Services(tmp_path_factory.mktemp("services"), broker.bootstrap)
    with services.server():
        yield services
    services.close()
