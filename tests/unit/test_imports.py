"""Imports go one way: a part knows what lies below it, never what stands beside it or above."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headgate

ROOT = Path(headgate.__file__).parent
# From the ground up. A part may import from itself and from the layers below its own.
LAYERS = [
    {"errors", "failpoints", "backoff", "__init__"},
    {"model", "jvm", "driver_jvm", "partition"},
    {"options"},
    {"config"},
    {"spark", "lake_functions", "store", "decode", "kafka", "delta"},
    {"access", "storage", "worker_daemon"},
    {"registry", "catalog", "embedded", "datagen"},
    {"tables", "worlds"},
    {"maintain", "sql", "publication"},
    {"statements"},
    {"export"},
    {"adhoc", "apply"},
    {"engine", "query", "notebooks", "generators"},
    {"server", "demo"},
    {"cli"},
]
LEVEL = {part: level for level, layer in enumerate(LAYERS) for part in layer}


def part_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_parts(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "headgate":
                names = [f"headgate.{alias.name}" for alias in node.names]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "headgate" and rest:
                part = rest.partition(".")[0]
                yield "__init__" if part.startswith("__") else part


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_go_one_way(file: Path) -> None:
    own = part_of(file)
    assert own in LEVEL, f"say in LAYERS where '{own}' stands"
    for part in set(imported_parts(file)) - {own}:
        assert LEVEL[part] < LEVEL[own] or (part in {"model"} and LEVEL[own] == LEVEL["model"]), (
            f"{file.relative_to(ROOT)} imports {part}, which does not lie below {own}"
        )


def test_the_ground_knows_nothing() -> None:
    assert set(imported_parts(ROOT / "errors.py")) == set()
    assert set(imported_parts(ROOT / "model.py")) == {"errors"}
