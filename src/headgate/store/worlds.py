"""Which world has made what, and what its file said of it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine

from headgate.errors import AlreadyExists
from headgate.store.database import reading
from headgate.store.store import log_event

_objects = sa.Table(
    "world_objects",
    sa.MetaData(),
    sa.Column("kind", sa.String, primary_key=True),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("world", sa.String),
    sa.Column("spec", sa.JSON),
    sa.Column("updated_at", sa.Float),
)


@dataclass(frozen=True)
class WorldObject:
    """A thing that a world has made."""

    kind: str
    name: str
    world: str
    spec: Mapping[str, Any]


class Worlds:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> list[WorldObject]:
        columns = (_objects.c.kind, _objects.c.name, _objects.c.world, _objects.c.spec)
        query = sa.select(*columns).order_by(_objects.c.kind, _objects.c.name)
        with reading(self._engine) as connection:
            return [WorldObject(**row) for row in connection.execute(query).mappings()]

    def claim(self, kind: str, name: str, world: str, spec: Mapping[str, Any]) -> None:
        """The thing is this world's from now on. One that another world has is refused."""
        values = {"world": world, "spec": dict(spec), "updated_at": time.time()}
        mine = sa.and_(_objects.c.kind == kind, _objects.c.name == name)
        with self._engine.begin() as connection:
            holder = connection.scalar(sa.select(_objects.c.world).where(mine))
            if holder is None:
                connection.execute(_objects.insert().values(kind=kind, name=name, **values))
                log_event(connection, f"world {world}", "claimed", f"{kind}: {name}")
            elif holder == world:
                connection.execute(_objects.update().where(mine).values(**values))
            else:
                raise AlreadyExists(
                    f"'{name}' of {kind} belongs to world '{holder}'.",
                    f"Name it in the file of '{holder}', or give this one another name.",
                )

    def release(self, kind: str, name: str) -> None:
        mine = sa.and_(_objects.c.kind == kind, _objects.c.name == name)
        with self._engine.begin() as connection:
            connection.execute(_objects.delete().where(mine))
