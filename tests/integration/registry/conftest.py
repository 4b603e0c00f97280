import re
from collections.abc import Iterator

import pytest

from headgate.jvm import Jvm
from tests.integration.registry.running import RunningRegistry


@pytest.fixture(scope="session")
def shared_registry(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """One for the tests that keep to subjects of their own."""
    with RunningRegistry(tmp_path_factory.mktemp("registry") / "control.db", jvm) as registry:
        yield registry


@pytest.fixture
def own_registry(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    """One for a test that looks at, or changes, what is everybody's."""
    with RunningRegistry(tmp_path_factory.mktemp("registry") / "control.db", jvm) as registry:
        yield registry


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """A subject of the test's own."""
    module = request.node.path.stem
    return re.sub(r"[^\w.-]+", "-", f"{module}-{request.node.name}") + "-value"
