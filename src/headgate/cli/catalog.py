"""`headgate catalog`: outside catalogs that tables are published to."""

import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable

POLL_SECONDS = 0.25
REMOVE_SECONDS = 60.0

app = typer.Typer(
    help="Outside catalogs that tables are published to.", no_args_is_help=True, rich_markup_mode=None
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="What the catalog is called here.")]


class Kind(StrEnum):
    GLUE = "glue"
    UNITY = "unity"
    REST = "rest"


class Purpose(StrEnum):
    PUBLISHER = "publisher"
    READER = "reader"
    TRUST = "trust"
    BUCKET = "bucket"
    KMS = "kms"


def _option(what: str) -> Any:
    return typer.Option(help=what, show_default=False)


@app.command()
def add(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="glue, unity or rest.")],
    name: NameArgument,
    table_format: Annotated[
        str | None, typer.Option("--format", help="iceberg or delta: what a catalog of this kind takes.")
    ] = None,
    table_name: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC=NAME", help="What a topic's table is called there; may be repeated."),
    ] = None,
    secret: Annotated[
        str | None, _option("The name of a secret in the configuration, of the client or access key.")
    ] = None,
    client_id: Annotated[str | None, _option("unity, rest: the client that asks for tokens.")] = None,
    token_url: Annotated[str | None, _option("unity, rest: where tokens are asked for.")] = None,
    scope: Annotated[str | None, _option("unity, rest: the scope of tokens.")] = None,
    url: Annotated[str | None, _option("unity: the workspace or server.")] = None,
    catalog: Annotated[str | None, _option("unity: the catalog.")] = None,
    schema: Annotated[str | None, _option("unity: the schema, by default the cluster's name.")] = None,
    uri: Annotated[str | None, _option("rest: the catalog, as its clients call it.")] = None,
    warehouse: Annotated[str | None, _option("rest: the warehouse's name.")] = None,
    namespace: Annotated[str | None, _option("rest: the namespace, by default the cluster's name.")] = None,
    region: Annotated[str | None, _option("glue: the region.")] = None,
    database: Annotated[str | None, _option("glue: the database, by default the cluster's name.")] = None,
    catalog_id: Annotated[str | None, _option("glue: the account, where it is another.")] = None,
    endpoint: Annotated[str | None, _option("glue: another endpoint.")] = None,
    profile: Annotated[str | None, _option("glue: a profile of the engine's AWS configuration.")] = None,
    access_key_id: Annotated[str | None, _option("glue: an access key; --secret names its secret.")] = None,
    role_arn: Annotated[str | None, _option("glue: a role to assume.")] = None,
    external_id: Annotated[str | None, _option("glue: the external id that the role asks for.")] = None,
    storage: Annotated[
        str | None,
        _option("glue: a named storage whose role is assumed, in its region unless --region says another."),
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Publish tables to a catalog, those that are there and those that come."""
    options = {
        "secret": secret,
        "client_id": client_id,
        "token_url": token_url,
        "scope": scope,
        "url": url,
        "catalog": catalog,
        "schema": schema,
        "uri": uri,
        "warehouse": warehouse,
        "namespace": namespace,
        "region": region,
        "database": database,
        "catalog_id": catalog_id,
        "endpoint": endpoint,
        "profile": profile,
        "access_key_id": access_key_id,
        "role_arn": role_arn,
        "external_id": external_id,
        "storage": storage,
        "names": dict(_name(text) for text in table_name) if table_name else None,
    }
    wanted = {
        "name": name,
        "kind": kind.value,
        "format": table_format,
        "options": {key: value for key, value in options.items() if value is not None},
    }
    with connect(data) as client:
        found = client.post("catalogs", body=wanted)
    if json:
        print_json(found)
    else:
        say(f"{name} is added: {found['state']}, {found['reason']}")


def _name(text: str) -> tuple[str, str]:
    topic, equals, name = text.partition("=")
    if not (topic and equals and name):
        raise InvalidRequest(
            f"'{text}' does not say what a table is called.", "Write --table-name TOPIC=NAME."
        )
    return topic, name


@app.command("list")
def list_catalogs(data: DataOption = None, json: JsonOption = False) -> None:
    """All outside catalogs and how they stand."""
    with connect(data) as client:
        found = client.get("catalogs")
    if json:
        print_json(found)
        return
    rows = [
        (one["name"], one["kind"], one["format"], _state(one), _synced(one["tables"]), one["reason"] or "–")
        for one in found
    ]
    print_table("Catalogs", ("NAME", "KIND", "FORMAT", "STATE", "SYNCED", "REASON"), rows)


@app.command()
def show(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """A catalog, and where each table stands in it."""
    with connect(data) as client:
        found = client.get("catalogs", name)
    if json:
        print_json(found)
        return
    fields = [
        ("kind", found["kind"]),
        ("format", found["format"]),
        ("state", _state(found)),
        ("reason", found["reason"] or "–"),
        ("since", f"{age(found['age'])} ago"),
        ("place", found["place"]),
        *((key.replace("_", " "), _text(value)) for key, value in found["options"].items()),
    ]
    print_fields(name, fields)
    if found["tables"]:
        say("")
        rows = [
            (one["topic"], one["name"] or "–", one["state"], one["reason"] or "–") for one in found["tables"]
        ]
        print_table("Tables", ("TOPIC", "NAME THERE", "STATE", "REASON"), rows)
    if found["events"]:
        say("")
        events = [(age(event["age"]), event["kind"], event["message"]) for event in found["events"]]
        print_table("Events", ("AGO", "EVENT", "MESSAGE"), events)


@app.command()
def retry(name: NameArgument, data: DataOption = None) -> None:
    """Try again at once what failed."""
    with connect(data) as client:
        client.post("catalogs", name, "retry")
    say(f"{name} is tried again")


@app.command()
def remove(
    name: NameArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Forget it at once; entries that are there stay there.")
    ] = False,
    data: DataOption = None,
) -> None:
    """Take the tables out of a catalog, and publish there no more. Files and tables here stay."""
    with connect(data) as client:
        client.delete("catalogs", name, force=force)
        if not force:
            _wait_until_removed(client, name)
    say(f"{name} is removed")


@app.command()
def policy(
    name: NameArgument,
    purpose: Annotated[
        Purpose,
        typer.Option("--for", help="publisher (Headgate), reader, trust (of the role), bucket, or kms."),
    ] = Purpose.PUBLISHER,
    account: Annotated[
        str | None, _option("The AWS account, 12 digits; else AWS is asked who Headgate is.")
    ] = None,
    data: DataOption = None,
) -> None:
    """Print the least policy that a Glue catalog needs, as JSON; of buckets and keys, one for each."""
    parameters = {"purpose": purpose.value} | ({} if account is None else {"account": account})
    with connect(data) as client:
        print_json(client.get("catalogs", name, "policy", **parameters))


def _wait_until_removed(client: Client, name: str) -> None:
    deadline = time.monotonic() + REMOVE_SECONDS
    with progress(f"{name}: waiting for the engine"):
        while True:
            try:
                found = client.get("catalogs", name)
            except NotFound:
                return
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The tables are not out of '{name}' after {REMOVE_SECONDS:.0f} s: {found['reason']}",
                    "They will be when the catalog lets us; --force forgets it now and leaves them there.",
                )
            time.sleep(POLL_SECONDS)


def _state(found: dict[str, Any]) -> str:
    return "Removing" if found["desired"] == "removed" else str(found["state"])


def _synced(tables: list[dict[str, Any]]) -> str:
    states = [one["state"] for one in tables if one["state"] != "Not applicable"]
    return f"{states.count('Synced')} of {len(states)}"


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return str(value)
