"""`python -m headgate.server`: one process, one port, a small JVM behind it."""

import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable

import uvicorn

from headgate.embedded.entry import enter
from headgate.embedded.heartbeat import Heartbeat
from headgate.embedded.ports import LOOPBACK
from headgate.embedded.runtime import Runtime
from headgate.server.app import Check, create_app
from headgate.server.connections import Connection
from headgate.server.doors import gate_of
from headgate.server.parts import embedded_parts
from headgate.server.public import PublicServer
from headgate.storage import Places, Storages
from headgate.store import Store

NAME = "server"
GRACE_SECONDS = 10
CHECK_SECONDS = 2.0
FAILURES = 2

log = logging.getLogger("headgate.server")


def main() -> int:
    runtime, instance = enter("headgate.server", __doc__)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Before uvicorn takes the signals and after it gives them back, one ends the blocks below.
        signal.signal(number, lambda *_: sys.exit(0))
    return serve(runtime, instance)


def serve(runtime: Runtime, instance: str) -> int:
    """Until told to stop (SystemExit), or the JVM is gone (1)."""
    store = Store.open(runtime.settings.store_url)
    try:
        gate = gate_of(runtime, store)
        places = Places.of(runtime.settings, Storages(store.engine))
        with (
            Heartbeat(store, NAME, instance) as heart,
            embedded_parts(runtime, store, gate, places) as parts,
        ):
            app = create_app(
                runtime,
                store,
                mounts=parts.mounts,
                checks=parts.checks,
                instance=instance,
                gate=gate,
                places=places,
                used=parts.used,
                lake=parts.catalog,
            )
            server = Server(
                uvicorn.Config(
                    app,
                    host=LOOPBACK,
                    port=runtime.server_port,
                    http=Connection,
                    log_config=None,
                    access_log=False,
                    # Nobody stands between: an address that a request names itself is not believed.
                    proxy_headers=False,
                    timeout_graceful_shutdown=GRACE_SECONDS,
                ),
                app.state.live.end,
            )
            with (
                PublicServer(runtime.settings.public, app),
                JvmWatch(server, parts.checks.get("jvm")) as watch,
            ):
                heart.ready()
                server.run()
            return int(watch.gone)
    finally:
        store.close()


class Server(uvicorn.Server):
    """One that ends what would go on for ever before it waits for the answers that it gives."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end_streams()
        await super().shutdown(sockets)


class JvmWatch:
    """Ends the server when its JVM is gone: the supervisor starts both anew."""

    def __init__(self, server: uvicorn.Server, check: Check | None) -> None:
        self.gone = False
        self._server = server
        self._check = check
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jvm-watch", daemon=True)

    def __enter__(self) -> "JvmWatch":
        if self._check is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._check is not None:
            self._thread.join()

    def _run(self) -> None:
        assert self._check is not None
        failures = 0
        while not self._ended.wait(CHECK_SECONDS):
            try:
                self._check()
                failures = 0
            except Exception as error:  # noqa: BLE001 - py4j raises what the broken socket raised
                failures += 1
                log.warning("the JVM does not answer: %s: %s", type(error).__name__, error)
            if failures >= FAILURES:
                self.gone = True
                self._server.should_exit = True
                return
