"""What a caller may do in the catalog.

What they may not see is not there: 404, as for a name that nobody has. What they see and may not change is
403, with the reason.
"""

import json
from dataclasses import dataclass
from typing import Any

from headgate.access.roles import Principal, Role
from headgate.catalog.errors import CatalogError, forbidden, no_such_namespace, no_such_table, no_such_view
from headgate.catalog.names import Identifier, shown_names


@dataclass(frozen=True)
class Rights:
    """`reserved`: the namespace of the topics' tables, where only the engine and admins make others."""

    reserved: tuple[str, ...] | None = None

    def check_sees_namespace(self, caller: Principal, levels: tuple[str, ...]) -> None:
        if not caller.sees_namespace(levels):
            raise no_such_namespace(".".join(levels))

    def check_changes_namespace(self, caller: Principal, levels: tuple[str, ...]) -> None:
        """Create, drop, or set its properties."""
        role = caller.on_namespace(levels)
        if role is None or role < Role.WRITER:
            raise forbidden(f"{_who(caller)} may not change the namespace {'.'.join(levels)}.")
        if levels == self.reserved and role < Role.ADMIN:
            raise forbidden(f"The namespace {'.'.join(levels)} is the engine's: its tables are topics.")

    def check_sees_table(self, caller: Principal, table: Identifier) -> None:
        if not sees(caller, table):
            raise no_such_table(table)

    def check_sees_view(self, caller: Principal, view: Identifier) -> None:
        if not sees(caller, view):
            raise no_such_view(view)

    def check_writes(self, caller: Principal, table: Identifier) -> None:
        """A table that is there, or will be: whether it is managed is told where its metadata is read."""
        self._check_writes(caller, table, no_such_table(table))

    def check_writes_view(self, caller: Principal, view: Identifier) -> None:
        self._check_writes(caller, view, no_such_view(view))

    def check_creates(self, caller: Principal, name: Identifier) -> None:
        """A table or view of this name."""
        role = _role(caller, name)
        if role is None or role < Role.WRITER:
            raise forbidden(f"{_who(caller)} may not create {name}.")
        if name.namespace == self.reserved and role < Role.ADMIN:
            raise forbidden(
                f"The namespace {'.'.join(name.namespace)} is the engine's: its tables are topics. "
                "Create the table in a namespace of your own."
            )

    def check_managed(self, caller: Principal, table: Identifier) -> None:
        """Of a table that is, or would become, managed."""
        if _role(caller, table) is not Role.ENGINE:
            raise forbidden(
                f"{table} is written by the engine alone: its rows are those of its topic. Read it, or write "
                "to a table of your own; `headgate table` changes and removes this one."
            )

    def _check_writes(self, caller: Principal, name: Identifier, missing: CatalogError) -> None:
        role = _role(caller, name)
        if role is None:
            raise missing
        if role < Role.WRITER:
            raise forbidden(f"{_who(caller)} may read {name}, not change it.")


def seen_names(rendered: str, caller: Principal) -> dict[str, Any]:
    """A list of tables or views as Iceberg's handlers render it, with those that the caller sees."""
    said = shown_names(json.loads(rendered))
    said["identifiers"] = [
        one for one in said["identifiers"] if caller.on_table(one["namespace"], one["name"]) is not None
    ]
    return said


def sees(caller: Principal, name: Identifier) -> bool:
    return _role(caller, name) is not None


def _role(caller: Principal, name: Identifier) -> Role | None:
    return caller.on_table(name.namespace, name.name)


def _who(caller: Principal) -> str:
    return caller.name[:1].upper() + caller.name[1:]
