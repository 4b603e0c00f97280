"""`make archives`: class archives beside the jars, with which every JVM starts in half the work.

Most of what a new JVM of ours does is load and check thousands of classes. One run of everything shows which;
each JVM then writes those it has down in a form that later ones map into memory.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from headgate.config import load_settings  # noqa: E402
from headgate.demo.running import COMMAND, started  # noqa: E402
from headgate.jvm import QUIET, archive, java_binary  # noqa: E402

# A word of each one's command line.
JVMS = {
    "broker": "kafka.Kafka",
    "server": "py4j.GatewayServer",
    # Drivers by the folder for what they unpack: their settings are no arguments.
    "engine": "scratch/engine",
    "query": "scratch/query",
}
SQL = """
ALTER TABLE payments MODIFY WATERMARK FOR paid_at AS paid_at - INTERVAL '5' SECOND;
CREATE TABLE first_payments AS SELECT order_id, amount FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY paid_at) AS n FROM payments
) WHERE n = 1;
CREATE TABLE paid (PRIMARY KEY (method) NOT ENFORCED) AS
SELECT method, COUNT(*) AS payments, SUM(amount) AS amount FROM payments GROUP BY method;
"""


def main() -> None:
    jars = load_settings(environment={}).jars_folder
    data = Path(tempfile.mkdtemp(prefix="headgate-archives-"))
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    # A JVM that is to write down its classes must know so from its start.
    os.environ["JDK_JAVA_OPTIONS"] = " ".join(["-XX:TieredStopAtLevel=1 -XX:+RecordDynamicDumpInfo", *QUIET])
    for name in JVMS:
        archive(jars, name).unlink(missing_ok=True)
    try:
        step("Headgate starts: a Kafka broker, the server, the engine")
        with started(data, print) as process:
            use(data)
            step("Each JVM writes its classes down")
            for name, word in JVMS.items():
                write(process.pid, name, word, jars)
    finally:
        shutil.rmtree(data, ignore_errors=True)


def use(data: Path) -> None:
    """Of each thing a little: a class that is loaded now need not be loaded later."""
    step("A run of everything, for the class archives")
    headgate(data, "datagen", "orders", "--limit", "500", "--seed", "7")
    headgate(data, "table", "enable", "payments", "--formats", "iceberg,delta")
    headgate(data, "table", "enable", "customers", "--mode", "upsert", "--on-error", "log")
    for topic in ("payments", "customers"):
        headgate(data, "table", "sync", topic)
    headgate(data, "table", "compact", "payments")
    headgate(data, "sql", "-e", SQL)
    headgate(data, "query", "SELECT method, count(*), sum(amount) FROM payments GROUP BY method")


def headgate(data: Path, *arguments: str) -> None:
    subprocess.run([*COMMAND, *arguments, "--data", str(data)], check=True)


def step(text: str) -> None:
    print(f"\n{text}", flush=True)


def write(up: int, name: str, word: str, jars: Path) -> None:
    """A JVM that cannot is no failure: it starts as it did before."""
    jcmd = Path(java_binary()).resolve().parent / "jcmd"
    found = [
        child.pid
        for child in psutil.Process(up).children(recursive=True)
        if child.name() == "java" and any(word in part for part in child.cmdline())
    ]
    if not found:
        raise SystemExit(f"No JVM of '{name}' was found: none has '{word}' among its arguments.")
    if not jcmd.exists():
        print(f"  {name}: none, there is no {jcmd}")
        return
    target = archive(jars, name)
    done = subprocess.run(
        [jcmd, str(found[-1]), "VM.cds", "dynamic_dump", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    made = (
        f"{target.stat().st_size // 1_000_000} MB" if target.exists() else f"none, {done.stdout}{done.stderr}"
    )
    print(f"  {name}: {made}")


if __name__ == "__main__":
    main()
