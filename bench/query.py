"""`make bench-query`: large results in flat memory, and how soon a small query is answered.

A table of so many rows is written, then all of it is asked for, as CSV and as Parquet, from a query driver
whose heap is smaller than the result. Once a second the memory of each process is looked at: the driver's
JVM, its Python process, the server and the command. Then `SELECT count(*)` is asked over and over, warm.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
from pyspark.sql import SparkSession

from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.spark import CATALOG, Driver, build_session

HEADGATE = str(Path(sys.executable).parent / "headgate")
TABLE = "large"
FILES = 8
ROUNDS = 20
MIB = 1024**2
LOOKS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--heap", default="1g")
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    os.environ |= {"HEADGATE_QUERY__MEMORY": arguments.heap, "HEADGATE_QUERY__START": "eager"}
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        data = Path(folder) / "data"
        up = subprocess.Popen([HEADGATE, "up", "--data", str(data)], stdout=subprocess.PIPE, text=True)
        try:
            for line in up.stdout or ():
                if line.startswith("READY"):
                    break
            measure(data, Path(folder), arguments.rows, psutil.Process(up.pid))
        finally:
            up.terminate()
            up.wait()


def measure(data: Path, folder: Path, rows: int, up: psutil.Process) -> None:
    runtime = Runtime.load(data)
    began = time.monotonic()
    wait_for_driver(runtime)
    print(f"the query driver was ready {time.monotonic() - began:.1f} s behind READY")
    first = counted(runtime, "SELECT 1")
    print(f"its first query took {first:.2f} s")
    with write_table(runtime, rows) as size:
        print(f"{rows} rows in {size / MIB:.0f} MiB of files")
    for output in ("csv", "parquet"):
        file = folder / f"rows.{output}"
        began = time.monotonic()
        command = [HEADGATE, "query", f"SELECT * FROM {TABLE}", "--to", str(file), "--data", str(data)]
        asked = subprocess.Popen(command)
        with watched(up, asked.pid) as seen:
            assert asked.wait() == 0
        seconds = time.monotonic() - began
        print(f"{output}: {seconds:.0f} s, {rows / seconds / 1000:.0f} thousand rows/s, ", end="")
        print(f"{file.stat().st_size / MIB:.0f} MiB")
        for name, sizes in seen.items():
            steps = [sizes[at * (len(sizes) - 1) // LOOKS] // MIB for at in range(LOOKS + 1)]
            print(f"  {name}: {' '.join(map(str, steps))} MiB, at most {max(sizes) // MIB}")
        file.unlink()
    for sql in (f"SELECT count(*) FROM {TABLE}", f"SELECT count(*) FROM {TABLE} WHERE amount > 50.5"):
        times = [counted(runtime, sql) for _ in range(ROUNDS)]
        print(f"{sql}: first {times[0]:.2f} s, then median {statistics.median(times[1:]):.3f} s, ", end="")
        print(f"worst {max(times[1:]):.3f} s")
    typed = [command_seconds(data, f"SELECT count(*) FROM {TABLE}") for _ in range(5)]
    print(f"headgate query: median {statistics.median(typed):.2f} s with the start of the command")


def wait_for_driver(runtime: Runtime) -> None:
    with httpx.Client(trust_env=False) as http:
        while (state := http.get(f"{runtime.api}/query").json()["state"]) != "ready":
            assert state != "stopped" or http.get(f"{runtime.api}/query").json()["wanted"], (
                "it was not started"
            )
            time.sleep(0.1)


def counted(runtime: Runtime, sql: str) -> float:
    """Seconds from asking by the API to the last row."""
    began = time.monotonic()
    with httpx.Client(trust_env=False, timeout=300) as http:
        made = http.post(f"{runtime.api}/queries", json={"sql": sql, "lake": True, "format": "arrow"})
        made.raise_for_status()
        http.get(f"{runtime.api}/queries/{made.json()['id']}/rows").raise_for_status()
    return time.monotonic() - began


def command_seconds(data: Path, sql: str) -> float:
    began = time.monotonic()
    subprocess.run([HEADGATE, "query", sql, "--data", str(data)], check=True, capture_output=True)
    return time.monotonic() - began


@contextmanager
def write_table(runtime: Runtime, rows: int) -> Iterator[int]:
    """A table of so many rows; the size of its files."""
    properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
    with Driver(build_session(runtime.settings, "bench", "2g", properties)) as driver:
        yield create_table(driver.session, runtime.settings.namespace, rows)


def create_table(session: SparkSession, namespace: str, rows: int) -> int:
    """The bytes of its files."""
    name = f"{CATALOG}.{namespace}.{TABLE}"
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{namespace}")
    session.sql(
        f"CREATE TABLE {name} USING iceberg AS SELECT id, CAST(id % 100000 AS DOUBLE) / 100 AS amount, "
        "concat('customer ', id % 1000003) AS customer, "
        "timestamp_seconds(1767225600 + id) AS at, md5(CAST(id AS STRING)) AS token "
        f"FROM range(0, {rows}, 1, {FILES})"
    )
    (row,) = session.sql(f"SELECT sum(file_size_in_bytes) FROM {name}.files").collect()
    return int(row[0])


@contextmanager
def watched(up: psutil.Process, command: int) -> Iterator[dict[str, list[int]]]:
    """Resident bytes of the processes that rows pass through, once a second."""
    seen: dict[str, list[int]] = defaultdict(list)
    ended = threading.Event()
    # A guard has the words of what it guards, and is small.
    own = dict(sorted(parts(up), key=lambda one: one[1].memory_info().rss)) | {
        "command": psutil.Process(command)
    }

    def look() -> None:
        while not ended.wait(1):
            for name, process in own.items():
                try:
                    seen[name].append(process.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def parts(up: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    for child in up.children(recursive=True):
        try:
            line, name = child.cmdline(), child.name()
        except psutil.NoSuchProcess:
            continue
        if name == "java" and any("scratch/query" in part for part in line):
            yield "driver's JVM", child
        elif "headgate.query" in line and name.startswith("python"):
            yield "driver's Python", child
        elif "headgate.server" in line and name.startswith("python"):
            yield "server", child


if __name__ == "__main__":
    main()
