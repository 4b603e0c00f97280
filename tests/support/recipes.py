"""The recipes of `docs/how-to/read-tables.md` that are run: the first block of a language under a heading."""

from functools import cache

from tests.support.pages import Page, read_page

NAME = "docs/how-to/read-tables.md"
COMMANDS = ("Read tables", "")
RUN = (
    COMMANDS,
    ("DuckDB", "sql"),
    ("PyIceberg", "python"),
    ("pandas", "python"),
    ("Spark", "properties"),
    ("Spark", "sql"),
    ("Delta", "python"),
)


@cache
def page() -> Page:
    return read_page(NAME)


def recipe(heading: str, language: str) -> str:
    assert (heading, language) in RUN, f"nobody is told that {heading} is run"
    blocks = [block for block in page().blocks if (block.heading, block.language) == (heading, language)]
    assert blocks, f"there is no recipe in {language} for {heading}"
    return blocks[0].text
