"""The page of functions in the reference, made of the functions themselves."""

from headgate.sql.functions import GROUPS
from headgate.sql.functions.aggregates import AGGREGATES

_HEAD = """# SQL functions

The functions of [statements](sql.md). A name that is not here is refused. NULL in, NULL out, unless it
says otherwise. This page is made of the code.

Operators: `+ - * / %`, `||`, `= <> < <= > >=`, `AND OR NOT`, `BETWEEN`, `IN (…)`, `LIKE … ESCAPE`, `IS
NULL`, `IS TRUE`, `IS FALSE`, `IS UNKNOWN`, `IS DISTINCT FROM`, `CASE`, `CAST`, `TRY_CAST`, `array[n]` (1
is the first), `map[key]`, `row.field`, `ARRAY[…]`, `MAP[…]`, `ROW(…)`. Whole numbers divide to whole
numbers: `7 / 2` is 3.

`JSON_VALUE(s, '$.a.b[0]' [RETURNING type] [NULL | ERROR | DEFAULT x ON EMPTY | ON ERROR])` gives a value
of a JSON document, NULL for an object or an array; `JSON_QUERY(s, path)` gives those, as text;
`JSON_EXISTS(s, path)` tells.
"""


def functions_page() -> str:
    """The whole page, in Markdown."""
    parts = [_HEAD]
    for group, functions in GROUPS.items():
        parts.append(_table(group, [(f.form, f.meaning) for f in functions]))
    parts.append(_table("Aggregates", [(a.form, a.meaning) for a in AGGREGATES.values()]))
    return "\n".join(parts)


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"## {title}", "", "| function | meaning |", "|---|---|"]
    lines += [f"| `{form.replace('|', chr(92) + '|')}` | {meaning} |" for form, meaning in rows]
    return "\n".join(lines) + "\n"
