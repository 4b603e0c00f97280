"""The registry's rows. Every function works within the caller's transaction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, RowMapping

from headgate.registry.refusals import MAX_NUMBER, not_permitted
from headgate.registry.schemas import (
    Reference,
    Schema,
    SchemaType,
    SchemaVersion,
    StoredSchema,
    digest,
    guid_of,
)

_metadata = sa.MetaData()
_state = sa.Table(
    "registry_state",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("next_id", sa.Integer),
    sa.Column("revision", sa.Integer),
)
_schemas = sa.Table(
    "registry_schemas",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.String),
    sa.Column("guid", sa.String),
    sa.Column("type", sa.String),
    sa.Column("text", sa.Text),
    sa.Column("refers_to", sa.JSON),
    sa.Column("metadata", sa.JSON(none_as_null=True)),
    sa.Column("rule_set", sa.JSON(none_as_null=True)),
)
# The same as `refers_to`, turned round: who refers to a version.
_references = sa.Table(
    "registry_references",
    _metadata,
    sa.Column("schema_id", sa.Integer, primary_key=True),
    sa.Column("subject", sa.String, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
)
_versions = sa.Table(
    "registry_versions",
    _metadata,
    sa.Column("subject", sa.String, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("schema_id", sa.Integer),
    sa.Column("deleted", sa.Boolean),
)


class Stale(Exception):
    """The registry has changed since it was read."""


@contextmanager
def writing(engine: Engine, at: int | None = None) -> Iterator[Connection]:
    """A transaction that changes the registry, if it is still at revision `at`; else raises Stale.

    There is one at a time, in all processes.
    """
    with engine.begin() as connection:
        # Locks the row where the database locks rows; SQLite has locked the whole file.
        now = connection.execute(sa.select(_state.c.revision).with_for_update()).scalar_one()
        if at is not None and now != at:
            raise Stale
        yield connection
        connection.execute(_state.update().values(revision=_state.c.revision + 1))


def revision(connection: Connection) -> int:
    """Differs after every change."""
    return int(connection.execute(sa.select(_state.c.revision)).scalar_one())


def newest_id(connection: Connection) -> int:
    """The highest id given out so far, 0 when none was."""
    return int(connection.execute(sa.select(_state.c.next_id)).scalar_one()) - 1


# -- schemas


def schema_by_id(connection: Connection, schema_id: int) -> StoredSchema | None:
    return _one_schema(connection, _schemas.c.id == schema_id)


def schema_by_guid(connection: Connection, guid: str) -> StoredSchema | None:
    return _one_schema(connection, _schemas.c.guid == guid)


def schema_like(connection: Connection, schema: Schema) -> StoredSchema | None:
    """The stored schema with this content; the oldest, where an import brought the content in twice."""
    return _one_schema(connection, _schemas.c.digest == digest(schema))


def add_schema(connection: Connection, schema: Schema, schema_id: int | None = None) -> StoredSchema:
    """`schema_id` is an import's; otherwise the next that was never used."""
    given = newest_id(connection) + 1 if schema_id is None else schema_id
    if given > MAX_NUMBER:
        raise not_permitted(
            "All schema ids are used up.", "An import took the highest one; start with a fresh registry."
        )
    content = digest(schema)
    stored = StoredSchema(given, guid_of(content), schema)
    connection.execute(
        _schemas.insert().values(
            id=stored.id,
            digest=content,
            guid=stored.guid,
            type=schema.type.value,
            text=schema.text,
            refers_to=[
                {"name": r.name, "subject": r.subject, "version": r.version} for r in schema.references
            ],
            metadata=schema.metadata,
            rule_set=schema.rule_set,
        )
    )
    targets = {(r.subject, r.version) for r in schema.references}
    for subject, version in sorted(targets):
        connection.execute(_references.insert().values(schema_id=given, subject=subject, version=version))
    connection.execute(_state.update().where(_state.c.next_id <= given).values(next_id=given + 1))
    return stored


