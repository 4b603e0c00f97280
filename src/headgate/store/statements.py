"""The records of statements: CLI and API write what is wanted, the engine where they stand."""

import re
import time
import uuid
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.model import StatementState
from headgate.store.database import reading
from headgate.store.store import log_event

_statements = sa.Table(
    "statements",
    sa.MetaData(),
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("name", sa.String),
    sa.Column("kind", sa.String),
    sa.Column("script", sa.String),
    sa.Column("options", sa.JSON),
    sa.Column("settled", sa.JSON),
    sa.Column("desired", sa.String),
    sa.Column("created_at", sa.Float),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("since", sa.Float),
    sa.Column("detail", sa.JSON),
    sa.Column("updated_at", sa.Float),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WAITING = "waiting for the engine"


@dataclass(frozen=True)
class StatementRecord:
    """A statement: what was written, what is wanted of it (`running`, `stopped`, `reset`, `deleted`), where
    it stands.

    `settled` is what the engine has decided for good when it first took the statement up.
    """

    id: str
    name: str
    kind: str
    script: str
    options: Mapping[str, Any]
    settled: Mapping[str, Any]
    desired: str
    created_at: float
    state: StatementState
    reason: str
    since: float
    detail: Mapping[str, Any]
    updated_at: float


def check_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"'{name}' cannot be the name of a statement.",
            "Letters, digits, dots, dashes and underscores, up to 100 of them.",
        )


def check_resettable(record: StatementRecord) -> None:
    """Refuses one that runs, or may."""
    ended = record.state in (StatementState.STOPPED, StatementState.FAILED)
    if record.desired != "stopped" or not ended:
        raise InvalidRequest(
            f"Statement '{record.name}' is {record.state.value} and wanted {record.desired}: what runs is "
            "not reset.",
            f"Stop it first: `headgate statement stop {record.name}`.",
        )
    if record.options.get("ends") is not None:
        raise InvalidRequest(
            f"Statement '{record.name}' ends where its topics ended when it was made: it has no other place.",
            f"Delete it (`headgate statement delete {record.name}`) and create it again.",
        )
    if not record.settled:
        raise InvalidRequest(
            f"Statement '{record.name}' has not begun yet: there is nothing to reset.",
            f"Start it: `headgate statement start {record.name}`.",
        )


