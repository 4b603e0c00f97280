"""The README in its shape: what it is, a picture, the two commands, and what others do beside it."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

from tests.unit.docs.pages import ROOT

README = (ROOT / "README.md").read_text()
MOST_WORDS = 75


def paragraphs() -> list[str]:
    """What is said in text: neither code, nor tables, lists, headings and comments."""
    text = re.sub(r"(?ms)^```.*?^```$|^<!--.*?-->$", "", README)
    found = (block.strip() for block in text.split("\n\n"))
    return [block for block in found if block and not re.match(r"[#|!]|\d+\. |- ", block)]


def test_what_it_is_takes_three_sentences() -> None:
    sentences = re.findall(r"[^.]+\.(?=\s|$)", paragraphs()[0])
    assert len(sentences) == 3, sentences


def test_after_that_come_a_picture_and_the_two_commands() -> None:
    intro = README[: README.index("## Quick start")]
    assert intro.index("](docs/images/headgate.svg)") < intro.index("make demo") < intro.index("make test")
    picture = ElementTree.parse(ROOT / "docs" / "images" / "headgate.svg").getroot()
    assert picture.tag.endswith("svg")


@pytest.mark.parametrize("text", paragraphs()[1:], ids=lambda text: text[:30])
def test_no_paragraph_is_a_wall(text: str) -> None:
    assert len(text.split()) <= MOST_WORDS, f"{len(text.split())} words:\n{text}"


def test_what_the_table_beside_others_says_of_headgate_is_held_by_a_test() -> None:
    rows = [line.strip("|").split("|") for line in README.splitlines() if line.startswith("| ")]
    (heading,) = (number for number, cells in enumerate(rows) if cells[1:2] == [" Headgate "])
    peers = len(rows[heading]) - 2
    assert peers >= 3
    beside = [cells[1] for cells in rows[heading + 1 :] if len(cells) == peers + 2]
    assert len(beside) > 8
    assert [cell for cell in beside if "](tests/" not in cell] == []
