"""`headgate credentials`: who may use the catalog, and the server from elsewhere."""

from enum import StrEnum
from typing import Annotated

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, say

app = typer.Typer(
    help="Clients of the catalog and the API, and what they may do.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the credential is called.")]


class Role(StrEnum):
    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"
    ENGINE = "engine"


@app.command()
def create(
    name: NameArgument,
    role: Annotated[
        Role | None,
        typer.Option(help="reader, writer, admin, or engine for another Headgate's.", show_default=False),
    ] = None,
    namespace: Annotated[str, typer.Option(help="Namespaces that the role is for; * and ? vary.")] = "*",
    table: Annotated[str, typer.Option(help="Tables that the role is for; * and ? vary.")] = "*",
    grant: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE:NAMESPACE:TABLE", help="A further role; may be repeated."),
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make a client id and a secret. The secret is shown now and never again."""
    wanted = {
        "name": name,
        "role": None if role is None else role.value,
        "namespace": namespace,
        "table": table,
        "grants": grant or [],
    }
    with connect(data) as client:
        made = client.post("credentials", body=wanted)
    if json:
        print_json(made)
        return
    print_fields(
        name,
        [
            ("client id", made["client_id"]),
            ("client secret", made["client_secret"]),
            ("may", ", ".join(made["grants"])),
        ],
    )
    say("Keep the secret: it is not shown again.")


@app.command("list")
def list_credentials(data: DataOption = None, json: JsonOption = False) -> None:
    """All credentials, revoked ones too."""
    import time

    with connect(data) as client:
        found = client.get("credentials")
    if json:
        print_json(found)
        return
    now = time.time()
    rows = [
        (
            one["name"],
            one["client_id"],
            ", ".join(one["grants"]),
            age(now - one["created_at"]),
            "live" if one["revoked_at"] is None else f"revoked {age(now - one['revoked_at'])} ago",
        )
        for one in found
    ]
    print_table("Credentials", ("NAME", "CLIENT ID", "MAY", "AGE", "STATE"), rows)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The credential, or its client id.")],
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Close a credential at once: its secret and its tokens open nothing any more."""
    with connect(data) as client:
        revoked = client.delete("credentials", name)
    if json:
        print_json(revoked)
    else:
        say(f"{revoked['name']} ({revoked['client_id']}) is revoked")