def referrers(connection: Connection, subject: str, version: int, deleted: bool) -> list[int]:
    """Ids of the schemas that refer to this version and have a version themselves; `deleted`: or had one."""
    query = (
        sa.select(_references.c.schema_id)
        .join(_versions, _versions.c.schema_id == _references.c.schema_id)
        .where(_references.c.subject == subject, _references.c.version == version)
        .distinct()
        .order_by(_references.c.schema_id)
    )
    if not deleted:
        query = query.where(_versions.c.deleted.is_(False))
    return list(connection.execute(query).scalars())


# -- versions


def versions(connection: Connection, subject: str) -> list[SchemaVersion]:
    """All of a subject, soft-deleted ones too, the oldest first."""
    return _select_versions(connection, _versions.c.subject == subject)


def version(connection: Connection, subject: str, number: int) -> SchemaVersion | None:
    found = _select_versions(connection, _versions.c.subject == subject, _versions.c.version == number)
    return found[0] if found else None


def versions_of(connection: Connection, schema_id: int) -> list[SchemaVersion]:
    return _select_versions(connection, _versions.c.schema_id == schema_id)


def all_versions(connection: Connection, prefix: str) -> list[SchemaVersion]:
    return _select_versions(connection, _begins_with(prefix))


def subject_states(connection: Connection, prefix: str) -> list[tuple[str, bool]]:
    """Each subject, and whether it is deleted: none of its versions lives."""
    query = (
        sa.select(_versions.c.subject, sa.func.min(sa.cast(_versions.c.deleted, sa.Integer)))
        .where(_begins_with(prefix))
        .group_by(_versions.c.subject)
        .order_by(_versions.c.subject)
    )
    return [(subject, bool(deleted)) for subject, deleted in connection.execute(query)]


def add_version(connection: Connection, subject: str, number: int, stored: StoredSchema) -> SchemaVersion:
    connection.execute(
        _versions.insert().values(subject=subject, version=number, schema_id=stored.id, deleted=False)
    )
    return SchemaVersion(subject, number, False, stored)


def mark_deleted(connection: Connection, subject: str, numbers: Sequence[int]) -> None:
    connection.execute(_versions.update().where(*_these(subject, numbers)).values(deleted=True))


def erase(connection: Connection, subject: str, numbers: Sequence[int]) -> None:
    """The versions, and each schema that has no version left. Its id stays used."""
    connection.execute(_versions.delete().where(*_these(subject, numbers)))
    orphaned = sa.select(_schemas.c.id).where(_schemas.c.id.not_in(sa.select(_versions.c.schema_id)))
    ids = list(connection.execute(orphaned).scalars())
    connection.execute(_references.delete().where(_references.c.schema_id.in_(ids)))
    connection.execute(_schemas.delete().where(_schemas.c.id.in_(ids)))


# -- rows


def _these(subject: str, numbers: Sequence[int]) -> tuple[sa.ColumnElement[bool], ...]:
    return _versions.c.subject == subject, _versions.c.version.in_(numbers)


def _begins_with(prefix: str) -> sa.ColumnElement[bool]:
    # Not LIKE: SQLite's does not tell upper from lower case.
    return sa.func.substr(_versions.c.subject, 1, len(prefix)) == prefix


def _one_schema(connection: Connection, condition: sa.ColumnElement[bool]) -> StoredSchema | None:
    query = sa.select(_schemas).where(condition).order_by(_schemas.c.id).limit(1)
    row = connection.execute(query).mappings().first()
    return None if row is None else _stored(row)


def _select_versions(connection: Connection, *conditions: sa.ColumnElement[bool]) -> list[SchemaVersion]:
    query = (
        sa.select(_versions, _schemas)
        .join(_schemas, _schemas.c.id == _versions.c.schema_id)
        .where(*conditions)
        .order_by(_versions.c.subject, _versions.c.version)
    )
    return [
        SchemaVersion(row["subject"], row["version"], row["deleted"], _stored(row))
        for row in connection.execute(query).mappings()
    ]


def _stored(row: RowMapping) -> StoredSchema:
    refers_to: Sequence[Mapping[str, Any]] = row["refers_to"]
    schema = Schema(
        text=row["text"],
        type=SchemaType(row["type"]),
        references=tuple(Reference(r["name"], r["subject"], r["version"]) for r in refers_to),
        metadata=row["metadata"],
        rule_set=row["rule_set"],
    )
    return StoredSchema(row["id"], row["guid"], schema)
