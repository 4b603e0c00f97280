"""`headgate datagen`: made-up data to try things with."""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.access import kafka_access, registry_access
from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import print_json, print_table, progress, say
from headgate.errors import ServerUnavailable

if TYPE_CHECKING:
    from headgate.datagen import GeneratorSpec

INTERRUPTED = 130
STOP_SECONDS = 90.0
LOOK_SECONDS = 0.2

app = typer.Typer(
    help="Made-up data in topics, which are created if they are missing.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class ScenarioName(StrEnum):
    ORDERS = "orders"
    HOTELS = "hotels"
    SALES = "sales"


class FormatName(StrEnum):
    AVRO = "avro"
    JSON = "json"
    PROTOBUF = "protobuf"


LimitOption = Annotated[
    int | None,
    typer.Option(min=1, help="How many orders, bookings or events. Without it, until it is ended."),
]
RateOption = Annotated[
    float | None, typer.Option(help="Records per second. Without it, as fast as possible.")
]
SpeedOption = Annotated[
    float | None, typer.Option(help="How many times as fast as the clock the records' times go on.")
]
SeedOption = Annotated[int, typer.Option(help="The same seed gives the same data.")]
PrefixOption = Annotated[str, typer.Option(help="Put before the topics' names.")]
CdcOption = Annotated[bool, typer.Option("--cdc", help="Rows of the databases as change events of Debezium.")]
FormatOption = Annotated[FormatName, typer.Option("--format", help="How values are written.")]
StartOption = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="The first record's time, or now. [default: 2025-01-01T00:00:00Z]"),
]
EvolveOption = Annotated[
    int | None,
    typer.Option("--evolve", min=0, metavar="N", help="Change the schemas after so many."),
]
LateOption = Annotated[float, typer.Option(help="Share of what happens that arrives late, from 0 to 1.")]
DuplicateOption = Annotated[float, typer.Option(help="Share of what happens that comes again, from 0 to 1.")]


def spec_of(scenario: str, start: str | None, written_as: FormatName, **said: Any) -> "GeneratorSpec":
    from headgate.datagen import GeneratorSpec
    from headgate.datagen.formats import Format
    from headgate.datagen.times import START_MS, parse_start

    start_ms = START_MS if start is None else parse_start(start)
    spec = GeneratorSpec(scenario, start_ms=start_ms, format=Format(written_as.value), **said)
    spec.made()
    return spec


def _command_of(scenario: str) -> Callable[..., None]:
    def command(
        limit: LimitOption = None,
        rate: RateOption = None,
        speed: SpeedOption = None,
        seed: SeedOption = 1,
        prefix: PrefixOption = "",
        cdc: CdcOption = False,
        written_as: FormatOption = FormatName.AVRO,
        start: StartOption = None,
        evolve: EvolveOption = None,
        late_share: LateOption = 0.0,
        duplicate_share: DuplicateOption = 0.0,
        data: DataOption = None,
        json: JsonOption = False,
    ) -> None:
        spec = spec_of(
            scenario,
            start,
            written_as,
            limit=limit,
            rate=rate,
            speed=speed,
            seed=seed,
            prefix=prefix,
            cdc=cdc,
            evolve_after=evolve,
            late_share=late_share,
            duplicate_share=duplicate_share,
        )
        with connect(data) as client:
            access = kafka_access(client, data), registry_access(client, data)
        write(spec, *access, json)

    return command


for _name, _what in (
    ("orders", "An outfitter's orders, payments, customers and products."),
    ("hotels", "Guests, hotels, bookings, reviews and clicks."),
    ("sales", "Events of stalls, each with all that is known of it."),
):
    app.command(_name, help=f"{_what} Topics are created if they are missing.")(_command_of(_name))


