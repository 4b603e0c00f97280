"""The `headgate` commands that a page shows, held against the command line as it is."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from tests.unit.docs.pages import lines

SHELL = {"", "bash", "console", "sh", "shell"}
# Where a shell begins another command, or a command's arguments end.
_STOPS = {"|", "||", "&&", "&", ";", ">", ">>", "<"}
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_CONTINUES = re.compile(r"^\s+(\[|-)")


def shown_commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and words after `headgate` of each command in the shell's code blocks.

    In a synopsis `[` and `]` say what may be left out: they are taken away. A line that begins with white
    space and an option belongs to the one before it.
    """
    for number, line in _joined(text):
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue  # output, with a lone quote in it
        for command in _commands(words):
            program, *rest = [word for word in command if not _ASSIGNMENT.match(word)] or [""]
            if program.rpartition("/")[2] == "headgate":
                yield number, [word if " " in word else word.strip("[]") for word in rest]


def _joined(text: str) -> Iterator[tuple[int, str]]:
    number, held = 0, ""
    for line in lines(text):
        if line.language not in SHELL:
            continue
        words = line.text.removeprefix("$ ")
        if held and (held.endswith("\\") or _CONTINUES.match(words)):
            held = f"{held.removesuffix(chr(92))} {words}"
            continue
        if held:
            yield number, held
        number, held = line.number, words
    if held:
        yield number, held


def _commands(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in words:
        if word in _STOPS:
            yield command
            command = []
        else:
            command.append(word)
    yield command


def problem(words: list[str], root: TyperGroup) -> str | None:
    """What is wrong with these words after `headgate`: a command, option or argument that there is not."""
    # Several, when a synopsis names them as `list|show`.
    here: list[Any] = [root]
    arguments, waiting = 0, list(words)
    while waiting:
        word = waiting.pop(0)
        if word.startswith("-"):
            option, _, value = word.partition("=")
            flags = [_is_flag(command, option) for command in here]
            if None in flags:
                return f"there is no option {option}"
            if not value and not any(flags) and waiting:
                waiting.pop(0)
        elif isinstance(here[0], TyperGroup):
            unknown = [name for name in word.split("|") if name not in here[0].commands]
            if unknown:
                return f"there is no command {unknown[0]}"
            here = [here[0].commands[name] for name in word.split("|")]
        else:
            arguments += 1
            if any(arguments > _arguments(command) for command in here):
                return f"there is no argument for {word}"
    return None


def _is_flag(command: Any, option: str) -> bool | None:
    """Whether an option stands alone; None when there is no such option."""
    if option == "--help":
        return True
    found = [p for p in command.params if option in (*p.opts, *p.secondary_opts)]
    return bool(found[0].is_flag) if found else None


def _arguments(command: Any) -> int:
    return sum(1 for parameter in command.params if parameter.param_type_name == "argument")
