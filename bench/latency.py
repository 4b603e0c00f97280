"""`make bench-latency`: how soon a record is there, and what each process spends on it.

Payments go into a topic at a steady rate. Statements copy them into topics of their own, where a reader of
committed records waits; tables follow topics of their own, which a foreign reader (PyIceberg) looks at. For
each rate: seconds from the send of a record until it is there, and the processor time of each process, in
cores; for each round also the memory that they hold. Afterwards every record that was sent must be in each
topic and table once. At last come the median and the spread of all rounds.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyiceberg.catalog import load_catalog

from bench.append import HEADGATE, running
from bench.payments import SCHEMA, encode
from headgate.cli.client import Client, connect
from headgate.embedded.runtime import Runtime
from headgate.kafka.topics import Topics

STREAM, IDLE = "payments", "silent"
# The id of a payment, which `encode` writes as it is.
PAYMENT = re.compile(rb"p-(\d+)")
COPY = "CREATE TABLE {output} AS SELECT payment_id, order_id, amount FROM {source} WHERE amount >= 0"
LOOK_SECONDS = 0.1
PATIENCE_SECONDS = 120.0


@dataclass
class Sent:
    """When each payment was sent, by its number."""

    at: dict[int, float] = field(default_factory=dict)


@dataclass
class Arrivals:
    """How often each payment was seen, and how long after its send the first time."""

    name: str
    sent: Sent
    times: Counter[int] = field(default_factory=Counter)
    seconds: dict[int, float] = field(default_factory=dict)

    def see(self, number: int, now: float) -> None:
        self.times[number] += 1
        self.seconds.setdefault(number, now - self.sent.at[number])


class Feed:
    """Sends payments into topics, each to all of them."""

    def __init__(self, runtime: Runtime, topics: Sequence[str], sent: Sent) -> None:
        self._topics = topics
        self._sent = sent
        self._number = 0
        registry = SchemaRegistryClient({"url": runtime.registry})
        self._ids = {
            topic: int(registry.register_schema(f"{topic}-value", Schema(SCHEMA, "AVRO"))) for topic in topics
        }
        settings = {"bootstrap.servers": runtime.kafka, "enable.idempotence": True, "linger.ms": 0}
        self._producer = Producer(settings)

    def run(self, rate: float, seconds: float) -> range:
        """The numbers that were sent."""
        first, began = self._number, time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            due = began + (self._number - first) / rate
            if now < due:
                time.sleep(min(due - now, 0.05))
                continue
            self._sent.at[self._number] = time.monotonic()
            for topic in self._topics:
                header = b"\x00" + self._ids[topic].to_bytes(4, "big")
                self._producer.produce(topic, header + encode(self._number), str(self._number))
            self._producer.poll(0)
            self._number += 1
        if self._producer.flush(60):
            raise SystemExit("some payments were not acknowledged")
        return range(first, self._number)


class TopicReader(threading.Thread):
    """Reads what statements have committed."""

    def __init__(self, runtime: Runtime, arrivals: Sequence[Arrivals], stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._arrivals = {one.name: one for one in arrivals}
        self._stopping = stop
        self._consumer = Consumer(
            {
                "bootstrap.servers": runtime.kafka,
                "group.id": "bench-latency",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.subscribe(list(self._arrivals))

    def run(self) -> None:
        while not self._stopping.is_set():
            messages = self._consumer.consume(1000, 0.1)
            now = time.monotonic()
            for message in messages:
                found = PAYMENT.search(bytes(message.value() or b""))
                if message.error() is None and found is not None:
                    self._arrivals[message.topic() or ""].see(int(found[1]), now)
        self._consumer.close()


class TableReader(threading.Thread):
    """Looks at one table as a foreign engine does: a snapshot's rows are there once the catalog names it."""

    def __init__(self, catalog: Any, identifier: str, arrivals: Arrivals, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._catalog = catalog
        self._identifier = identifier
        self._arrivals = arrivals
        self._stopping = stop
        self.seconds_of_looks: list[float] = []

    def run(self) -> None:
        known = -1
        while not self._stopping.wait(LOOK_SECONDS):
            table = self._catalog.load_table(self._identifier)
            now, snapshot = time.monotonic(), table.current_snapshot()
            rows = 0 if snapshot is None else int(snapshot.summary["total-records"])
            if rows != known:
                known = rows
                self._see(table, now)

    def _see(self, table: Any, now: float) -> None:
        for name in table.scan(selected_fields=("payment_id",)).to_arrow()["payment_id"].to_pylist():
            number = int(name.removeprefix("p-"))
            if number not in self._arrivals.seconds:
                self._arrivals.see(number, now)


@dataclass
class Figures:
    """What the rounds have shown, by what it is."""

    of_rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, what: str, figure: float) -> None:
        self.of_rounds.setdefault(what, []).append(figure)

    def show(self) -> None:
        """The median, the least and the greatest of each."""
        for what, found in self.of_rounds.items():
            print(f"{what}: {statistics.median(found):.3f} ({min(found):.3f} to {max(found):.3f})")


