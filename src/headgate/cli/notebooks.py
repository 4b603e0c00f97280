"""`headgate connect`: what a notebook needs to reach Spark Connect."""

import typer

from headgate.cli.client import DEFAULT_DATA, DataOption, data_folder
from headgate.cli.output import say

app = typer.Typer(help="Spark Connect, for notebooks.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Spark Connect, for notebooks."""


@app.command()
def token(data: DataOption = None) -> None:
    """Print the token of Spark Connect. Whoever has it runs programs as the user that Headgate runs as."""
    from headgate.embedded.notebooks import token_of

    say(token_of(data_folder(data) or DEFAULT_DATA.absolute()))
