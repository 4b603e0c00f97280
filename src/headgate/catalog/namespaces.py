"""Namespaces, by Iceberg's own handlers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headgate.access import Principal
from headgate.catalog.errors import bad_request
from headgate.catalog.iceberg import Iceberg
from headgate.catalog.idempotency import Once
from headgate.catalog.locations import Warehouse
from headgate.catalog.names import check_namespace, shown_names, stored_levels
from headgate.catalog.once import Answer, Requests
from headgate.catalog.rights import Rights

# JdbcCatalog changes namespaces in several statements.
ALL = "all namespaces"


class Namespaces:
    def __init__(self, iceberg: Iceberg, warehouse: Warehouse, requests: Requests, rights: Rights) -> None:
        self._iceberg = iceberg
        self._warehouse = warehouse
        self._requests = requests
        self._rights = rights

    def list(
        self, parent: tuple[str, ...], page_token: str | None, page_size: int | None, caller: Principal
    ) -> Answer:
        """A page may be shorter than was asked for: what the caller does not see is left out of it."""
        page = () if page_size is None else (page_token, str(page_size))
        found = self._iceberg.handlers.listNamespaces(
            self._iceberg.catalog, self._iceberg.namespace(parent), *page
        )
        said = shown_names(json.loads(self._iceberg.render(found)))
        said["namespaces"] = [levels for levels in said["namespaces"] if caller.sees_namespace(levels)]
        return Answer(200, json.dumps(said))

    def load(self, levels: tuple[str, ...]) -> Answer:
        found = self._iceberg.handlers.loadNamespace(self._iceberg.catalog, self._iceberg.namespace(levels))
        return self._answer(found)

    def exists(self, levels: tuple[str, ...]) -> Answer:
        self._iceberg.handlers.namespaceExists(self._iceberg.catalog, self._iceberg.namespace(levels))
        return Answer(204)

    def create(self, body: Mapping[str, Any], once: Once | None, caller: Principal) -> Answer:
        if not isinstance(body.get("namespace"), list):
            raise bad_request("`namespace` must be a list of levels.")
        levels = check_namespace(body["namespace"])
        self._rights.check_changes_namespace(caller, levels)
        stored = json.dumps({**body, "namespace": stored_levels(levels)})
        request = self._iceberg.parse("CreateNamespaceRequest", stored)

        def create() -> Answer:
            return self._answer(self._iceberg.handlers.createNamespace(self._iceberg.catalog, request))

        return self._requests.run_and_record(once, (ALL,), create)

    def update(self, levels: tuple[str, ...], body: Mapping[str, Any], once: Once | None) -> Answer:
        request = self._iceberg.parse("UpdateNamespacePropertiesRequest", json.dumps(body))

        def update() -> Answer:
            namespace = self._iceberg.namespace(levels)
            return self._answer(
                self._iceberg.handlers.updateNamespaceProperties(self._iceberg.catalog, namespace, request)
            )

        return self._requests.run_and_record(once, (ALL,), update)

    def drop(self, levels: tuple[str, ...], once: Once | None) -> Answer:
        def drop() -> Answer:
            self._iceberg.handlers.dropNamespace(self._iceberg.catalog, self._iceberg.namespace(levels))
            return Answer(204)

        return self._requests.run_and_record(once, (ALL,), drop)

    def _answer(self, response: Any) -> Answer:
        document = json.loads(self._iceberg.render(response))
        jdbc_default = self._jdbc_default(document.get("namespace", []))
        document = shown_names(document)
        properties = document.get("properties") or {}
        if jdbc_default and properties.get("location") == jdbc_default:
            properties["location"] = self._warehouse.namespace_location(tuple(document["namespace"]))
        return Answer(200, json.dumps(document))

    def _jdbc_default(self, stored: Sequence[str]) -> str | None:
        """JdbcCatalog tells where it would put tables; ours go where names are quoted into paths."""
        return "/".join((self._warehouse.root, *stored)) if stored else None
