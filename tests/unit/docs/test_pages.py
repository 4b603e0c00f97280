"""Pages are typed as they stand: what of them is typed, and how what is printed is compared."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support import pages, recipes
from tests.support.pages import Page, Typist, commands, read_page
from tests.unit.docs.pages import ROOT

TYPED = ["README.md", *(str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "tutorials").glob("*.md"))]
TYPISTS = [ROOT / "tests" / "e2e" / name for name in ("test_worlds.py", "test_pages.py")]


@pytest.mark.parametrize("name", TYPED)
def test_every_block_is_typed_or_says_why_not(name: str) -> None:
    page = read_page(name)
    assert page.blocks
    for block in page.blocks:
        where = f"{name}:{block.line}"
        if "not run" in block.said:
            assert len(block.said["not run"]) > 5, f"{where} does not say why it is not run"
        elif "file" not in block.said:
            assert block.language in ("sql", "python") or block.is_commands or block.is_output, where
        if block.is_commands and "not run" not in block.said:
            first = [words[0] for words in commands(block.lines)]
            assert set(first) <= {"headgate", "export"}, f"{where} runs {first}"


@pytest.mark.parametrize("name", TYPED)
def test_somebody_types_it(name: str) -> None:
    assert any(f'"{name}"' in file.read_text() for file in TYPISTS)


@pytest.mark.parametrize("file", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=lambda file: file.stem)
def test_every_recipe_is_run_or_says_why_not(file: Path) -> None:
    assert str(file.relative_to(ROOT)) == recipes.NAME, "write a test that types it"
    run = set()
    for block in recipes.page().blocks:
        known = (block.heading, block.language)
        if known in recipes.RUN and known not in run:
            assert "not run" not in block.said
            run.add(known)
        else:
            reason = block.said.get("not run", "")
            assert len(reason) > 5, f"{file.name}:{block.line} is not run, and does not say why"
    assert run == set(recipes.RUN)


@pytest.fixture
def typist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def on(text: str) -> Typist:
        (tmp_path / "page.md").write_text(text)
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / "examples").unlink(missing_ok=True)
        monkeypatch.setattr(pages, "ROOT", tmp_path)
        runtime = SimpleNamespace(kafka="127.0.0.1:5", console="http://127.0.0.1:6/")
        stack = cast(Any, SimpleNamespace(runtime=runtime, data=tmp_path))
        return Typist(stack, read_page("page.md"), tmp_path / "folder")

    return on


def python(code: str, *output: str, before: str = "") -> str:
    shown = "\n".join(output)
    return f"{before}\n```python\n{code}\n```\n\n```\n{shown}\n```\n"


def test_an_output_that_is_shown_otherwise_fails(typist: Any) -> None:
    typist(python("print(1)", "1")).type_on()
    with pytest.raises(AssertionError, match=r"page\.md:3: it prints\n1\n"):
        typist(python("print(1)", "2")).type_on()
    with pytest.raises(AssertionError, match="it prints"):
        typist(python("print(1); print(2)", "1")).type_on()


def test_a_program_that_fails_fails(typist: Any) -> None:
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        typist("```python\n1 / 0\n```\n").type_on()


def test_what_varies_is_known_afterwards(typist: Any) -> None:
    varies = r"<!-- varies: \d{6} -->"
    text = python("print('id', 111222)", "id 333444", before=varies) + python("print(333444 + 1)", "111223")
    typist(text).type_on()
    with pytest.raises(AssertionError, match="it prints"):
        typist(python("print('id', 111)", "id 333444", before=varies)).type_on()


def test_columns_may_be_wider_and_words_may_not_be_others(typist: Any) -> None:
    typist(python("print('a     b')", "a  b")).type_on()
    with pytest.raises(AssertionError, match="it prints"):
        typist(python("print('a     c')", "a  b")).type_on()


def test_of_an_output_some_lines_are_shown_in_their_order(typist: Any) -> None:
    code = "print('one'); print('two'); print('three')"
    for shown, fits in ((("one", "three"), True), (("three", "one"), False), (("one", "four"), False)):
        page = python(code, *shown).replace("```\n\n```\n", "```\n\n<!-- part -->\n```\n")
        if fits:
            typist(page).type_on()
        else:
            with pytest.raises(AssertionError, match="it prints"):
                typist(page).type_on()


def test_what_comes_soon_is_asked_again(typist: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import pathlib; p = pathlib.Path('n'); n = len(p.read_text()) if p.exists() else 0\n"
    code += "p.write_text('x' * (n + 1)); print(n)"
    page = python(code, "1").replace("```\n\n```\n", "```\n\n<!-- soon -->\n```\n")
    typist(page).type_on()
    monkeypatch.setattr(pages, "SOON_SECONDS", 0)
    with pytest.raises(AssertionError, match="it prints"):
        typist(page).type_on()


def test_files_are_put_where_commands_run(typist: Any) -> None:
    text = "<!-- file: a.txt -->\n```sql\nSELECT 1;\n```\n" + python(
        "print(open('a.txt').read())", "SELECT 1;"
    )
    typist(text).type_on()


def test_it_stops_where_the_figures_are_and_goes_on(typist: Any) -> None:
    text = "```python\nopen('a', 'w')\n```\n\n<!-- figures -->\n```python\nopen('b', 'w')\n```\n"
    found = typist(text)
    found.type_on(until="figures")
    assert not (found.folder / "b").exists()
    found.type_on()
    assert (found.folder / "b").exists()
    with pytest.raises(AssertionError, match="said to be 'figures'"):
        typist("```python\n1\n```\n").type_on(until="figures")


def test_addresses_are_those_that_are_here(typist: Any) -> None:
    typist(python("print('http://127.0.0.1:8080/iceberg')", "http://127.0.0.1:8080/iceberg")).type_on()
    found = typist(python("print('127.0.0.1:9092')", "x"))
    with pytest.raises(AssertionError, match=r"127\.0\.0\.1:5"):
        found.type_on()


def test_commands_go_on_after_a_backslash_and_in_quotes() -> None:
    lines = ["headgate a \\", "  b  # why", "", "$ headgate q 'x", "y'"]
    assert list(commands(lines)) == [["headgate", "a", "b"], ["headgate", "q", "x\ny"]]
    with pytest.raises(AssertionError, match="left open"):
        list(commands(["headgate 'a"]))


def test_a_page_is_read_as_it_is_written() -> None:
    page: Page = read_page("README.md")
    assert [block.said for block in page.blocks if "figures" in block.said]


def test_a_page_tells_its_reader_where_the_output_takes_a_while() -> None:
    from tests.support.pages import ROOT

    for file in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = file.read_text()
        if "<!-- soon -->" in text:
            told = text.find("ask again")
            assert 0 <= told < text.index("<!-- soon -->"), (
                f"{file.name}: say `ask again` before the first one"
            )
