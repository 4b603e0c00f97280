"""What every outside catalog is to the publisher, and the one way an entry is changed."""

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from headgate.errors import NotPublishable, OutsideMoved

# A change that was decided on so long ago is thought over again: its process may have been stopped meanwhile.
STALE_SECONDS = 15.0
_NUMBERED = re.compile(r"(\d+)-[^/]*\.metadata\.json$")


@dataclass(frozen=True)
class PublishedTable:
    """A managed table at one moment, as its own catalog has it."""

    topic: str
    uuid: str
    location: str
    metadata_location: str
    # Metadata that came before it, as far as the table remembers.
    former: tuple[str, ...]
    sequence: int
    # As Iceberg writes it in JSON.
    schema: Mapping[str, Any]
    # As the Delta log has it; none where the table has no log (yet).
    delta_schema: Mapping[str, Any] | None = None
    # Iceberg's.
    format_version: int = 2


@dataclass(frozen=True)
class Entry:
    """What an outside catalog has under a name. `mark` tells which state of a table it shows."""

    # None where Headgate did not make it.
    uuid: str | None
    mark: str | None
    metadata_location: str | None = None
    sequence: int | None = None
    # Another with every change, where the catalog has such a thing.
    version: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)


# Called right before a change is sent; raises when it is not to be sent any more.
Guard = Callable[[], None]


class OutsideCatalog(Protocol):
    """A catalog of somebody else.

    `OutsideUnavailable`: it does not answer, all of it. `OutsideRefused`: it does not let us.
    `NotPublishable`: this table cannot be there. `OutsideMoved`: somebody was faster, and nothing was done.
    """

    def prepare(self) -> None:
        """Have the place where entries go: made when it is missing and can be made."""

    def mark(self, table: PublishedTable) -> str:
        """What an entry's `mark` is when it shows the table as it is."""

    def entry(self, name: str) -> Entry | None:
        """What is there now."""

    def put(self, name: str, table: PublishedTable, before: Entry | None, guard: Guard) -> None:
        """Make the entry, or have the one that is there, `before`, show the table."""

    def remove(self, name: str, before: Entry, guard: Guard) -> None:
        """Take the entry out, and nothing else: files stay."""

    def close(self) -> None:
        """No more calls."""


def show(
    outside: OutsideCatalog,
    name: str,
    read: Callable[[], PublishedTable | None],
    known: Collection[str],
    intend: Callable[[PublishedTable], None],
) -> PublishedTable | None:
    """Have an entry show the table as it is now; the table, or None when it is gone.

    The entry is read first, the table after it. What an entry shows was once the table's state, and tables go
    forward only: so the table that is read then is at least as new as the entry. Where a catalog swaps an
    entry by its version nothing can come in between. Where it cannot, the guard refuses what has grown old.

    `known` are the ids of tables that were published under this name; `intend` writes another down before the
    entry is made, so that it is known for ours whatever happens then.
    """
    decided = time.monotonic()
    before = outside.entry(name)
    table = read()
    if table is None:
        return None
    if before is not None and before.uuid != table.uuid and before.uuid not in known:
        raise NotPublishable(
            f"There is an entry '{name}' already, and Headgate did not make it.",
            "Remove or rename it there, or add the catalog again with another --table-name for this topic.",
        )
    if before is not None and before.uuid == table.uuid and before.mark == outside.mark(table):
        return table
    if before is not None and is_newer(before, table):
        raise OutsideMoved(f"The entry '{name}' shows a newer state than was read: it is left as it is.")
    intend(table)
    outside.put(name, table, before, guard(decided))
    return table


def withdraw(outside: OutsideCatalog, name: str, known: Collection[str]) -> bool:
    """Take out the entry, if it is ours; whether there was one."""
    decided = time.monotonic()
    before = outside.entry(name)
    if before is None or before.uuid not in known:
        return False
    outside.remove(name, before, guard(decided))
    return True


def guard(decided: float) -> Guard:
    def check() -> None:
        waited = time.monotonic() - decided
        if waited > STALE_SECONDS:
            raise OutsideMoved(f"The change was decided on {waited:.0f} s ago: it is thought over again.")

    return check


def is_newer(entry: Entry, table: PublishedTable) -> bool:
    """Whether an entry of the same table shows what came after the state that was read."""
    if entry.uuid != table.uuid or entry.metadata_location is None:
        return False
    if entry.metadata_location in (table.metadata_location, *table.former):
        return False
    there = (entry.sequence or 0, _number(entry.metadata_location))
    return there > (table.sequence, _number(table.metadata_location))


def _number(metadata_location: str) -> int:
    """Catalogs count the metadata files of a table in their names."""
    found = _NUMBERED.search(metadata_location)
    return int(found[1]) if found else 0
