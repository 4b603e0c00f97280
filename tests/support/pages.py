"""Documents as they are typed: every command, script and program of a page is run, its output compared.

A code block is a shell's commands, SQL, Python, or what the block before it printed. HTML comments before
a block say otherwise:

    <!-- not run: REASON -->    nobody runs it here
    <!-- file: NAME -->         it is the content of a file in the folder of who types
    <!-- part -->               of the output, these lines are among it
    <!-- soon -->               the output is so before long: what only looks is run again until it is
    <!-- figures -->            before this block a world has its figures: tests look at them here

and anywhere on the page

    <!-- varies: PATTERN -->    what matches is another each time. What it is, is known once it was printed,
                                and stands for it in later commands: the id of a snapshot
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.stack import HEADGATE, Stack

ROOT = Path(__file__).parents[2]
SHELL = ("", "bash", "console", "sh", "shell")
SOON_SECONDS = 180.0
# Pages are written again with what commands print, instead of failing.
REWRITE = "REWRITE_PAGES"
_FENCE = re.compile(r"^\s*(`{3,})(\S*)\s*$")
_COMMENT = re.compile(r"^\s*<!--\s*(not run|file|part|soon|figures|varies)(?::\s*(.*?))?\s*-->\s*$")
_COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:headgate|export|python|cd|kill|make|echo) ?")
_PATH = re.compile(r"^export (?:PATH|HEADGATE_DATA)=")
# Done once: a second time it is refused, or does more than the page says.
_ACTS = re.compile(r"^(?:table (?:enable|alter|disable)|datagen|statement (?:stop|start)|apply)\b")


@dataclass(frozen=True)
class Block:
    """A code block: where its text begins on the page, under which heading, and what is said of it."""

    line: int
    language: str
    lines: tuple[str, ...]
    said: dict[str, str]
    heading: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def is_commands(self) -> bool:
        return self.language in SHELL and bool(self.lines) and bool(_COMMAND.match(self.lines[0]))

    @property
    def is_output(self) -> bool:
        return self.language in SHELL and not self.is_commands


@dataclass(frozen=True)
class Page:
    name: str
    blocks: tuple[Block, ...]
    varies: tuple[str, ...]


def read_page(name: str) -> Page:
    blocks: list[Block] = []
    varies: list[str] = []
    said: dict[str, str] = {}
    fence, language, begun, inside, heading = "", "", 0, list[str](), ""
    for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
        found = _FENCE.match(line)
        if fence:
            if found and found[1] == fence and not found[2]:
                blocks.append(Block(begun, language, tuple(inside), said, heading))
                fence, said = "", {}
            else:
                inside.append(line)
        elif found:
            fence, language, begun, inside = found[1], found[2], number + 1, []
        elif comment := _COMMENT.match(line):
            if comment[1] == "varies":
                varies.append(comment[2])
            else:
                said[comment[1]] = comment[2] or ""
        elif line.strip():
            said = {}
            if line.startswith("#"):
                heading = line.lstrip("#").strip()
    return Page(name, tuple(blocks), tuple(varies))


def commands(lines: Sequence[str]) -> Iterator[list[str]]:
    """The commands of a block; a line goes on after a backslash, and while a quote is open."""
    held = ""
    for line in lines:
        held = f"{held}\n{line}" if held else line
        if held.endswith("\\"):
            held = held.removesuffix("\\").rstrip()
            continue
        try:
            words = shlex.split(held, comments=True)
        except ValueError:
            continue
        held = ""
        if words:
            yield words[1:] if words[0] == "$" else words
    assert not held, f"a quote is left open: {held}"


@dataclass
class Typist:
    """Who types a page, in a folder of their own, on a Headgate that runs."""

    stack: Stack
    page: Page
    folder: Path
    #: What the page says, and what it is here.
    known: dict[str, str] = field(default_factory=dict)
    #: The number of the block that is next.
    at: int = 0

    def __post_init__(self) -> None:
        here = self.stack.runtime
        for said, is_here in (("127.0.0.1:9092", here.kafka), ("http://127.0.0.1:8080/", here.console)):
            self.known[said] = is_here
        (self.folder / "examples").symlink_to(ROOT / "examples")

    def type_on(self, until: str | None = None) -> None:
        """The blocks from where it stands, in order, up to one of which that is said."""
        while self.at < len(self.page.blocks):
            number, block = self.at, self.page.blocks[self.at]
            if until is not None and until in block.said:
                return
            self.at += 1
            if "not run" in block.said or block.is_output:
                continue
            following = self.page.blocks[number + 1 : number + 2]
            expected = following[0] if following and following[0].is_output else None
            if expected is not None and "not run" in expected.said:
                expected = None
            self._type(block, expected)
        assert until is None, f"nothing on {self.page.name} is said to be '{until}'"

    def _type(self, block: Block, expected: Block | None) -> None:
        where = f"{self.page.name}:{block.line}"
        if (name := block.said.get("file")) is not None:
            (self.folder / name).write_text(self._here(block.text) + "\n")
            return
        deadline = time.monotonic() + (
            SOON_SECONDS if expected is not None and "soon" in expected.said else 0
        )
        done: dict[int, str] = {}
        while True:
            try:
                printed = self._run(block, where, done)
            except AssertionError:
                # What is asked for may not be there yet either: a column of a schema that is to come.
                if time.monotonic() >= deadline:
                    raise
                time.sleep(1)
                continue
            if expected is None:
                return
            problem = self._difference(expected, printed)
            if problem is None:
                return
            if time.monotonic() >= deadline:
                assert REWRITE in os.environ, f"{where}: {problem}"
                self._rewrite(expected, printed)
                return
            time.sleep(1)

    def _rewrite(self, expected: Block, printed: str) -> None:
        """The page with what is printed now, for who reads the difference afterwards."""
        page = ROOT / self.page.name
        page.write_text(
            page.read_text().replace(f"```\n{expected.text}\n```", f"```\n{printed.rstrip()}\n```", 1)
        )

    def _run(self, block: Block, where: str, done: dict[int, str]) -> str:
        """`done`: what the commands of the block printed that are not run again, by their number."""
        match block.language:
            case "sql":
                script = self.folder / "typed.sql"
                script.write_text(self._here(block.text) + "\n")
                return self._call([HEADGATE, "sql", "-f", str(script)], where)
            case "python":
                return self._call([sys.executable, "-c", self._here(block.text)], where)
            case _ if block.is_commands:
                printed = []
                for number, words in enumerate(self._typed(block, where)):
                    said = done.get(number)
                    if said is None:
                        said = self._call(words, where)
                    if _ACTS.match(" ".join(words[1:])):
                        done[number] = said
                    printed.append(said)
                return "".join(printed)
        raise AssertionError(f"{where}: nobody knows how to run {block.language}; say `not run` and why")

    def _typed(self, block: Block, where: str) -> Iterator[list[str]]:
        for words in commands(self._here(block.text).splitlines()):
            if _PATH.match(f"{words[0]} {words[1] if len(words) > 1 else ''}"):
                continue
            assert words[0] == "headgate", f"{where}: {words[0]} is not run here; say `not run` and why"
            yield [HEADGATE, *words[1:]]

    def _call(self, words: list[str], where: str) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
        done = subprocess.run(
            words,
            cwd=self.folder,
            env={**environment, "HEADGATE_DATA": str(self.stack.data)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{where}: {shlex.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _here(self, text: str) -> str:
        """A text of the page with what is known to be another here."""
        for said, here in self.known.items():
            text = text.replace(said, here)
        return text

    def _difference(self, expected: Block, printed: str) -> str | None:
        """What is printed otherwise than the page says; what varies is known from then on."""
        wanted, found = _lines(expected.text), _lines(printed)
        if "part" in expected.said:
            found = [line for line in found if any(self._pattern(want).fullmatch(line) for want in wanted)]
        if len(wanted) == len(found):
            matches = [self._pattern(want).fullmatch(line) for want, line in zip(wanted, found, strict=True)]
            if all(matches):
                for want, match in zip(wanted, matches, strict=True):
                    self._learn(want, match)
                return None
        return "it prints\n" + printed + "\nand not\n" + expected.text

    def _parts(self, text: str) -> list[str]:
        """A line of output: what is always the same, what varies, and so on, by turns."""
        if not self.page.varies:
            return [text]
        return re.split(f"({'|'.join(f'(?:{pattern})' for pattern in self.page.varies)})", text)

    def _pattern(self, line: str) -> re.Pattern[str]:
        varies = "|".join(f"(?:{pattern})" for pattern in self.page.varies)
        parts = self._parts(line)
        made = [
            f"({varies})" if number % 2 else re.escape(self._here(part)) for number, part in enumerate(parts)
        ]
        # How wide a column is depends on what is in it.
        return re.compile(re.sub(r"(?:\\ ){2,}|(?:\\ )+$", r"\\s+", "".join(made)) + r"\s*")

    def _learn(self, line: str, match: re.Match[str] | None) -> None:
        assert match is not None
        for said, here in zip(self._parts(line)[1::2], match.groups(), strict=True):
            self.known[said] = here


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]
