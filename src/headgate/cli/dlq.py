"""`headgate dlq`: records that are not in their table, and the way back."""

from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.lake import rows_of
from headgate.cli.output import print_json, print_table, say
from headgate.cli.table import TopicArgument, wait_for_request
from headgate.errors import InvalidRequest

app = typer.Typer(
    help="Dead letters: records that could not be decoded.", no_args_is_help=True, rich_markup_mode=None
)

SHOWN = ("partition", "offset", "timestamp", "schema_id", "error_class", "error_message", "failed_at")
# Those that a rollback keeps out of their table: no replay takes them up.
KEPT_OUT = "coalesce(replay_id like 'kept-out %', false)"
RAW = ("key", "value", "headers", "replay_id", "replayed_at")


@app.command("list")
def list_dead_letters(data: DataOption = None, json: JsonOption = False) -> None:
    """How many dead letters each table has, by what is wrong with them."""
    with connect(data) as client:
        tables = [table for table in client.get("tables") if table["dead_letters"] is not None]
        cluster = client.get("status")["cluster"]
    found: list[dict[str, Any]] = []
    for table in tables:
        if not table["dead_letters"]["exists"]:
            continue
        sql = (
            "select topic, error_class, count_if(replayed_at is null) as dead, "
            f"count_if(replayed_at is not null and not {KEPT_OUT}) as replayed, count_if({KEPT_OUT}) "
            f"as kept_out from {_name(cluster, table['dead_letters']['name'])} "
            f"where topic = {_text(table['topic'])} group by topic, error_class order by error_class"
        )
        found += _ask(sql, data)
    if json:
        print_json(found)
        return
    columns = ("topic", "error_class", "dead", "replayed", "kept_out")
    print_table("", [name.upper() for name in columns], [[row[name] for name in columns] for row in found])


@app.command()
def show(
    topic: TopicArgument,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest first.")] = 20,
    replayed: Annotated[bool, typer.Option("--replayed", help="Those that were replayed too.")] = False,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """The dead letters of a table: where they were, and what is wrong with them. `--json` has them whole."""
    with connect(data) as client:
        name = _dead_letters_of(client, topic)
        cluster = client.get("status")["cluster"]
    columns = ", ".join(f"`{column}`" for column in (*SHOWN, *RAW))
    also = "" if replayed else " and replayed_at is null"
    sql = (
        f"select {columns} from {_name(cluster, name)} where topic = {_text(topic)}{also} "
        f"order by failed_at desc, `partition`, `offset` limit {limit}"
    )
    found = _ask(sql, data)
    if json:
        print_json(found)
        return
    print_table(
        "", [column.upper() for column in SHOWN], [[row[column] for column in SHOWN] for row in found]
    )


@app.command()
def replay(topic: TopicArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """Put the dead letters that can be read now into the table; each goes there once."""
    with connect(data) as client:
        request = client.post("tables", topic, "replay")["request"]
        found = wait_for_request(client, topic, request)
    if json:
        print_json(found)
    else:
        say(f"{topic}: {found['replayed']} replayed, {found['dead']} still dead")


def _dead_letters_of(client: Client, topic: str) -> str:
    found = client.get("tables", topic)["dead_letters"]
    if found is None:
        raise InvalidRequest(
            f"Table '{topic}' keeps no dead letters.",
            f"It does with `headgate table alter {topic} --on-error log`.",
        )
    if not found["exists"]:
        raise InvalidRequest(f"Table '{topic}' has no dead letters yet.")
    return str(found["name"])


def _ask(sql: str, data: Any) -> list[dict[str, Any]]:
    return rows_of(sql, data)


def _name(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
