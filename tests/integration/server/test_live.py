"""Live streams over sockets, at both doors: what is told, and that they hold no stop up."""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import uvicorn

from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Role
from headgate.config import Public, load_settings
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.embedded.runtime import Runtime
from headgate.model import TableSpec
from headgate.server.app import create_app
from headgate.server.connections import Connection
from headgate.server.main import GRACE_SECONDS, Server
from headgate.server.public import PublicServer
from headgate.store import Store

STREAMS = 20


class Doors:
    """A server of this process with both doors, and a credential."""

    def __init__(self, data: Path) -> None:
        settings = load_settings(environment={}, data=data)
        self.store = Store.open(settings.store_url)
        self.store.enable_table(TableSpec("orders"))
        made, key = Credentials(self.store.engine).create("ada", [Grant(Role.READER)])
        self.login = (made.client_id, key)
        ports = free_port(), free_port()
        self.roots = [f"http://{LOOPBACK}:{port}" for port in ports]
        runtime = Runtime.of(settings, server_port=ports[0], connect_port=1, broker_port=1)
        self.app = create_app(runtime, self.store)
        config = uvicorn.Config(
            self.app,
            LOOPBACK,
            ports[0],
            http=Connection,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        self.server = Server(config, self.app.state.live.end)
        self._public = Public(host=LOOPBACK, port=ports[1])
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        with PublicServer(self._public, self.app):
            self.server.run()

    def start(self) -> None:
        self._thread.start()
        while not self.server.started:
            time.sleep(0.02)

    def stop(self) -> float:
        """How many seconds it took."""
        began = time.monotonic()
        self.server.should_exit = True
        self._thread.join()
        return time.monotonic() - began


@pytest.fixture
def doors(tmp_path: Path) -> Iterator[Doors]:
    doors = Doors(tmp_path / "data")
    doors.start()
    yield doors
    doors.stop()
    doors.store.close()


def test_stop_does_not_wait_for_streams(doors: Doors) -> None:
    with ExitStack() as opened:
        http = opened.enter_context(httpx.Client(trust_env=False, auth=doors.login, timeout=30))
        streams = []
        for root in doors.roots:
            for _ in range(STREAMS // 2):
                answer = opened.enter_context(http.stream("GET", f"{root}/api/v1/live"))
                assert answer.status_code == 200
                lines = answer.iter_lines()
                while not next(lines).startswith("event: status"):
                    pass
                assert '"topic":"orders"' in next(lines)
                streams.append(lines)
        threads = [one.name for one in threading.enumerate()]
        assert threads.count("live") == 1
        assert len(threads) < STREAMS
        assert doors.stop() < GRACE_SECONDS / 2
        # Each has come to its end, none was cut off.
        assert all(list(lines) is not None for lines in streams)
