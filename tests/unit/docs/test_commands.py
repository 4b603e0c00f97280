"""Commands in the documents exist, with the options that are shown."""

from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from headgate.cli.main import app
from tests.unit.docs.commands import problem, shown_commands
from tests.unit.docs.pages import PAGES, ROOT, name


@pytest.fixture(scope="module")
def root() -> TyperGroup:
    found = get_command(app)
    assert isinstance(found, TyperGroup)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_exists(page: Path, root: TyperGroup) -> None:
    wrong = [
        f"line {number}: headgate {' '.join(words)}: {found}"
        for number, words in shown_commands(page.read_text())
        if (found := problem(words, root))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("page", "least"), [("README.md", 5), ("docs/tutorials/orders.md", 15), ("docs/reference/cli.md", 8)]
)
def test_the_commands_are_found(page: str, least: int) -> None:
    assert len(list(shown_commands((ROOT / page).read_text()))) >= least


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("headgate up", ["up"]),
        ("$ headgate up &", ["up"]),
        ("A=1 .venv/bin/headgate --data x up  # why", ["--data", "x", "up"]),
        ("cd x && headgate status --json | less", ["status", "--json"]),
        ("headgate query \"SELECT m['a'] FROM t\"", ["query", "SELECT m['a'] FROM t"]),
        (
            "headgate up [--config FILE]\n     [--data DIR]",
            ["up", "--config", "FILE", "--data", "DIR"],
        ),
        ("headgate topic list \\\n  --json", ["topic", "list", "--json"]),
    ],
)
def test_what_counts_as_a_command(line: str, words: list[str]) -> None:
    assert [found for _, found in shown_commands(f"text\n```\n{line}\n```\n")] == [words]


@pytest.mark.parametrize(
    "text",
    ["headgate gone", "`headgate gone`", "```python\nheadgate gone\n```", "```\nheadgate: no\n```"],
)
def test_what_does_not(text: str) -> None:
    assert list(shown_commands(text)) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("table list --data DIR", None),
        ("--data DIR table list", None),
        ("table enable TOPIC --from latest --freshness=5s", None),
        ("table list|show --json", None),
        ("table disable TOPIC --purge --yes", None),
        ("query SQL --help", None),
        ("tables list", "there is no command tables"),
        ("table rename TOPIC", "there is no command rename"),
        ("table list|rename", "there is no command rename"),
        ("table list --colour", "there is no option --colour"),
        ("table list|sync --json", "there is no option --json"),
        ("--json table list", "there is no option --json"),
        ("table enable TOPIC --from latest OTHER", "there is no argument for OTHER"),
        ("table list TOPIC", "there is no argument for TOPIC"),
    ],
)
def test_the_check_itself(line: str, found: str | None, root: TyperGroup) -> None:
    assert problem(line.split(), root) == found
