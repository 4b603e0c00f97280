"""`headgate storage`: named places in object stores."""

import json as json_module
from typing import Annotated

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_fields, print_json, print_table, say
from headgate.errors import InvalidRequest

app = typer.Typer(
    help="Named places in S3 where tables may lie.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the storage is called.")]


@app.command()
def add(
    name: NameArgument,
    uri: Annotated[str, typer.Argument(metavar="URI", help="s3://BUCKET or s3://BUCKET/PREFIX.")],
    role: Annotated[
        str | None, typer.Option(help="ARN of a role to take on; clients can get keys of it.")
    ] = None,
    external_id: Annotated[str | None, typer.Option(help="What the role asks for.")] = None,
    region: Annotated[str | None, typer.Option(help="The bucket's region, as in eu-central-1.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="URL of a store that speaks like S3.")] = None,
    path_style: Annotated[
        bool, typer.Option("--path-style", help="The bucket in the path, not in the host's name.")
    ] = False,
    encryption: Annotated[str, typer.Option(help="none, s3 or kms: what S3 encrypts with.")] = "none",
    kms_key: Annotated[str | None, typer.Option(help="ARN of the key, with kms.")] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Name a place, once an object could be written, read, listed and removed there."""
    wanted = {
        "name": name,
        "uri": uri,
        "role_arn": role,
        "external_id": external_id,
        "region": region,
        "endpoint": endpoint,
        "path_style": path_style,
        "encryption": encryption,
        "kms_key": kms_key,
    }
    with connect(data) as client:
        made = client.post("storage", body=wanted)
    if json:
        print_json(made)
    else:
        say(f"{name} is {made['uri']}: written, read, listed and removed there")


@app.command("list")
def list_all(data: DataOption = None, json: JsonOption = False) -> None:
    """All named places."""
    with connect(data) as client:
        found = client.get("storage")
    if json:
        print_json(found)
        return
    rows = [
        (one["name"], one["uri"], one["endpoint"] or "AWS", one["encryption"], one["role_arn"] or "-")
        for one in found
    ]
    print_table("Storage", ("NAME", "URI", "ENDPOINT", "ENCRYPTION", "ROLE"), rows)


@app.command()
def show(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """One place, and the tables that are wanted there."""
    with connect(data) as client:
        found = client.get("storage", name)
    if json:
        print_json(found)
        return
    fields = ("uri", "region", "endpoint", "encryption", "kms_key", "role_arn", "external_id")
    said = [(field.replace("_", " "), found[field] or "-") for field in fields]
    print_fields(name, [*said, *((noun, ", ".join(found[noun]) or "-") for noun in ("tables", "catalogs"))])


@app.command()
def remove(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """Forget a place that has no tables. What lies there stays there."""
    with connect(data) as client:
        removed = client.delete("storage", name)
    if json:
        print_json(removed)
    else:
        say(f"{name} is forgotten; what lies at {removed['uri']} stays")


@app.command()
def policy(
    name: NameArgument,
    uri: Annotated[
        str | None,
        typer.Argument(
            metavar="[URI]", help="s3://BUCKET or s3://BUCKET/PREFIX, of a place that is yet to be added."
        ),
    ] = None,
    role: Annotated[str | None, typer.Option(help="With URI: ARN of the role.")] = None,
    external_id: Annotated[str | None, typer.Option(help="With URI: what the role asks for.")] = None,
    kms_key: Annotated[
        str | None, typer.Option(help="With URI: ARN of the key that S3 encrypts with.")
    ] = None,
    principal: Annotated[
        str | None, typer.Option(help="ARN of the user or role that Headgate runs as, for the trust policy.")
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """The least that IAM must allow, as JSON: for the role, for who takes it on, and for readers."""
    arguments = {} if principal is None else {"principal": principal}
    given = {"role_arn": role, "external_id": external_id, "kms_key": kms_key}
    said = {key: value for key, value in given.items() if value is not None}
    if said and uri is None:
        raise InvalidRequest(
            f"A place that is there has its own {', '.join(said)}.",
            "Say these with the URI of one to be added.",
        )
    with connect(data) as client:
        if uri is None:
            found = client.get("storage", name, "policy", **arguments)
        else:
            sealed = {"encryption": "kms"} if kms_key is not None else {}
            body = {"name": name, "uri": uri, **said, **sealed}
            found = client.post("storage", "policy", body=body, **arguments)
    if json:
        print_json(found)
        return
    titles = {
        "access": "What the role (or Headgate's own keys) must be allowed",
        "trust": "Whom the role must trust",
        "assume": "What Headgate's own keys must be allowed",
        "reader": "What engines must be allowed that read with keys of their own",
    }
    for key, title in titles.items():
        if key in found:
            typer.echo(f"# {title}\n{json_module.dumps(found[key], indent=2)}\n")
