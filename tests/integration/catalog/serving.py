"""A catalog behind real HTTP: in a thread of the test or, run as a program, in a process to be killed."""

import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx
import uvicorn
from fastapi import FastAPI

from headgate.access import Gate, LocalKeys
from headgate.access.credentials import Credentials
from headgate.access.limits import FailureLimit
from headgate.access.tokens import Tokens
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router
from headgate.config import Storage, load_settings
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.jvm import Jvm
from headgate.server.connections import Connection
from headgate.storage import Places, Storages
from headgate.store import Store

ENGINE_KEY = "the-key-of-the-tests-engine"
OPERATOR_KEY = "the-key-of-the-tests-operator"
# What the tests' own requests show: they act the engine's part.
AS_ENGINE = {"Authorization": f"Bearer {ENGINE_KEY}"}


@dataclass(frozen=True)
class Doors:
    """Credentials and tokens of one control state. Whoever shows nothing is a local admin."""

    credentials: Credentials
    tokens: Tokens
    gate: Gate

    @classmethod
    def of(cls, store: Store, required: bool = False) -> Self:
        credentials, tokens = Credentials(store.engine), Tokens(store.engine, 600, 3600)
        keys = LocalKeys(ENGINE_KEY, OPERATOR_KEY)
        # A test shows some hundred tokens that open nothing, all from this address.
        limit = FailureLimit(per_address=10_000)
        return cls(credentials, tokens, Gate(credentials, tokens, keys, required=required, limit=limit))


def application(catalog: EmbeddedCatalog, gate: Gate) -> FastAPI:
    app = FastAPI()
    app.include_router(catalog_router(catalog, gate), prefix="/iceberg")
    return app


class Service:
    """One catalog on `folder`, served until it is closed. Another one on the same folder is a restart."""

    def __init__(
        self,
        jvm: Jvm,
        folder: Path,
        required: bool = False,
        allowed: tuple[str, ...] = (),
        storage: Storage | None = None,
        database: str | None = None,
    ) -> None:
        self._url = database
        self.storage = storage
        self.folder = folder
        self.required = required
        self.allowed = allowed
        self.jvm = jvm
        self.warehouse = folder / "warehouse"
        self.database = folder / "catalog.db"
        self.port = free_port()
        self.uri = f"http://{LOOPBACK}:{self.port}/iceberg"

    def __enter__(self) -> Self:
        self._store = Store.open(self._url or f"sqlite:///{self.folder / 'control.db'}")
        self.doors = Doors.of(self._store, self.required)
        self.integrations = Storages(self._store.engine)
        places = None if self.storage is None else Places(self.storage, self.integrations)
        self._catalog = EmbeddedCatalog(
            self.jvm, self._url or self.database, self.warehouse.as_uri(), ("local",), self.allowed, places
        )
        app = application(self._catalog, self.doors.gate)
        config = uvicorn.Config(app, LOOPBACK, self.port, http=Connection, log_level="warning")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        wait_until_healthy(self.uri, self._thread.is_alive)
        self.http = httpx.Client(base_url=f"{self.uri}/v1", timeout=60, headers=AS_ENGINE)
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()
        self._server.should_exit = True
        self._thread.join(timeout=30)
        self._catalog.close()
        self._store.close()

    def post(self, path: str, body: Any, status: int = 200, **headers: str) -> dict[str, Any]:
        """POST, and insist on the status that the test expects."""
        answer = self.http.post(path, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        assert answer.status_code == status, answer.text
        return dict(answer.json()) if answer.content else {}

    def get(self, path: str, status: int = 200) -> dict[str, Any]:
        answer = self.http.get(path)
        assert answer.status_code == status, answer.text
        return dict(answer.json())


def wait_until_healthy(uri: str, alive: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            httpx.get(f"{uri}/v1/config", timeout=5, headers=AS_ENGINE).raise_for_status()
            return
        except httpx.HTTPError as error:
            if not alive() or time.monotonic() > deadline:
                raise AssertionError(f"the catalog at {uri} did not come up: {error}") from error
            time.sleep(0.05)


def main(folder: Path, port: int) -> None:
    """Asks everybody who they are."""
    with (
        Jvm(load_settings(environment={}).jars_folder) as jvm,
        closing(Store.open(f"sqlite:///{folder / 'control.db'}")) as store,
        EmbeddedCatalog(jvm, folder / "catalog.db", (folder / "warehouse").as_uri()) as catalog,
    ):
        app = application(catalog, Doors.of(store, required=True).gate)
        uvicorn.run(app, host=LOOPBACK, port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
