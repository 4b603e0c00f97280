"""What tests share: one broker and one small JVM for the whole run, ended with it."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from headgate.config import Settings, load_settings
from headgate.embedded.broker import Broker, wait_for_kafka
from headgate.embedded.ports import free_port
from headgate.errors import NotFound
from headgate.jvm import Jvm
from tests.support import times
from tests.support.answers import held_to_the_description
from tests.support.services import DRIVER_OPTIONS, INTERPRETER, JVM_OPTIONS, Services
from tests.support.stack import Stack
from tests.support.warm import lease

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the tests in its background has them ignore Ctrl-C, and what they start as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A run that is told to end does so as by Ctrl-C: fixtures end what they have started.
signal.signal(signal.SIGTERM, signal.default_int_handler)

if os.environ.get("HEADGATE_SOAK") != "1":
    os.environ.setdefault("JDK_JAVA_OPTIONS", f"{JVM_OPTIONS} {INTERPRETER}")
    # Spark's own variable for the options of its drivers alone.
    os.environ.setdefault("SPARK_SUBMIT_OPTS", DRIVER_OPTIONS)

# What runs for more than one module.
shared: list[Stack | Services] = []


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings on an empty data folder of the test's own."""
    return load_settings(environment={}, data=tmp_path / "data")


@pytest.fixture(scope="session")
def jars() -> Path:
    return load_settings(environment={}).jars_folder


@pytest.fixture(scope="session")
def warm(request: pytest.FixtureRequest) -> Iterator[lease.Lease | None]:
    """The services that `make services` has left running, if this run may use them."""
    folder = os.environ.get(lease.FOLDER)
    if not folder:
        yield None
        return
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\nwarm services: {line}", file=sys.stderr)

    with lease.take(Path(folder).absolute(), say) as taken:
        yield taken


@pytest.fixture(scope="session")
def jvm(jars: Path, warm: lease.Lease | None) -> Iterator[Jvm]:
    """The JVM that the server has behind it."""
    with Jvm(jars) if warm is None else warm.jvm() as jvm:
        yield jvm


@pytest.fixture(scope="session")
def broker(
    jars: Path, warm: lease.Lease | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real broker. Tests share it: they name their topics after themselves."""
    if warm is not None:
        yield warm.broker(jars)
        return
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
    # Here, as they load a second's worth of libraries that most runs of one test have no use for.
    from tests.support import glue, unity
    from tests.support.mails import MailServer

    folder = tmp_path_factory.mktemp("stack")
    settings = {
        "HEADGATE_SECRETS__PEPPER": PEPPER,
        # What outside catalogs are reached with; these are to be found nowhere either.
        "HEADGATE_SECRETS__GLUE": glue.SECRET,
        "HEADGATE_SECRETS__UNITY": unity.SECRET,
        "HEADGATE_PUBLICATION__INTERVAL": "0.5s",
        "HEADGATE_EXPORT__RETRY": "0.5s",
        # Drills kill the process of exports at a place; of the others they arm none.
        "HEADGATE_FAILPOINTS": str(folder / "failpoints"),
        # It runs plans as users' does.
        "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", "").replace(INTERPRETER, ""),
    }
    with (
        MailServer(folder / "mail") as mails,
        Stack(folder / "data", None, **settings, **mails.environment) as stack,
    ):
        stack.mails = mails
        shared.append(stack)
        yield stack
        shared.remove(stack)


@pytest.fixture(scope="session")
def services(
    broker: Broker, warm: lease.Lease | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Services]:
    """The server on the shared broker, and no engine: the drills start their own."""
    if warm is not None:
        services = warm.services()
    else:
        services = Services(tmp_path_factory.mktemp("services"), broker.bootstrap)
    with services.server() if warm is None else nullcontext():
        shared.append(services)
        yield services
        shared.remove(services)
    services.close()


@pytest.fixture(scope="session", autouse=True)
def answers_are_as_described() -> Iterator[None]:
    """Whichever test reads an answer of the API fails where it has not the shape that clients rely on."""
    with held_to_the_description():
        yield


@pytest.fixture(scope="module", autouse=True)
def tables_end_with_their_module() -> Iterator[None]:
    """Every engine that starts later would open them again: after some modules that is most of its work."""
    yield
    for one in shared:
        for record in one.store.tables():
            # The engine may be about to remove one that was disabled.
            with suppress(NotFound):
                one.store.remove_table(record.spec.topic)


def pytest_collection_finish() -> None:
    """Leave modules and test items, which stay to the end, out of every search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    folder = os.environ.get(times.FOLDER)
    if folder is not None:
        config.pluginmanager.register(times.Times(Path(folder)), "times")
