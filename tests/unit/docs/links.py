"""Where the links and pictures of a page lead."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tests.unit.docs.pages import lines

_INLINE = re.compile(r"\]\(\s*<?([^)<>\s]+)>?(?:\s+[\"'][^)]*)?\)")
_DEFINED = re.compile(r"^\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_LINK_TEXT = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def dead_links(page: Path, root: Path) -> list[str]:
    """Relative links of `page` that lead out of `root`, or to files or headings that are not there."""
    return [problem for number, target in _targets(page) if (problem := _problem(page, target, number, root))]


def _targets(page: Path) -> Iterator[tuple[int, str]]:
    for line in lines(page.read_text()):
        if line.language is not None:
            continue
        text = _CODE.sub("", line.text)
        for target in (*_INLINE.findall(text), *_DEFINED.findall(text)):
            if not _SCHEME.match(target):
                yield line.number, target


def _problem(page: Path, target: str, number: int, root: Path) -> str | None:
    path, _, anchor = target.partition("#")
    file = (page.parent / unquote(path)).resolve() if path else page
    where = f"{page.name}:{number}: {target}"
    if not file.is_relative_to(root.resolve()):
        return f"{where} leads out of the project"
    if not file.exists():
        return f"{where} is not there"
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"{where} names a heading that is not there"
    return None


def anchors(page: Path) -> set[str]:
    """The names by which headings are linked to, made as GitHub makes them."""
    met: Counter[str] = Counter()
    found: set[str] = set()
    for line in lines(page.read_text()):
        heading = _HEADING.match(line.text) if line.language is None else None
        if heading:
            words = _LINK_TEXT.sub(r"\1", heading[1]).lower()
            slug = "".join(c for c in words if c.isalnum() or c in " -_").replace(" ", "-")
            found.add(f"{slug}-{met[slug]}" if met[slug] else slug)
            met[slug] += 1
    return found
