"""`headgate table`: topics as tables."""

import sys
import time
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from headgate.cli.client import Client, DataOption, JsonOption, connect
from headgate.cli.output import age, print_fields, print_json, print_table, progress, say
from headgate.cli.status import print_tables
from headgate.errors import InvalidRequest, NotFound, ServerUnavailable, TableStopped

POLL_SECONDS = 0.25
DISABLE_SECONDS = 120.0
# Of interest to programs only; `--json` has them.
INTERNAL = ("synced", "behind_since")

app = typer.Typer(help="Topics as tables.", no_args_is_help=True, rich_markup_mode=None)

TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic, which names its table.")]


FreshnessOption = Annotated[
    str | None, typer.Option(help="How old a record may be when it is in the table. [default: 10s]")
]
FlushOption = Annotated[
    int | None, typer.Option(help="Write as soon as so many bytes wait. [default: 262144000]")
]
OnErrorOption = Annotated[
    str | None,
    typer.Option(help="On a record that cannot be decoded: suspend, skip or log. [default: suspend]"),
]
DeadLettersOption = Annotated[
    str | None, typer.Option(help="Topic and table of dead letters. [default: TOPIC.dlq]")
]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option(help="day(c), bucket(16, c), truncate(4, c), c, none or default; may be repeated."),
]
EventTimeOption = Annotated[
    str | None, typer.Option(help="The column that says when it happened: the default partition's.")
]
MetadataOption = Annotated[
    str | None,
    typer.Option(
        help="topic, partition, offset, timestamp, timestamp-type, key, headers, leader-epoch, schema-id; "
        "or all, or none. [default: timestamp]"
    ),
]
TombstonesOption = Annotated[
    str | None, typer.Option(help="Records without a value: bad or skip. [default: bad]")
]

DeletesOption = Annotated[
    str | None,
    typer.Option(
        help="How rows of an upsert table go: deletion-vectors, copy-on-write or position-deletes. "
        "[default: as the readers can read it]"
    ),
]
FormatVersionOption = Annotated[
    int | None,
    typer.Option(
        min=2, max=3, help="Iceberg's format version, 2 or 3. [default: 3, or 2 where readers need it]"
    ),
]
PersonalOption = Annotated[
    str | None,
    typer.Option(help="Columns with personal data, as in email,phone: exports let them out masked alone."),
]
ReadersOption = Annotated[
    str | None, typer.Option(help="Engines that read the table, as in spark,duckdb,athena.")
]


