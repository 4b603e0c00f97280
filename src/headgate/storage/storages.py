"""Named storage integrations, in the control state."""

import time

import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from headgate.errors import AlreadyExists, InvalidRequest, NotFound
from headgate.storage.place import Place
from headgate.store.database import reading

_storages = sa.Table(
    "storage_integrations",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("root", sa.String),
    sa.Column("place", sa.JSON),
    sa.Column("created_at", sa.Float),
)


class Storages:
    """Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> list[Place]:
        with reading(self._engine) as connection:
            rows = connection.execute(sa.select(_storages.c.place).order_by(_storages.c.name))
            return [Place(**row.place) for row in rows]

    def get(self, name: str) -> Place:
        with reading(self._engine) as connection:
            found = connection.scalar(sa.select(_storages.c.place).where(_storages.c.name == name))
        if found is None:
            raise NotFound(f"There is no storage '{name}'.", "See `headgate storage list`.")
        return Place(**found)

    def check_free(self, place: Place) -> None:
        """Two integrations must not lie in one another: a table would be in both."""
        for other in self.list():
            if other.name == place.name:
                raise AlreadyExists(
                    f"There is a storage '{place.name}' already.",
                    f"Remove it first (`headgate storage remove {place.name}`), or choose another name.",
                )
            if other.holds(place.root) or place.holds(other.root):
                raise InvalidRequest(
                    f"{place.root} overlaps with {other.root} of storage '{other.name}'.",
                    "Choose another bucket or prefix.",
                )

    def add(self, place: Place) -> None:
        self.check_free(place)
        row = {
            "name": place.name,
            "root": place.root,
            "place": place.to_dict(),
            "created_at": time.time(),
        }
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(_storages).values(row))
        except IntegrityError as error:
            raise AlreadyExists(
                f"There is a storage '{place.name}' or one at {place.root} already."
            ) from error

    def remove(self, name: str) -> Place:
        found = self.get(name)
        with self._engine.begin() as connection:
            connection.execute(sa.delete(_storages).where(_storages.c.name == name))
        return found
