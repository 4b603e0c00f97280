"""Roles by patterns of namespaces and tables; pure.

A grant is written `ROLE:NAMESPACE:TABLE`, with `*` and `?` for what may vary: `reader:local:orders.*`. The
levels of a namespace are joined by dots.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Self

from headgate.errors import InvalidRequest

ANY = "*"


class Role(IntEnum):
    """Each may do what those below it may."""

    READER = 1  # sees tables and reads them
    WRITER = 2  # makes, changes and drops tables that are not the engine's
    ADMIN = 3  # sees what is internal; on everything, the control API too
    ENGINE = 4  # writes managed tables: Headgate's own engine, or another Headgate's

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            return cls[text.strip().upper()]
        except KeyError as error:
            known = ", ".join(str(role) for role in cls)
            raise InvalidRequest(f"There is no role '{text}'.", f"Roles are {known}.") from error

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, order=True)
class Grant:
    """A role on the tables that both patterns match."""

    role: Role
    namespace: str = ANY
    table: str = ANY

    def __post_init__(self) -> None:
        if not self.namespace or not self.table:
            raise InvalidRequest("A pattern of a grant is empty.", "Write * for everything.")

    @classmethod
    def parse(cls, text: str) -> Self:
        role, _, rest = text.partition(":")
        namespace, _, table = rest.partition(":")
        return cls(Role.parse(role), namespace or ANY, table or ANY)

    def __str__(self) -> str:
        return f"{self.role}:{self.namespace}:{self.table}"

    def covers_namespace(self, levels: Sequence[str]) -> bool:
        return _matches(self.namespace, ".".join(levels))

    def covers(self, levels: Sequence[str], table: str) -> bool:
        return self.covers_namespace(levels) and _matches(self.table, table)


@dataclass(frozen=True)
class Principal:
    """Whoever makes a request."""

    name: str
    grants: tuple[Grant, ...] = ()
    # Which credential was shown: a client id, a key's name, an issuer's subject. Never a secret.
    credential: str = ""
    # Whatever their roles are: they come with the token of a query.
    reads_only: bool = False

    @property
    def id(self) -> str:
        """Tells them apart from others, whatever they are called."""
        return self.credential or self.name

    @property
    def highest(self) -> Role | None:
        """The highest role that they have on anything; none opens nothing."""
        return _highest(self.grants)

    @property
    def is_admin(self) -> bool:
        """Of everything: the control API is theirs."""
        return self.everywhere is not None and self.everywhere >= Role.ADMIN

    @property
    def everywhere(self) -> Role | None:
        """The role that they have on everything, which is not a question of tables."""
        return _highest(grant for grant in self.grants if grant.namespace == ANY and grant.table == ANY)

    def on_table(self, levels: Sequence[str], table: str) -> Role | None:
        """None: they do not see it."""
        return _highest(grant for grant in self.grants if grant.covers(levels, table))

    def on_namespace(self, levels: Sequence[str]) -> Role | None:
        """What they may do with the namespace itself: more than reading takes all of its tables."""
        covering = [grant for grant in self.grants if grant.covers_namespace(levels)]
        whole = _highest(grant for grant in covering if grant.table == ANY)
        return whole or (Role.READER if covering else None)

    def sees_namespace(self, levels: Sequence[str]) -> bool:
        """One that a grant covers, and those on the way to it."""
        inside = ".".join(levels) + "."
        return self.on_namespace(levels) is not None or any(
            grant.namespace.startswith(inside) for grant in self.grants
        )


# The process that writes the tables.
ENGINE = Principal("the engine", (Grant(Role.ENGINE),), "engine key")
# Whoever is on this machine, where no token is asked for; and who has the data folder's operator key.
LOCAL = Principal("a local user", (Grant(Role.ADMIN),), "local")


def _highest(grants: Iterable[Grant]) -> Role | None:
    return max((grant.role for grant in grants), default=None)


def _matches(pattern: str, text: str) -> bool:
    """Only `*` and `?` are special: brackets are characters that a name may have."""
    return fnmatchcase(text, pattern.replace("[", "[[]"))