class Statements:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- for those who want something

    def create(self, name: str, kind: str, script: str, options: Mapping[str, Any]) -> StatementRecord:
        """Pending until the engine takes it up. A name that is taken is refused."""
        check_name(name)
        now = time.time()
        values = {
            "id": uuid.uuid4().hex,
            "name": name,
            "kind": kind,
            "script": script,
            "options": dict(options),
            "settled": {},
            "desired": "running",
            "created_at": now,
            "state": StatementState.PENDING.value,
            "reason": _WAITING,
            "since": now,
            "detail": {},
            "updated_at": now,
        }
        with self._engine.begin() as connection:
            if connection.execute(_select().where(_statements.c.name == name)).first():
                raise AlreadyExists(
                    f"There is a statement '{name}' already.",
                    f"See `headgate statement show {name}`; choose another name, or delete that one.",
                )
            connection.execute(_statements.insert().values(**values))
            log_event(connection, _subject(name), "created", kind)
        return self.get(name)

    def want(self, name: str, desired: str) -> StatementRecord:
        """`running`, `stopped` or `deleted`; the engine follows. What is being deleted stays so."""
        with self._engine.begin() as connection:
            row = connection.execute(_select().where(_statements.c.name == name)).mappings().first()
            if row is None:
                raise no_statement(name)
            if row["desired"] == "deleted" and desired != "deleted":
                raise InvalidRequest(f"Statement '{name}' is being deleted.")
            if row["desired"] == "reset" and desired != "deleted":
                raise InvalidRequest(
                    f"Statement '{name}' is being reset.", f"Wait: see `headgate statement show {name}`."
                )
            if desired == "running" and row["state"] == StatementState.COMPLETED:
                raise InvalidRequest(
                    f"Statement '{name}' is completed: it has read up to the ends of its topics as it "
                    "found them, and nothing is left to do.",
                    f"Delete it (`headgate statement delete {name}`) and create it again: it reads up to the "
                    "ends of then.",
                )
            values: dict[str, Any] = {"desired": desired}
            if desired == "running" and row["desired"] != "running":
                values |= _moved(row, StatementState.PENDING, _WAITING)
            connection.execute(_statements.update().where(_statements.c.name == name).values(**values))
            log_event(connection, _subject(name), desired, "by request")
        return self.get(name)

    def reset(self, name: str, asked: Mapping[str, Any]) -> StatementRecord:
        """Asks the engine to have a stopped statement begin elsewhere; then it is stopped again."""
        with self._engine.begin() as connection:
            row = connection.execute(_select().where(_statements.c.name == name)).mappings().first()
            if row is None:
                raise no_statement(name)
            check_resettable(_record(row))
            values: dict[str, Any] = {"desired": "reset"}
            values["settled"] = {**row["settled"], "reset": dict(asked)}
            values |= _moved(row, StatementState.PENDING, "to be reset")
            connection.execute(_statements.update().where(_statements.c.name == name).values(**values))
            log_event(connection, _subject(name), "reset", f"from {asked['from']}")
        return self.get(name)

    def finish(self, name: str) -> StatementRecord:
        """What has come is to be closed; `finish` of its options is the request, `finished` of its detail the
        engine's answer."""
        with self._engine.begin() as connection:
            row = connection.execute(_select().where(_statements.c.name == name)).mappings().first()
            if row is None:
                raise no_statement(name)
            if row["desired"] != "running":
                raise InvalidRequest(
                    f"Statement '{name}' does not run: nothing in it can be closed.",
                    f"Start it first: `headgate statement start {name}`.",
                )
            if row["options"].get("ends") is not None:
                raise InvalidRequest(
                    f"Statement '{name}' ends where its topics ended: it closes all that came by itself.",
                    f"Wait for it: `headgate statement show {name}`.",
                )
            options = {**row["options"], "finish": uuid.uuid4().hex}
            connection.execute(_statements.update().where(_statements.c.name == name).values(options=options))
            log_event(connection, _subject(name), "finish", "by request")
        return self.get(name)

    def get(self, name: str) -> StatementRecord:
        with reading(self._engine) as connection:
            row = connection.execute(_select().where(_statements.c.name == name)).mappings().first()
        if row is None:
            raise no_statement(name)
        return _record(row)

    def all(self, ids: Collection[str] | None = None) -> list[StatementRecord]:
        """Those with one of `ids`, where some are given."""
        query = _select().order_by(_statements.c.name)
        if ids is not None:
            query = query.where(_statements.c.id.in_(list(ids)))
        with reading(self._engine) as connection:
            return [_record(row) for row in connection.execute(query).mappings()]

    def versions(self) -> dict[str, Hashable]:
        """By id, what is another with each change of a statement's record: a small read."""
        query = sa.select(
            _statements.c.id, _statements.c.desired, _statements.c.state, _statements.c.updated_at
        )
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(_statements.c.name))
            return {row.id: (row.desired, row.state, row.updated_at) for row in rows}

    # -- for the engine

    def settle(self, statement_id: str, settled: Mapping[str, Any]) -> None:
        """Once, before the first batch: another engine must decide the same."""
        with self._engine.begin() as connection:
            mine = _statements.c.id == statement_id
            connection.execute(_statements.update().where(mine).values(settled=dict(settled)))

    def was_reset(self, statement_id: str, settled: Mapping[str, Any], reason: str) -> None:
        """Stopped, and settled otherwise, unless it is to be deleted by now."""
        with self._engine.begin() as connection:
            mine = sa.and_(_statements.c.id == statement_id, _statements.c.desired == "reset")
            row = connection.execute(_select().where(mine)).mappings().first()
            if row is not None:
                values = {"settled": dict(settled), "desired": "stopped"}
                values |= _moved(row, StatementState.STOPPED, reason)
                connection.execute(_statements.update().where(mine).values(**values))
                log_event(connection, _subject(row["name"]), StatementState.STOPPED.value, reason)

    def settle_once(self, statement_id: str, name: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """One thing more that is decided for good: what was decided first, by whoever it was."""
        mine = _statements.c.id == statement_id
        with self._engine.begin() as connection:
            # The row is locked before it is read.
            connection.execute(_statements.update().where(mine).values(updated_at=time.time()))
            row = connection.execute(_select().where(mine)).mappings().first()
            if row is None:
                raise NotFound("The statement is gone.")
            settled = {name: dict(value), **row["settled"]}
            connection.execute(_statements.update().where(mine).values(settled=settled))
        found: Mapping[str, Any] = settled[name]
        return found

    def report(
        self, statement_id: str, state: StatementState, reason: str, detail: Mapping[str, Any]
    ) -> None:
        """The engine's word. A statement that is gone stays gone."""
        with self._engine.begin() as connection:
            self._put(connection, statement_id, state, reason, detail)

    def end(self, statement_id: str, state: StatementState, reason: str, detail: Mapping[str, Any]) -> None:
        """Failed, or Completed: not taken up again until somebody asks for it."""
        with self._engine.begin() as connection:
            if self._put(connection, statement_id, state, reason, detail):
                going_on = _statements.c.desired.in_(("running", "reset"))
                mine = sa.and_(_statements.c.id == statement_id, going_on)
                connection.execute(_statements.update().where(mine).values(desired="stopped"))

    def note(self, name: str, kind: str, message: str) -> None:
        """An event of a statement that changes nothing of where it stands."""
        with self._engine.begin() as connection:
            log_event(connection, _subject(name), kind, message)

    def remove(self, statement_id: str) -> None:
        with self._engine.begin() as connection:
            mine = _statements.c.id == statement_id
            row = connection.execute(_select().where(mine)).mappings().first()
            if row is not None:
                connection.execute(_statements.delete().where(mine))
                log_event(connection, _subject(row["name"]), "deleted", "by request")

    def _put(
        self,
        connection: Connection,
        statement_id: str,
        state: StatementState,
        reason: str,
        detail: Mapping[str, Any],
    ) -> bool:
        mine = _statements.c.id == statement_id
        row = connection.execute(_select().where(mine)).mappings().first()
        if row is None:
            return False
        values = {**_moved(row, state, reason), "detail": dict(detail)}
        connection.execute(_statements.update().where(mine).values(**values))
        if (row["state"], row["reason"]) != (state.value, reason):
            log_event(connection, _subject(row["name"]), state.value, reason)
        return True


def _select() -> sa.Select[Any]:
    return sa.select(_statements)


def _moved(row: RowMapping, state: StatementState, reason: str) -> dict[str, Any]:
    now = time.time()
    same = (row["state"], row["reason"]) == (state.value, reason)
    return {
        "state": state.value,
        "reason": reason,
        "since": row["since"] if same else now,
        "updated_at": now,
    }


def _record(row: RowMapping) -> StatementRecord:
    return StatementRecord(
        **{key: value for key, value in row.items() if key != "state"},
        state=StatementState(row["state"]),
    )


def _subject(name: str) -> str:
    """What a statement's events are about; a topic may have the same name."""
    return f"statement {name}"


def no_statement(name: str) -> NotFound:
    return NotFound(f"There is no statement '{name}'.", "`headgate statement list` shows those that are.")
