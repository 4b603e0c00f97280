"""`headgate topic`: Kafka's topics and the records in them."""

import json as jsons
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.cli.access import kafka_access, registry_access
from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import print_fields, print_json, print_table, printable, say
from headgate.errors import InvalidRequest, NotFound

app = typer.Typer(help="Kafka's topics.", no_args_is_help=True, rich_markup_mode=None)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The topic.")]


class From(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


@app.command("list")
def list_topics(
    internal: Annotated[bool, typer.Option("--internal", help="Internal topics too.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """All topics."""
    from headgate.kafka import Topics

    with connect(data) as client:
        found = Topics(kafka_access(client, data)).list(internal)
    if json:
        print_json([{"name": t.name, "id": t.id, "partitions": len(t.partitions)} for t in found])
    else:
        print_table(
            "Topics", ("TOPIC", "PARTITIONS", "ID"), [(t.name, len(t.partitions), t.id) for t in found]
        )


@app.command()
def create(
    name: NameArgument,
    partitions: Annotated[int, typer.Option(help="How many partitions.")] = 4,
    replication: Annotated[
        int | None, typer.Option(help="How many copies of each. [default: the broker's]", show_default=False)
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of the topic; may be repeated.")
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make a topic."""
    from headgate.kafka import Topics
    from headgate.kafka.topics import BROKER_DEFAULT, check_not_reserved

    check_not_reserved(name)
    settings = dict(parse_setting(text) for text in config or [])
    with connect(data) as client:
        topics = Topics(kafka_access(client, data))
        copies = BROKER_DEFAULT if replication is None else replication
        found = topics.create(name, partitions, copies, settings)
    if json:
        print_json({"name": found.name, "id": found.id, "partitions": len(found.partitions)})
    else:
        say(f"{name} is created, with {len(found.partitions)} partitions")


def parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidRequest(f"'{text}' is no setting.", "Write for instance --config retention.ms=86400000.")
    return key.strip(), value.strip()


@app.command()
def describe(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """A topic's partitions with their offsets, what was set on it, and the table it is."""
    with connect(data) as client:
        found = _describe(client, data, name)
    if json:
        print_json(found)
        return
    print_fields(
        name,
        [
            ("id", found["id"]),
            ("table", found["table"] or "–"),
            *((key, value) for key, value in found["config"].items()),
        ],
    )
    say("")
    rows = [(p["partition"], p["earliest"], p["end"]) for p in found["partitions"]]
    print_table("Partitions", ("PARTITION", "EARLIEST", "END"), rows)


def _describe(client: Client, data: Path | None, name: str) -> dict[str, Any]:
    from headgate.kafka import Offsets, Topics
    from headgate.model import Start, StartKind

    kafka = kafka_access(client, data)
    topics, offsets = Topics(kafka), Offsets(kafka)
    topic = topics.describe(name)
    earliest = offsets.start_offsets(Start(StartKind.EARLIEST), topic)
    ends = offsets.start_offsets(Start(StartKind.LATEST), topic)
    return {
        "name": topic.name,
        "id": topic.id,
        "table": _table_state(client, name),
        "config": topics.config_overrides(name),
        "partitions": [{"partition": p, "earliest": earliest[p], "end": ends[p]} for p in topic.partitions],
    }


def _table_state(client: Client, name: str) -> str | None:
    try:
        return str(client.get("tables", name)["state"])
    except NotFound:
        return None


@app.command()
def consume(
    name: NameArgument,
    start: Annotated[
        From, typer.Option("--from", help="Where to begin; latest shows new records only.")
    ] = From.EARLIEST,
    limit: Annotated[int | None, typer.Option(min=1, help="End after this many records.")] = None,
    timeout: Annotated[str, typer.Option(help="End when no record came for this long.")] = "5s",
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Show a topic's committed records, one a line, decoded with the schema registry."""
    from headgate.config import parse_duration
    from headgate.kafka import Offsets, Topics
    from headgate.kafka.readable import Reader, WriterSchema
    from headgate.kafka.records import committed_records
    from headgate.model import Start, StartKind
    from headgate.registry.client import SchemaSource

    seconds = parse_duration(timeout)
    with connect(data) as client:
        kafka, registry = kafka_access(client, data), registry_access(client, data)
    topic = Topics(kafka).describe(name)
    offsets = Offsets(kafka).start_offsets(Start(StartKind(start.value)), topic)
    with SchemaSource(registry) as schemas:

        def schema_of(schema_id: int) -> WriterSchema:
            found = schemas.schema(schema_id)
            return WriterSchema(found.type.value, found.text)

        reader = Reader(schema_of)
        for message in committed_records(kafka, name, offsets, limit, seconds):
            record = reader.record(message)
            typer.echo(one_line(record) if json else record_line(record))


def record_line(record: dict[str, Any]) -> str:
    """For people: `0:12  2026-01-31T12:00:00Z  key  value`."""
    shown = [text if isinstance(text := record[part], str) else one_line(text) for part in ("key", "value")]
    place = f"{record['partition']}:{record['offset']}"
    return printable("  ".join([place, record["timestamp"] or "–", *shown]))


def one_line(content: object) -> str:
    return jsons.dumps(content, ensure_ascii=False)


@app.command()
def delete(
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
) -> None:
    """Delete a topic and the records in it. A table made of it stays, and stops growing."""
    from headgate.kafka import Topics
    from headgate.kafka.topics import check_not_reserved

    check_not_reserved(name)
    with connect(data) as client:
        topics = Topics(kafka_access(client, data))
    topics.describe(name)
    if not yes:
        _confirm(name)
    topics.delete(name)
    say(f"{name} is deleted")


def _confirm(name: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"This deletes topic '{name}' and the records in it.", "Say --yes to mean it.")
    typer.confirm(f"Delete topic '{name}' and the records in it?", abort=True)