@app.command()
def start(
    scenario: Annotated[ScenarioName, typer.Argument(metavar="SCENARIO", help="orders, hotels or sales.")],
    name: Annotated[
        str | None, typer.Option(help="What the generator is called. [default: the scenario's name]")
    ] = None,
    limit: LimitOption = None,
    rate: RateOption = None,
    speed: SpeedOption = None,
    seed: SeedOption = 1,
    prefix: PrefixOption = "",
    cdc: CdcOption = False,
    written_as: FormatOption = FormatName.AVRO,
    start: StartOption = None,
    evolve: EvolveOption = None,
    late_share: LateOption = 0.0,
    duplicate_share: DuplicateOption = 0.0,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Write in the background, also after a restart; one that was stopped goes on where it was."""
    wanted = {
        "scenario": scenario.value,
        "name": name,
        "limit": limit,
        "rate": rate,
        "speed": speed,
        "seed": seed,
        "prefix": prefix,
        "cdc": cdc,
        "format": written_as.value,
        "start": start,
        "evolve": evolve,
        "late_share": late_share,
        "duplicate_share": duplicate_share,
    }
    with connect(data) as client:
        made = client.post("generators", body=wanted)
    if json:
        print_json(made)
    else:
        say(f"generator {made['name']} writes {', '.join(made['topics'])}")


@app.command("list")
def list_all(data: DataOption = None, json: JsonOption = False) -> None:
    """All generators, where they stand and how fast they write."""
    with connect(data) as client:
        generators = client.get("generators")
    if json:
        print_json(generators)
        return
    rows = [
        (
            one["name"],
            one["spec"]["scenario"],
            one["state"],
            str(one["records"]),
            f"{one['rate']:.0f}",
            one["reason"] or "-",
        )
        for one in generators
    ]
    print_table("Generators", ("NAME", "SCENARIO", "STATE", "RECORDS", "PER SECOND", "REASON"), rows)


@app.command()
def stop(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the generator is called.")],
    forget: Annotated[
        bool, typer.Option("--forget", help="Its place too: started again, it begins from the beginning.")
    ] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Stop a generator, and wait until it writes no more. What it has written stays."""
    with connect(data) as client:
        client.post("generators", name, "stop")
        stopped = wait_until_at_rest(client, name)
        if forget:
            client.delete("generators", name)
    if json:
        print_json(stopped | {"forgotten": forget})
    else:
        say(f"generator {name} is {'forgotten' if forget else 'stopped'} after {stopped['records']} records")


def wait_until_at_rest(client: Client, name: str) -> dict[str, Any]:
    deadline = time.monotonic() + STOP_SECONDS
    while not (shown := client.get("generators", name))["is_at_rest"]:
        if time.monotonic() > deadline:
            raise ServerUnavailable(
                f"Generator '{name}' is asked to stop, and is {shown['state']} still.",
                "`headgate datagen list` shows when it is stopped.",
            )
        time.sleep(LOOK_SECONDS)
    found: dict[str, Any] = shown
    return found


def write(spec: "GeneratorSpec", kafka: Any, registry: Any, json: bool) -> None:
    """Write what is specified, with progress and a summary."""
    from headgate.datagen import produce

    made = spec.made()
    started = time.monotonic()
    with interruptible() as stopped, progress(f"{spec.scenario}: starting") as shown:

        def report(acknowledged: Mapping[str, int]) -> None:
            done, total = sum(acknowledged.values()), None
            if spec.limit is not None:
                # Some come twice, and rows change.
                done, total = min(acknowledged[f"{spec.prefix}{made.counted}"], spec.limit), spec.limit
            shown.update(f"{spec.scenario}: {sum(acknowledged.values())} records", done, total)

        written = produce(
            made,
            kafka,
            registry,
            limit=spec.limit,
            prefix=spec.prefix,
            rate=spec.rate,
            speed=spec.speed,
            written_as=spec.format,
            on_progress=report,
            stopped=stopped,
        )
    print_summary(written, time.monotonic() - started, spec.seed, json)
    if stopped() and spec.limit is not None:
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
