"""What SQL declares beyond topics and schemas: keys, watermarks and options of tables, and views."""

import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Engine

from headgate.store.database import reading

_objects = sa.Table(
    "sql_objects",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("kind", sa.String),
    sa.Column("said", sa.JSON),
    sa.Column("updated_at", sa.Float),
)


class SqlObjects:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, name: str) -> tuple[str, Mapping[str, Any]] | None:
        """Its kind, `table` or `view`, and what was said of it."""
        with reading(self._engine) as connection:
            found = sa.select(_objects).where(_objects.c.name == name)
            row = connection.execute(found).mappings().first()
        return None if row is None else (row["kind"], row["said"])

    def names(self, kind: str) -> list[str]:
        with reading(self._engine) as connection:
            found = sa.select(_objects.c.name).where(_objects.c.kind == kind).order_by(_objects.c.name)
            return list(connection.scalars(found))

    def put(self, name: str, kind: str, said: Mapping[str, Any]) -> None:
        values = {"kind": kind, "said": dict(said), "updated_at": time.time()}
        with self._engine.begin() as connection:
            known = _objects.c.name == name
            if connection.execute(_objects.update().where(known).values(**values)).rowcount == 0:
                connection.execute(_objects.insert().values(name=name, **values))

    def remove(self, name: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(_objects.delete().where(_objects.c.name == name))
