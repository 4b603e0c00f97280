"""What tests share: one broker and one small JVM for the whole run, ended with it."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.config import Settings, load_settings
from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import free_port
from headgate.jvm import Jvm
from tests.support.services import Services
from tests.support.stack import Stack

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in its background has them ignore Ctrl-C, and what they start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings on an empty data folder of the test's own."""
    return load_settings(environment={}, data=tmp_path / "data")


@pytest.fixture(scope="session")
def jars() -> Path:
    return load_settings(environment={}).jars_folder


@pytest.fixture(scope="session")
def jvm(jars: Path) -> Iterator[Jvm]:
    """The JVM that the server has behind it."""
    with Jvm(jars) as jvm:
        yield jvm


@pytest.fixture(scope="session")
def broker(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker. Tests share it: they name their topics after themselves."""
    broker = Broker(tmp_path_factory.mktemp("broker"), free_port(), free_port(), jars)
    log = broker.folder / "broker.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            broker.prepare(), stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            wait_for_kafka(broker.bootstrap, alive=lambda: process.poll() is None)
            yield broker
        finally:
            process.terminate()
            process.wait(timeout=30)


# What statements hash with; it is to be found nowhere.
PEPPER = "a secret that nobody may see"


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All of Headgate, embedded, for the end-to-end tests and the drills on it."""
    data = tmp_path_factory.mktemp("stack") / "data"
    with Stack(data, HEADGATE_SECRETS__PEPPER=PEPPER) as stack:
        yield stack


@pytest.fixture(scope="session")
def services(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """The server on the shared broker, and no engine: the drills start their own."""
    services = Services(tmp_path_factory.mktemp("services"), broker.bootstrap)
    with services.server():
        yield services
    services.close()
