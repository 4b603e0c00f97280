"""The index of tables' snapshots in the control state: what each did, as a table's metadata tells it.

It is derived: of metadata at another location than that which it was made of, it is made again, and of that
only the entries which differ are written.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Engine

from headgate.store.database import reading

_metadata = sa.MetaData()
_indexes = sa.Table(
    "snapshot_indexes",
    _metadata,
    sa.Column("topic", sa.String, primary_key=True),
    sa.Column("metadata_location", sa.String),
    sa.Column("summary", sa.JSON),
)
_snapshots = sa.Table(
    "snapshots",
    _metadata,
    sa.Column("topic", sa.String, primary_key=True),
    sa.Column("sequence", sa.BigInteger, primary_key=True),
    sa.Column("snapshot_id", sa.String, primary_key=True),
    sa.Column("digest", sa.String),
    sa.Column("entry", sa.JSON),
)
# Parameters of one statement.
AT_ONCE = 500


@dataclass(frozen=True)
class SnapshotPage:
    """Entries, the newest first; `summary` is of the whole table. `next` is where the next page begins."""

    entries: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]
    next: int | None


class SnapshotIndex:
    """Behind the same database as the store. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self, topic: str, metadata_location: str, limit: int | None = None, before: int | None = None
    ) -> SnapshotPage | None:
        """Snapshots of smaller sequence numbers than `before`; None where the index is of other metadata."""
        mine = _indexes.c.topic == topic
        query = sa.select(_snapshots.c.entry).where(_snapshots.c.topic == topic)
        query = query.order_by(_snapshots.c.sequence.desc(), _snapshots.c.snapshot_id.desc())
        if before is not None:
            query = query.where(_snapshots.c.sequence < before)
        if limit is not None:
            query = query.limit(limit + 1)
        with reading(self._engine) as connection:
            known = connection.execute(sa.select(_indexes).where(mine)).mappings().first()
            if known is None or known["metadata_location"] != metadata_location:
                return None
            entries = list(connection.scalars(query))
        has_more = limit is not None and len(entries) > limit
        shown = entries[:limit]
        return SnapshotPage(shown, known["summary"], shown[-1]["sequence"] if has_more else None)

    def put(
        self,
        topic: str,
        metadata_location: str,
        entries: Sequence[Mapping[str, Any]],
        summary: Mapping[str, Any],
    ) -> None:
        """All snapshots of a table, as its metadata at that location has them."""
        wanted = {(one["sequence"], one["snapshot_id"]): (_digest(one), one) for one in entries}
        key = sa.tuple_(_snapshots.c.sequence, _snapshots.c.snapshot_id)
        with self._engine.begin() as connection:
            rows = connection.execute(
                sa.select(_snapshots.c.sequence, _snapshots.c.snapshot_id, _snapshots.c.digest).where(
                    _snapshots.c.topic == topic
                )
            )
            known = {(row.sequence, row.snapshot_id): row.digest for row in rows}
            stale = [one for one, digest in known.items() if one not in wanted or wanted[one][0] != digest]
            for start in range(0, len(stale), AT_ONCE):
                some = stale[start : start + AT_ONCE]
                connection.execute(_snapshots.delete().where(_snapshots.c.topic == topic, key.in_(some)))
            new = [
                {
                    "topic": topic,
                    "sequence": one[0],
                    "snapshot_id": one[1],
                    "digest": digest,
                    "entry": dict(entry),
                }
                for one, (digest, entry) in wanted.items()
                if known.get(one) != digest
            ]
            if new:
                connection.execute(_snapshots.insert(), new)
            connection.execute(_indexes.delete().where(_indexes.c.topic == topic))
            connection.execute(
                _indexes.insert().values(
                    topic=topic, metadata_location=metadata_location, summary=dict(summary)
                )
            )


def forget_snapshots(connection: Connection, topic: str) -> None:
    """Of a table that is one no longer."""
    for table in (_snapshots, _indexes):
        connection.execute(table.delete().where(table.c.topic == topic))


def _digest(entry: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()[:32]
