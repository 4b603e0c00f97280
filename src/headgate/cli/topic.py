"""`headgate topic`: Kafka's topics and the records in them."""

import json as jsons
import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from headgate.cli.client import DataOption, JsonOption
from headgate.cli.output import print_fields, print_json, print_table, printable, say
from headgate.cli.topics import topic_source
from headgate.errors import InvalidRequest

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
    with topic_source(data) as topics:
        found = topics.list(internal)
    if json:
        print_json(found)
    else:
        rows = [(topic["name"], topic["partitions"], topic["id"]) for topic in found]
        print_table("Topics", ("TOPIC", "PARTITIONS", "ID"), rows)


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
    from headgate.kafka.topics import check_not_reserved

    check_not_reserved(name)
    settings = dict(parse_setting(text) for text in config or [])
    with topic_source(data) as topics:
        made = topics.create(name, partitions, replication, settings)
    if json:
        print_json(made)
    else:
        say(f"{name} is created, with {made['partitions']} partitions")


def parse_setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InvalidRequest(f"'{text}' is no setting.", "Write for instance --config retention.ms=86400000.")
    return key.strip(), value.strip()


@app.command()
def describe(name: NameArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """A topic's partitions with their offsets, what was set on it, and the table it is."""
    with topic_source(data) as topics:
        found = topics.describe(name)
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

    seconds = parse_duration(timeout)
    with topic_source(data) as topics:
        for record in topics.records(name, start.value, limit, seconds):
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
    from headgate.kafka.topics import check_not_reserved

    check_not_reserved(name)
    with topic_source(data) as topics:
        topics.describe(name)
        if not yes:
            _confirm(name)
        topics.delete(name)
    say(f"{name} is deleted")


def _confirm(name: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(f"This deletes topic '{name}' and the records in it.", "Say --yes to mean it.")
    typer.confirm(f"Delete topic '{name}' and the records in it?", abort=True)
