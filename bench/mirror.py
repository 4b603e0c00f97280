"""`make bench-mirror`: what the Delta log adds to the time and to the bytes of an append table.

Each round materializes the same payments from earliest, once as Iceberg alone and once in both formats, by
one engine. The results are the median of the rounds' ratios, for the two of a round meet the same machine,
and the ratio of the bytes on disk.
"""

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.append import running, sync
from bench.payments import produce
from headgate.cli.client import connect
from headgate.embedded.runtime import Runtime

ONE, TWO = ("iceberg",), ("iceberg", "delta")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--warm-up", type=int, default=3)
    arguments = parser.parse_args()
    os.environ |= {f"HEADGATE_PORTS__{part}": "0" for part in ("SERVER", "BROKER", "CONNECT")}
    os.environ["HEADGATE_QUERY__START"] = "lazy"
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder, running(folder):
        compare(Path(folder), arguments)


def compare(data: Path, arguments: argparse.Namespace) -> None:
    runtime = Runtime.load(data)
    print(f"producing {arguments.rows:,} payments", flush=True)
    produce(runtime.kafka, runtime.registry, arguments.rows)
    seconds: dict[tuple[str, ...], list[float]] = {ONE: [], TWO: []}
    sizes: dict[tuple[str, ...], int] = {}
    with connect(data) as client:
        for number in range(arguments.warm_up + arguments.rounds):
            warm = number >= arguments.warm_up
            took = {}
            # Who comes first takes turns: the second finds caches warm.
            for formats in (ONE, TWO) if number % 2 else (TWO, ONE):

                def look(found: dict[str, Any], formats: tuple[str, ...] = formats) -> None:
                    sizes[formats] = bytes_in(found["detail"]["location"])

                took[formats] = sync(client, arguments.rows, formats, look)
                if warm:
                    seconds[formats].append(took[formats])
            print(
                f"{'round' if warm else 'warm-up'} {number + 1}: one format {took[ONE]:.2f} s, "
                f"two {took[TWO]:.2f} s",
                flush=True,
            )
    one, two = (statistics.median(seconds[formats]) for formats in (ONE, TWO))
    print(f"medians of {arguments.rounds} rounds: one format {one:.2f} s, two {two:.2f} s")
    ratio = statistics.median(b / a for a, b in zip(seconds[ONE], seconds[TWO], strict=True))
    print(f"ratio two formats / one: {ratio:.3f} in time, {sizes[TWO] / sizes[ONE]:.4f} in bytes on disk")


def bytes_in(location: str) -> int:
    folder = Path("/" + location.removeprefix("file:").lstrip("/"))
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
