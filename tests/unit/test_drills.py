"""What every drill of the data path ends with: the ledger, then `headgate table verify`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "faults"
# The accounts of tests/support that compare a table with what was sent, by how they are called.
ACCOUNTS = frozenset({"stream.check", "stream.check_dead", "ledger.check", "check_keyed", "check_delta"})


def calls(node: ast.AST) -> Iterator[tuple[int, str]]:
    """The calls in a function, not those in functions within it: lines, and the last two names of each."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef):
            continue
        if isinstance(inner, ast.Call):
            parts = ast.unparse(inner.func).split(".")[-2:]
            yield inner.lineno, ".".join(part.lstrip("_") for part in parts)
        yield from calls(inner)


def unverified(source: str) -> list[str]:
    """The functions whose last account of a table is not followed by a verification."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name not in ACCOUNTS:
            made = list(calls(node))
            accounts = [line for line, name in made if name in ACCOUNTS]
            verified = [line for line, name in made if name.rpartition(".")[2] == "verify"]
            if accounts and max(verified, default=0) < max(accounts):
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_drill_ends_with_a_verification_of_its_table(path: Path) -> None:
    assert unverified(path.read_text()) == []


def test_a_drill_without_one_is_noticed() -> None:
    drill = "def ends(stream):\n    stack.verify('t')\n    stream.check()\n    {}\n"
    assert unverified(drill.format("pass")) == ["ends"]
    assert unverified(drill.format("stack.verify('t')")) == []
