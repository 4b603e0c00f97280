"""What the caller of a script may do with what its statements name."""

from headgate.access.roles import Role
from headgate.access.topics import TopicRights
from headgate.errors import InvalidRequest, NotFound
from headgate.sql import statements as sql
from headgate.store import StatementRecord, Statements


class Permissions:
    """Rights as a script needs them; which topics may be read, the planner's tables show."""

    def __init__(self, rights: TopicRights, statements: Statements) -> None:
        self._rights = rights
        self._statements = statements

    def sees(self, name: str) -> bool:
        return self._rights.sees(name)

    def check_makes(self, name: str) -> None:
        """A table or view of this name."""
        self._rights.check_makes(name)

    def check_writes(self, table: str) -> None:
        """The rows, or the declaration, of a table that is there."""
        self._rights.check(table, Role.WRITER, no_table(table))

    def check_drops(self, drop: sql.Drop) -> None:
        """Something that is there. Records are gone for good with their topic: that takes an admin of it."""
        missing = no_such(drop)
        match drop.kind:
            case "table":
                self._rights.check(drop.name, Role.ADMIN, missing)
            case "view":
                self._rights.check(drop.name, Role.WRITER, missing)
            case "statement":
                self._rights.check_statement(self._statements.get(drop.name).options, Role.WRITER, missing)

    def seen_statements(self) -> list[StatementRecord]:
        return [one for one in self._statements.all() if self._rights.sees_statement(one.options)]

    def in_use(self, table: str, record: StatementRecord) -> InvalidRequest:
        """Why a table cannot be dropped; who may not see the statement is not told its name."""
        if not self._rights.sees_statement(record.options):
            return InvalidRequest(f"A statement uses table '{table}'.", "Ask an admin to stop it.")
        return InvalidRequest(
            f"Statement '{record.name}' uses table '{table}'.",
            f"Stop it first: `headgate statement stop {record.name}`.",
        )


def no_table(name: str) -> NotFound:
    return NotFound(f"There is no table '{name}'.", "SHOW TABLES lists those that are.")


def no_such(drop: sql.Drop) -> NotFound:
    return NotFound(
        f"There is no {drop.kind} '{drop.name}'.", f"SHOW {drop.kind.upper()}S lists those that are."
    )
