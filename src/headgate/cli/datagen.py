"""`headgate datagen`: made-up data to try things with."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import Annotated

import typer

from headgate.cli.access import kafka_access, registry_access
from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_json, print_table, progress, say

INTERRUPTED = 130


class ScenarioName(StrEnum):
    ORDERS = "orders"
    HOTELS = "hotels"
    SALES = "sales"


def datagen(
    scenario: Annotated[
        ScenarioName, typer.Argument(metavar="SCENARIO", help="What kind of data: orders, hotels or sales.")
    ],
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many orders, bookings or events. Without it, until Ctrl-C.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Records per second. Without it, as fast as possible.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data.")] = 1,
    prefix: Annotated[str, typer.Option(help="Put before the topics' names.")] = "",
    cdc: Annotated[
        bool, typer.Option("--cdc", help="Rows of the databases as change events of Debezium.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Write made-up data into topics, which are created if they are missing."""
    from headgate.datagen import SCENARIOS, produce

    made = SCENARIOS[scenario.value](seed, cdc)
    with connect(data) as client:
        kafka, registry = kafka_access(client, data), registry_access(client, data)
    started = time.monotonic()
    with interruptible() as stopped, progress(f"{scenario.value}: starting") as shown:

        def report(acknowledged: Mapping[str, int]) -> None:
            done, total = sum(acknowledged.values()), None
            if limit is not None:
                # Some come twice, and rows change.
                done, total = min(acknowledged[f"{prefix}{made.counted}"], limit), limit
            shown.update(f"{scenario.value}: {sum(acknowledged.values())} records", done, total)

        written = produce(
            made,
            kafka,
            registry,
            limit=limit,
            prefix=prefix,
            rate=rate,
            on_progress=report,
            stopped=stopped,
        )
    print_summary(written, time.monotonic() - started, seed, json)
    if stopped() and limit is not None:
        raise typer.Exit(INTERRUPTED)


def print_summary(written: Mapping[str, int], seconds: float, seed: int, json: bool) -> None:
    total = sum(written.values())
    rate = total / seconds if seconds else 0.0
    if json:
        print_json({"seed": seed, "topics": written, "records": total, "seconds": round(seconds, 3)})
        return
    print_table("Written", ("TOPIC", "RECORDS"), list(written.items()))
    say(f"{total} records in {seconds:.1f} s, {rate:.0f} a second")


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Within, the first Ctrl-C is only noted, so that what was sent is still counted; the second one ends."""
    noted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        noted = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, before)
