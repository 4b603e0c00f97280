"""What a demo is made with: the command line, the API, and where it shows things."""

import shlex
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Progress(Protocol):
    def update(self, text: str, done: float | None = None, total: float | None = None) -> None: ...


class Screen(Protocol):
    """Where a demo shows what it does."""

    def step(self, text: str) -> None: ...
    def say(self, text: str) -> None: ...
    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None: ...
    def progress(self, text: str) -> AbstractContextManager[Progress]: ...


class Headgate(Protocol):
    """A running Headgate, by its commands and its API."""

    def run(self, words: Sequence[str]) -> None:
        """A `headgate` command, without the first word, as a user types it."""

    def get(self, *path: str) -> Any:
        """What the API answers at a path."""

    def prepare_queries(self) -> None:
        """Starts what answers queries, which takes a while, without waiting for it."""

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query of the lake."""


def shown_command(words: Sequence[str]) -> str:
    """A command as one would type it: SQL in double quotes, so that the single ones in it may stay."""
    return " ".join(
        ["headgate", *(f'"{w}"' if "'" in w and not set(w) & set('"$`\\') else shlex.quote(w) for w in words)]
    )


def type_command(words: Sequence[str], headgate: Headgate, screen: Screen) -> None:
    """Runs a command, shown as one would type it."""
    screen.say(f"$ {shown_command(words)}")
    headgate.run(words)
