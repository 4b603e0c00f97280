"""What a Headgate has, and how a module of tests that shares it takes away what it made."""

from dataclasses import dataclass

import httpx

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


def in_catalog(stack: Stack) -> set[str]:
    answer = httpx.get(f"{stack.runtime.iceberg}/v1/namespaces/local/tables", trust_env=False)
    if answer.status_code == 404:
        return set()
    return {one["name"] for one in answer.raise_for_status().json()["identifiers"]}


def take_away(stack: Stack, before: There) -> None:
    """What came since: nobody after it is to stumble upon it."""
    now = There.on(stack)
    # A table that was disabled keeps its rows, and would be no table of the next topic of its name.
    kept = (now.topics - before.topics - now.tables) & in_catalog(stack)
    for name in sorted(kept):
        stack.run("table", "enable", name)
    for name in sorted(now.statements - before.statements):
        stack.run("statement", "delete", name)
    for name in sorted((now.tables - before.tables) | kept):
        stack.run("table", "disable", name, "--purge", "--yes")
    for name in sorted(now.topics - before.topics):
        stack.run("sql", "-e", f"DROP TABLE IF EXISTS `{name}`")
