"""`make bench-live`: the catalog's answers beside open event streams and without them.

One process serves the catalog, the API and the live state, as Headgate's server does. Its control state has
200 tables, of which some change all the time, as engines report. A client in a process of its own loads a
table over and over, and the console's streams are open in another, read as they come. Rounds with and without
streams alternate, so both meet the same machine; the result is the median of the rounds' ratios of the 99th
percentile. Both kinds of rounds have the same changes going on.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx

from bench.doors import SCHEMA, served
from headgate.access import Gate, LocalKeys
from headgate.access.credentials import Credentials
from headgate.access.roles import Grant, Role
from headgate.access.tokens import Tokens
from headgate.catalog.embedded import EmbeddedCatalog
from headgate.catalog.routes import catalog_router
from headgate.config import load_settings
from headgate.embedded.runtime import Runtime
from headgate.jvm import Jvm
from headgate.model import TableSpec, TableState
from headgate.server.app import create_app
from headgate.server.connections import Connection
from headgate.store import Store

TABLE = "iceberg/v1/namespaces/bench/tables/t"
LARGEST_RATIO = 1.2


@contextmanager
def server_of(folder: Path, tables: int) -> Iterator[tuple[str, Store, tuple[str, str]]]:
    """Its root, its control state, and a credential that sees everything."""
    settings = load_settings(environment={}, data=folder / "data")
    with (
        Jvm(settings.jars_folder) as jvm,
        closing(Store.open(settings.store_url)) as store,
        EmbeddedCatalog(jvm, folder / "catalog.db", (folder / "warehouse").as_uri()) as catalog,
    ):
        for number in range(tables):
            store.enable_table(TableSpec(f"topic-{number:03d}"))
        credentials = Credentials(store.engine)
        made, key = credentials.create("bench", [Grant(Role.ADMIN)])
        gate = Gate(credentials, Tokens(store.engine, 600, 3600), LocalKeys("engine", "operator"))
        runtime = Runtime.of(settings, server_port=1, connect_port=1, broker_port=1)
        mounts = {"/iceberg": catalog_router(catalog, gate)}
        app = create_app(runtime, store, mounts=mounts, gate=gate)
        with served(app, Connection) as url:
            yield url.removesuffix("iceberg/"), store, (made.client_id, key)


@contextmanager
def reports(store: Store, busy: int) -> Iterator[None]:
    """What engines do meanwhile: so many tables have another state each second."""
    ended = threading.Event()

    def report() -> None:
        rows = 0
        while not ended.wait(1.0):
            rows += 1
            for number in range(busy):
                position = {"offsets": {str(partition): rows for partition in range(12)}}
                detail = {"rows": rows, "lag": rows % 7, "records_materialized": rows, "position": position}
                store.report(f"topic-{number:03d}", TableState.RUNNING, "", detail)

    thread = threading.Thread(target=report)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def streams(root: str, login: tuple[str, str], count: int) -> Iterator[None]:
    """So many readers, in a process of their own."""
    command = [sys.executable, "-m", "bench.live", "--read", root, str(count)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        process.stdin.write("\n".join((*login, "")))
        process.stdin.flush()
        assert process.stdout.readline() == "reading\n"
        yield
    finally:
        process.terminate()
        process.wait()


async def read_streams(root: str, login: tuple[str, str], count: int) -> None:
    async with httpx.AsyncClient(trust_env=False, auth=login, timeout=None) as http:
        begun = asyncio.Barrier(count + 1)

        async def read() -> None:
            async with http.stream("GET", f"{root}api/v1/live") as answer:
                answer.raise_for_status()
                chunks = answer.aiter_bytes()
                await anext(chunks)
                await begun.wait()
                async for _ in chunks:
                    pass

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(read())
            await begun.wait()
            print("reading", flush=True)


def measure(root: str, requests: int) -> list[float]:
    """Milliseconds of loads, by a process of its own, sorted."""
    command = [sys.executable, "-m", "bench.live", "--load", root, str(requests)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return sorted(float(line) for line in done.stdout.split())


def load(root: str, requests: int) -> None:
    with httpx.Client(trust_env=False) as http:
        for number in range(requests + 20):
            began = time.perf_counter()
            http.get(root + TABLE).raise_for_status()
            took = (time.perf_counter() - began) * 1000
            # The first warm up. Requests come at a pace: what is measured is how long each waits.
            if number >= 20:
                print(took)
            time.sleep(0.005)


def percentile(sorted_times: list[float], share: float) -> float:
    return sorted_times[min(len(sorted_times) - 1, int(len(sorted_times) * share))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=1500)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--busy", type=int, default=20, help="tables that change each second")
    arguments = parser.parse_args()
    if arguments.load:
        load(arguments.load[0], int(arguments.load[1]))
    elif arguments.read:
        root, count = arguments.read
        asyncio.run(read_streams(root, (input(), input()), int(count)))
    else:
        compare(arguments)


def compare(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, ExitStack() as opened:
        root, store, login = opened.enter_context(server_of(Path(folder), arguments.tables))
        with httpx.Client(base_url=root, trust_env=False) as http:
            http.post("iceberg/v1/namespaces", json={"namespace": ["bench"]}).raise_for_status()
            table = {"name": "t", "schema": SCHEMA}
            http.post("iceberg/v1/namespaces/bench/tables", json=table).raise_for_status()
        opened.enter_context(reports(store, arguments.busy))
        rounds: list[tuple[list[float], list[float]]] = []
        for number in range(arguments.rounds + 1):
            found: dict[bool, list[float]] = {}
            for with_streams in (True, False) if number % 2 else (False, True):
                with ExitStack() as reading:
                    if with_streams:
                        reading.enter_context(streams(root, login, arguments.streams))
                    found[with_streams] = measure(root, arguments.requests)
            # The first warms up.
            rounds += [(found[True], found[False])] if number else []
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            beside, alone = (
                statistics.median(percentile(pair[side], share) for pair in rounds) for side in (0, 1)
            )
            ratio = statistics.median(percentile(a, share) / percentile(b, share) for a, b in rounds)
            what = f"{beside:.1f} ms beside {arguments.streams} streams, {alone:.1f} ms without"
            print(f"{name}: {what}: {ratio:.2f}")
        print(f"wanted of p99: at most {LARGEST_RATIO}")


if __name__ == "__main__":
    main()
