"""The `headgate` command."""

import os
import sys
import traceback
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from headgate import __version__
from headgate.cli import (
    audit,
    catalog,
    credentials,
    datagen,
    demo,
    desired,
    dlq,
    export,
    notebooks,
    queries,
    query,
    rollback,
    signin,
    sql,
    statement,
    status,
    storage,
    topic,
    up,
)
from headgate.cli.client import DataOption
from headgate.cli.output import complain
from headgate.errors import HeadgateError

USER_ERROR = 1
INTERNAL_ERROR = 70
DEBUG_VARIABLE = "HEADGATE_DEBUG"

app = typer.Typer(
    name="headgate",
    help="Turns Kafka topics into Iceberg tables, exactly once.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    data: DataOption = None,
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if data is not None and isinstance(context.command, TyperGroup):
        # `headgate --data DIR status` is `headgate status --data DIR`, for every command.
        context.default_map = _defaults(context.command, {"data": str(data)})


def _defaults(group: TyperGroup, values: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _defaults(command, values) if isinstance(command, TyperGroup) else dict(values)
        for name, command in group.commands.items()
    }


app.command("up")(up.up)
app.command("sql")(sql.sql)
app.command("down")(status.down)
app.command("status")(status.status)
app.command("sign-in")(signin.sign_in)
app.add_typer(topic.app, name="topic")
app.add_typer(dlq.app, name="dlq")
app.add_typer(rollback.app, name="table")
app.command("audit")(audit.audit)
app.add_typer(credentials.app, name="credentials")
app.add_typer(storage.app, name="storage")
app.add_typer(catalog.app, name="catalog")
app.add_typer(export.app, name="export")
app.add_typer(notebooks.app, name="connect")
app.add_typer(statement.app, name="statement")
app.add_typer(datagen.app, name="datagen")
app.command("demo")(demo.demo)
app.command("query")(query.query)
app.add_typer(queries.app, name="queries")
app.command("plan")(desired.plan)
app.command("apply")(desired.apply)
app.command("destroy")(desired.destroy)
app.command("dump")(desired.dump)
app.command("output")(desired.output)


def run() -> None:
    """The entry point: one clear line for whatever goes wrong."""
    try:
        app()
    except HeadgateError as error:
        complain(str(error))
        sys.exit(USER_ERROR)
    except Exception as error:  # noqa: BLE001 - the last place that can say it in one line
        if os.environ.get(DEBUG_VARIABLE):
            traceback.print_exc()
        complain(
            f"this should not happen: {type(error).__name__}: {error}. "
            f"{DEBUG_VARIABLE}=1 shows where; the parts' logs are in the data folder under logs/."
        )
        sys.exit(INTERNAL_ERROR)
