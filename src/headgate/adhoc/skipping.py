"""Why a scan of a table skipped no file: what its conditions are, and what could have ruled files out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

# What tells of a column which files may have its values.
Known = Literal["partition", "statistics", "nothing"]
_COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_LONGEST = 80
_QUOTED = re.compile(r"'[^']*'")
_NOT_NULL = re.compile(r"(?:^|(?<=[(, ]))[^\s,()]+ IS NOT NULL")


@dataclass(frozen=True)
class Scan:
    """A scan of one table. `pushed`: the filter by which Iceberg looked for files, in its own words;
    `conditions`: those that Spark looked at row by row, as SQL; `columns`: what is known of each."""

    files: int
    files_skipped: int
    pushed: str = ""
    conditions: Sequence[str] = ()
    columns: Mapping[str, Known] = field(default_factory=dict)


def why_nothing_skipped(scan: Scan) -> str | None:
    """In words; None where files were skipped, or where there are none."""
    if scan.files_skipped or not scan.files:
        return None
    if scan.files == 1:
        return "the table is one file"
    ranges = _pushed_columns(scan)
    reasons = [reason for text in scan.conditions for reason in _reasons(text)]
    if ranges:
        return "; ".join([_of_ranges(ranges, scan.columns), *reasons])
    if reasons:
        return "; ".join(dict.fromkeys(reasons))
    return "no condition on its columns"


def _pushed_columns(scan: Scan) -> list[str]:
    """The columns of which the filter says more than that they are there."""
    text = _NOT_NULL.sub("", _QUOTED.sub("''", scan.pushed))
    return [name for name in scan.columns if re.search(rf"(?<![\w.`]){re.escape(name)}(?![\w.`])", text)]


def _of_ranges(names: Sequence[str], columns: Mapping[str, Known]) -> str:
    blind = [name for name in names if columns[name] == "nothing"]
    if len(blind) == len(names):
        return f"files have no statistics of {_listed(names)}"
    seeing = [name for name in names if name not in blind]
    parts = [name for name, known in columns.items() if known == "partition"]
    by = f"it is partitioned by {_listed(parts)}" if parts else "it has no partitions"
    return f"each file may have rows that the condition on {_listed(seeing)} asks for ({by})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _reasons(text: str) -> Iterator[str]:
    """Of a condition, part by part, what keeps it from being a range of a column."""
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        yield f"{_short(text)} is not a range of a column"
        return
    for node in tree.walk():
        if isinstance(node, exp.Column):
            for part in ("table", "db", "catalog"):
                node.set(part, None)
    yield from _parts(tree)


def _parts(node: exp.Expr) -> Iterator[str]:
    match node:
        case exp.Paren():
            yield from _parts(node.this)
        case exp.And():
            yield from _parts(node.left)
            yield from _parts(node.right)
        case _ if not _is_given(node):
            reason = _reason(node)
            if reason is not None:
                yield f"{_short(node.sql(dialect='spark'))} {reason}"


def _is_given(node: exp.Expr) -> bool:
    """IS NOT NULL, which Spark adds by itself, and what has no column."""
    is_not_null = (
        isinstance(node, exp.Not) and isinstance(node.this, exp.Is) and isinstance(node.this.this, exp.Column)
    )
    by_name = isinstance(node, exp.Anonymous) and node.name.casefold() == "isnotnull"
    return is_not_null or by_name or node.find(exp.Column) is None


def _reason(node: exp.Expr) -> str | None:
    """None for a condition that is a range: Iceberg had it."""
    match node:
        case exp.Or():
            inner = [reason for side in (node.left, node.right) for reason in _parts(side)]
            return f"is an OR: {inner[0]}" if inner else None
        case exp.Not():
            return "is a NOT, which rules out no range"
        case exp.NEQ():
            return "is a NOT, which rules out no range"
        case exp.Like() | exp.ILike():
            return _of_pattern(node)
        case exp.EndsWith() | exp.Contains():
            return "is a pattern without a fixed beginning"
        case exp.StartsWith(this=exp.Column()):
            return None
        case exp.In():
            return _of_sides(node.this, *node.expressions)
        case exp.Between():
            return _of_sides(node.this, node.args["low"], node.args["high"])
        case _ if isinstance(node, _COMPARISONS):
            return _of_sides(node.left, node.right)
        case exp.Is() | exp.Column():
            return None
    return "is not a comparison of a column with a constant"


def _of_pattern(node: exp.Expr) -> str | None:
    pattern = node.expression
    if isinstance(node, exp.ILike) or not isinstance(node.this, exp.Column):
        return "compares what a function makes of a column"
    if isinstance(pattern, exp.Literal) and not pattern.name.startswith(("%", "_")):
        return None
    return "is a pattern without a fixed beginning"


def _of_sides(*sides: exp.Expr) -> str | None:
    with_columns = [side for side in sides if side.find(exp.Column) is not None]
    if any(not isinstance(_bare(side), exp.Column) for side in with_columns):
        return "compares what a function makes of a column, and no range follows from that"
    return "compares columns with each other" if len(with_columns) > 1 else None


def _bare(node: exp.Expr) -> exp.Expr:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