@app.command()
def enable(
    topic: TopicArgument,
    formats: Annotated[
        str | None,
        typer.Option(help="iceberg, delta or both: iceberg,delta, over the same files. [default: iceberg]"),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help="append (each record is a row), upsert (the last record of a key is its row), scd2 (every "
            "version of it), or auto: upsert where the topic is compacted. [default: auto]"
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Columns that tell rows apart, in upsert tables. [default: those of Kafka's key]"),
    ] = None,
    deletes: DeletesOption = None,
    readers: ReadersOption = None,
    personal: PersonalOption = None,
    format_version: FormatVersionOption = None,
    envelope: Annotated[
        str | None,
        typer.Option(
            help="debezium (values are changes of rows), none, or auto: by the schema. [default: auto]"
        ),
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            "--from", help="earliest, latest, a time (2026-01-31T12:00:00Z), or offsets (0:12,1:40)."
        ),
    ] = "earliest",
    freshness: FreshnessOption = None,
    flush_bytes: FlushOption = None,
    on_error: OnErrorOption = None,
    dead_letters: DeadLettersOption = None,
    value_format: Annotated[
        str | None,
        typer.Option(
            help="auto (by schema id), json, json-text, json-variant, connect-json, string or bytes. "
            "[default: auto]"
        ),
    ] = None,
    value_columns: Annotated[
        str | None, typer.Option(help="Columns of plain JSON: 'id bigint, price decimal(12,2)'.")
    ] = None,
    key_format: Annotated[
        str | None, typer.Option(help="As --value-format; none leaves keys out. [default: none]")
    ] = None,
    key_columns: Annotated[str | None, typer.Option(help="Columns of plain JSON keys.")] = None,
    record_types: Annotated[
        str | None,
        typer.Option(help="Several record types in one topic: single (refused) or union. [default: single]"),
    ] = None,
    tombstones: TombstonesOption = None,
    metadata: MetadataOption = None,
    partition: PartitionOption = None,
    event_time: EventTimeOption = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="A storage (`headgate storage list`) or s3://BUCKET/PREFIX. [default: the warehouse]"
        ),
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Make a topic a table, and keep it one."""
    wanted = {
        "topic": topic,
        "formats": None if formats is None else _names(formats),
        "mode": mode,
        "from": start,
        "freshness": freshness,
        "flush_bytes": flush_bytes,
        "on_error": on_error,
        "dead_letters": dead_letters,
        "value_format": value_format,
        "value_columns": value_columns,
        "key_format": key_format,
        "key_columns": key_columns,
        "record_types": record_types,
        "tombstones": tombstones,
        "metadata": None if metadata is None else _names(metadata),
        "partition": partition or None,
        "event_time": event_time,
        "key": None if key is None else _names(key),
        "deletes": deletes,
        "readers": None if readers is None else _names(readers),
        "personal": None if personal is None else _names(personal),
        "format_version": format_version,
        "envelope": envelope,
        "storage": storage,
    }
    with connect(data) as client:
        found = client.post("tables", body=_said(wanted))
    if json:
        print_json(found)
    else:
        say(f"{topic} is enabled: {found['state']}, {found['reason']}")
        _say_warnings(found)


@app.command()
def alter(
    topic: TopicArgument,
    freshness: FreshnessOption = None,
    flush_bytes: FlushOption = None,
    on_error: OnErrorOption = None,
    dead_letters: DeadLettersOption = None,
    tombstones: TombstonesOption = None,
    metadata: MetadataOption = None,
    partition: PartitionOption = None,
    event_time: EventTimeOption = None,
    deletes: DeletesOption = None,
    readers: ReadersOption = None,
    personal: PersonalOption = None,
    format_version: FormatVersionOption = None,
    rename: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW: a column gets another name and keeps its values.")
    ] = None,
    formats: Annotated[
        str | None, typer.Option(help="iceberg, delta or both: iceberg,delta. What goes is removed.")
    ] = None,
    rewrite: Annotated[
        bool | None,
        typer.Option(
            "--rewrite/--no-rewrite",
            help="Write files of a Delta table anew when columns in them have other names than in the table.",
        ),
    ] = None,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Change what is wanted of a table, while it runs."""
    wanted = _said(
        {
            "freshness": freshness,
            "flush_bytes": flush_bytes,
            "on_error": on_error,
            "dead_letters": dead_letters,
            "tombstones": tombstones,
            "metadata": None if metadata is None else _names(metadata),
            "partition": partition or None,
            "event_time": event_time,
            "deletes": deletes,
            "readers": None if readers is None else _names(readers),
            "personal": None if personal is None else _names(personal),
            "format_version": format_version,
            "formats": None if formats is None else _names(formats),
            "rewrite": rewrite,
            "renames": dict(_rename(text) for text in rename) if rename else None,
        }
    )
    if not wanted:
        raise InvalidRequest("Nothing is to be altered.", "See `headgate table alter --help`.")
    with connect(data) as client:
        found = client.patch("tables", topic, body=wanted)
    if json:
        print_json(found)
    else:
        say(f"{topic} is altered: {', '.join(wanted)}")
        _say_warnings(found)


def _say_warnings(found: dict[str, Any]) -> None:
    for text in found["warnings"]:
        say(f"warning: {text}")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _said(wanted: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value is not None}


