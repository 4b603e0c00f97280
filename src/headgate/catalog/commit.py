"""A commit to one table or to several: the same path, and all of it or nothing.

1. read the base metadata of every named table
2. judge what would be added to managed tables (fencing)
3. validate the requirements and apply the updates, in memory
4. write the new metadata files; nobody knows them yet, so a crash here leaves two files too many and no more
5. in one SQL transaction: swap every pointer, record the batches and the idempotency key. This is the commit
6. remove the metadata files that the tables no longer want

A race lost at 5 begins again at 1: requirements that still hold are a commit that still stands.
"""

import logging
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError

from headgate.access import Principal
from headgate.catalog.errors import already_exists, bad_request, commit_failed, from_java, no_such_table
from headgate.catalog.fencing import judge, proposed_batches
from headgate.catalog.files import Files
from headgate.catalog.iceberg import Iceberg, TableMetadata, UpdateTableRequest, is_internal
from headgate.catalog.idempotency import Once, Outcome
from headgate.catalog.ledger import VIEW, Ledger, LostRace, Move, Unconfirmed
from headgate.catalog.locations import Footprint, Warehouse
from headgate.catalog.names import Identifier
from headgate.catalog.proposal import is_create, proposal, table_state
from headgate.catalog.rights import Rights

log = logging.getLogger(__name__)

ATTEMPTS = 12
LONGEST_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Change:
    """One table's part of a commit."""

    identifier: Identifier
    request: UpdateTableRequest


@dataclass(frozen=True)
class Step:
    """A change worked out on the table as it was read: `metadata` None if it changes nothing."""

    identifier: Identifier
    base: TableMetadata | None
    metadata: TableMetadata | None
    footprint: Footprint | None = None
    batches: tuple[str, ...] = ()


class Committer:
    def __init__(self, iceberg: Iceberg, ledger: Ledger, warehouse: Warehouse, rights: Rights) -> None:
        self._iceberg = iceberg
        self._ledger = ledger
        self._warehouse = warehouse
        self._rights = rights
        self._files = Files(iceberg, ledger, warehouse)

    def commit(
        self, changes: Sequence[Change], once: Once | None, status: int, caller: Principal
    ) -> list[TableMetadata]:
        """The metadata of each table after the commit, in the order of `changes`."""
        if len({change.identifier for change in changes}) < len(changes):
            raise bad_request("A transaction must name each table once.")
        for attempt in range(ATTEMPTS):
            steps = [self._work_out(change, caller) for change in changes]
            try:
                after = self._apply(steps, once, status)
            except LostRace:
                time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS * (attempt + 1) / ATTEMPTS))  # noqa: S311
                continue
            self._tidy(steps, after)
            return after
        names = ", ".join(str(change.identifier) for change in changes)
        raise commit_failed(f"Others committed to {names} {ATTEMPTS} times in between: refresh and retry.")

    def _work_out(self, change: Change, caller: Principal) -> Step:
        """Steps 1 to 3: nothing is written yet."""
        base = self._base(change, caller)
        wanted = proposal(change.request)
        state = table_state(base)
        if state.managed or wanted.makes_managed:
            self._rights.check_managed(caller, change.identifier)
        batches = proposed_batches(wanted)
        committed = self._ledger.committed_batches(base.uuid(), batches) if base is not None else frozenset()
        batches = judge(state, wanted, committed)
        metadata = self._iceberg.updated(base, change.request)
        if metadata is None:
            return Step(change.identifier, base, None)
        footprint = self._warehouse.footprint(metadata.location(), metadata.properties())
        self._files.check_added(change.request, metadata.uuid(), footprint)
        return Step(change.identifier, base, metadata, footprint, batches)

    def _base(self, change: Change, caller: Principal) -> TableMetadata | None:
        pointer = self._ledger.pointer(change.identifier)
        if is_create(change.request):
            self._rights.check_creates(caller, change.identifier)
            if pointer is not None and pointer.kind == VIEW:
                raise already_exists(f"View with same name already exists: {change.identifier}")
            self._ledger.check_namespace(change.identifier.namespace)
        elif pointer is None or pointer.kind == VIEW:
            raise no_such_table(change.identifier)
        return None if pointer is None else self._iceberg.read(pointer.metadata_location)

    def _apply(self, steps: Sequence[Step], once: Once | None, status: int) -> list[TableMetadata]:
        """Steps 4 and 5."""
        with discarding_unless_applied(self._iceberg) as written:
            after = [self._write(step, written) for step in steps]
            moves = [_move(*pair) for pair in zip(steps, after, strict=True) if pair[0].footprint is not None]
            location = after[0].metadataFileLocation() if len(after) == 1 else None
            self._ledger.move(moves, once, Outcome(status, location))
        return after

    def _write(self, step: Step, written: list[str]) -> TableMetadata:
        if step.metadata is None:
            return step.base
        replaces = None if step.base is None else step.base.metadataFileLocation()
        return self._iceberg.write(step.metadata, replaces, written.append)

    def _tidy(self, steps: Sequence[Step], after: Sequence[TableMetadata]) -> None:
        """Step 6. The commit stands: what fails here is told to the operator, never to the client."""
        for step, new in zip(steps, after, strict=True):
            if step.base is None or step.metadata is None:
                continue
            try:
                self._iceberg.delete_superseded(step.base, new)
            except Py4JJavaError as error:
                log.warning(
                    "old metadata of %s was not removed: %s", step.identifier, from_java(error).message
                )


@contextmanager
def discarding_unless_applied(iceberg: Iceberg) -> Iterator[list[str]]:
    """Collects the metadata files being written, and removes them if what they are for did not happen."""
    written: list[str] = []
    try:
        yield written
    except Unconfirmed:
        raise  # the pointers may have moved: the files must stay
    except BaseException:
        for location in written:
            try:
                iceberg.delete(location)
            except Py4JError as error:
                # Orphan removal finds it later; the reason why we are here matters more.
                log.warning("could not remove %s: %s", location, error)
        raise


def _move(step: Step, new: TableMetadata) -> Move:
    assert step.footprint is not None
    old = None if step.base is None else step.base.metadataFileLocation()
    new_location = new.metadataFileLocation()
    return Move(
        step.identifier,
        old,
        new_location,
        new.uuid(),
        step.footprint,
        step.batches,
        internal=is_internal(new),
    )
