"""The embedded catalog: Iceberg's own classes on one side, one database on the other."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from headgate.access import LOCAL
from headgate.catalog.database import Database
from headgate.catalog.delegation import Asked, Delegation
from headgate.catalog.iceberg import Iceberg
from headgate.catalog.ledger import Ledger
from headgate.catalog.locations import Warehouse
from headgate.catalog.locks import NamedLocks
from headgate.catalog.names import Identifier
from headgate.catalog.namespaces import Namespaces
from headgate.catalog.once import Requests
from headgate.catalog.rights import Rights
from headgate.catalog.tables import Tables
from headgate.catalog.views import Views
from headgate.jvm import Jvm
from headgate.storage import Places


class EmbeddedCatalog:
    """An Iceberg catalog on `database` whose tables lie under `warehouse`. Safe for many threads.

    `reserved` is the namespace of the topics' tables, `allowed` are further places where tables may lie,
    and `places` knows those in object stores.
    """

    def __init__(
        self,
        jvm: Jvm,
        database: Database,
        warehouse: str,
        reserved: tuple[str, ...] | None = None,
        allowed: Iterable[str] = (),
        places: Places | None = None,
    ) -> None:
        if isinstance(database, Path):
            database.parent.mkdir(parents=True, exist_ok=True)
        root = Warehouse.at(warehouse, allowed, tuple if places is None else places.roots)
        self._iceberg = Iceberg(jvm, database, root.root, places)
        self._ledger = Ledger(database)
        requests = Requests(self._ledger, NamedLocks())
        self.rights = Rights(reserved)
        delegation = Delegation(places, root)
        self.namespaces = Namespaces(self._iceberg, root, requests, self.rights)
        self.tables = Tables(self._iceberg, self._ledger, root, requests, self.rights, delegation)
        self.views = Views(self._iceberg, root, requests, self.rights)

    def metadata(self, namespace: tuple[str, ...], name: str) -> dict[str, Any]:
        """A table's metadata as the REST specification has it, whoever asks."""
        answer = self.tables.load(Identifier(namespace, name), "all", None, True, Asked(LOCAL))
        found: dict[str, Any] = json.loads(answer.body or "{}")["metadata"]
        return found

    def metadata_location(self, namespace: tuple[str, ...], name: str) -> str:
        """Where a table's metadata is now: elsewhere after each commit. No file is read for it."""
        return self.tables.metadata_location(Identifier(namespace, name))

    def content(self, location: str) -> bytes | None:
        """A file's bytes, None if it is gone."""
        return self._iceberg.content(location)

    def has_tables_in(self, location: str) -> bool:
        """Whether a live table lies at or below a place."""
        return self._ledger.has_tables_in(location)

    def close(self) -> None:
        self._iceberg.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
