"""Every setting and every command is documented."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.core import TyperGroup
from typer.main import get_command

from headgate.cli.main import app
from headgate.config import Settings

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def keys(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def commands() -> Iterator[str]:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        yield f"## headgate {name}"
        if name == "table" and isinstance(command, TyperGroup):
            yield from (f"headgate table {sub}" for sub in command.commands)


@pytest.mark.parametrize("key", list(keys(Settings)))
def test_a_setting_has_its_row(key: str) -> None:
    assert f"| `{key}` |" in (REFERENCE / "configuration.md").read_text()


def test_no_row_is_of_a_setting_that_is_gone() -> None:
    rows = [
        line for line in (REFERENCE / "configuration.md").read_text().splitlines() if line.startswith("| `")
    ]

    assert {row.split("`")[1] for row in rows} == set(keys(Settings))


@pytest.mark.parametrize("command", list(commands()))
def test_a_command_has_its_place(command: str) -> None:
    assert command in (REFERENCE / "cli.md").read_text()
