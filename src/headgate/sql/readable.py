"""Pieces of Spark SQL, for people: without the marks that make names unlike each other."""

import re
from collections.abc import Mapping

_NAME = re.compile(r"`((?:[^`]|``)+)`")
_MARKED = re.compile(r"^(.+)#(\d+)$", re.DOTALL)
_SECRET = re.compile(r"^\$secret\.(.+)\.(inner|outer)$", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def readable(sql: str, tables: Mapping[int, str] | None = None) -> str:
    """The same text for people; with `tables`, columns have the names of their tables before them."""
    return _NAME.sub(lambda found: _word(found[1].replace("``", "`"), tables or {}), sql)


def _word(name: str, tables: Mapping[int, str]) -> str:
    secret = _SECRET.match(name)
    if secret is not None:
        return f"<secret {secret[1]}>"
    marked = _MARKED.match(name)
    if marked is None:
        return _quoted(name)
    table = tables.get(int(marked[2]))
    return (f"{_quoted(table)}." if table is not None else "") + _quoted(marked[1])


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name}`"
