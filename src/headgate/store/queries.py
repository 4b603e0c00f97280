"""The query history in the control state: who asked what, of which snapshots, and what it cost."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine, RowMapping

from headgate.errors import NotFound
from headgate.store.database import reading

_queries = sa.Table(
    "queries",
    sa.MetaData(),
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("kind", sa.String),
    sa.Column("sql", sa.Text),
    sa.Column("owner", sa.String),
    sa.Column("principal", sa.String),
    sa.Column("instance", sa.String),
    sa.Column("state", sa.String),
    sa.Column("error", sa.Text),
    sa.Column("tables", sa.JSON),
    sa.Column("figures", sa.JSON),
    sa.Column("started_at", sa.Float),
    sa.Column("ended_at", sa.Float),
)
LONGEST_SQL = 100_000
DRIVER_GONE = "The query driver ended before the query did."


class QueryState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class QueryRecord:
    """A query that was asked. `instance`: the query driver that runs it; `figures`: what it read and gave."""

    id: str
    kind: str
    sql: str
    owner: str
    principal: str
    instance: str
    state: QueryState = QueryState.RUNNING
    error: str = ""
    tables: Sequence[Mapping[str, Any]] = ()
    figures: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    started_at: float = field(default_factory=time.time)
    ended_at: float | None = None


@dataclass(frozen=True)
class QueryFilter:
    """Which queries are wanted; None is any. `before`: those that began before the query of that id."""

    owner: str | None = None
    state: QueryState | None = None
    before: str | None = None


class QueryHistory:
    """Behind the same database as the store. Every method is one transaction.

    `alive` is the query driver that runs now. A query of any other that is written down as running has ended
    with its driver, and is read as one that has failed.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def begin(self, record: QueryRecord) -> None:
        sql = record.sql if len(record.sql) <= LONGEST_SQL else record.sql[:LONGEST_SQL] + "…"
        with self._engine.begin() as connection:
            connection.execute(
                _queries.insert().values(
                    id=record.id,
                    kind=record.kind,
                    sql=sql,
                    owner=record.owner,
                    principal=record.principal,
                    instance=record.instance,
                    state=record.state.value,
                    error=record.error,
                    tables=[dict(table) for table in record.tables],
                    figures=dict(record.figures),
                    started_at=record.started_at,
                    ended_at=record.ended_at,
                )
            )

    def end(
        self,
        query_id: str,
        state: QueryState,
        ended_at: float,
        error: str = "",
        tables: Sequence[Mapping[str, Any]] = (),
        figures: Mapping[str, Any] | None = None,
    ) -> None:
        """How a query ended. One that is forgotten stays so."""
        values = {
            "state": state.value,
            "error": error,
            "tables": [dict(table) for table in tables],
            "figures": dict(figures or {}),
            "ended_at": ended_at,
        }
        with self._engine.begin() as connection:
            connection.execute(_queries.update().where(_queries.c.id == query_id).values(**values))

    def abandon(self, alive: str) -> int:
        """Writes down that the queries of earlier drivers have ended; how many those were."""
        lost = sa.and_(_queries.c.state == QueryState.RUNNING.value, _queries.c.instance != alive)
        values = {"state": QueryState.FAILED.value, "error": DRIVER_GONE}
        with self._engine.begin() as connection:
            return int(connection.execute(_queries.update().where(lost).values(**values)).rowcount)

    def forget(self, older_than: float, most: int) -> None:
        """Those that began before that moment, and all but the `most` newest. One that runs is kept."""
        begun = _queries.c.started_at
        with self._engine.begin() as connection:
            newest = sa.select(begun).order_by(begun.desc()).offset(most).limit(1)
            last = connection.scalar(newest)
            old = begun < older_than if last is None else sa.or_(begun < older_than, begun <= last)
            ended = _queries.c.state != QueryState.RUNNING.value
            connection.execute(_queries.delete().where(old, ended))

    def get(self, query_id: str, alive: str | None, owner: str | None = None) -> QueryRecord:
        """`owner`: whose it must be; None is anybody's."""
        with reading(self._engine) as connection:
            query = sa.select(_queries).where(_queries.c.id == query_id)
            row = connection.execute(query).mappings().first()
        if row is None or owner not in (None, row["owner"]):
            raise no_query(query_id)
        return _record(row, alive)

    def list(self, wanted: QueryFilter, alive: str | None, limit: int) -> list[QueryRecord]:
        """The newest first."""
        query = sa.select(_queries)
        if wanted.owner is not None:
            query = query.where(_queries.c.owner == wanted.owner)
        if wanted.state is not None:
            query = query.where(_effective_state(alive) == wanted.state.value)
        if wanted.before is not None:
            first = self.get(wanted.before, alive, wanted.owner)
            place = sa.tuple_(_queries.c.started_at, _queries.c.id)
            query = query.where(place < sa.tuple_(sa.literal(first.started_at), sa.literal(first.id)))
        query = query.order_by(_queries.c.started_at.desc(), _queries.c.id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [_record(row, alive) for row in connection.execute(query).mappings()]


def _is_lost(alive: str | None) -> sa.ColumnElement[bool]:
    running = _queries.c.state == QueryState.RUNNING.value
    return running if alive is None else sa.and_(running, _queries.c.instance != alive)


def _effective_state(alive: str | None) -> sa.ColumnElement[str]:
    return sa.case((_is_lost(alive), QueryState.FAILED.value), else_=_queries.c.state)


def _record(row: RowMapping, alive: str | None) -> QueryRecord:
    values = {**row, "state": QueryState(row["state"])}
    if values["state"] is QueryState.RUNNING and row["instance"] != alive:
        values |= {"state": QueryState.FAILED, "error": DRIVER_GONE}
    return QueryRecord(**values)


def no_query(query_id: str) -> NotFound:
    return NotFound(
        f"There is no query '{query_id}'.", "It was forgotten, or never was: see `headgate queries list`."
    )
