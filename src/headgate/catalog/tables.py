"""Tables: read by Iceberg's own handlers, changed in transactions of ours."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError

from headgate.access import Principal, Role
from headgate.catalog.commit import Change, Committer, discarding_unless_applied
from headgate.catalog.delegation import Asked, Delegation
from headgate.catalog.errors import (
    CatalogError,
    already_exists,
    bad_request,
    commit_unknown,
    from_java,
    java_class,
    no_such_table,
)
from headgate.catalog.files import Files
from headgate.catalog.iceberg import Iceberg, TableMetadata, is_internal, properties_of
from headgate.catalog.idempotency import Once, Outcome
from headgate.catalog.ledger import TABLE, Ledger, LostRace, Move
from headgate.catalog.locations import Warehouse
from headgate.catalog.names import Identifier, parse_identifier
from headgate.catalog.once import Answer, Requests
from headgate.catalog.proposal import is_managed
from headgate.catalog.rights import Rights, seen_names
from headgate.errors import StorageUnavailable
from headgate.model import MANAGED_KEY

log = logging.getLogger(__name__)


class Tables:
    def __init__(
        self,
        iceberg: Iceberg,
        ledger: Ledger,
        warehouse: Warehouse,
        requests: Requests,
        rights: Rights,
        delegation: Delegation,
    ) -> None:
        self._iceberg = iceberg
        self._ledger = ledger
        self._warehouse = warehouse
        self._requests = requests
        self._rights = rights
        self._delegation = delegation
        self._files = Files(iceberg, ledger, warehouse)
        self._committer = Committer(iceberg, ledger, warehouse, rights)

    def list(
        self,
        levels: tuple[str, ...],
        page_token: str | None,
        page_size: int | None,
        everything: bool,
        caller: Principal,
    ) -> Answer:
        """A page may be shorter than was asked for: what the caller does not see is left out of it."""
        page = () if page_size is None else (page_token, str(page_size))
        found = self._iceberg.handlers.listTables(
            self._iceberg.catalog, self._iceberg.namespace(levels), *page
        )
        said = seen_names(self._iceberg.render(found), caller)
        hidden = frozenset() if everything else self._ledger.internal_names(levels)
        if hidden:
            said["identifiers"] = [one for one in said["identifiers"] if one["name"] not in hidden]
        return Answer(200, json.dumps(said))

    def exists(self, identifier: Identifier, everything: bool) -> Answer:
        self._check_shown(identifier, everything)
        self.metadata_location(identifier)
        return Answer(204)

    def _check_shown(self, identifier: Identifier, everything: bool) -> None:
        if not everything and self._ledger.is_internal(identifier):
            raise no_such_table(identifier)

    def load(
        self,
        identifier: Identifier,
        snapshots: str,
        if_none_match: str | None,
        everything: bool,
        asked: Asked,
    ) -> Answer:
        self._check_shown(identifier, everything)
        location = self.metadata_location(identifier)
        self._iceberg.know_places()
        etag = _etag(location, snapshots)
        if self._delegation.vends(location, asked):
            if_none_match = None
        if if_none_match is not None and etag in (tag.strip() for tag in if_none_match.split(",")):
            return Answer(304, etag=etag)
        mode = self._iceberg.snapshot_modes.get(snapshots)
        if mode is None:
            raise bad_request(f"`snapshots` must be all or refs, not {snapshots!r}.")
        try:
            found = self._iceberg.handlers.loadTable(
                self._iceberg.catalog, self._iceberg.identifier(identifier), mode
            )
        except Py4JJavaError as error:
            if java_class(error) != "NotFoundException":
                raise
            # Java says it with another spelling of the location.
            message = f"Failed to open input stream for file: {location}"
            raise CatalogError(404, "NotFoundException", message) from error
        told = self._delegation.tell(identifier, found.tableMetadata(), asked)
        etag = _etag(found.metadataLocation(), snapshots)
        return Answer(200, told.added_to(self._iceberg.render(found)), None if told.keys else etag)

    def credentials(self, identifier: Identifier, everything: bool, caller: Principal) -> Answer:
        """Keys anew, for who has a table open for long."""
        self._check_shown(identifier, everything)
        metadata = self._iceberg.read(self.metadata_location(identifier))
        return Answer(200, self._delegation.credentials(identifier, metadata, caller))

    def create(
        self, levels: tuple[str, ...], body: Mapping[str, Any], once: Once | None, asked: Asked
    ) -> Answer:
        caller = asked.caller
        request = self._iceberg.parse("CreateTableRequest", json.dumps(body))
        request.validate()
        identifier = parse_identifier({"namespace": [*levels], "name": request.name()})
        self._rights.check_creates(caller, identifier)
        if is_managed(request.properties().get(MANAGED_KEY)):
            self._rights.check_managed(caller, identifier)

        def create() -> Answer:
            self._ledger.check_creatable(identifier)
            metadata = self._new(identifier, request)
            if request.stageCreate():
                # Keys are for nobody else's folder; nothing claims it before the commit.
                self._check_unclaimed(metadata)
                told = self._delegation.tell(identifier, metadata, asked)
                return Answer(200, told.added_to(self._iceberg.table_response(metadata)))
            with discarding_unless_applied(self._iceberg) as written:
                new = self._iceberg.write(metadata, None, written.append)
                self._point(identifier, None, new, once)
            return self._answer(identifier, new, asked)

        return self._requests.run(once, (identifier,), create, self._replay(identifier, asked))

    def _check_unclaimed(self, metadata: TableMetadata) -> None:
        footprint = self._warehouse.footprint(metadata.location(), metadata.properties())
        for location in (footprint.location, *footprint.paths):
            if self._ledger.is_anothers(location, metadata.uuid()):
                raise already_exists(f"The location {location} overlaps with that of another table.")

    def _new(self, identifier: Identifier, request: Any) -> TableMetadata:
        properties = properties_of(request.properties())
        location = request.location() or self._warehouse.default_location(identifier)
        if request.location() is None and self._ledger.location_was_used(location):
            location = self._warehouse.fresh_location(identifier)
        admitted = self._warehouse.footprint(location, properties).location
        return self._iceberg.new_table(request, admitted, properties)

    def register(
        self, levels: tuple[str, ...], body: Mapping[str, Any], once: Once | None, asked: Asked
    ) -> Answer:
        caller = asked.caller
        request = self._iceberg.parse("RegisterTableRequest", json.dumps(body))
        request.validate()
        identifier = parse_identifier({"namespace": [*levels], "name": request.name()})
        self._rights.check_creates(caller, identifier)
        metadata = self._readable(self._warehouse.admit(request.metadataLocation(), "The metadata file"))
        self._check_managed(caller, identifier, metadata)

        def register() -> Answer:
            pointer = self._ledger.pointer(identifier)
            if pointer is None or pointer.kind != TABLE or not request.overwrite():
                self._ledger.check_creatable(identifier)
                self._point(identifier, None, metadata, once)
            else:
                before = self._last_metadata(pointer.metadata_location)
                self._check_managed(caller, identifier, before)
                self._point(identifier, pointer.metadata_location, metadata, once)
            return self._answer(identifier, metadata, asked)

        return self._requests.run(once, (identifier,), register, self._replay(identifier, asked))

    def _readable(self, metadata_location: str) -> TableMetadata:
        try:
            metadata = self._iceberg.read(metadata_location)
        except Py4JJavaError as error:
            found = from_java(error)
            if found.status == 404:
                raise found from error
            raise bad_request(f"{metadata_location} is not a table's metadata: {found.message}") from error
        if metadata.uuid() is None:
            raise bad_request(f"{metadata_location} has no table-uuid: upgrade the table to format 2 first.")
        return metadata

    def _point(self, identifier: Identifier, old: str | None, new: TableMetadata, once: Once | None) -> None:
        footprint = self._warehouse.footprint(new.location(), new.properties())
        self._files.check_named(new, footprint)
        before = None if old is None else self._last_metadata(old)
        displaces = None if before is None else before.uuid()
        move = Move(
            identifier,
            old,
            new.metadataFileLocation(),
            new.uuid(),
            footprint,
            displaces=displaces,
            internal=is_internal(new),
        )
        try:
            self._ledger.move([move], once, Outcome(200, move.new))
        except LostRace as error:
            raise already_exists(f"Table already exists, or was just changed: {identifier}") from error

    def _check_managed(
        self, caller: Principal, identifier: Identifier, metadata: TableMetadata | None
    ) -> None:
        if metadata is not None and is_managed(metadata.property(MANAGED_KEY, None)):
            self._rights.check_managed(caller, identifier)

    def drop(self, identifier: Identifier, purge: bool, once: Once | None, caller: Principal) -> Answer:
        def drop() -> Answer:
            metadata = self._last_metadata(self.metadata_location(identifier))
            self._check_managed(caller, identifier, metadata)
            if purge and metadata is not None:
                self._check_purge(caller, identifier, metadata)
            self._ledger.drop(identifier, None if metadata is None else metadata.uuid(), purge, once)
            if purge and metadata is not None:
                # The pointer is gone: nobody finds the files any more, so now they may go.
                with _applied(f"Table {identifier} was dropped"):
                    self._iceberg.delete_data(metadata)
            return Answer(204)

        return self._requests.run(once, (identifier,), drop)

    def _check_purge(self, caller: Principal, identifier: Identifier, metadata: TableMetadata) -> None:
        """The engine's own tables name what the engine wrote; they may be too large to look through."""
        if caller.on_table(identifier.namespace, identifier.name) is not Role.ENGINE:
            footprint = self._warehouse.footprint(metadata.location(), metadata.properties())
            self._files.check_purge(metadata, footprint)

    def _last_metadata(self, metadata_location: str) -> TableMetadata | None:
        """None if the file is gone: a table that cannot be read must not be one that cannot be dropped."""
        try:
            return self._iceberg.read(metadata_location)
        except Py4JJavaError as error:
            if java_class(error) != "NotFoundException":
                raise
            log.warning("%s is gone: its table is dropped without its files", metadata_location)
            return None

    def rename(self, body: Mapping[str, Any], once: Once | None, caller: Principal) -> Answer:
        source, target = parse_identifier(body.get("source")), parse_identifier(body.get("destination"))
        self._rights.check_writes(caller, source)
        self._rights.check_creates(caller, target)

        def rename() -> Answer:
            self._check_managed(caller, source, self._last_metadata(self.metadata_location(source)))
            self._ledger.rename(source, target, once)
            return Answer(204)

        return self._requests.run(once, (source, target), rename)

    def commit(
        self, identifier: Identifier, body: Mapping[str, Any], once: Once | None, caller: Principal
    ) -> Answer:
        named = body.get("identifier")
        if named is not None and parse_identifier(named) != identifier:
            raise bad_request(f"The request is for {identifier} and names another table in its body.")
        request = self._iceberg.parse("UpdateTableRequest", json.dumps(body))

        def commit() -> Answer:
            (new,) = self._committer.commit([Change(identifier, request)], once, 200, caller)
            return self._answer(identifier, new, Asked(caller))

        return self._requests.run(once, (identifier,), commit, self._replay(identifier, Asked(caller)))

    def commit_all(self, body: Mapping[str, Any], once: Once | None, caller: Principal) -> Answer:
        request = self._iceberg.parse("CommitTransactionRequest", json.dumps(body))
        identifiers = [parse_identifier(change.get("identifier")) for change in body["table-changes"]]
        for identifier in identifiers:
            self._rights.check_writes(caller, identifier)
        changes = [Change(*pair) for pair in zip(identifiers, request.tableChanges(), strict=True)]

        def commit() -> Answer:
            self._committer.commit(changes, once, 204, caller)
            return Answer(204)

        return self._requests.run(once, tuple(identifiers), commit)

    def report(self, body: Mapping[str, Any]) -> Answer:
        """Scan and commit metrics are checked and let go: tables are watched from the engine's side."""
        self._iceberg.parse("ReportMetricsRequest", json.dumps(body))
        return Answer(204)

    def metadata_location(self, identifier: Identifier) -> str:
        pointer = self._ledger.pointer(identifier)
        if pointer is None or pointer.kind != TABLE:
            raise no_such_table(identifier)
        return pointer.metadata_location

    def _answer(self, identifier: Identifier, metadata: TableMetadata, asked: Asked) -> Answer:
        with _applied("The commit was applied"):
            told = self._delegation.tell(identifier, metadata, asked)
            etag = None if told.keys else _etag(metadata.metadataFileLocation(), "all")
            return Answer(200, told.added_to(self._iceberg.table_response(metadata)), etag)

    def _replay(self, identifier: Identifier, asked: Asked) -> Callable[[Outcome], Answer]:
        def replay(outcome: Outcome) -> Answer:
            with _applied("The request with this Idempotency-Key was applied"):
                location = outcome.metadata_location
                if location is None or not self._iceberg.exists(location):
                    # Superseded and removed since; the spec allows a newer state of the table here.
                    location = self.metadata_location(identifier)
                return self._answer(identifier, self._iceberg.read(location), asked)

        return replay


@contextmanager
def _applied(what: str) -> Iterator[None]:
    """A change has been made: whatever fails from here on must not look like a refusal."""
    try:
        yield
    except Py4JJavaError as error:
        raise commit_unknown(f"{what}, but then: {from_java(error).message}") from error
    except (CatalogError, StorageUnavailable) as error:
        raise commit_unknown(f"{what}, but then: {error.message}") from error


def _etag(metadata_location: str, snapshots: str) -> str:
    return f'"{hashlib.sha256(f"{snapshots} {metadata_location}".encode()).hexdigest()[:32]}"'
