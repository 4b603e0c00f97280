"""`headgate demo`: a whole world to look at, in one command."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headgate.cli.client import URL_VARIABLE, connect, data_folder
from headgate.cli.output import Progress, note, print_table, progress, say

if TYPE_CHECKING:
    from headgate.demo import Demo


class WorldName(StrEnum):
    ORDERS = "orders"
    HOTELS = "hotels"
    SALES = "sales"


def demo(
    world: Annotated[
        WorldName, typer.Argument(metavar="WORLD", help="Which world: orders, hotels or sales.")
    ] = WorldName.ORDERS,
    limit: Annotated[
        int | None, typer.Option(min=1, help="How many orders, bookings or events. [default: the world's]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed makes other data.")] = None,
    tour: Annotated[
        bool, typer.Option(help="Show engines, a schema change and time travel too; it adds orders.")
    ] = True,
    data: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A data folder to set it up on, and to keep.", show_default=False),
    ] = None,
) -> None:
    """Set up a world, fill it, and hold its tables against what its seed says.

    Uses the Headgate that runs on --data, or starts one; without --data on a folder that is removed at
    the end. On a terminal it stays until Ctrl-C.
    """
    from headgate.demo import Demo
    from headgate.demo.running import runs_on, started

    named = data_folder(data)
    folder = named or Path(tempfile.mkdtemp(prefix="headgate-demo-"))
    # What is named in the environment is another Headgate than the one of this folder.
    os.environ.pop(URL_VARIABLE, None)
    screen = Terminal()
    runs: AbstractContextManager[object]
    if runs_on(folder):
        runs, waits, stays = nullcontext(), False, True
    else:
        screen.step("Headgate starts: a Kafka broker, the server, the engine")
        waits = stays = sys.stdin.isatty() and sys.stdout.isatty()
        runs = started(folder, say)
    try:
        with runs:
            carry_out(Demo(world.value, folder, limit, seed, tour, stays), screen)
            if waits:
                stay(folder, kept=named is not None)
    finally:
        if named is None:
            shutil.rmtree(folder, ignore_errors=True)


def carry_out(wanted: "Demo", screen: "Terminal") -> None:
    from headgate.demo import run_demo

    run_demo(wanted, Commands(wanted.data), screen)


def stay(folder: Path, kept: bool) -> None:
    end = f"ends it; its data stays in {folder}" if kept else "ends it and removes its data"
    note(f"\nHeadgate keeps running. Ctrl-C {end}.")
    try:
        signal.pause()
    except KeyboardInterrupt:
        note("")


class Commands:
    """The running Headgate, by the commands that a user types."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def run(self, words: Sequence[str]) -> None:
        from typer.main import get_command

        from headgate.cli.main import app

        sys.stdout.flush()
        get_command(app).main(
            args=[*words, "--data", str(self._folder)], prog_name="headgate", standalone_mode=False
        )

    def get(self, *path: str) -> Any:
        with connect(self._folder) as client:
            return client.get(*path)

    def prepare_queries(self) -> None:
        with connect(self._folder) as client:
            client.post("query", "start")

    def query(self, sql: str) -> list[dict[str, Any]]:
        from headgate.cli.lake import rows_of

        return rows_of(sql, self._folder)


class Terminal:
    """Where the demo shows what it does."""

    def step(self, text: str) -> None:
        say("")
        say(text)
        sys.stdout.flush()

    def say(self, text: str) -> None:
        say(text)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        print_table("", columns, rows)

    def progress(self, text: str) -> AbstractContextManager[Progress]:
        return progress(text)
