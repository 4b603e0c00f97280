"""A registry as the server runs it: FastAPI under uvicorn on a port of its own, over a database file."""

import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import uvicorn
from confluent_kafka.schema_registry import SchemaRegistryClient
from fastapi import FastAPI

from headgate.embedded.ports import LOOPBACK, free_port
from headgate.jvm import Jvm
from headgate.registry.compatibility import AvroCompatibility
from headgate.registry.routes import registry_router
from headgate.registry.service import RegistryService
from headgate.store.database import migrate, open_database

DEADLINE_SECONDS = 20


class RunningApp:
    """Serves an app from a thread until it is closed."""

    def __init__(self, app: FastAPI, health: str) -> None:
        self.port = free_port()
        self.address = f"http://{LOOPBACK}:{self.port}"
        config = uvicorn.Config(app, host=LOOPBACK, port=self.port, log_level="warning", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        self._wait(self.address + health)

    def _wait(self, url: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline and self._thread.is_alive():
            with suppress(httpx.TransportError):
                httpx.get(url, timeout=1)
                return
            time.sleep(0.02)
        raise AssertionError(f"nothing answered at {url}")

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(DEADLINE_SECONDS)
        assert not self._thread.is_alive()


class RunningRegistry:
    def __init__(self, database: Path, jvm: Jvm) -> None:
        self.engine = open_database(f"sqlite:///{database}")
        migrate(self.engine)
        app = FastAPI()
        service = RegistryService(self.engine, AvroCompatibility(jvm))
        app.include_router(registry_router(service), prefix="/registry")
        self._running = RunningApp(app, "/registry/")
        self.url = self._running.address + "/registry"
        self._clients: list[SchemaRegistryClient] = []
        self.client = self.new_client()
        self.http = httpx.Client(base_url=self.url, timeout=10)

    def new_client(self) -> SchemaRegistryClient:
        """One that remembers nothing, and tries once: a second try could hide a failure."""
        client = SchemaRegistryClient({"url": self.url, "max.retries": 0})
        self._clients.append(client)
        return client

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.http.close()
        self._running.close()
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
