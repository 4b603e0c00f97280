"""Links and pictures in the documents lead somewhere."""

from pathlib import Path

import pytest

from tests.unit.docs.links import anchors, dead_links
from tests.unit.docs.pages import PAGES, ROOT, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_link_leads_nowhere(page: Path) -> None:
    assert dead_links(page, ROOT) == []


def test_every_page_is_in_the_contents() -> None:
    contents = ROOT / "docs" / "index.md"
    missing = [
        name(page)
        for page in ROOT.glob("docs/**/*.md")
        if page != contents and f"({page.relative_to(contents.parent)})" not in contents.read_text()
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[a](there.md) and ![b](there.png)", []),
        ("[a](there.md#a-heading-of-42) and [b](#here)\n# Here", []),
        ("[a](https://example.org/gone) and [b](mailto:a@example.org)", []),
        ("`[a](gone.md)`\n\n```\n[b](gone.md)\n```", []),
        ("[a](gone.md)", ["page.md:1: gone.md is not there"]),
        ("\n![a](gone.png 'title')", ["page.md:2: gone.png is not there"]),
        ("[a]: gone.md", ["page.md:1: gone.md is not there"]),
        ("[a](there.md#gone)", ["page.md:1: there.md#gone names a heading that is not there"]),
        ("[a](#gone)", ["page.md:1: #gone names a heading that is not there"]),
        ("[a](../../elsewhere.md)", ["page.md:1: ../../elsewhere.md leads out of the project"]),
    ],
)
def test_the_check_itself(tmp_path: Path, text: str, problems: list[str]) -> None:
    (tmp_path / "there.md").write_text("# A *heading* of `42`!\n")
    (tmp_path / "there.png").write_bytes(b"")
    page = tmp_path / "page.md"
    page.write_text(text)

    assert dead_links(page, tmp_path) == problems


def test_headings_that_are_the_same_are_counted(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n## [Two](x.md)\n## One\n```\n# no heading\n```\n")

    assert anchors(page) == {"one", "two", "one-1"}
