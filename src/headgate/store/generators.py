"""The records of managed generators: others write what is wanted, the worker where each stands."""

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.store.database import reading
from headgate.store.store import log_event

_generators = sa.Table(
    "generators",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("id", sa.String),
    sa.Column("spec", sa.JSON),
    sa.Column("desired", sa.String),
    sa.Column("created_at", sa.Float),
    sa.Column("state", sa.String),
    sa.Column("reason", sa.String),
    sa.Column("since", sa.Float),
    sa.Column("records", sa.BigInteger),
    sa.Column("rate", sa.Float),
    sa.Column("updated_at", sa.Float),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
RUNNING, STOPPED = "running", "stopped"


class GeneratorState(StrEnum):
    PENDING = "Pending"
    RUNNING = "Running"
    WAITING = "Waiting"
    STOPPED = "Stopped"
    COMPLETED = "Completed"
    FAILED = "Failed"


#: Those that nothing is done about until somebody asks.
ENDED = frozenset({GeneratorState.COMPLETED, GeneratorState.FAILED})


@dataclass(frozen=True)
class GeneratorRecord:
    """A generator: what it makes, whether it is wanted (`running` or `stopped`), and where it stands.

    `id` is of this creation: a generator of the same name that is created later has another.
    """

    name: str
    id: str
    spec: Mapping[str, Any]
    desired: str
    created_at: float
    state: GeneratorState
    reason: str
    since: float
    #: Records of the story that are in Kafka, from its beginning; never more than are there.
    records: int
    rate: float
    updated_at: float

    @property
    def is_wanted(self) -> bool:
        return self.desired == RUNNING and self.state not in ENDED

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is written, and nothing will be until somebody asks."""
        stopped = self.desired == STOPPED and self.state is GeneratorState.STOPPED
        return stopped or self.state in ENDED


def check_generator_name(name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise InvalidRequest(
            f"'{name}' cannot name a generator.",
            "Letters, digits, dots, dashes and underscores, up to 100 of them.",
        )


class Generators:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- for those who want something

    def start(self, name: str, spec: Mapping[str, Any]) -> None:
        """A new one; or one of the same specification goes on where it was stopped or has failed."""
        check_generator_name(name)
        with self._engine.begin() as connection:
            row = self._row(connection, name)
            if row is None:
                self._create(connection, name, spec)
                return
            if dict(row["spec"]) != dict(spec):
                raise AlreadyExists(
                    f"There is a generator '{name}' already, and it makes something else.",
                    f"Choose another --name, or forget it: `headgate datagen stop {name} --forget`.",
                )
            if row["state"] == GeneratorState.COMPLETED:
                raise AlreadyExists(
                    f"Generator '{name}' has written all of its records.",
                    f"To write them again, forget it first: `headgate datagen stop {name} --forget`.",
                )
            if row["desired"] == RUNNING and row["state"] not in ENDED:
                return
            self._update(connection, name, desired=RUNNING, **_moved(GeneratorState.PENDING, ""))
            log_event(connection, _subject(name), "started", "goes on where it was")

    def stop(self, name: str) -> None:
        """Its place is kept."""
        with self._engine.begin() as connection:
            row = self._row(connection, name)
            if row is None:
                raise no_generator(name)
            if row["desired"] == STOPPED:
                return
            self._update(connection, name, desired=STOPPED)
            log_event(connection, _subject(name), "stopped", "by request")

    def forget(self, name: str) -> None:
        """One that is at rest. What it has written stays."""
        with self._engine.begin() as connection:
            row = self._row(connection, name)
            if row is None:
                raise no_generator(name)
            if not _record(row).is_at_rest:
                raise InvalidRequest(
                    f"Generator '{name}' is {row['state']}: it may write still.",
                    "Stop it first, and wait until it is stopped.",
                )
            connection.execute(_generators.delete().where(_generators.c.name == name))
            log_event(connection, _subject(name), "forgotten", "")

    def get(self, name: str) -> GeneratorRecord:
        with reading(self._engine) as connection:
            row = self._row(connection, name)
        if row is None:
            raise no_generator(name)
        return _record(row)

    def all(self) -> list[GeneratorRecord]:
        with reading(self._engine) as connection:
            rows = connection.execute(sa.select(_generators).order_by(_generators.c.name)).mappings()
            return [_record(row) for row in rows]

    # -- for the worker

    def report(self, generator_id: str, state: GeneratorState, reason: str = "") -> None:
        """Where it stands. One that was forgotten meanwhile stays gone."""
        with self._engine.begin() as connection:
            mine = _generators.c.id == generator_id
            row = connection.execute(sa.select(_generators).where(mine)).mappings().first()
            if row is None or (row["state"], row["reason"]) == (state.value, reason):
                return
            values = _moved(state, reason)
            if state is not GeneratorState.RUNNING:
                values["rate"] = 0.0
            connection.execute(_generators.update().where(mine).values(**values))
            log_event(connection, _subject(row["name"]), state.value, reason)

    def progress(self, generator_id: str, records: int, rate: float) -> None:
        with self._engine.begin() as connection:
            values = {"records": records, "rate": rate, "updated_at": time.time()}
            connection.execute(_generators.update().where(_generators.c.id == generator_id).values(**values))

    def _row(self, connection: Connection, name: str) -> RowMapping | None:
        query = sa.select(_generators).where(_generators.c.name == name)
        return connection.execute(query).mappings().first()

    def _create(self, connection: Connection, name: str, spec: Mapping[str, Any]) -> None:
        now = time.time()
        values = {
            "name": name,
            "id": uuid.uuid4().hex,
            "spec": dict(spec),
            "desired": RUNNING,
            "created_at": now,
            "records": 0,
            "rate": 0.0,
            **_moved(GeneratorState.PENDING, ""),
        }
        connection.execute(_generators.insert().values(**values))
        log_event(connection, _subject(name), "started", str(spec["scenario"]))

    def _update(self, connection: Connection, name: str, **values: Any) -> None:
        connection.execute(_generators.update().where(_generators.c.name == name).values(**values))


def _moved(state: GeneratorState, reason: str) -> dict[str, Any]:
    now = time.time()
    return {"state": state.value, "reason": reason, "since": now, "updated_at": now}


def _record(row: RowMapping) -> GeneratorRecord:
    return GeneratorRecord(**{**row, "state": GeneratorState(row["state"])})


def _subject(name: str) -> str:
    """What a generator's events are about; a topic may have the same name."""
    return f"generator {name}"


def no_generator(name: str) -> NotFound:
    return NotFound(f"There is no generator '{name}'.", "`headgate datagen list` shows those that are.")
