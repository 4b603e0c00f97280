"""Catalogs behind real HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.jvm import Jvm
from tests.integration.catalog.raw import RawTable
from tests.integration.catalog.serving import Service


@pytest.fixture(scope="module")
def service(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One catalog for the tests of a module, with the namespace `db`."""
    with Service(jvm, tmp_path_factory.mktemp("catalog")) as service:
        service.post("/namespaces", {"namespace": ["db"]})
        yield service


@pytest.fixture
def table(service: Service, request: pytest.FixtureRequest) -> RawTable:
    """A name of the test's own, not created yet."""
    return RawTable(service, "db", request.node.name.replace("[", "-").replace("]", "").replace(" ", "-"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"
