"""What commands print: results to stdout, progress and errors to stderr.

Without a terminal, or with NO_COLOR, everything is plain text that can be searched.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

import typer

PLAIN_INTERVAL = 5.0


def say(text: str) -> None:
    """One line of a result."""
    typer.echo(printable(text))


def say_lines(text: str) -> None:
    """A result that has lines of its own, as SQL has."""
    for line in text.splitlines():
        say(line)


def complain(text: str) -> None:
    """What went wrong. A log's end that comes with it keeps its lines."""
    lines = [printable(line) for line in text.splitlines()]
    typer.echo("headgate: " + "\n".join(lines), err=True)


def note(text: str) -> None:
    """What happens meanwhile."""
    typer.echo(printable(text), err=True)


def print_json(content: object) -> None:
    # Control characters leave json.dumps escaped; the rest is for people to read.
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Rows under headings. Without a terminal nothing is cut or wrapped."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(title, columns, cells)
        return
    widths = [max(len(line[i]) for line in [list(columns), *cells]) for i in range(len(columns))]
    for line in [list(columns), *cells]:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def print_fields(title: str, fields: Sequence[tuple[str, object]]) -> None:
    """One thing: its name, then what there is to say of it, line by line."""
    typer.echo(printable(title))
    width = max((len(name) for name, _ in fields), default=0)
    for name, value in fields:
        typer.echo(f"  {name.ljust(width)}  {printable(value)}".rstrip())


def printable(value: object) -> str:
    """As text; control characters become visible, so that data cannot steer a terminal."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Progress(Protocol):
    """What a command that waits reports to."""

    def update(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """What is awaited now; with `total`, how much of it is done."""


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """On a terminal a line that moves, gone at the end; otherwise a line each time the text changes."""
    if not sys.stderr.isatty():
        plain = _PlainProgress(sys.stderr)
        plain.update(text)
        yield plain
        return
    with _RichProgress(text) as shown:
        yield shown


class _PlainProgress:
    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._said = ""
        self._at = float("-inf")

    def update(self, text: str, done: float | None = None, total: float | None = None) -> None:
        line = printable(text) if total is None else f"{printable(text)} ({done or 0:.0f} of {total:.0f})"
        # Numbers move all the time: a log gets a line of them now and then, and each new text at once.
        due = time.monotonic() - self._at >= PLAIN_INTERVAL
        if line == self._said or (not due and total is not None):
            return
        self._said, self._at = line, time.monotonic()
        self._out.write(f"{line}\n")
        self._out.flush()


class _RichProgress:
    def __init__(self, text: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(printable(text), total=None)

    def update(self, text: str, done: float | None = None, total: float | None = None) -> None:
        self._bar.update(self._task, description=printable(text), completed=done, total=total)

    def __enter__(self) -> "_RichProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


def _print_rich(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    Console().print(table)


def age(seconds: Any) -> str:
    """A span of time as people say it: 4 s, 3 min, 2.5 h, 8 d."""
    if seconds is None:
        return ""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} d"
