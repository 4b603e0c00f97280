"""Refusals: what the language does not have, why, and what would work."""

from difflib import get_close_matches
from typing import NoReturn

from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.dialect import WINDOW_FUNCTIONS
from headgate.sql.functions import FUNCTIONS
from headgate.sql.functions.aggregates import AGGREGATES

_OPERANDS = frozenset({"this", "expression", "expressions"})
_REFUSED: dict[str, str] = {
    "PROCTIME": "rows have an event time, $rowtime or a column with a WATERMARK; the time of processing "
    "differs in each try",
    "UUID": "a batch that is tried again would have other values; MASK_TOKEN makes ids from values",
    "RAND": "a batch that is tried again would have other values",
    "RAND_INTEGER": "a batch that is tried again would have other values",
    "CURRENT_WATERMARK": "the watermark is in `headgate statement show`",
    "INITCAP": "what a word is differs between engines; use UPPER(LEFT(s, 1)) || LOWER(SUBSTRING(s, 2))",
    "DATE_TRUNC": "write FLOOR(t TO HOUR)",
    "DATE_ADD": "write t + INTERVAL '1' DAY",
    "DATE_SUB": "write t - INTERVAL '1' DAY",
    "DATEDIFF": "write TIMESTAMPDIFF(DAY, a, b)",
    "TO_CHAR": "write DATE_FORMAT(t, pattern), or CAST(x AS STRING)",
    "NVL": "write COALESCE",
    "LENGTH": "write CHAR_LENGTH",
    "COLLECT": "write ARRAY_AGG",
    "RANK": "write ROW_NUMBER() OVER (…) with = 1 outside",
    "DENSE_RANK": "write ROW_NUMBER() OVER (…) with = 1 outside",
    "LAG": "rows have no neighbours in a stream; join the table with itself within an INTERVAL",
    "LEAD": "rows have no neighbours in a stream; join the table with itself within an INTERVAL",
}
WHY_NOT: dict[type[exp.Expr], str] = {
    exp.Exists: "EXISTS is not supported; write a JOIN with a time bound",
    exp.Subquery: "a query as a value is not supported; write a JOIN",
    exp.Window: "OVER is supported for ROW_NUMBER() in a subquery with `WHERE its name = 1` outside; "
    "aggregates take "
    "GROUP BY or a window function such as TUMBLE",
    exp.SimilarTo: "SIMILAR TO is not supported; write REGEXP(s, pattern)",
    exp.Placeholder: "parameters are not supported; write the value",
    exp.Star: "* is for SELECT and COUNT",
    exp.ILike: "ILIKE is not supported; write LOWER(s) LIKE …",
    exp.RegexpLike: "write REGEXP(s, pattern)",
    exp.Lambda: "lambdas are not supported",
}


def refuse(message: str, node: exp.Expr, remedy: str = "") -> NoReturn:
    """An error with the line of the node, if one of its words still knows it."""
    raise refused(message, node, remedy)


def check_said(node: exp.Expr, known: frozenset[str] | set[str]) -> None:
    """Refuses a node of which more is said than is read."""
    if isinstance(node, (exp.Window, exp.Query)):
        return
    for word, value in node.args.items():
        if value and word not in known and word not in _OPERANDS:
            refuse(f"{type(node).__name__} with {word.rstrip('_').upper()} is not supported.", node)


def refused(message: str, node: exp.Expr, remedy: str = "") -> InvalidRequest:
    return InvalidRequest(where(node) + message[0].upper() + message[1:], remedy)


def where(node: exp.Expr) -> str:
    for part in node.walk():
        if "line" in part.meta:
            return f"Line {part.meta['line']}: "
    return ""


def refuse_function(name: str, node: exp.Expr) -> NoReturn:
    if name in AGGREGATES:
        refuse(
            f"{name} is an aggregate, and stands where a row has one value.",
            node,
            "Put it into SELECT or HAVING.",
        )
    if name in _REFUSED:
        refuse(f"function {name} is not supported: {_REFUSED[name]}.", node)
    if name.split("_")[0] in WINDOW_FUNCTIONS:
        refuse(
            f"{name} belongs to a GROUP BY with the same window.",
            node,
            "Write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(c), INTERVAL '1' HOUR)) GROUP BY window_start, "
            "window_end.",
        )
    near = get_close_matches(name, (*FUNCTIONS, *AGGREGATES), 1, 0.75)
    refuse(
        f"function {name} is not known.",
        node,
        f"Is it {near[0]}? The reference lists all."
        if near
        else "The reference of functions lists all that are.",
    )
