"""A data folder, a store and a supervisor of test programs; whatever happens, nothing is left running."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.embedded.child import ChildSpec
from headgate.embedded.folder import DataFolder
from headgate.embedded.supervisor import Supervisor
from headgate.store import Store
from tests.integration.embedded.programs import command, ready

Supervise = Callable[..., Supervisor]


def wait_until(what: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.02)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def store(data: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{data / 'control.db'}")
    yield store
    store.close()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def supervise(data: Path, store: Store, said: list[str]) -> Iterator[Supervise]:
    """A supervisor of these specs, on the test's data folder."""
    made: list[Supervisor] = []
    with DataFolder.taken(data) as folder:

        def make(*specs: ChildSpec) -> Supervisor:
            made.append(Supervisor(specs, store, folder, said.append))
            return made[-1]

        yield make
        for supervisor in made:
            supervisor.ask_to_stop()
            supervisor.ask_to_stop()
            supervisor.stop()


@pytest.fixture
def spec(data: Path) -> Callable[..., ChildSpec]:
    """A spec of one of the test programs."""

    def make(name: str, kind: str = "steady", **options: object) -> ChildSpec:
        return ChildSpec(name, command(kind, name, data), ready(name, data), **options)  # type: ignore[arg-type]

    return make
