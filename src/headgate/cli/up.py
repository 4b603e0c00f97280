"""`headgate up`: everything, in the foreground, until it is asked to stop."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.client import DataOption
from headgate.cli.output import Progress, note, print_fields, progress

if TYPE_CHECKING:
    from headgate.embedded.runtime import Runtime

DEFAULT_CONFIG = Path("headgate.yaml")


def up(
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="[default: headgate.yaml, if there is one here]"),
    ] = None,
    data: DataOption = None,
) -> None:
    """Start all parts and stay. Prints READY and the addresses; ends with Ctrl-C or `headgate down`."""
    # Here and not above: `headgate --help` need not load Kafka's client.
    from headgate.config import load_settings
    from headgate.embedded.stack import run

    if config is None and DEFAULT_CONFIG.exists():
        config = DEFAULT_CONFIG
    settings = load_settings(config, data=data)
    with ExitStack() as starting:
        screen = Screen(starting)
        run(settings, None if config is None else config.absolute(), screen.say, screen.ready)
    note("stopped")


class Screen:
    """While it starts, what is going on; then READY; then whatever happens, a line each."""

    def __init__(self, starting: ExitStack) -> None:
        self._starting = starting
        self._progress: Progress | None = starting.enter_context(progress("starting"))

    def say(self, text: str) -> None:
        if self._progress is None:
            note(text)
        else:
            self._progress.update(text)

    def ready(self, runtime: "Runtime") -> None:
        from headgate.access.peers import tells_users
        from headgate.cli.signin import link_of

        self._progress = None
        self._starting.close()
        print_fields("READY", list(runtime.addresses.items()))
        # To a terminal only: what is printed elsewhere is kept in logs.
        if sys.stdout.isatty() and (runtime.settings.auth.required or not tells_users()):
            note(f"A browser is signed in, once, by {link_of(runtime.data, runtime.console)}")
