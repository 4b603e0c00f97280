"""A real server process with its JVM, on the tests' broker. There is no engine: tests act its part."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from headgate.config import load_settings
from headgate.embedded.broker import Broker
from headgate.embedded.ports import free_port
from headgate.embedded.process import Identity, group_members
from headgate.embedded.runtime import Runtime
from headgate.store import Store


@dataclass(frozen=True)
class Served:
    """A server that runs, and the control state it shares with the engine."""

    runtime: Runtime
    process: "subprocess.Popen[bytes]"
    store: Store

    @property
    def data(self) -> Path:
        return self.runtime.data


def serve(data: Path, bootstrap: str) -> Served:
    environment = {"HEADGATE_KAFKA__BOOTSTRAP": bootstrap}
    settings = load_settings(environment=environment, data=data)
    runtime = Runtime.of(
        settings, server_port=free_port(), connect_port=1, broker_port=0, supervisor=Identity.own()
    )
    store = Store.open(settings.store_url)
    runtime.write()
    command = [sys.executable, "-m", "headgate.server", "--data", str(data), "--instance", "test"]
    with (data / "server.log").open("wb") as out:
        process = subprocess.Popen(
            command, env=os.environ | environment, stdout=out, stderr=out, start_new_session=True
        )
    wait_for_health(runtime, process)
    return Served(runtime, process, store)


def wait_for_health(runtime: Runtime, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{runtime.console}healthz", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            assert process.poll() is None, (runtime.data / "server.log").read_text()
        assert time.monotonic() < deadline, "the server does not become healthy"
        time.sleep(0.1)


@pytest.fixture(scope="package")
def served(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = serve(tmp_path_factory.mktemp("server"), broker.bootstrap)
    yield served
    pid = served.process.pid
    members = group_members(pid)
    served.process.terminate()
    # The last test of all: a stop is graceful, and takes the JVM along.
    assert served.process.wait(timeout=30) == 0
    deadline = time.monotonic() + 10
    while group_members(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (len(members), group_members(pid)) == (2, [])
    served.store.close()
