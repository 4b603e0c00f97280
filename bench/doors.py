"""`make bench-doors`: what it costs to know the user at the other end of each connection.

One catalog, one JVM, one process, two ports: at one the peer is looked up, at the other it is taken for our
own without a look, as it was before. Rounds alternate between the two, so both meet the same machine; the
results are the median of the rounds' ratios, for loads and commits on one connection and on new ones.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from asyncio import Transport
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.access import Gate, LocalKeys
from headgate.access.credentials import Credentials
from headgate.access.peers import PEER
from headgate.access.tokens import Tokens
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router
from headgate.config import load_settings
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.jvm import Jvm
from headgate.server.connections import Connection
from headgate.store import Store

TABLE = "v1/namespaces/bench/tables/t"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "long", "required": False}]}
COMMIT = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"at": "now"}}]}
LARGEST_LOSS = 0.05


class OwnUser:
    """A peer that is taken for our own."""

    def uid(self) -> int:
        return os.geteuid()


class Trusting(H11Protocol):
    """Connections as they were: whoever is on this machine is a local admin."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, PEER: OwnUser()}


@contextmanager
def served(app: FastAPI, protocol: type[H11Protocol]) -> Iterator[str]:
    port = free_port()
    config = uvicorn.Config(app, LOOPBACK, port, http=protocol, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        yield f"http://{LOOPBACK}:{port}/iceberg/"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def catalog_of(folder: Path) -> Iterator[FastAPI]:
    with (
        Jvm(load_settings(environment={}).jars_folder) as jvm,
        closing(Store.open(f"sqlite:///{folder / 'control.db'}")) as store,
        EmbeddedCatalog(jvm, folder / "catalog.db", (folder / "warehouse").as_uri()) as catalog,
    ):
        tokens = Tokens(store.engine, 600, 3600)
        gate = Gate(Credentials(store.engine), tokens, LocalKeys("engine", "operator"))
        app = FastAPI()
        app.include_router(catalog_router(catalog, gate), prefix="/iceberg")
        yield app


def measure(url: str, what: str, requests: int) -> float:
    """Requests a second, made by a process of its own."""
    command = [sys.executable, "-m", "bench.doors", "--client", url, what, str(requests)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def client(url: str, what: str, requests: int) -> None:
    work, connections = what.split("-")

    def one(http: httpx.Client) -> None:
        answer = http.get(url + TABLE) if work == "loads" else http.post(url + TABLE, json=COMMIT)
        answer.raise_for_status()

    with httpx.Client(trust_env=False, verify=False) as http:
        one(http)
        started = time.monotonic()
        for _ in range(requests):
            if connections == "new":
                http.headers["Connection"] = "close"
            one(http)
        print(requests / (time.monotonic() - started))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--requests", type=int, default=300)
    arguments = parser.parse_args()
    if arguments.client:
        url, what, requests = arguments.client
        client(url, what, int(requests))
        return
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, ExitStack() as opened:
        app = opened.enter_context(catalog_of(Path(folder)))
        looking = opened.enter_context(served(app, Connection))
        trusting = opened.enter_context(served(app, Trusting))
        with httpx.Client(base_url=looking, trust_env=False) as http:
            http.post("v1/namespaces", json={"namespace": ["bench"]}).raise_for_status()
            table = {"name": "t", "schema": SCHEMA}
            http.post("v1/namespaces/bench/tables", json=table).raise_for_status()
        compare(looking, trusting, arguments)


def compare(looking: str, trusting: str, arguments: argparse.Namespace) -> None:
    worst = 1.0
    for what in ("loads-kept", "loads-new", "commits-kept", "commits-new"):
        rates: list[tuple[float, float]] = []
        for number in range(arguments.rounds + 1):
            ways = (looking, trusting) if number % 2 else (trusting, looking)
            measured = {way: measure(way, what, arguments.requests) for way in ways}
            # The first warms up.
            rates += [(measured[looking], measured[trusting])] if number else []
        ratio = statistics.median(a / b for a, b in rates)
        looked, trusted = (statistics.median(pair[side] for pair in rates) for side in (0, 1))
        print(f"{what}: {looked:.0f}/s with a look, {trusted:.0f}/s without: {ratio:.3f}", flush=True)
        worst = min(worst, ratio)
    print(f"worst ratio {worst:.3f}, wanted at least {1 - LARGEST_LOSS:.2f}")


if __name__ == "__main__":
    main()