class Processors:
    """Processor seconds of the processes of one Headgate, by what they are."""

    def __init__(self, data: Path) -> None:
        with connect(data) as client:
            self._roots = {p["name"]: p["pid"] for p in client.get("status")["processes"] if p["pid"]}

    def now(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, process in self._processes():
            try:
                kind, times = kind_of(name, process.cmdline()), process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            # Workers come and go: those that ended count with the daemon that forked them.
            ended = times.children_user + times.children_system if kind == "engine workers" else 0.0
            found[kind] = found.get(kind, 0.0) + times.user + times.system + ended
        return found

    def megabytes(self) -> dict[str, float]:
        """What is resident, by kind of process."""
        found: dict[str, float] = {}
        for name, process in self._processes():
            try:
                kind, resident = kind_of(name, process.cmdline()), process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            found[kind] = found.get(kind, 0.0) + resident / 2**20
        return found

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        for name, pid in self._roots.items():
            try:
                family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                # One that is started on demand, and was not.
                continue
            yield from ((name, process) for process in family)


def kind_of(name: str, command: Sequence[str]) -> str:
    if name == "broker" or not command:
        return name
    if Path(command[0]).name == "java":
        return f"{name} JVM"
    workers = any(part in ("headgate.worker_daemon", "pyspark.daemon") for part in command)
    return f"{name} workers" if workers else f"{name} Python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 100.0, 1000.0, 5000.0])
    parser.add_argument("--rounds", type=int, default=3, help="of all rates, in turn")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each rate")
    parser.add_argument("--warm-up", type=float, default=20.0, help="seconds, at 5 payments a second")
    parser.add_argument("--statements", type=int, default=1)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--idle-statements", type=int, default=0, help="that read a topic without records")
    parser.add_argument("--idle-tables", type=int, default=0, help="of topics without records")
    parser.add_argument("--freshness", default="5s", help="of the tables")
    parser.add_argument("--idle-seconds", type=float, default=20.0, help="without any record, at first")
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, running(folder):
        measure(Path(folder), arguments)


def measure(data: Path, arguments: argparse.Namespace) -> None:
    runtime, sent, stop = Runtime.load(data), Sent(), threading.Event()
    tables = [f"{STREAM}-{number}" for number in range(arguments.tables)]
    idle = [
        f"{IDLE}-{number}" for number in range(max(arguments.idle_tables, bool(arguments.idle_statements)))
    ]
    kafka = Topics(runtime.kafka)
    for topic in (STREAM, *tables, *idle):
        kafka.create(topic, 2)
    feed = Feed(runtime, [STREAM, *tables], sent)
    Feed(runtime, idle, sent)
    outputs = [f"copy_{number}" for number in range(arguments.statements)]
    silent = [(f"idle_{number}", idle[0]) for number in range(arguments.idle_statements)]
    for output, source in [*((output, STREAM) for output in outputs), *silent]:
        create(data, COPY.format(output=output, source=f"`{source}`"))
    with connect(data) as client:
        for topic in [*tables, *idle[: arguments.idle_tables]]:
            client.post("tables", body={"topic": topic, "freshness": arguments.freshness})
        await_running(client, len(outputs) + len(silent))
    copies = [Arrivals(output, sent) for output in outputs]
    rows = [Arrivals(topic, sent) for topic in tables]
    processors = Processors(data)
    readers: list[threading.Thread] = [TopicReader(runtime, copies, stop)] if copies else []
    feed.run(5.0, arguments.warm_up)
    if rows:
        key = {} if runtime.catalog_key is None else {"token": runtime.catalog_key}
        catalog = load_catalog("bench", type="rest", uri=runtime.iceberg, **key)
        namespace = runtime.settings.namespace
        readers += [TableReader(catalog, f"{namespace}.{one.name}", one, stop) for one in rows]
    for reader in readers:
        reader.start()
    until_there([*copies, *rows], range(len(sent.at)))
    figures = Figures()
    for number in range(1, arguments.rounds + 1):
        print(f"round {number}: {len(outputs)} statements, {len(tables)} tables", flush=True)
        before, began = processors.now(), time.monotonic()
        time.sleep(arguments.idle_seconds)
        show_processors(figures, "idle", before, processors.now(), time.monotonic() - began, 0)
        for rate in arguments.rates:
            before, began = processors.now(), time.monotonic()
            numbers = feed.run(rate, arguments.seconds)
            until_there([*copies, *rows], numbers)
            after, took = processors.now(), time.monotonic() - began
            at = f"{rate:g} payments/s"
            print(f"{at}:", flush=True)
            show_seconds(figures, f"{at}, produce -> committed in the output topic", copies, numbers)
            show_seconds(figures, f"{at}, produce -> visible in the table", rows, numbers)
            show_processors(figures, at, before, after, took, len(numbers))
        show_memory(figures, processors.megabytes())
    stop.set()
    for reader in readers:
        reader.join(30)
    check(copies, len(sent.at))
    check(rows, len(sent.at))
    print("every payment is in each topic and table once")
    print(f"of {arguments.rounds} rounds the median, the least and the greatest:")
    figures.show()


def create(data: Path, sql: str) -> None:
    subprocess.run([HEADGATE, "sql", "-e", sql, "--data", str(data)], check=True, stdout=sys.stderr)


def await_running(client: Client, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(one["state"] == "Running" for one in client.get("statements")) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"not all statements run: {client.get('statements')}")
        time.sleep(0.2)


def until_there(arrivals: Sequence[Arrivals], numbers: range) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    for one in arrivals:
        while not all(number in one.seconds for number in numbers):
            if time.monotonic() > deadline:
                missing = sum(number not in one.seconds for number in numbers)
                raise SystemExit(f"'{one.name}' lacks {missing} of {len(numbers)} payments")
            time.sleep(0.05)


def check(arrivals: Sequence[Arrivals], count: int) -> None:
    for one in arrivals:
        if one.times != Counter(range(count)):
            raise SystemExit(f"'{one.name}' has not each of {count} payments once")


def show_seconds(figures: Figures, what: str, arrivals: Sequence[Arrivals], numbers: range) -> None:
    seconds = sorted(one.seconds[number] for one in arrivals for number in numbers)
    if seconds:
        p99 = seconds[min(len(seconds) - 1, int(len(seconds) * 0.99))]
        p50 = statistics.median(seconds)
        print(f"  {what}: p50 {p50:.2f} s, p99 {p99:.2f} s, most {seconds[-1]:.2f} s")
        figures.add(f"{what}, p50 seconds", p50)
        figures.add(f"{what}, p99 seconds", p99)


def show_processors(
    figures: Figures,
    what: str,
    before: dict[str, float],
    after: dict[str, float],
    seconds: float,
    records: int,
) -> None:
    spent = {kind: after[kind] - before.get(kind, 0.0) for kind in sorted(after)}
    total = sum(spent.values())
    each = f", {total / records * 1000:.1f} ms a payment" if records else ""
    print(f"  cores, {what}: {total / seconds:.3f} in all{each}")
    figures.add(f"{what}, cores in all", total / seconds)
    for kind, own in share(spent):
        print(f"    {kind}: {own / seconds:.3f}", flush=True)


def show_memory(figures: Figures, megabytes: dict[str, float]) -> None:
    print(f"  resident: {sum(megabytes.values()):.0f} MB in all")
    for kind, own in share(megabytes):
        print(f"    {kind}: {own:.0f} MB", flush=True)
        figures.add(f"{kind}, MB resident", own)


def share(spent: dict[str, float]) -> Iterator[tuple[str, float]]:
    """The greatest first; none of those that did nothing."""
    for kind, own in sorted(spent.items(), key=lambda pair: -pair[1]):
        if own > 0:
            yield kind, own


if __name__ == "__main__":
    main()
