"""`make demo`: from nothing to a table that three engines agree on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.readers import duckdb_on, pyiceberg_on  # noqa: E402

HEADGATE = str(Path(sys.executable).parent / "headgate")
TOPICS = ("customers", "products", "orders", "payments")
ORDERS = 25_000
console = Console()


def main() -> int:
    leave = os.environ.get("DEMO_EXIT") == "1" or not sys.stdin.isatty()
    data = Path(tempfile.mkdtemp(prefix="headgate-demo-"))
    # The system chooses the ports: a demo must not fail because something listens on 8080.
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    try:
        with running(data):
            same = tour(data)
            if same and not leave:
                how_to_go_on(data)
                wait_for_interrupt()
            return 0 if same else 1
    finally:
        shutil.rmtree(data, ignore_errors=True)


def tour(data: Path) -> bool:
    """Produce, enable, sync, and ask three engines the same question."""
    step(f"An outfitter's {ORDERS:,} orders, their payments, customers and products go to Kafka as Avro")
    headgate(data, "datagen", "orders", "--limit", str(ORDERS), "--seed", "7")
    step("Each topic becomes a table")
    for topic in TOPICS:
        headgate(data, "table", "enable", topic, "--freshness", "5s")
    for topic in TOPICS:
        headgate(data, "table", "sync", topic)
    headgate(data, "table", "list")
    step("What was paid? Three engines read the same table through the Iceberg REST catalog")
    iceberg = json.loads(output(data, "status", "--json"))["addresses"]["iceberg"]
    answers = {
        "Spark (headgate query)": spark_answer(data),
        "DuckDB": duckdb_answer(iceberg),
        "PyIceberg": pyiceberg_answer(iceberg),
    }
    return compare(answers)


Answer = tuple[int, int, Decimal]
QUESTION = "SELECT count(*) AS n, count(DISTINCT order_id) AS orders, sum(amount) AS paid FROM {}"


def spark_answer(data: Path) -> Answer:
    found = json.loads(output(data, "query", QUESTION.format("payments"), "--output", "json"))
    row = found["rows"][0]
    return int(row["n"]), int(row["orders"]), Decimal(row["paid"])


def duckdb_answer(iceberg: str) -> Answer:
    found: Any = duckdb_on(iceberg).execute(QUESTION.format('lake."local".payments')).fetchone()
    return int(found[0]), int(found[1]), Decimal(found[2])


def pyiceberg_answer(iceberg: str) -> Answer:
    rows = pyiceberg_on(iceberg).load_table(("local", "payments")).scan().to_arrow()
    paid = sum(rows["amount"].to_pylist(), Decimal(0))
    return rows.num_rows, len(set(rows["order_id"].to_pylist())), paid


def compare(answers: dict[str, Answer]) -> bool:
    shown = Table("engine", "payments", "orders paid", "sum of amounts")
    for engine, (rows, orders, paid) in answers.items():
        shown.add_row(engine, f"{rows:,}", f"{orders:,}", f"{paid:,}")
    console.print(shown)
    same = len(set(answers.values())) == 1
    console.print("The three results are equal." if same else "The three results DIFFER.")
    return same


@contextmanager
def running(data: Path) -> Iterator[subprocess.Popen[str]]:
    """`headgate up` as a user would start it, ended whatever happens."""
    step("Headgate starts: a Kafka broker, the server, the engine")
    process = subprocess.Popen([HEADGATE, "up", "--data", str(data)], stdout=subprocess.PIPE, text=True)
    try:
        for line in process.stdout or ():
            console.print("  " + line.rstrip(), markup=False, highlight=False)
            if line.startswith("READY"):
                break
        if process.poll() is not None:
            raise SystemExit(f"headgate up ended with {process.returncode}")
        threading.Thread(target=drain, args=(process,), daemon=True).start()
        yield process
    finally:
        console.print("Headgate stops.")
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def drain(process: subprocess.Popen[str]) -> None:
    """A pipe that nobody reads would stop the other side one day."""
    for line in process.stdout or ():
        console.print("  " + line.rstrip(), markup=False, highlight=False)


def headgate(data: Path, *arguments: str) -> None:
    subprocess.run([HEADGATE, *arguments, "--data", str(data)], check=True)


def output(data: Path, *arguments: str) -> str:
    done = subprocess.run(
        [HEADGATE, *arguments, "--data", str(data)], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def how_to_go_on(data: Path) -> None:
    step("Headgate keeps running. In another terminal:")
    for command in (
        "topic consume payments --limit 3",
        "table show payments",
        'query "SELECT method, count(*), sum(amount) FROM payments GROUP BY method"',
        'query "SELECT committed_at, snapshot_id, operation FROM local.payments.snapshots"',
        "datagen orders --limit 1000 --seed 8",
    ):
        console.print(f"  .venv/bin/headgate --data {data} {command}", markup=False, highlight=False)
    console.print("Ctrl-C ends it and removes its data.")


def wait_for_interrupt() -> None:
    try:
        signal.pause()
    except KeyboardInterrupt:
        console.print()


def step(text: str) -> None:
    console.print(f"\n[bold]{text}[/bold]")


if __name__ == "__main__":
    sys.exit(main())
