"""The records of publication: CLI and API write what is wanted, the publisher where it stands."""

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping
from sqlalchemy.exc import IntegrityError

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.model import TableFormat
from headgate.store.database import reading
from headgate.store.store import log_event

_integrations = sa.Table(
    "integrations",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("kind", sa.String),
    sa.Column("format", sa.String),
    sa.Column("options", sa.JSON),
    sa.Column("desired", sa.String),
    sa.Column("stamp", sa.String),
    sa.Column("created_at", sa.Float),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("since", sa.Float),
    sa.Column("updated_at", sa.Float),
)
_publications = sa.Table(
    "publications",
    sa.MetaData(),
    sa.Column("integration", sa.String, primary_key=True),
    sa.Column("topic", sa.String, primary_key=True),
    sa.Column("outside_name", sa.String),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("since", sa.Float),
    sa.Column("detail", sa.JSON),
    sa.Column("updated_at", sa.Float),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WAITING = "waiting for the engine"


class IntegrationState(StrEnum):
    PENDING = "Pending"
    CONNECTED = "Connected"
    FAILED = "Failed"


class PublicationState(StrEnum):
    PENDING = "Pending"
    SYNCED = "Synced"
    FAILED = "Failed"
    NOT_APPLICABLE = "Not applicable"


@dataclass(frozen=True)
class IntegrationRecord:
    """An outside catalog, whether it is wanted (`present`) or to go (`removed`), and how it stands."""

    name: str
    kind: str
    format: TableFormat
    options: Mapping[str, Any]
    desired: str
    stamp: str
    created_at: float
    state: IntegrationState
    reason: str
    since: float
    updated_at: float


@dataclass(frozen=True)
class PublicationRecord:
    """A table in an outside catalog. With an `outside_name`, an entry of that name is there or may be."""

    integration: str
    topic: str
    outside_name: str | None
    state: PublicationState
    reason: str
    since: float
    detail: Mapping[str, Any]
    updated_at: float


class Integrations:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- for those who want something

    def add(self, name: str, kind: str, table_format: TableFormat, options: Mapping[str, Any]) -> None:
        """Pending until the engine takes it up. `options` hold the names of secrets, never secrets."""
        if _NAME.fullmatch(name) is None:
            raise InvalidRequest(
                f"'{name}' cannot name a catalog.",
                "Letters, digits, dots, dashes and underscores, up to 100 of them.",
            )
        now = time.time()
        values = {
            "name": name,
            "kind": kind,
            "format": table_format.value,
            "options": dict(options),
            "desired": "present",
            "stamp": uuid.uuid4().hex,
            "created_at": now,
            "state": IntegrationState.PENDING.value,
            "reason": _WAITING,
            "since": now,
            "updated_at": now,
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(_integrations.insert().values(**values))
                log_event(connection, _subject(name), "added", f"{kind}, {table_format.value}")
        except IntegrityError as error:
            raise AlreadyExists(
                f"There is a catalog '{name}' already.",
                f"See `headgate catalog show {name}`; choose another name, or remove that one.",
            ) from error

    def retry(self, name: str) -> None:
        """What failed is tried again at once."""
        with self._engine.begin() as connection:
            self._update(connection, name, stamp=uuid.uuid4().hex)

    def want_removed(self, name: str) -> None:
        """The engine takes its entries out, then forgets it."""
        with self._engine.begin() as connection:
            self._update(connection, name, desired="removed", stamp=uuid.uuid4().hex)
            log_event(connection, _subject(name), "removed", "by request")

    def get(self, name: str) -> IntegrationRecord:
        with reading(self._engine) as connection:
            found = sa.select(_integrations).where(_integrations.c.name == name)
            row = connection.execute(found).mappings().first()
        if row is None:
            raise _no_integration(name)
        return _integration(row)

    def all(self) -> list[IntegrationRecord]:
        with reading(self._engine) as connection:
            rows = connection.execute(sa.select(_integrations).order_by(_integrations.c.name)).mappings()
            return [_integration(row) for row in rows]

    def counts(self) -> list[tuple[str, PublicationState, int]]:
        """By catalog and state, how many tables there are."""
        columns = (_publications.c.integration, _publications.c.state)
        query = sa.select(*columns, sa.func.count()).group_by(*columns)
        with reading(self._engine) as connection:
            return [(row[0], PublicationState(row[1]), int(row[2])) for row in connection.execute(query)]

    def publications(
        self, integration: str | None = None, topic: str | None = None
    ) -> list[PublicationRecord]:
        """All, or those in one catalog, or those of one table."""
        found = sa.select(_publications).order_by(_publications.c.integration, _publications.c.topic)
        if integration is not None:
            found = found.where(_publications.c.integration == integration)
        if topic is not None:
            found = found.where(_publications.c.topic == topic)
        with reading(self._engine) as connection:
            return [_publication(row) for row in connection.execute(found).mappings()]

    # -- for the publisher

    def report(self, name: str, state: IntegrationState, reason: str) -> None:
        """One that was removed meanwhile stays gone."""
        with self._engine.begin() as connection:
            mine = _integrations.c.name == name
            row = connection.execute(sa.select(_integrations).where(mine)).mappings().first()
            if row is None:
                return
            connection.execute(_integrations.update().where(mine).values(**_moved(row, state, reason)))
            if (row["state"], row["reason"]) != (state.value, reason):
                log_event(connection, _subject(name), state.value, reason)

    def claim(self, integration: str, topic: str, outside_name: str) -> str | None:
        """Take a name in an outside catalog before anything is put there; the topic that has it already."""
        mine = sa.and_(_publications.c.integration == integration, _publications.c.topic == topic)
        with self._engine.begin() as connection:
            held = sa.select(_publications.c.topic).where(
                _publications.c.integration == integration, _publications.c.outside_name == outside_name
            )
            holder = connection.execute(held).scalar_one_or_none()
            if holder is None:
                self._row(connection, integration, topic)
                connection.execute(_publications.update().where(mine).values(outside_name=outside_name))
        return holder if holder != topic else None

    def release(self, integration: str, topic: str) -> None:
        """Its entry is gone: the name is free, and nothing is remembered of the table."""
        mine = sa.and_(_publications.c.integration == integration, _publications.c.topic == topic)
        with self._engine.begin() as connection:
            row = connection.execute(sa.select(_publications).where(mine)).mappings().first()
            if row is None:
                return
            connection.execute(_publications.delete().where(mine))
            if row["outside_name"] is not None:
                log_event(connection, topic, "unpublished", f"{integration}: {row['outside_name']}")

    def tell(
        self,
        integration: str,
        topic: str,
        state: PublicationState,
        reason: str,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """The publisher's word on a table; without `detail` what was known of it stays."""
        mine = sa.and_(_publications.c.integration == integration, _publications.c.topic == topic)
        with self._engine.begin() as connection:
            self._row(connection, integration, topic)
            row = connection.execute(sa.select(_publications).where(mine)).mappings().one()
            values = _moved(row, state, reason)
            if detail is not None:
                values["detail"] = dict(detail)
            connection.execute(_publications.update().where(mine).values(**values))
            if (row["state"], row["reason"]) != (state.value, reason):
                said = f"{state.value} in {integration}" + (f": {reason}" if reason else "")
                log_event(connection, topic, "published" if state == "Synced" else "publication", said)

    def forget(self, name: str) -> None:
        """The integration and what is known of its tables; entries that are still there stay there."""
        with self._engine.begin() as connection:
            connection.execute(_publications.delete().where(_publications.c.integration == name))
            if not connection.execute(_integrations.delete().where(_integrations.c.name == name)).rowcount:
                raise _no_integration(name)
            log_event(connection, _subject(name), "forgotten", "")

    def _update(self, connection: Connection, name: str, **values: Any) -> None:
        if not connection.execute(
            _integrations.update().where(_integrations.c.name == name).values(**values)
        ).rowcount:
            raise _no_integration(name)

    def _row(self, connection: Connection, integration: str, topic: str) -> None:
        mine = sa.and_(_publications.c.integration == integration, _publications.c.topic == topic)
        if connection.execute(sa.select(_publications.c.topic).where(mine)).first() is None:
            now = time.time()
            values = {
                "integration": integration,
                "topic": topic,
                "state": PublicationState.PENDING.value,
                "reason": _WAITING,
                "since": now,
                "detail": {},
                "updated_at": now,
            }
            connection.execute(_publications.insert().values(**values))


def _moved(row: RowMapping, state: StrEnum, reason: str) -> dict[str, Any]:
    now = time.time()
    same = (row["state"], row["reason"]) == (state.value, reason)
    return {
        "state": state.value,
        "reason": reason,
        "since": row["since"] if same else now,
        "updated_at": now,
    }


def _integration(row: RowMapping) -> IntegrationRecord:
    told = {"format": TableFormat(row["format"]), "state": IntegrationState(row["state"])}
    return IntegrationRecord(**{**row, **told})


def _publication(row: RowMapping) -> PublicationRecord:
    return PublicationRecord(**{**row, "state": PublicationState(row["state"])})


def _subject(name: str) -> str:
    """What a catalog's events are about; a topic may have the same name."""
    return f"catalog {name}"


def _no_integration(name: str) -> NotFound:
    return NotFound(f"There is no catalog '{name}'.", "`headgate catalog list` shows those that are.")
