"""The records that CLI, API and configuration write and that the engine reconciles."""

import time
import uuid
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.model import TableSpec, TableState
from headgate.store.database import migrate, open_database, reading
from headgate.store.snapshots import forget_snapshots
from headgate.store.sql_objects import retract_topics, watermark_column

# Among a request's arguments: whose it is.
_ASKED_BY = "asked_by"
_metadata = sa.MetaData()
_tables = sa.Table(
    "tables",
    _metadata,
    sa.Column("topic", sa.String, primary_key=True),
    sa.Column("spec", sa.JSON),
    sa.Column("desired", sa.String),
    sa.Column("sync_request", sa.String),
    sa.Column("created_at", sa.Float),
    sa.Column("origin", sa.String),
    sa.Column("stamp", sa.String),
)
_requests = sa.Table(
    "requests",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("topic", sa.String),
    sa.Column("kind", sa.String),
    sa.Column("arguments", sa.JSON),
    sa.Column("state", sa.String),
    sa.Column("result", sa.JSON),
    sa.Column("created_at", sa.Float),
)
_declined = sa.Table("declined_topics", _metadata, sa.Column("topic", sa.String, primary_key=True))
_status = sa.Table(
    "table_status",
    _metadata,
    sa.Column("topic", sa.String, primary_key=True),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("since", sa.Float),
    sa.Column("detail", sa.JSON),
    sa.Column("updated_at", sa.Float),
)
_processes = sa.Table(
    "processes",
    _metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("wanted", sa.Boolean),
    sa.Column("instance", sa.String),
    sa.Column("pid", sa.Integer),
    sa.Column("state", sa.String),
    sa.Column("detail", sa.JSON),
    sa.Column("beat_at", sa.Float),
)
_events = sa.Table(
    "events",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float),
    sa.Column("subject", sa.String),
    sa.Column("kind", sa.String),
    sa.Column("message", sa.String),
)


@dataclass(frozen=True)
class TableStatus:
    """Where a table stands, as the engine last said."""

    state: TableState
    reason: str
    since: float
    detail: Mapping[str, Any]
    updated_at: float


@dataclass(frozen=True)
class TableRecord:
    """What is wanted of a table (`enabled` or `suspended`), and where it stands."""

    spec: TableSpec
    desired: str
    sync_request: str | None
    created_at: float
    status: TableStatus
    # `request`: somebody asked for it. `pattern`: the configuration did.
    origin: str = "request"


@dataclass(frozen=True)
class Request:
    """Something that the engine is asked to do with a table, once: `waiting`, `done` or `failed`."""

    id: str
    topic: str
    kind: str
    arguments: Mapping[str, Any]
    state: str
    result: Mapping[str, Any]
    created_at: float

    @property
    def asked_by(self) -> str:
        """Whose request it is; empty where that is not known."""
        return str(self.arguments.get(_ASKED_BY) or "")


@dataclass(frozen=True)
class ProcessRecord:
    """A process of Headgate, as it last said of itself."""

    name: str
    wanted: bool = False
    instance: str | None = None
    pid: int | None = None
    state: str = "stopped"
    detail: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    beat_at: float = 0.0


