"""The catalog's database: pointers, locations, batches and idempotency keys, changed together or not at all.

Several processes may share it: what is right is decided by the statements here, never by locks in this
process.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from headgate.catalog import schema
from headgate.catalog.database import Database, sql_url
from headgate.catalog.errors import (
    CatalogError,
    already_exists,
    commit_unknown,
    no_such_namespace,
    no_such_table,
    unavailable,
)
from headgate.catalog.idempotency import LIFETIME_SECONDS, Once, Outcome, check_same_request
from headgate.catalog.locations import Footprint
from headgate.catalog.names import Identifier, stored_namespace
from headgate.catalog.schema import CATALOG, batches, internal, locations, namespaces, outcomes, tables
from headgate.store.database import CATALOG_LOCK, open_database, reading

TABLE, VIEW = "TABLE", "VIEW"


class Unconfirmed(CatalogError):
    """The database failed while it committed: the change may or may not have been applied."""


class LostRace(Exception):
    """Somebody else moved a pointer first. Nothing was changed."""


class KeyTaken(Exception):
    """Somebody else finished a request with the same idempotency key first. Nothing was changed."""


@dataclass(frozen=True)
class Pointer:
    """A row of `iceberg_tables`: a name and the metadata file it stands for."""

    metadata_location: str
    kind: str


@dataclass(frozen=True)
class Move:
    """A pointer to be swapped; `old` None creates the table."""

    identifier: Identifier
    old: str | None
    new: str
    table_uuid: str
    footprint: Footprint
    batches: tuple[str, ...] = ()
    displaces: str | None = None  # the uuid of another table that had the name before
    internal: bool = False


class Ledger:
    """The database. Every method that changes something is one transaction."""

    def __init__(self, database: Database) -> None:
        self._engine = open_database(sql_url(database).render_as_string(hide_password=False), CATALOG_LOCK)
        schema.create_all(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def pointer(self, identifier: Identifier) -> Pointer | None:
        with reading(self._engine) as connection:
            return _pointer(connection, identifier)

    def check_creatable(self, identifier: Identifier) -> None:
        """A 404 or 409 before anything is written; `move` decides."""
        with reading(self._engine) as connection:
            _check_namespace_exists(connection, identifier.namespace)
            _check_name_is_free(connection, identifier)

    def check_namespace(self, levels: tuple[str, ...]) -> None:
        with reading(self._engine) as connection:
            _check_namespace_exists(connection, levels)

    def committed_batches(self, table_uuid: str, ids: Sequence[str]) -> frozenset[str]:
        """Those of `ids` that the table has had before, whatever became of their snapshots."""
        if not ids:
            return frozenset()
        found = select(batches.c.batch_id).where(
            batches.c.table_uuid == table_uuid, batches.c.batch_id.in_(ids)
        )
        with reading(self._engine) as connection:
            return frozenset(connection.scalars(found))

    def outcome(self, once: Once) -> Outcome | None:
        """What became of an earlier request with this key."""
        oldest = time.time() - LIFETIME_SECONDS
        found = select(outcomes).where(outcomes.c.key == once.key, outcomes.c.created_at > oldest)
        with reading(self._engine) as connection:
            row = connection.execute(found).one_or_none()
        if row is None:
            return None
        check_same_request(once, row.fingerprint)
        return Outcome(row.status, row.metadata_location, row.body)

    def is_internal(self, identifier: Identifier) -> bool:
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).where(_is_internal(identifier))) != 0

    def internal_names(self, levels: tuple[str, ...]) -> frozenset[str]:
        """Tables of a namespace that readers are not shown."""
        stored = stored_namespace(levels)
        with reading(self._engine) as connection:
            found = select(internal.c.table_name).where(internal.c.table_namespace == stored)
            return frozenset(connection.scalars(found))

    def is_anothers(self, file: str, table_uuid: str) -> bool:
        """Whether a file lies in the location of a live table other than this one."""
        others = locations.c.live & (locations.c.table_uuid != table_uuid)
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).where(_overlaps(file) & others)) != 0

    def location_was_used(self, location: str) -> bool:
        """Whether a table, live or dropped with its files left behind, lies at, above or below it."""
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).where(_overlaps(location))) != 0

    def has_tables_in(self, location: str) -> bool:
        """Whether a live table lies at or below it."""
        column = locations.c.location
        inside = or_(column == location, func.substr(column, 1, len(location) + 1) == f"{location}/")
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).where(inside & locations.c.live)) != 0

    def move(self, moves: Sequence[Move], once: Once | None, outcome: Outcome) -> None:
        """Swap every pointer, record the batches and the outcome: all or nothing."""
        with self._transaction() as connection:
            _record(connection, once, outcome)
            for move in moves:
                _swap(connection, move)
                _claim_location(connection, move)
                _record_batches(connection, move)
                _record_internal(connection, move)

    def drop(self, identifier: Identifier, table_uuid: str | None, purge: bool, once: Once | None) -> None:
        with self._transaction() as connection:
            _record(connection, once, Outcome(204))
            if connection.execute(delete(tables).where(_is_table(identifier))).rowcount == 0:
                raise no_such_table(identifier)
            connection.execute(delete(internal).where(_is_internal(identifier)))
            same = locations.c.table_uuid == table_uuid
            if purge:
                connection.execute(delete(locations).where(same))
                connection.execute(delete(batches).where(batches.c.table_uuid == table_uuid))
            else:
                connection.execute(update(locations).where(same).values(live=False))

    def rename(self, source: Identifier, target: Identifier, once: Once | None) -> None:
        with self._transaction() as connection:
            _record(connection, once, Outcome(204))
            found = _pointer(connection, source)
            if found is None or found.kind != TABLE:
                raise no_such_table(source)
            _check_namespace_exists(connection, target.namespace)
            if source == target:
                return
            taken = _pointer(connection, target)
            if taken is not None:
                what = "View" if taken.kind == VIEW else "Table"
                raise already_exists(f"Cannot rename {source} to {target}. {what} already exists")
            names = {"table_namespace": stored_namespace(target.namespace), "table_name": target.name}
            connection.execute(update(tables).where(_is_table(source)).values(names))
            connection.execute(update(internal).where(_is_internal(source)).values(names))

    def record(self, once: Once | None, outcome: Outcome) -> None:
        """The outcome of a change that JdbcCatalog made in a transaction of its own."""
        if once is not None:
            with self._transaction() as connection:
                _record(connection, once, outcome)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """One at a time in all processes. What is raised says whether something may have been applied."""
        with self._engine.connect() as connection:
            try:
                transaction = connection.begin()
            except OperationalError as error:
                raise unavailable(f"The catalog's database is busy: {error.orig}") from error
            try:
                yield connection
            except BaseException:
                transaction.rollback()
                raise
            try:
                transaction.commit()
            except Exception as error:
                connection.invalidate()  # it may still be inside the transaction: nobody else may get it
                message = f"The catalog's database did not confirm the commit: {error}"
                raise Unconfirmed(500, "CommitStateUnknownException", message) from error


def _is_named(identifier: Identifier) -> ColumnElement[bool]:
    return (
        (tables.c.catalog_name == CATALOG)
        & (tables.c.table_namespace == stored_namespace(identifier.namespace))
        & (tables.c.table_name == identifier.name)
    )


def _is_table(identifier: Identifier) -> ColumnElement[bool]:
    # Rows from before JdbcCatalog knew views have no type: they are tables.
    return _is_named(identifier) & (func.coalesce(tables.c.iceberg_type, TABLE) == TABLE)


def _pointer(connection: Connection, identifier: Identifier) -> Pointer | None:
    row = connection.execute(select(tables).where(_is_named(identifier))).one_or_none()
    return None if row is None else Pointer(row.metadata_location, row.iceberg_type or TABLE)


def _check_name_is_free(connection: Connection, identifier: Identifier) -> None:
    found = _pointer(connection, identifier)
    if found is not None:
        what = "View with same name" if found.kind == VIEW else "Table"
        raise already_exists(f"{what} already exists: {identifier}")


def _check_namespace_exists(connection: Connection, levels: tuple[str, ...]) -> None:
    """As JdbcCatalog sees it: by its own rows, or by those of anything below it."""
    stored = stored_namespace(levels)
    for table, column in ((namespaces, namespaces.c.namespace), (tables, tables.c.table_namespace)):
        here_or_below = or_(column == stored, func.substr(column, 1, len(stored) + 1) == f"{stored}.")
        found = select(func.count()).where(table.c.catalog_name == CATALOG, here_or_below)
        if connection.scalar(found):
            return
    raise no_such_namespace(".".join(levels))


def _record(connection: Connection, once: Once | None, outcome: Outcome) -> None:
    if once is None:
        return
    now = time.time()
    connection.execute(delete(outcomes).where(outcomes.c.created_at <= now - LIFETIME_SECONDS))
    row = {
        "key": once.key,
        "fingerprint": once.fingerprint,
        "status": outcome.status,
        "metadata_location": outcome.metadata_location,
        "body": outcome.body,
        "created_at": now,
    }
    try:
        connection.execute(insert(outcomes).values(row))
    except IntegrityError as error:
        raise KeyTaken(once.key) from error


def _swap(connection: Connection, move: Move) -> None:
    values = {"metadata_location": move.new, "previous_metadata_location": move.old}
    if move.old is not None:
        unmoved = _is_table(move.identifier) & (tables.c.metadata_location == move.old)
        if connection.execute(update(tables).where(unmoved).values(values)).rowcount != 1:
            raise LostRace(str(move.identifier))
        return
    _check_namespace_exists(connection, move.identifier.namespace)
    names = {
        "catalog_name": CATALOG,
        "table_namespace": stored_namespace(move.identifier.namespace),
        "table_name": move.identifier.name,
        "iceberg_type": TABLE,
    }
    try:
        connection.execute(insert(tables).values({**names, **values}))
    except IntegrityError as error:
        raise LostRace(str(move.identifier)) from error


def _claim_location(connection: Connection, move: Move) -> None:
    """No two live tables lie in one another: what one removes could be the other's."""
    footprint = move.footprint
    if move.displaces is not None and move.displaces != move.table_uuid:
        connection.execute(
            update(locations).where(locations.c.table_uuid == move.displaces).values(live=False)
        )
    claimed = connection.execute(
        select(locations).where(locations.c.table_uuid == move.table_uuid)
    ).one_or_none()
    live = claimed is not None and claimed.live
    if live and move.old is None:
        raise already_exists(f"The table {move.table_uuid} is in the catalog already, under another name.")
    others = locations.c.live & (locations.c.table_uuid != move.table_uuid)
    unchanged = live and claimed is not None and claimed.location == footprint.location
    for location in (*(() if unchanged else (footprint.location,)), *footprint.paths):
        if connection.scalar(select(func.count()).where(_overlaps(location) & others)):
            raise already_exists(f"The location {location} overlaps with that of another table.")
    if unchanged:
        return
    values = {"location": footprint.location, "live": True}
    if claimed is None:
        connection.execute(insert(locations).values({"table_uuid": move.table_uuid, **values}))
    else:
        connection.execute(update(locations).where(locations.c.table_uuid == move.table_uuid).values(values))


def _overlaps(location: str) -> ColumnElement[bool]:
    column = locations.c.location
    return or_(
        column == location,
        func.substr(column, 1, len(location) + 1) == f"{location}/",
        func.substr(location, 1, func.length(column) + 1) == column.concat("/"),
    )


def _is_internal(identifier: Identifier) -> ColumnElement[bool]:
    return (internal.c.table_namespace == stored_namespace(identifier.namespace)) & (
        internal.c.table_name == identifier.name
    )


def _record_internal(connection: Connection, move: Move) -> None:
    connection.execute(delete(internal).where(_is_internal(move.identifier)))
    if move.internal:
        row = {
            "table_namespace": stored_namespace(move.identifier.namespace),
            "table_name": move.identifier.name,
        }
        connection.execute(insert(internal).values(row))


def _record_batches(connection: Connection, move: Move) -> None:
    if not move.batches:
        return
    rows = [{"table_uuid": move.table_uuid, "batch_id": batch} for batch in move.batches]
    try:
        connection.execute(insert(batches), rows)
    except IntegrityError as error:
        # Another process committed the same batch since it was judged. Never a 4xx: see fencing.
        raise commit_unknown(
            f"Batch {', '.join(move.batches)} was committed to this table before."
        ) from error
