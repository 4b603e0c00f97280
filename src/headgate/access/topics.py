"""What a caller may do with topics, tables and statements, which all go by the names of topics; pure.

What they may not see is not there: the same error as for a name that nobody has. What they see and may not
change is refused with the role that it takes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.access.roles import LOCAL, Principal, Role
from headgate.errors import NotAllowed, NotFound

# Where a request's ASGI scope has the rights of its caller.
RIGHTS = "headgate.rights"


@dataclass(frozen=True)
class TopicRights:
    """`cluster` is the namespace of the topics' tables, by which grants name them."""

    caller: Principal
    cluster: str

    def role(self, topic: str) -> Role | None:
        """None: they do not see it."""
        return self.caller.on_table((self.cluster,), topic)

    def has(self, topic: str, needed: Role) -> bool:
        role = self.role(topic)
        return role is not None and role >= needed

    def sees(self, topic: str) -> bool:
        return self.role(topic) is not None

    def sees_all(self, topics: Iterable[str]) -> bool:
        return all(map(self.sees, topics))

    @property
    def is_everywhere(self) -> bool:
        """Whether they read everything, whatever it is called."""
        return self.caller.everywhere is not None

    def check(self, topic: str, needed: Role, missing: NotFound) -> None:
        """`missing` is what is answered where there is none of the name."""
        role = self.role(topic)
        if role is None:
            raise missing
        if role < needed:
            raise self._refusal(needed, f"'{topic}'")

    def check_makes(self, topic: str, needed: Role = Role.WRITER) -> None:
        """A topic or table of this name, whether or not there is one: the answer does not tell."""
        if not self.has(topic, needed):
            raise self._refusal(needed, f"'{topic}'")

    def check_everywhere(self, needed: Role) -> None:
        """What is no question of topics."""
        if self.caller.everywhere is None or self.caller.everywhere < needed:
            raise self._refusal(needed, "everything")

    def _refusal(self, needed: Role, what: str) -> NotAllowed:
        return NotAllowed(
            f"{self.caller.name} may not do this: it takes the role {needed} on {what}.",
            f"Use another credential: `headgate credentials create NAME --role {needed}`.",
        )

    # -- statements

    def sees_statement(self, options: Mapping[str, Any]) -> bool:
        """A statement shows its SQL: it is for those who may read all that it reads and writes."""
        names = names_in(options)
        return self.is_everywhere if names is None else self.sees_all(names)

    def check_statement(self, options: Mapping[str, Any], needed: Role, missing: NotFound) -> None:
        """What is done to a statement takes the role on the topic that it writes."""
        if not self.sees_statement(options):
            raise missing
        output = output_in(options)
        if output is None:
            self.check_everywhere(needed)
        else:
            self.check(output, needed, missing)


def names_in(options: Mapping[str, Any]) -> frozenset[str] | None:
    """The tables and views that a statement was made with, and its output; None where it does not say."""
    pinned = options.get("tables")
    if pinned is None:
        return None
    output = output_in(options)
    return frozenset(
        (*pinned.get("tables", ()), *pinned.get("views", ()), *(() if output is None else (output,)))
    )


def output_in(options: Mapping[str, Any]) -> str | None:
    """The topic that a statement writes; None where its record does not say."""
    topic = ((options.get("tables") or {}).get("output") or {}).get("topic")
    return None if topic is None else str(topic)


def all_rights(cluster: str = "local") -> TopicRights:
    """Of who may do everything."""
    return TopicRights(LOCAL, cluster)
