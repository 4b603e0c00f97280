"""What SQL declares beyond topics and schemas: keys, watermarks and options of tables, and views."""

import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from headgate.errors import InvalidRequest
from headgate.store.database import reading

_objects = sa.Table(
    "sql_objects",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("kind", sa.String),
    sa.Column("said", sa.JSON),
    sa.Column("updated_at", sa.Float),
)
_tables = sa.table("tables", sa.column("topic", sa.String))


def retract_topics(connection: Connection) -> set[str]:
    """Topics of which SQL says that records take rows back: as tables of the lake they would be others."""
    said = (_objects.c.kind == "table") & (_objects.c.said["changelog"].as_string() == "retract")
    return set(connection.scalars(sa.select(_objects.c.name).where(said)))


def watermark_column(connection: Connection, topic: str) -> str | None:
    """The column that a topic's WATERMARK is on; None without one, and for one on the record's own time."""
    said = connection.scalar(
        sa.select(_objects.c.said).where((_objects.c.name == topic) & (_objects.c.kind == "table"))
    )
    column = ((said or {}).get("watermark") or {}).get("column")
    return None if column is None or column.startswith("$") else str(column)


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

    def check_mode(self, name: str) -> None:
        """Refuses to have a topic read in another way while it is a table of the lake."""
        with reading(self._engine) as connection:
            _refuse_enabled(connection, name)

    def put(self, name: str, kind: str, said: Mapping[str, Any], other_mode: bool = False) -> None:
        """`other_mode`: the records of a topic mean something else from now on."""
        values = {"kind": kind, "said": dict(said), "updated_at": time.time()}
        with self._engine.begin() as connection:
            if other_mode:
                _refuse_enabled(connection, name)
            known = _objects.c.name == name
            if connection.execute(_objects.update().where(known).values(**values)).rowcount == 0:
                connection.execute(_objects.insert().values(name=name, **values))

    def remove(self, name: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(_objects.delete().where(_objects.c.name == name))


def _refuse_enabled(connection: Connection, name: str) -> None:
    if connection.execute(sa.select(_tables.c.topic).where(_tables.c.topic == name)).first() is not None:
        raise InvalidRequest(
            f"Topic '{name}' is enabled as a table, whose rows were made by the changelog.mode that it has.",
            f"Disable it (`headgate table disable {name} --purge`), alter its mode, and enable it anew.",
        )
