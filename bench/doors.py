"""`make bench-doors`: what the catalog costs with all that asks who it is, keeps limits and writes down.

One catalog, one JVM, one process, three ports: at one the catalog's routes stand alone and each connection is
taken for our own, at the second its user is looked up, and at the third is the whole server as `headgate up`
has it, with limits of bodies, origins, doors and the audit trail before the same routes. Rounds alternate
between the three, so all meet the same machine; the results are the median of the rounds' ratios to the
first, for loads and commits on one connection and on new ones.
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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from headgate.access.peers import PEER
from headgate.config import load_settings
from headgate.embedded.ports import LOOPBACK, free_port
from headgate.embedded.runtime import Runtime
from headgate.server.app import create_app
from headgate.server.connections import Connection
from headgate.server.doors import gate_of
from headgate.server.parts import embedded_parts
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


@dataclass(frozen=True)
class Apps:
    """One catalog: its routes alone, and with all that stands before them."""

    alone: FastAPI
    whole: FastAPI


@contextmanager
def catalog_of(folder: Path) -> Iterator[Apps]:
    settings = load_settings(environment={}, data=folder)
    runtime = Runtime.of(settings, server_port=free_port(), connect_port=1, broker_port=1)
    with closing(Store.open(settings.store_url)) as store:
        gate = gate_of(runtime, store)
        with embedded_parts(runtime, store, gate) as parts:
            alone = FastAPI()
            alone.include_router(parts.mounts["/iceberg"], prefix="/iceberg")
            yield Apps(alone, create_app(runtime, store, mounts=parts.mounts, gate=gate))


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
        apps = opened.enter_context(catalog_of(Path(folder)))
        trusting = opened.enter_context(served(apps.alone, Trusting))
        looking = opened.enter_context(served(apps.alone, Connection))
        whole = opened.enter_context(served(apps.whole, Connection))
        with httpx.Client(base_url=looking, trust_env=False) as http:
            http.post("v1/namespaces", json={"namespace": ["bench"]}).raise_for_status()
            table = {"name": "t", "schema": SCHEMA}
            http.post("v1/namespaces/bench/tables", json=table).raise_for_status()
        compare(trusting, {"with a look": looking, "the whole server": whole}, arguments)


def compare(before: str, after: Mapping[str, str], arguments: argparse.Namespace) -> None:
    worst = dict.fromkeys(after, 1.0)
    for what in ("loads-kept", "loads-new", "commits-kept", "commits-new"):
        rates: list[dict[str, float]] = []
        for number in range(arguments.rounds + 1):
            ways = [before, *after.values()]
            ways = ways[number % 3 :] + ways[: number % 3]
            measured = {way: measure(way, what, arguments.requests) for way in ways}
            # The first warms up.
            rates += [measured] if number else []
        alone = statistics.median(one[before] for one in rates)
        print(f"{what}: {alone:.0f}/s alone", end="")
        for name, way in after.items():
            ratio = statistics.median(one[way] / one[before] for one in rates)
            worst[name] = min(worst[name], ratio)
            print(f"; {name} {statistics.median(one[way] for one in rates):.0f}/s, {ratio:.3f}", end="")
        print(flush=True)
    for name, ratio in worst.items():
        print(f"{name}: worst ratio {ratio:.3f}, wanted at least {1 - LARGEST_LOSS:.2f}")


if __name__ == "__main__":
    main()
