"""Headgate's processes, started one by one as a test needs them, and ended whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx

from headgate.config import load_settings
from headgate.embedded.ports import free_port
from headgate.embedded.process import kill_group
from headgate.embedded.run_file import RUN_FILE
from headgate.embedded.runtime import Runtime
from headgate.model import TableSpec
from headgate.store import Store

PATIENCE_SECONDS = 120.0
# Many JVMs live for seconds in tests, and spent most of them on compiling for a long life. The quick compiler
# alone is what such a one needs; a soak has work enough for the other. With it goes a place for code that
# the many small classes of queries fill: the JVM then throws away what it has compiled.
# Threads that collect garbage beside the work only take its place on two cores.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
# Of drivers: a JVM begins with little room for new objects, and clears it three times a second while Spark
# plans.
DRIVER_OPTIONS = "-Xms768m -Xmn400m"
# Compiling a class for each expression of a plan pays for millions of rows; for the dozens of a test it is a
# third of the work, and Spark's interpreter gives the same values. What users run is what the soak, the stack
# of the end-to-end tests, the functions' answers and some queries by chance run.
INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
COMPILED = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
INTERPRETER = " ".join(f"-D{key}={value}" for key, value in INTERPRETED.items())


def wait_for(what: str, done: Callable[[], Any], timeout: float = PATIENCE_SECONDS) -> Any:
    """Until `done` gives something true; fails with `what` when it never does."""
    deadline = time.monotonic() + timeout
    while not (found := done()):
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s in vain for {what}"
        time.sleep(0.05)
    return found


def verify(store: Store, topic: str) -> None:
    """`headgate table verify --deep`: the table is whole, by the word of a running engine."""
    request = store.ask(topic, "verify", {"deep": True})
    wait_for(f"'{topic}' to be verified", lambda: store.request(request).state != "waiting")
    answer = store.request(request)
    assert answer.state == "done", answer.result
    assert not answer.result["damaged"], answer.result["findings"]


class Process:
    """A Python module in a process group of its own."""

    def __init__(self, module: str, data: Path, log: Path, **environment: str) -> None:
        self._log = log.open("ab")
        self._file = log
        self.popen = subprocess.Popen(
            [sys.executable, "-m", module, "--data", str(data)],
            env={**os.environ, "PYTHONFAULTHANDLER": "1", **environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    def signal(self, number: signal.Signals) -> None:
        """To the whole group, the JVM included."""
        os.killpg(self.pid, number)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It does nothing while the block lasts: what is sent meanwhile it finds together."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def kill(self) -> None:
        assert kill_group(self.pid)
        self.popen.wait()

    def last_words(self) -> str:
        """Of one that does not go on: it is ended, and says where its threads were."""
        self.popen.send_signal(signal.SIGABRT)
        self.popen.wait(20)
        return "\n".join(self._file.read_text(errors="replace").splitlines()[-120:])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            # A stopped process hears nothing but SIGKILL.
            self.popen.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(timeout=20)
        kill_group(self.pid)
        self.popen.wait()
        self._log.close()


class Services:
    """A broker, a registry and a catalog on one data folder; engines are started by the tests."""

    def __init__(self, data: Path, bootstrap: str, **environment: str) -> None:
        self.environment = {
            "HEADGATE_KAFKA__BOOTSTRAP": bootstrap,
            "HEADGATE_SPARK__MEMORY": "1g",
            **environment,
        }
        settings = load_settings(environment=self.environment, data=data)
        data.mkdir(parents=True, exist_ok=True)
        if (data / RUN_FILE).exists():
            # A server runs on it: these are the same services, seen from another process.
            self.runtime = Runtime.load(data, self.environment)
        else:
            self.runtime = Runtime.of(
                settings, server_port=free_port(), connect_port=free_port(), broker_port=0
            )
            self.runtime.write()
        self.store = Store.open(settings.store_url)

    @property
    def data(self) -> Path:
        return self.runtime.data

    @contextmanager
    def server(self) -> Iterator[Process]:
        with self.process("headgate.server") as process:
            wait_for("the server", lambda: self._healthy(process))
            yield process

    @contextmanager
    def engine(
        self,
        iceberg: str | None = None,
        registry: str | None = None,
        failpoints: Path | None = None,
        **environment: str,
    ) -> Iterator[Process]:
        """An engine; `iceberg` and `registry` put something between it and the catalog or the registry, in
        the folder `failpoints` it finds where to die or to wait."""
        more = dict(environment)
        if iceberg is not None:
            # To the engine it is somebody else's catalog: its key is not shown there unless we say so.
            key = self.runtime.catalog_key or ""
            more |= {"HEADGATE_CATALOG__URI": iceberg, "HEADGATE_CATALOG__PROPERTIES__TOKEN": key}
        more |= {} if registry is None else {"HEADGATE_REGISTRY__URL": registry}
        more |= {} if failpoints is None else {"HEADGATE_FAILPOINTS": str(failpoints)}
        with self.process("headgate.engine", **more) as process:
            wait_for("the engine", lambda: self._ready(process))
            yield process

    @contextmanager
    def table(self, spec: TableSpec) -> Iterator[None]:
        """Enabled while the block lasts: engines of later tests have nothing to do with it."""
        self.store.enable_table(spec)
        try:
            yield
        finally:
            self.store.remove_table(spec.topic)

    def process(self, module: str, **environment: str) -> Process:
        log = self.data / f"{module.rpartition('.')[2]}.log"
        return Process(module, self.data, log, **{**self.environment, **environment})

    def verify(self, topic: str) -> None:
        verify(self.store, topic)

    def sync(self, topic: str, timeout: float = PATIENCE_SECONDS) -> None:
        """Until the engine says that it has caught up with what is there now."""
        token = f"sync-{time.monotonic_ns()}"
        self.store.request_sync(topic, token)

        def synced() -> bool:
            status = self.store.table(topic).status
            assert status.state.value not in ("Suspended", "Failed"), status.reason
            return bool(status.detail.get("synced") == token)

        wait_for(f"'{topic}' to be synced", synced, timeout)

    def close(self) -> None:
        self.store.close()

    def _healthy(self, process: Process) -> bool:
        assert process.popen.poll() is None, "the server ended: see server.log"
        try:
            # Without TLS there is nothing to verify, and to get ready for it takes twenty times as long.
            health = self.runtime.api.replace("/api/v1", "/healthz")
            return httpx.get(health, trust_env=False, verify=False).is_success
        except httpx.TransportError:
            return False

    def _ready(self, process: Process) -> bool:
        assert process.popen.poll() is None, "the engine ended: see engine.log"
        found = self.store.process("engine")
        return found.pid == process.pid and found.state == "ready"
