"""SELECTs of `headgate sql`: asked, and shown as their rows come."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headgate.cli.client import Client, error_of_line
from headgate.cli.lake import start_driver
from headgate.cli.output import LiveTable, note, print_line, print_table, printable, say
from headgate.cli.query import cell, cost_lines
from headgate.errors import ServerUnavailable

Row = Mapping[str, Any]


class Changes:
    """A result as it changes: by key, what was shown last. Without a key each row stands for itself."""

    def __init__(self, key: Sequence[str] | None) -> None:
        self._key = key
        self.rows: dict[str, Row] = {}

    def take(self, op: str, row: Row) -> list[tuple[str, Row]]:
        """What that means for who sees it: `-` a row that is gone, `+` one that is there."""
        if self._key is None:
            return [("-" if op == "delete" else "+", row)]
        key = json.dumps([row[name] for name in self._key])
        before = self.rows.get(key)
        gone = [] if before is None else [("-", before)]
        if op == "delete":
            self.rows.pop(key, None)
            return gone
        self.rows[key] = row
        return [] if before == row else [*gone, ("+", row)]


def ask(client: Client, query: Mapping[str, Any], as_json: bool) -> None:
    """Until it ends, or Ctrl-C ends it."""
    start_driver(client)
    asked = client.post("queries", body=query)
    for warning in asked["warnings"]:
        note(f"note: {warning}")
    try:
        with client.lines("queries", asked["id"], "rows") as lines:
            told = (json.loads(line) for line in lines if line.strip())
            end = _show_json(told) if as_json else _show(asked, told)
    except KeyboardInterrupt:
        # The server learns from the closed connection that nobody reads.
        note("stopped")
        return
    cost, *reasons = cost_lines(end)
    for line in (f"{cost}: {end['state']}", *reasons):
        note(line)


def _checked(told: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Lines up to the last; an error is raised as what it was."""
    for line in told:
        if line["op"] == "error":
            raise error_of_line(line)
        yield line
        if line["op"] == "end":
            return
    raise ServerUnavailable("The rows have ended before the query did.", "Ask again.")


def _show_json(told: Iterator[dict[str, Any]]) -> dict[str, Any]:
    line: dict[str, Any] = {}
    for line in _checked(told):
        print_line(line)
    return line


def _show(asked: Mapping[str, Any], told: Iterator[dict[str, Any]]) -> dict[str, Any]:
    if asked["kind"] != "live":
        return _show_whole(asked, told)
    names = [column["name"] for column in asked["columns"]]
    changes = Changes(asked["key"])
    line: dict[str, Any] = {}
    if asked["key"] is not None and sys.stdout.isatty():
        with LiveTable(names, lambda: [[cell(row[n]) for n in names] for row in list(changes.rows.values())]):
            for line in _checked(told):
                if line["op"] != "end":
                    changes.take(line["op"], line["row"])
        return line
    say("  " + "  ".join(names))
    for line in _checked(told):
        if line["op"] == "end":
            break
        for sign, row in changes.take(line["op"], line["row"]):
            say(f"{sign} " + "  ".join(printable(cell(row[name])) for name in names))
    return line


def _show_whole(asked: Mapping[str, Any], told: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """A result that has an end is a table."""
    *rows, end = _checked(told)
    columns = asked["columns"]
    names = list(rows[0]["row"]) if columns is None and rows else [c["name"] for c in columns or ()]
    if names:
        print_table("", names, [[cell(line["row"][name]) for name in names] for line in rows])
    return end
