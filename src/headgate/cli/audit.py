"""`headgate audit`: who did what to which thing."""

import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from headgate.cli.client import DataOption, JsonOption, connect
from headgate.cli.output import print_json, print_table
from headgate.errors import ConfigError, InvalidRequest

MOST = 1000


def audit(
    who: Annotated[str | None, typer.Option(help="A credential's name, or its client id.")] = None,
    about: Annotated[
        str | None, typer.Option(help="A topic, table, statement, subject or credential, by its name.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Not before: a time (2026-01-31T12:00:00Z), or so long ago (1d).")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Before: as --since.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="What was refused or has failed.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 50,
    data: DataOption = None,
    json: JsonOption = False,
) -> None:
    """Who did what to which thing, when, from where and with which credential: the newest first."""
    filters = {
        "who": who,
        "about": about,
        "since": None if since is None else _moment(since),
        "until": None if until is None else _moment(until),
        "refused": refused,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    entries: list[dict[str, object]] = []
    with connect(data) as client:
        while len(entries) < limit:
            older = {"before": entries[-1]["id"]} if entries else {}
            page = client.get("audit", **given, **older, limit=min(MOST, limit - len(entries)))
            entries += page
            if not page:
                break
    if json:
        print_json(entries)
        return
    rows = [
        (
            datetime.fromtimestamp(float(str(entry["at"])), UTC).strftime("%Y-%m-%d %H:%M:%SZ"),
            entry["who"] or "?",
            entry["credential"],
            f"{entry['address']} ({entry['door']})",
            entry["action"],
            ", ".join(map(str, entry["things"])) if isinstance(entry["things"], list) else "",
            entry["status"],
        )
        for entry in entries
    ]
    print_table("Audit", ("WHEN", "WHO", "CREDENTIAL", "FROM", "WHAT", "ABOUT", "STATUS"), rows)


def _moment(text: str) -> float:
    """Seconds since 1970."""
    from headgate.config import parse_duration

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            return time.time() - parse_duration(text)
        except ConfigError as error:
            raise InvalidRequest(
                f"'{text}' is neither a time nor how long ago.", "Write 2026-01-31T12:00:00Z, or 12h."
            ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
