"""`make bench-export`: a file of many rows, in the memory of few, beside what plain Spark makes of the same.

A table of so many rows is exported as CSV: a part of it, then all. The memory of the process of exports
and of the query driver is looked at twice a second. Plain Spark then writes the same by `df.write.csv`, in
as many files as it likes and in no order; and once more in the order and the one file that an export is.
"""

import argparse
import os
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from pyspark.sql import SparkSession

from bench.query import HEADGATE, MIB, TABLE, create_table, parts, wait_for_driver
from headgate.catalog.client import catalog_properties
from headgate.embedded.runtime import Runtime
from headgate.spark import CATALOG, Driver, build_session
from headgate.store import Store

POLL_SECONDS = 0.5
PLAIN_MEMORY = "2g"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--few", type=int, default=1_000_000)
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--rounds", type=int, default=1, help="of each, one after the other")
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
            measure(data, Path(folder), arguments, psutil.Process(up.pid))
        finally:
            up.terminate()
            up.wait()


def measure(data: Path, folder: Path, arguments: argparse.Namespace, up: psutil.Process) -> None:
    runtime = Runtime.load(data)
    wait_for_driver(runtime)
    # The process of exports is there as long as there is one.
    kept = {"name": "kept", "sql": f"SELECT * FROM {TABLE}"}
    httpx.post(f"{runtime.api}/exports", json=kept, trust_env=False, timeout=60).raise_for_status()
    properties = catalog_properties(runtime.iceberg, token=runtime.catalog_key)
    with Driver(build_session(runtime.settings, "bench", PLAIN_MEMORY, properties)) as driver:
        size = create_table(driver.session, runtime.settings.namespace, arguments.rows)
        print(f"{arguments.rows} rows in {size / MIB:.0f} MiB of files", flush=True)
        print("warm: ", end="")
        exported(runtime, arguments.few, up)
        few = exported(runtime, arguments.few, up)[1]
        for number in range(arguments.rounds):
            ours, memory = exported(runtime, arguments.rows, up)
            if not number:
                print_memory(few, memory)
            for name, seconds in written_by_spark(driver.session, runtime.settings.namespace, folder):
                rate = arguments.rows / seconds / 1000
                print(f"{name}: {seconds:.1f} s, {rate:.0f} thousand rows/s; ", end="")
                print(f"an export has {seconds / ours:.2f} of that", flush=True)


def print_memory(few: Mapping[str, int], many: Mapping[str, int]) -> None:
    for name, most in many.items():
        times = most / few[name]
        print(f"memory of {name}: {few[name] // MIB} MiB, {most // MIB} MiB: {times:.2f} times", flush=True)


def exported(runtime: Runtime, rows: int, up: psutil.Process) -> tuple[float, dict[str, int]]:
    """Seconds of a run about so many rows, and the most memory of each process meanwhile."""
    name, api = f"rows{rows}", f"{runtime.api}/exports"
    sql = f"SELECT * FROM {TABLE} WHERE id < {rows}"
    with httpx.Client(trust_env=False, timeout=60) as http:
        http.post(api, json={"name": name, "sql": sql, "order_by": ["id"]}).raise_for_status()
        wait_until(lambda: export_process(runtime) is not None)
        with watched(runtime, up) as seen:
            run = http.post(f"{api}/{name}/run").json()["id"]
            done: dict[str, Any] = {}

            def is_done() -> bool:
                done.update(http.get(f"{api}/{name}/runs").json()[0])
                return done["state"] in ("Done", "Failed")

            wait_until(is_done)
        assert (done["id"], done["state"], done["rows"]) == (run, "Done", rows), done
        http.delete(f"{api}/{name}").raise_for_status()
    Path(done["file"]).unlink()
    seconds = float(done["seconds"])
    print(f"export of {rows} rows: {seconds:.1f} s, {rows / seconds / 1000:.0f} thousand rows/s, ", end="")
    print(f"{done['bytes'] / MIB:.0f} MiB", flush=True)
    return seconds, {part: max(sizes) for part, sizes in seen.items()}


def export_process(runtime: Runtime) -> int | None:
    store = Store.open(runtime.settings.store_url)
    try:
        record = store.process("export")
        return record.pid if record.state == "ready" else None
    finally:
        store.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(POLL_SECONDS)


@contextmanager
def watched(runtime: Runtime, up: psutil.Process) -> Iterator[dict[str, list[int]]]:
    """Resident bytes of the processes that rows pass through, twice a second."""
    own = dict(sorted(parts(up), key=lambda one: one[1].memory_info().rss))
    own |= {"the process of exports": psutil.Process(export_process(runtime))}
    own.pop("server", None)
    seen: dict[str, list[int]] = defaultdict(list)
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(POLL_SECONDS):
            for name, process in own.items():
                seen[name].append(process.memory_info().rss)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def written_by_spark(session: SparkSession, namespace: str, folder: Path) -> Iterator[tuple[str, float]]:
    """Seconds of `df.write.csv`, as it is, and of all rows in order in one file."""
    rows = session.table(f"{CATALOG}.{namespace}.{TABLE}")
    rows.limit(1000).write.csv(str(folder / "warm"), header=True, mode="overwrite")
    ordered = rows.orderBy("id", *(name for name in rows.columns if name != "id")).coalesce(1)
    for name, frame in (("df.write.csv", rows), ("the same in order, in one file", ordered)):
        began = time.monotonic()
        frame.write.csv(str(folder / "plain"), header=True, mode="overwrite")
        yield name, time.monotonic() - began


if __name__ == "__main__":
    main()
