"""Whether a world's tables hold what the seed says: waits until they do, and says which do not."""

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from headgate.demo.ports import Headgate, Progress, Screen
from headgate.errors import StatementFailed, TableStopped, TerminalError
from headgate.sql.types import quote
from headgate.worlds import Figure, World

POLL_SECONDS = 0.5
#: For how long nothing may have moved.
PATIENCE_SECONDS = 300.0
_BROKEN = ("Failed", "Suspended")


def wait_for_figures(
    world: World, expected: Mapping[str, Figure], headgate: Headgate, screen: Screen
) -> dict[str, Figure]:
    """The figures of the tables, once they are those that are expected."""
    watch = _Watch(headgate)
    with screen.progress(f"{world.name}: waiting for its tables") as shown:
        while True:
            _wait_for_rows(expected, watch, shown)
            found = read_figures(world, headgate)
            if found == dict(expected):
                return found
            shown.update("the tables have their rows; some of them are to change still")
            watch.check_patience(lambda: differences(expected, read_figures(world, headgate)))
            time.sleep(POLL_SECONDS)


def read_figures(world: World, headgate: Headgate) -> dict[str, Figure]:
    """One query for all tables."""
    parts = []
    for table, column in world.totals.items():
        total = "NULL" if column is None else f"sum({quote(column)})"
        parts.append(
            f"SELECT '{table}' AS name, count(*) AS n, CAST({total} AS DECIMAL(38, 2)) AS total "
            f"FROM {quote(table)}"
        )
    rows = headgate.query(" UNION ALL ".join(parts))
    return {row["name"]: Figure(int(row["n"]), _decimal(row["total"])) for row in rows}


def _decimal(value: Any) -> Decimal | None:
    return None if value is None else Decimal(str(value))


def differences(expected: Mapping[str, Figure], found: Mapping[str, Figure]) -> str:
    return "; ".join(
        f"{table} has {_text(found[table])}, and the seed says {_text(figure)}"
        for table, figure in expected.items()
        if found[table] != figure
    )


def _text(figure: Figure) -> str:
    return f"{figure.rows:,} rows" + ("" if figure.total is None else f" of {figure.total:,}")


class _Watch:
    """The tables and statements as the API shows them, and when something last moved."""

    def __init__(self, headgate: Headgate) -> None:
        self._headgate = headgate
        self._seen: Any = None
        self._moved_at = time.monotonic()

    def rows(self) -> dict[str, int]:
        tables = self._headgate.get("tables")
        for table in tables:
            if table["state"] in _BROKEN:
                raise TableStopped(f"Table '{table['topic']}' is {table['state']}: {table['reason']}")
        found = {table["topic"]: table["rows"] or 0 for table in tables}
        self._note(found)
        return found

    def check_statements(self) -> None:
        for statement in self._headgate.get("statements"):
            if statement["state"] in _BROKEN:
                raise StatementFailed(
                    f"Statement '{statement['name']}' is {statement['state']}: {statement['reason']}"
                )

    def _note(self, found: Any) -> None:
        if found != self._seen:
            self._seen, self._moved_at = found, time.monotonic()

    def check_patience(self, what: Any) -> None:
        if time.monotonic() - self._moved_at > PATIENCE_SECONDS:
            raise TerminalError(
                f"Nothing has moved for {PATIENCE_SECONDS:.0f} s: {what()}.",
                "See `headgate status`, and `headgate statement show` of what should have written it.",
            )


def _wait_for_rows(expected: Mapping[str, Figure], watch: _Watch, shown: Progress) -> None:
    total = sum(figure.rows for figure in expected.values())
    while True:
        rows = watch.rows()
        missing = [table for table, figure in expected.items() if rows.get(table, 0) != figure.rows]
        if not missing:
            return
        watch.check_statements()
        done = sum(min(rows.get(table, 0), figure.rows) for table, figure in expected.items())
        shown.update(f"rows of {', '.join(missing)}", done, total)
        watch.check_patience(
            lambda rows=rows, missing=missing: ", ".join(
                f"{table} has {rows.get(table, 0):,} of {expected[table].rows:,} rows" for table in missing
            )
        )
        time.sleep(POLL_SECONDS)
