"""The documents, and what is in them: text apart from code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*(\S*)")


@dataclass(frozen=True)
class Line:
    """A line of a page; `language` is that of the code block it is in, None outside of one."""

    number: int
    text: str
    language: str | None


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def lines(text: str) -> Iterator[Line]:
    """All lines but the fences."""
    fence, language = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if found and not fence:
            fence, language = found[1], found[2]
        elif found and found[1].startswith(fence) and not found[2]:
            fence = ""
        else:
            yield Line(number, line, language if fence else None)
