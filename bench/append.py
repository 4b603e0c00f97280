"""`make bench-append`: rows per second of `table sync` beside plain Spark, side by side in one run.

Each round materializes the same payments from earliest, once by Headgate's engine and once by plain Spark
Structured Streaming, on one machine, with the same heap and batch bound. The result is the ratio of the
medians. Then a backlog several times as long is synced, and the engine's greatest memory is printed for both.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.payments import TOPIC, produce
from headgate.cli.client import Client, connect
from headgate.embedded.runtime import Runtime
from headgate.errors import NotFound

HEADGATE = str(Path(sys.executable).parent / "headgate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--backlog", type=int, default=3, help="how many times the rows, for the memory")
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    os.environ["HEADGATE_QUERY__START"] = "lazy"
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        data = Path(folder)
        with running(folder):
            compare(data, arguments)


@contextmanager
def running(folder: str) -> Iterator[None]:
    """Headgate on a data folder, as a user starts it."""
    up = subprocess.Popen([HEADGATE, "up", "--data", folder], stdout=subprocess.PIPE, text=True)
    try:
        for line in up.stdout or ():
            if line.startswith("READY"):
                break
        yield
    finally:
        up.terminate()
        up.wait(timeout=60)


def compare(data: Path, arguments: argparse.Namespace) -> None:
    runtime = Runtime.load(data)
    print(f"producing {arguments.rows:,} payments", flush=True)
    produce(runtime.kafka, runtime.registry, arguments.rows)
    plain = subprocess.Popen(
        [sys.executable, "-m", "bench.plain", str(data)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    ours: list[float] = []
    theirs: list[float] = []
    with connect(data) as client:
        expect(plain, "ready")
        memory = Memory(data)
        for number in range(arguments.warm_up + arguments.rounds):
            mine = sync(client, arguments.rows)
            other = plain_round(plain, number, arguments.rows)
            warm = number >= arguments.warm_up
            if warm:
                ours.append(mine)
                theirs.append(other)
            print(
                f"{'round' if warm else 'warm-up'} {number + 1}: "
                f"headgate {arguments.rows / mine:,.0f} rows/s, "
                f"plain Spark {arguments.rows / other:,.0f} rows/s",
                flush=True,
            )
        if plain.stdin:
            plain.stdin.close()
        plain.wait(timeout=60)
        first = memory.peak()
        report(ours, theirs, arguments.rows)
        more = arguments.rows * (arguments.backlog - 1)
        print(f"producing {more:,} more", flush=True)
        produce(runtime.kafka, runtime.registry, more, first=arguments.rows)
        sync(client, arguments.rows + more)
        second = memory.peak()
        print(
            f"engine's greatest memory: {first / 1e6:,.0f} MB for a backlog of {arguments.rows:,}, "
            f"{second / 1e6:,.0f} MB for {arguments.rows + more:,}: ratio {second / first:.2f}"
        )
        memory.stop()


def report(ours: list[float], theirs: list[float], rows: int) -> None:
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"headgate    median {rows / mine:,.0f} rows/s of {len(ours)} rounds")
    print(f"plain Spark median {rows / other:,.0f} rows/s of {len(theirs)} rounds")
    print(f"ratio headgate / plain Spark: {other / mine:.2f}")


def sync(
    client: Client,
    rows: int,
    formats: tuple[str, ...] = ("iceberg",),
    look: Callable[[dict[str, Any]], None] = lambda _: None,
) -> float:
    """From `enable` on an absent table until `sync` says it is caught up, in seconds; then purge it. Before
    that, `look` sees what `table show` says."""
    started = time.monotonic()
    # Plain Spark writes the records as they are, in one partition: so does this table.
    wanted = {"topic": TOPIC, "metadata": ["none"], "partition": ["none"], "formats": list(formats)}
    client.post("tables", body=wanted)
    token = client.post("tables", TOPIC, "sync")["token"]
    while (found := client.get("tables", TOPIC))["detail"].get("synced") != token:
        if found["state"] in ("Suspended", "Failed"):
            raise SystemExit(f"{found['state']}: {found['reason']}")
        time.sleep(0.05)
    seconds = time.monotonic() - started
    if found["rows"] != rows:
        raise SystemExit(f"the table has {found['rows']} rows, not {rows}")
    look(found)
    client.delete("tables", TOPIC, purge=True)
    try:
        while client.get("tables", TOPIC):
            time.sleep(0.05)
    except NotFound:
        return seconds
    raise AssertionError("unreachable")


def plain_round(plain: "subprocess.Popen[str]", number: int, rows: int) -> float:
    if plain.stdin is None:
        raise SystemExit("plain Spark has no input")
    print(number, file=plain.stdin, flush=True)
    seconds, found = expect(plain).split()
    if int(found) != rows:
        raise SystemExit(f"plain Spark wrote {found} rows, not {rows}")
    return float(seconds)


def expect(plain: "subprocess.Popen[str]", word: str = "") -> str:
    line = plain.stdout.readline().strip() if plain.stdout else ""
    if not line or (word and line != word):
        raise SystemExit(f"plain Spark said {line!r}")
    return line


class Memory:
    """Watches the engine's processes; `peak` gives the greatest sum since the last call."""

    def __init__(self, data: Path) -> None:
        self._root = engine_process(data)
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            try:
                family = [self._root, *self._root.children(recursive=True)]
                self._peak = max(self._peak, sum(process.memory_info().rss for process in family))
            except psutil.NoSuchProcess:
                continue

    def peak(self) -> int:
        found, self._peak = self._peak, 0
        return found

    def stop(self) -> None:
        self._done.set()
        self._thread.join()


def engine_process(data: Path) -> psutil.Process:
    with connect(data) as client:
        processes: Any = client.get("status")["processes"]
    return psutil.Process(next(p["pid"] for p in processes if p["name"] == "engine"))


if __name__ == "__main__":
    main()