class Store:
    """Control state behind one SQLAlchemy engine. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str) -> "Store":
        engine = open_database(url)
        migrate(engine)
        return cls(engine)

    def close(self) -> None:
        self.engine.dispose()

    # -- tables

    def enable_table(self, spec: TableSpec, origin: str = "request") -> None:
        """A new table is Pending until the engine takes it up; one that is enabled already is refused."""
        now = time.time()
        with self.engine.begin() as connection:
            if connection.execute(sa.select(_tables).where(_tables.c.topic == spec.topic)).first():
                raise AlreadyExists(
                    f"Topic '{spec.topic}' is a table already.",
                    f"See `headgate table show {spec.topic}`; change it with `headgate table alter`.",
                )
            if spec.topic in retract_topics(connection):
                raise InvalidRequest(
                    f"Topic '{spec.topic}' cannot be a table: its changelog.mode is 'retract', and records "
                    "that take rows back would be rows.",
                    f"Write what it comes to into an upsert table, and enable that: CREATE TABLE … (PRIMARY "
                    f"KEY (…) NOT ENFORCED) AS SELECT … FROM `{spec.topic}`. If each change is to be a row, "
                    f"first ALTER TABLE `{spec.topic}` SET ('changelog.mode' = 'append').",
                )
            # Settled now: what is altered later must not ask for an older format than the table has.
            watermark = watermark_column(connection, spec.topic)
            spec = replace(spec, watermark=watermark, format_version=spec.format)
            connection.execute(
                _tables.insert().values(
                    topic=spec.topic,
                    spec=spec.to_dict(),
                    desired="enabled",
                    created_at=now,
                    origin=origin,
                    stamp=uuid.uuid4().hex,
                )
            )
            connection.execute(_declined.delete().where(_declined.c.topic == spec.topic))
            self._put_status(connection, spec.topic, TableState.PENDING, "waiting for the engine", {})
            self._log(connection, spec.topic, "enabled", f"from {spec.start.kind.value}")

    def alter_table(self, spec: TableSpec) -> None:
        """Another wish for a table that is there; the engine follows."""
        with self.engine.begin() as connection:
            self._update_table(connection, spec.topic, spec=spec.to_dict())
            self._log(connection, spec.topic, "altered", "by request")

    def declined(self) -> set[str]:
        """Topics that no pattern enables: those that were disabled by hand, and those whose records take rows
        back."""
        with reading(self.engine) as connection:
            by_hand = set(connection.execute(sa.select(_declined.c.topic)).scalars())
            return by_hand | retract_topics(connection)

    def ask(self, topic: str, kind: str, arguments: Mapping[str, Any], asked_by: str = "") -> str:
        """A request to the engine; its id."""
        found = uuid.uuid4().hex
        whose = {_ASKED_BY: asked_by} if asked_by else {}
        with self.engine.begin() as connection:
            self._update_table(connection, topic)
            connection.execute(
                _requests.insert().values(
                    id=found,
                    topic=topic,
                    kind=kind,
                    arguments={**arguments, **whose},
                    state="waiting",
                    result={},
                    created_at=time.time(),
                )
            )
        return found

    def request(self, request_id: str) -> Request:
        with reading(self.engine) as connection:
            query = sa.select(_requests).where(_requests.c.id == request_id)
            row = connection.execute(query).mappings().first()
        if row is None:
            raise NotFound(f"There is no request {request_id}.")
        return Request(**row)

    def waiting(self) -> dict[str, list[Request]]:
        """By topic, the requests that the engine has not carried out yet, oldest first."""
        query = sa.select(_requests).where(_requests.c.state == "waiting").order_by(_requests.c.created_at)
        found: dict[str, list[Request]] = {}
        with reading(self.engine) as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["topic"], []).append(Request(**row))
        return found

    def progress(self, request: Request, text: str) -> None:
        """How far a request that still waits has come."""
        with self.engine.begin() as connection:
            mine = sa.and_(_requests.c.id == request.id, _requests.c.state == "waiting")
            connection.execute(_requests.update().where(mine).values(result={"progress": text}))

    def answer(self, request: Request, state: str, result: Mapping[str, Any]) -> None:
        """What came of a request. What was asked is forgotten: it may name what was to be erased."""
        with self.engine.begin() as connection:
            mine = _requests.update().where(_requests.c.id == request.id)
            connection.execute(mine.values(state=state, result=dict(result), arguments={}))
            told = {**result, **({"asked by": request.asked_by} if request.asked_by else {})}
            said = ", ".join(f"{key}: {value}" for key, value in told.items())
            self._log(connection, request.topic, f"{request.kind} {state}", said)

    def set_desired(self, topic: str, desired: str) -> None:
        """`enabled` or `suspended`; the engine follows."""
        with self.engine.begin() as connection:
            self._update_table(connection, topic, desired=desired)
            if desired == "enabled":
                self._put_status(connection, topic, TableState.PENDING, "waiting for the engine", None)
            self._log(connection, topic, desired, "by request")

    def suspend(self, topic: str, reason: str, detail: Mapping[str, Any]) -> None:
        """The engine stops a table that needs its owner. One that was disabled meanwhile stays so."""
        with self.engine.begin() as connection:
            mine = sa.and_(_tables.c.topic == topic, _tables.c.desired.in_(("enabled", "suspended")))
            if connection.execute(_tables.update().where(mine).values(desired="suspended")).rowcount:
                self._put_status(connection, topic, TableState.SUSPENDED, reason, detail)
                self._log(connection, topic, TableState.SUSPENDED.value, reason)

    def request_sync(self, topic: str, token: str) -> None:
        """Ask the engine to catch up at once; it reports `token` as `synced` when it has."""
        with self.engine.begin() as connection:
            self._update_table(connection, topic, sync_request=token)

    def remove_table(self, topic: str) -> None:
        with self.engine.begin() as connection:
            found = connection.execute(_tables.delete().where(_tables.c.topic == topic))
            if not found.rowcount:
                raise no_table(topic)
            connection.execute(_requests.delete().where(_requests.c.topic == topic))
            connection.execute(_declined.delete().where(_declined.c.topic == topic))
            connection.execute(_declined.insert().values(topic=topic))
            connection.execute(_status.delete().where(_status.c.topic == topic))
            forget_snapshots(connection, topic)
            self._log(connection, topic, "disabled", "by request")

    def tables(self, topics: Collection[str] | None = None) -> list[TableRecord]:
        """All of them, or those of `topics`."""
        query = self._select_tables().order_by(_tables.c.topic)
        if topics is not None:
            query = query.where(_tables.c.topic.in_(list(topics)))
        with reading(self.engine) as connection:
            return [_table_record(row) for row in connection.execute(query).mappings()]

    def table_versions(self) -> dict[str, Hashable]:
        """By topic, what is another with each change of a table's record: a small read."""
        query = sa.select(_tables.c.topic, _tables.c.stamp, _status.c.updated_at).join(
            _status, _status.c.topic == _tables.c.topic
        )
        with reading(self.engine) as connection:
            rows = connection.execute(query.order_by(_tables.c.topic))
            return {row.topic: (row.stamp, row.updated_at) for row in rows}

    def wants(self) -> set[tuple[str, str]]:
        """Each table with a stamp of the last thing that was wanted of it: a small read."""
        with reading(self.engine) as connection:
            rows = connection.execute(sa.select(_tables.c.topic, _tables.c.stamp))
            return {(row.topic, row.stamp) for row in rows}

    def table(self, topic: str) -> TableRecord:
        with reading(self.engine) as connection:
            row = connection.execute(self._select_tables().where(_tables.c.topic == topic)).mappings().first()
        if row is None:
            raise no_table(topic)
        return _table_record(row)

    def report(self, topic: str, state: TableState, reason: str, detail: Mapping[str, Any]) -> None:
        """The engine's word on a table. One that was disabled meanwhile stays gone."""
        with self.engine.begin() as connection:
            before = connection.execute(
                sa.select(_status.c.state, _status.c.reason).where(_status.c.topic == topic)
            ).first()
            if before is None:
                return
            self._put_status(connection, topic, state, reason, detail)
            if (before.state, before.reason) != (state.value, reason):
                self._log(connection, topic, state.value, reason)

    # -- processes

    def beat(
        self, name: str, instance: str, pid: int, state: str, detail: Mapping[str, Any] | None = None
    ) -> None:
        """A process says that it lives."""
        values = {
            "instance": instance,
            "pid": pid,
            "state": state,
            "detail": dict(detail or {}),
            "beat_at": time.time(),
        }
        self._put_process(name, values)

    def keep(self, name: str, instance: str, state: str, detail: Mapping[str, Any] | None = None) -> bool:
        """As `beat`, but False, and nothing written, when another instance has taken the name since."""
        update = (
            _processes.update()
            .where(_processes.c.name == name, _processes.c.instance == instance)
            .values(state=state, detail=dict(detail or {}), beat_at=time.time())
        )
        with self.engine.begin() as connection:
            return bool(connection.execute(update).rowcount)

    def want(self, name: str, wanted: bool = True) -> None:
        """Ask the supervisor to have a process running, or not."""
        self._put_process(name, {"wanted": wanted})

    def process(self, name: str) -> ProcessRecord:
        with reading(self.engine) as connection:
            row = (
                connection.execute(sa.select(_processes).where(_processes.c.name == name)).mappings().first()
            )
        return ProcessRecord(**row) if row is not None else ProcessRecord(name)

    def processes(self, names: Iterable[str]) -> list[ProcessRecord]:
        """In the order of their names here; those that have said nothing yet too."""
        wanted = list(names)
        query = sa.select(_processes).where(_processes.c.name.in_(wanted))
        with reading(self.engine) as connection:
            found = {row["name"]: ProcessRecord(**row) for row in connection.execute(query).mappings()}
        return [found.get(name, ProcessRecord(name)) for name in wanted]

    # -- events

    def log(self, subject: str, kind: str, message: str) -> None:
        with self.engine.begin() as connection:
            self._log(connection, subject, kind, message)

    def events(
        self,
        subject: str | Collection[str] | None = None,
        limit: int = 100,
        *,
        before: int | None = None,
        text: str | None = None,
        is_current: bool = False,
    ) -> list[dict[str, Any]]:
        """The newest first; of one subject, of several, or of all. `before` is the id of an event; `text` is
        anywhere in the subject, the kind or the message. `is_current`: none of a statement that is deleted
        and whose name another has now."""
        query = sa.select(_events).order_by(_events.c.id.desc()).limit(limit)
        if isinstance(subject, str):
            query = query.where(_events.c.subject == subject)
        elif subject is not None:
            query = query.where(_events.c.subject.in_(list(subject)))
        if before is not None:
            query = query.where(_events.c.id < before)
        if text is not None:
            columns = (_events.c.subject, _events.c.kind, _events.c.message)
            query = query.where(sa.or_(*(column.icontains(text, autoescape=True) for column in columns)))
        if is_current:
            made = _statements_made()
            query = query.outerjoin(made, made.c.subject == _events.c.subject)
            query = query.where(_events.c.id >= sa.func.coalesce(made.c.id, 0))
        with reading(self.engine) as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def event_subjects(self) -> list[str]:
        """What there are events of."""
        with reading(self.engine) as connection:
            return list(connection.scalars(sa.select(_events.c.subject).distinct()))

    # -- within a transaction

    def _select_tables(self) -> sa.Select[Any]:
        return sa.select(
            _tables,
            _status.c.state,
            _status.c.reason,
            _status.c.since,
            _status.c.detail,
            _status.c.updated_at,
        ).join(_status, _status.c.topic == _tables.c.topic)

    def _update_table(self, connection: Connection, topic: str, **values: Any) -> None:
        values["stamp"] = uuid.uuid4().hex
        if not connection.execute(_tables.update().where(_tables.c.topic == topic).values(**values)).rowcount:
            raise no_table(topic)

    def _put_status(
        self,
        connection: Connection,
        topic: str,
        state: TableState,
        reason: str,
        detail: Mapping[str, Any] | None,
    ) -> None:
        now = time.time()
        before = connection.execute(sa.select(_status).where(_status.c.topic == topic)).mappings().first()
        kept = before is not None and before["state"] == state.value and before["reason"] == reason
        values: dict[str, Any] = {
            "state": state.value,
            "reason": reason,
            "since": before["since"] if before is not None and kept else now,
            "updated_at": now,
        }
        if detail is not None:
            values["detail"] = dict(detail)
        if before is None:
            connection.execute(_status.insert().values(topic=topic, **{"detail": {}, **values}))
        else:
            connection.execute(_status.update().where(_status.c.topic == topic).values(**values))

    def _put_process(self, name: str, values: Mapping[str, Any]) -> None:
        with self.engine.begin() as connection:
            if connection.execute(
                _processes.update().where(_processes.c.name == name).values(**values)
            ).rowcount:
                return
            blank = {"wanted": False, "state": "stopped", "detail": {}, "beat_at": 0.0}
            connection.execute(_processes.insert().values(name=name, **{**blank, **values}))

    def _log(self, connection: Connection, subject: str, kind: str, message: str) -> None:
        log_event(connection, subject, kind, message)


def log_event(connection: Connection, subject: str, kind: str, message: str) -> None:
    connection.execute(_events.insert().values(at=time.time(), subject=subject, kind=kind, message=message))


def _statements_made() -> sa.Subquery:
    """By subject, the event of the last time that a statement of the name was created."""
    is_one = sa.and_(_events.c.subject.startswith("statement "), _events.c.kind == "created")
    newest = sa.func.max(_events.c.id).label("id")
    return sa.select(_events.c.subject, newest).where(is_one).group_by(_events.c.subject).subquery()


def _table_record(row: RowMapping) -> TableRecord:
    status = TableStatus(
        TableState(row["state"]), row["reason"], row["since"], row["detail"], row["updated_at"]
    )
    return TableRecord(
        TableSpec.from_dict(row["spec"]),
        row["desired"],
        row["sync_request"],
        row["created_at"],
        status,
        row["origin"],
    )


def no_table(topic: str) -> NotFound:
    return NotFound(f"There is no table for topic '{topic}'.", f"Make one: `headgate table enable {topic}`.")
