"""Names of namespaces, tables and views: what is accepted, and how they are kept in SQL and in paths.

Iceberg's JdbcCatalog keeps a namespace as its levels joined by dots, so the one level `a.b` and the two
levels `a`, `b` would be the same row. Levels are therefore handed to it with dots and percent signs escaped.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.catalog.errors import bad_request

LEVEL_SEPARATOR = "\x1f"
LONGEST_NAME = 255
# Leaves room for a suffix within the 255 bytes that file systems allow for one path segment.
LONGEST_SEGMENT = 200
REPLACEMENT = "\ufffd"
PLAIN = re.compile(r"[A-Za-z0-9_.-]")


@dataclass(frozen=True, order=True)
class Identifier:
    """A table or view by name."""

    namespace: tuple[str, ...]
    name: str

    def __post_init__(self) -> None:
        check_namespace(self.namespace)
        check_name(self.name)

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def check_name(name: object) -> str:
    """`name`, if it can be kept, quoted into a path and sent back: else a 400 that says why not."""
    if not isinstance(name, str) or not name:
        raise bad_request("A name must not be empty.")
    if len(name) > LONGEST_NAME:
        raise bad_request(f"A name must not be longer than {LONGEST_NAME} characters.")
    if name in (".", ".."):
        raise bad_request(f"'{name}' cannot be a name: it would lead out of the warehouse.")
    if any(unicodedata.category(c) in ("Cc", "Cs") or c == REPLACEMENT for c in name):
        raise bad_request(f"The name {name!a} holds a control character or is not valid UTF-8.")
    return name


def check_namespace(levels: Iterable[object]) -> tuple[str, ...]:
    checked = tuple(check_name(level) for level in levels)
    if not checked:
        raise bad_request("A namespace needs at least one level.")
    return checked


def parse_namespace(text: str) -> tuple[str, ...]:
    """From a path segment or a query parameter, with its percent encoding already undone."""
    return check_namespace(text.split(LEVEL_SEPARATOR))


def parse_identifier(raw: Any) -> Identifier:
    """From the JSON object that the spec calls TableIdentifier."""
    if not isinstance(raw, dict) or not isinstance(raw.get("namespace"), list):
        raise bad_request("An identifier must have `namespace`, a list of levels, and `name`.")
    return Identifier(check_namespace(raw["namespace"]), check_name(raw.get("name")))


def stored_levels(levels: Sequence[str]) -> list[str]:
    return [level.replace("%", "%25").replace(".", "%2E") for level in levels]


def stored_namespace(levels: Sequence[str]) -> str:
    """As JdbcCatalog keeps it in its rows."""
    return ".".join(stored_levels(levels))


def shown_levels(levels: Iterable[str]) -> list[str]:
    """The other way round from `stored_levels`."""
    return [level.replace("%2E", ".").replace("%25", "%") for level in levels]


def shown_names(document: dict[str, Any]) -> dict[str, Any]:
    """An answer of Iceberg's handlers, with namespaces as clients know them."""
    if "namespaces" in document:
        document["namespaces"] = [shown_levels(levels) for levels in document["namespaces"]]
    if "namespace" in document:
        document["namespace"] = shown_levels(document["namespace"])
    for identifier in document.get("identifiers", ()):
        identifier["namespace"] = shown_levels(identifier["namespace"])
    return document


def path_segment(name: str) -> str:
    """`name` as one path segment: no two names share one, and none needs percent encoding in a URI.

    A percent sign in a path is read as an escape by some readers and literally by others; `~` is not.
    """
    segment = "".join(c if PLAIN.match(c) else "".join(f"~{b:02x}" for b in c.encode()) for c in name)
    if len(segment) <= LONGEST_SEGMENT:
        return segment
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{segment[: LONGEST_SEGMENT - 33]}~{digest}"
