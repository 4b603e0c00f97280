"""The quick start and the first tutorial as they are typed, with what they say that one sees."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.services import wait_for
from tests.support.stack import HEADGATE, Stack
from tests.unit.docs.pages import ROOT, lines

README, TUTORIAL = ROOT / "README.md", ROOT / "docs" / "tutorials" / "orders.md"
# Where a reader's Headgate is, and what is another at each time.
ADDRESS = "http://127.0.0.1:8080/iceberg"
_VARIES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\S*|\d{15,}")
_ID = re.compile(r"\d{15,}")


def blocks(text: str, *headings: str) -> list[tuple[str, str]]:
    """The language and text of each code block under these headings."""
    found: list[tuple[str, str]] = []
    before, inside = None, False
    for line in lines(text):
        if line.language is None and line.text.startswith("## "):
            inside = line.text.startswith(headings)
        if inside and line.language is not None:
            # Between two blocks there is a line that is in none of them, or the fences.
            if before is not None and line.number == before + 1:
                language, held = found[-1]
                found[-1] = language, f"{held}\n{line.text}"
            else:
                found.append((line.language, line.text))
            before = line.number
    return found


def commands(held: str) -> list[str]:
    return [line for line in held.splitlines() if line.startswith("headgate ")]


def tutorial() -> list[tuple[str, str]]:
    return blocks(TUTORIAL.read_text(), "## 2. ", "## 3. ", "## 4. ", "## 5. ")


def masked(text: str) -> list[list[str]]:
    return [_VARIES.sub("*", line).split() for line in text.splitlines()]


def in_order(wanted: list[list[str]], said: list[list[str]]) -> bool:
    """Whether all lines are there, in their order; a table has others' lines too."""
    rest: Iterator[list[str]] = iter(said)
    return all(line in rest for line in wanted)


def names(stack: Stack) -> set[str]:
    return {record.spec.topic for record in stack.store.tables()}


@pytest.fixture
def typed(stack: Stack) -> Iterator[dict[str, str]]:
    yield {**os.environ, "HEADGATE_DATA": str(stack.data)}
    for topic in ("orders", "payments"):
        stack.run("table", "disable", topic, "--purge", "--yes")
    wait_for("the tables to be gone", lambda: not {"orders", "payments"} & names(stack))
    for topic in ("customers", "products", "orders", "payments"):
        stack.run("topic", "delete", topic, "--yes")


def test_quick_start_is_a_part_of_the_tutorial() -> None:
    quick = blocks(README.read_text(), "## Quick start")
    shown = [command for _, held in tutorial() for command in commands(held)]
    typed = [command for _, held in quick for command in commands(held)]
    assert [command for command in typed if command not in shown] == [
        "headgate up",
        "headgate apply examples/orders.yaml",
    ]
    assert len(typed) == 6
    assert len(shown) >= 12
    assert {held for language, held in quick if language == "python"} <= {held for _, held in tutorial()}
    assert [held for _, held in quick if held.startswith("method")] == [
        held for _, held in tutorial() if held.startswith("method")
    ]


def test_tutorial_says_what_one_sees(stack: Stack, typed: dict[str, str]) -> None:
    snapshot = said = ""
    checked = 0
    for (language, held), (_, after) in pairwise([*tutorial(), ("", "")]):
        if language == "python":
            code = held.replace(ADDRESS, stack.runtime.iceberg)
            assert code != held
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
            assert (done.returncode, "274583.17" in done.stdout) == (0, True), done.stderr + done.stdout
            continue
        for command in commands(held):
            # The id of the second snapshot, as the command before has shown it.
            _, *words = shlex.split(_ID.sub(snapshot, command) if snapshot else command)
            done = subprocess.run([HEADGATE, *words], env=typed, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stderr)
            said = done.stdout
        if commands(held) and after and not commands(after) and "\n" in after and "import" not in after:
            assert in_order(masked(after), masked(said)), (after, said)
            checked += 1
            if "snapshot_id" in after:
                snapshot = _ID.findall(said)[1]
    assert checked == 5
