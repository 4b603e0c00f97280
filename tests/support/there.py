"""What a Headgate has, and how a module of tests that shares it takes away what it made."""

from dataclasses import dataclass

from tests.support.stack import Stack


@dataclass(frozen=True)
class There:
    """What a Headgate has, by name."""

    topics: frozenset[str]
    statements: frozenset[str]
    tables: frozenset[str]

    @classmethod
    def on(cls, stack: Stack) -> "There":
        return cls(
            frozenset(topic["name"] for topic in stack.json("topic", "list")),
            frozenset(statement["name"] for statement in stack.json("statement", "list")),
            frozenset(table["topic"] for table in stack.json("table", "list")),
        )


def take_away(stack: Stack, before: There) -> None:
    """What came since: nobody after it is to stumble upon it."""
    now = There.on(stack)
    for name in sorted(now.statements - before.statements):
        stack.run("statement", "delete", name)
    for name in sorted(now.tables - before.tables):
        stack.run("table", "disable", name, "--purge", "--yes")
    for name in sorted(now.topics - before.topics):
        stack.run("sql", "-e", f"DROP TABLE IF EXISTS `{name}`")