def _rename(text: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InvalidRequest(f"'{text}' does not say what to rename.", "Write --rename OLD=NEW.")
    return old, new


@app.command("list")
def list_tables(data: DataOption = None, json: JsonOption = False) -> None:
    """All tables and how they stand."""
    with connect(data) as client:
        found = client.get("tables")
    if json:
        print_json(found)
    else:
        print_tables(found)


@app.command()
def show(topic: TopicArgument, data: DataOption = None, json: JsonOption = False) -> None:
    """All there is to know of a table."""
    with connect(data) as client:
        found = client.get("tables", topic)
    if json:
        print_json(found)
        return
    print_fields(topic, _fields(found))
    if found["events"]:
        say("")
        rows = [(age(event["age"]), event["kind"], event["message"]) for event in found["events"]]
        print_table("Events", ("AGO", "EVENT", "MESSAGE"), rows)


def _fields(found: dict[str, Any]) -> list[tuple[str, object]]:
    spec = found["spec"]
    fields = [
        ("state", found["state"]),
        ("reason", found["reason"] or "–"),
        ("since", f"{age(found['age'])} ago"),
        ("wanted", found["desired"]),
        ("formats", ", ".join(spec["formats"])),
        ("mode", spec["mode"]),
        ("freshness wanted", age(spec["freshness_seconds"])),
        ("on error", spec["on_error"]),
        ("from", found["from"]),
    ]
    detail = {name: value for name, value in found["detail"].items() if name not in INTERNAL}
    known = [
        (name.replace("_", " "), _moment(value) if name.endswith("_at") else _text(value))
        for name, value in detail.items()
        if value is not None
    ]
    warnings = [("warning", text) for text in found["warnings"]]
    return [*fields, *known, *(_published(one) for one in found["catalogs"]), *warnings]


def _published(one: dict[str, Any]) -> tuple[str, object]:
    """In which catalog, under which name, how it stands there."""
    named = one["name"] or "–"
    reason = f" ({one['reason']})" if one["reason"] else ""
    return f"in {one['catalog']}", f"{named}, {one['state']}{reason}"


def _moment(milliseconds: Any) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(sep=" ", timespec="seconds")


def _text(value: object) -> str:
    """`{"0": 12, "1": 40}` as `0:12 1:40`; a position is its offsets."""
    if isinstance(value, dict):
        pairs = value.get("offsets", value)
        return " ".join(f"{key}:{_text(item)}" for key, item in pairs.items())
    return " ".join(map(_text, value)) if isinstance(value, list) else str(value)


@app.command()
def sync(
    topic: TopicArgument,
    timeout: Annotated[str, typer.Option(help="Give up after this long; 0 never does.")] = "0",
    data: DataOption = None,
) -> None:
    """Wait until the table holds every record that is in the topic now."""
    from headgate.config import parse_duration

    seconds = parse_duration(timeout)
    with connect(data) as client:
        token = client.post("tables", topic, "sync")["token"]
        found = _wait_for_sync(client, topic, token, seconds)
    rows = "" if found["rows"] is None else f", {found['rows']} rows"
    say(f"{topic} is caught up{rows}")


def _wait_for_sync(client: Client, topic: str, token: str, seconds: float) -> dict[str, Any]:
    started = time.monotonic()
    backlog = 0
    with progress(f"{topic}: waiting for the engine") as shown:
        while True:
            found: dict[str, Any] = client.get("tables", topic)
            if found["detail"].get("synced") == token:
                return found
            if found["state"] in ("Suspended", "Failed"):
                raise TableStopped(f"Table '{topic}' is {found['state']}: {found['reason']}")
            lag = found["lag"]
            if lag is not None:
                backlog = max(backlog, lag)
                shown.update(f"{topic}: {found['rows'] or 0} rows", backlog - lag, backlog)
            if seconds and time.monotonic() - started > seconds:
                reason = f" ({found['reason']})" if found["reason"] else ""
                raise ServerUnavailable(
                    f"Table '{topic}' is not caught up after {seconds:g} s: "
                    f"{found['state']}{reason}, lag {lag}."
                )
            time.sleep(POLL_SECONDS)


@app.command()
def suspend(topic: TopicArgument, data: DataOption = None) -> None:
    """Stop writing the table; its position stays."""
    with connect(data) as client:
        client.post("tables", topic, "suspend")
    say(f"{topic} is to be suspended")


@app.command()
def resume(
    topic: TopicArgument,
    accept: Annotated[
        str | None,
        typer.Option(
            help="Go on past what stopped it: new-topic (the topic was created again), new-timeline (the "
            "database of its change events was restored) or lost (the topic has lost records)."
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """Go on where the table stopped."""
    with connect(data) as client:
        found = client.post("tables", topic, "resume", body={"accept": accept} if accept else None)
        if "request" in found:
            wait_for_request(client, topic, found["request"])
    say(f"{topic} is to be resumed" + (f", {accept} accepted" if accept else ""))


def wait_for_request(
    client: Client, topic: str, request: str, may_be_suspended: bool = False
) -> dict[str, Any]:
    """What the engine answers; its refusal is raised here. `may_be_suspended`: the request is carried out
    on a suspended table too."""
    with progress(f"{topic}: waiting for the engine") as shown:
        while True:
            found = client.get("tables", topic, "requests", request)
            if found["state"] == "failed":
                raise InvalidRequest(str(found["result"]["error"]))
            if found["state"] == "done":
                result: dict[str, Any] = found["result"]
                return result
            table = client.get("tables", topic)
            doing = found["result"].get("progress")
            shown.update(f"{topic}: {doing}" if doing else f"{topic}: {table['state']} {table['reason']}")
            if table["desired"] == "suspended" and not may_be_suspended:
                raise TableStopped(f"Table '{topic}' is suspended: {table['reason']}")
            time.sleep(POLL_SECONDS)


@app.command()
def disable(
    topic: TopicArgument,
    purge: Annotated[bool, typer.Option("--purge", help="Delete the table and its files too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: DataOption = None,
) -> None:
    """Stop materializing the topic; the table stays, unless it is purged."""
    if purge and not yes:
        _confirm_purge(topic)
    with connect(data) as client:
        client.delete("tables", topic, purge=purge)
        _wait_until_disabled(client, topic)
    say(f"{topic} is disabled" + (", its table and files are deleted" if purge else ""))


def _confirm_purge(topic: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidRequest(
            f"--purge deletes the table of '{topic}' and its files.", "Say --yes to mean it."
        )
    typer.confirm(f"Delete the table of '{topic}' and all of its files?", abort=True)


def _wait_until_disabled(client: Client, topic: str) -> None:
    deadline = time.monotonic() + DISABLE_SECONDS
    with progress(f"{topic}: waiting for the engine"):
        while True:
            try:
                found = client.get("tables", topic)
            except NotFound:
                return
            if time.monotonic() > deadline:
                raise ServerUnavailable(
                    f"The engine has not disabled '{topic}' in {DISABLE_SECONDS:.0f} s: {found['reason']}",
                    "It will when it can: see `headgate status`.",
                )
            time.sleep(POLL_SECONDS)
