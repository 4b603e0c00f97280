"""The audit trail in the control state: entries are added, read, and forgotten when they are old."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine

from headgate.store.database import reading

_audit = sa.Table(
    "audit",
    sa.MetaData(),
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float),
    sa.Column("who", sa.String),
    sa.Column("credential", sa.String),
    sa.Column("address", sa.String),
    sa.Column("door", sa.String),
    sa.Column("action", sa.String),
    sa.Column("things", sa.JSON),
    sa.Column("status", sa.Integer),
)
# From this status on a request was refused, or has failed.
REFUSED = 400


@dataclass(frozen=True)
class AuditEntry:
    """A request: who made it with which credential, from where, what it did to which things, and its status.

    Nothing of its body is in it, and no secret. `who` is empty where nobody could be told.
    """

    who: str
    credential: str
    address: str
    door: str
    action: str
    things: tuple[str, ...]
    status: int
    at: float = field(default_factory=time.time)


@dataclass(frozen=True)
class AuditFilter:
    """Which entries are wanted; None is any. `about` is the end of a thing's name, or all of it."""

    who: str | None = None
    about: str | None = None
    since: float | None = None
    until: float | None = None
    refused: bool = False
    before: int | None = None


class Audit:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, entries: Iterable[AuditEntry]) -> None:
        rows = [asdict(entry) | {"things": list(entry.things)} for entry in entries]
        with self._engine.begin() as connection:
            connection.execute(_audit.insert(), rows)

    def forget(self, older_than: float) -> None:
        """Entries of before that moment."""
        with self._engine.begin() as connection:
            connection.execute(_audit.delete().where(_audit.c.at < older_than))

    def list(self, wanted: AuditFilter, limit: int) -> Sequence[dict[str, Any]]:
        """The newest first."""
        with reading(self._engine) as connection:
            query = _query(wanted).order_by(_audit.c.id.desc()).limit(limit)
            return [dict(row) for row in connection.execute(query).mappings()]


def _query(wanted: AuditFilter) -> sa.Select[Any]:
    query = sa.select(_audit)
    if wanted.who is not None:
        # Names are quoted where they are a credential's.
        names = (wanted.who, f"'{wanted.who}'")
        query = query.where(_audit.c.who.in_(names) | (_audit.c.credential == wanted.who))
    if wanted.about is not None:
        things = sa.cast(_audit.c.things, sa.String)
        quoted = wanted.about.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        endings = [things.like(f'%{before}{quoted}"%', escape="\\") for before in ('"', " ", ".")]
        query = query.where(sa.or_(*endings))
    if wanted.since is not None:
        query = query.where(_audit.c.at >= wanted.since)
    if wanted.until is not None:
        query = query.where(_audit.c.at < wanted.until)
    if wanted.refused:
        query = query.where(_audit.c.status >= REFUSED)
    if wanted.before is not None:
        query = query.where(_audit.c.id < wanted.before)
    return query
