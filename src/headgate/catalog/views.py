"""Views, by Iceberg's own handlers."""

import json
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from headgate.access import Principal
from headgate.catalog.errors import bad_request, from_java
from headgate.catalog.iceberg import Iceberg, is_a
from headgate.catalog.idempotency import Once
from headgate.catalog.locations import Warehouse
from headgate.catalog.names import Identifier, parse_identifier
from headgate.catalog.once import Answer, Requests
from headgate.catalog.rights import Rights, seen_names


class Views:
    def __init__(self, iceberg: Iceberg, warehouse: Warehouse, requests: Requests, rights: Rights) -> None:
        self._iceberg = iceberg
        self._warehouse = warehouse
        self._requests = requests
        self._rights = rights

    def list(
        self, levels: tuple[str, ...], page_token: str | None, page_size: int | None, caller: Principal
    ) -> Answer:
        page = () if page_size is None else (page_token, str(page_size))
        found = self._iceberg.handlers.listViews(
            self._iceberg.catalog, self._iceberg.namespace(levels), *page
        )
        return Answer(200, json.dumps(seen_names(self._iceberg.render(found), caller)))

    def load(self, identifier: Identifier) -> Answer:
        found = self._iceberg.handlers.loadView(self._iceberg.catalog, self._iceberg.identifier(identifier))
        return Answer(200, self._iceberg.render(found))

    def exists(self, identifier: Identifier) -> Answer:
        self._iceberg.handlers.viewExists(self._iceberg.catalog, self._iceberg.identifier(identifier))
        return Answer(204)

    def create(
        self, levels: tuple[str, ...], body: Mapping[str, Any], once: Once | None, caller: Principal
    ) -> Answer:
        identifier = parse_identifier({"namespace": [*levels], "name": body.get("name")})
        self._rights.check_creates(caller, identifier)
        # JdbcCatalog would make a path of the name as it is.
        location = body.get("location") or self._warehouse.default_location(identifier)
        parsed = self._iceberg.parse("CreateViewRequest", json.dumps({**body, "location": location}))
        admitted = self._warehouse.footprint(parsed.location(), parsed.properties()).location
        request = self._iceberg.parse("CreateViewRequest", json.dumps({**body, "location": admitted}))

        def create() -> Answer:
            namespace = self._iceberg.namespace(levels)
            found = self._iceberg.handlers.createView(self._iceberg.catalog, namespace, request)
            return Answer(200, self._iceberg.render(found))

        return self._requests.run_and_record(once, (identifier,), create)

    def register(
        self, levels: tuple[str, ...], body: Mapping[str, Any], once: Once | None, caller: Principal
    ) -> Answer:
        request = self._iceberg.parse("RegisterViewRequest", json.dumps(body))
        request.validate()
        identifier = parse_identifier({"namespace": [*levels], "name": request.name()})
        self._rights.check_creates(caller, identifier)
        self._check_registered(request.metadataLocation())

        def register() -> Answer:
            namespace = self._iceberg.namespace(levels)
            found = self._iceberg.handlers.registerView(self._iceberg.catalog, namespace, request)
            return Answer(200, self._iceberg.render(found))

        return self._requests.run_and_record(once, (identifier,), register)

    def _check_registered(self, metadata_location: str) -> None:
        self._warehouse.admit(metadata_location, "The metadata file")
        try:
            metadata = self._iceberg.read_view(metadata_location)
        except Py4JJavaError as error:
            raise bad_request(f"Not a view's metadata: {from_java(error).message}") from error
        self._warehouse.footprint(metadata.location(), metadata.properties())

    def update(self, identifier: Identifier, body: Mapping[str, Any], once: Once | None) -> Answer:
        request = self._iceberg.parse("UpdateTableRequest", json.dumps(body))
        for update in request.updates():
            if is_a(update, "SetLocation"):
                self._warehouse.admit(update.location(), "The location")
            elif is_a(update, "SetProperties"):
                self._warehouse.admit_paths(update.updated())

        def update_view() -> Answer:
            found = self._iceberg.handlers.updateView(
                self._iceberg.catalog, self._iceberg.identifier(identifier), request
            )
            return Answer(200, self._iceberg.render(found))

        return self._requests.run_and_record(once, (identifier,), update_view)

    def rename(self, body: Mapping[str, Any], once: Once | None, caller: Principal) -> Answer:
        source, target = parse_identifier(body.get("source")), parse_identifier(body.get("destination"))
        self._rights.check_writes_view(caller, source)
        self._rights.check_creates(caller, target)

        def rename() -> Answer:
            java = self._iceberg
            java.catalog.renameView(java.identifier(source), java.identifier(target))
            return Answer(204)

        return self._requests.run_and_record(once, (source, target), rename)

    def drop(self, identifier: Identifier, once: Once | None) -> Answer:
        def drop() -> Answer:
            self._iceberg.handlers.dropView(self._iceberg.catalog, self._iceberg.identifier(identifier))
            return Answer(204)

        return self._requests.run_and_record(once, (identifier,), drop)
