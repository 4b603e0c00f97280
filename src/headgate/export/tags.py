"""Columns that tables and schemas call personal, and what a query makes of them.

A field is tagged as Confluent's registry has it, `"confluent:tags": ["PII"]`, or by `"personal": true`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.export.columns import Column
from headgate.export.lake import SnapshotState
from headgate.export.sql import TableName
from headgate.store import Store

TAGS = "confluent:tags"
PERSONAL = frozenset({"pii", "personal", "private", "sensitive"})
_HOLDERS = ("items", "values", "additionalProperties")
# What an aggregate of these gives tells no value.
_COUNTS = (exp.Count, exp.ApproxDistinct, exp.CountIf, exp.ArraySize)
# Of Iceberg's lists and maps.
_PARTS = ("element", "key", "value")
# What columns of functions are called that give rows, where nothing else is said.
_GIVEN = ("col", "key", "value", "pos")
_NUMBERED = tuple(f"{name}{number}" for name in ("c", "col") for number in range(100))
# A name that stands for every column: of a union whose first branch does not say what it gives.
_ANY = "*"
_WORD = re.compile(r"\w+")


class Registry(Protocol):
    """`SchemaSource`, as far as tags need it."""

    def versions(self, subject: str) -> Sequence[Any]: ...


def personal_fields(registry: Registry, store: Store, cluster: str) -> Callable[[TableName], frozenset[str]]:
    """What gives the personal columns of a table: those of its options, and the tagged fields of its topic in
    any version of its schemas, since a table keeps old columns."""

    def fields(table: TableName) -> frozenset[str]:
        if table.namespace != (cluster,):
            return frozenset()
        subjects = (f"{table.name}-key", f"{table.name}-value")
        tagged = (
            name
            for subject in subjects
            for schema in registry.versions(subject)
            for name in tagged_fields(schema.text)
        )
        named = [one.spec.personal for one in store.tables() if one.spec.topic == table.name]
        return frozenset(tagged).union(*named)

    return fields


def tagged_fields(text: str) -> frozenset[str]:
    """Names of the tagged fields of an Avro or JSON schema, each alone and, where it is in structs, as the
    column that it becomes: `email` and `customer_email`. Protobuf has no tags here."""
    try:
        schema = json.loads(text)
    except ValueError:
        return frozenset()
    return frozenset(_walk(schema, (), is_personal=False))


def _walk(node: Any, path: tuple[str, ...], is_personal: bool) -> Iterator[str]:
    if isinstance(node, list):
        for one in node:
            yield from _walk(one, path, is_personal)
        return
    if not isinstance(node, dict):
        return
    fields = node.get("fields")
    if isinstance(fields, list):
        named = [(str(one["name"]), one) for one in fields if isinstance(one, dict) and "name" in one]
    else:
        properties = node.get("properties")
        named = list(properties.items()) if isinstance(properties, dict) else []
    for name, field in named:
        hidden = is_personal or _is_tagged(field)
        here = (*path, name)
        if hidden:
            yield from {name, "_".join(here)}
        inner = field.get("type") if isinstance(field, dict) and isinstance(fields, list) else field
        yield from _walk(inner, here, hidden)
    for holder in (*_HOLDERS, "type", "oneOf", "anyOf", "allOf"):
        if holder in node:
            yield from _walk(node[holder], path, is_personal)


def _is_tagged(field: Any) -> bool:
    if not isinstance(field, dict):
        return False
    tags = field.get(TAGS)
    said = tags if isinstance(tags, list) else [tags]
    return field.get("personal") is True or any(str(tag).lower() in PERSONAL for tag in said)


def holders_of(states: Iterable[SnapshotState], tagged: frozenset[str]) -> frozenset[str]:
    """The structs, arrays and maps of tables that have a tagged field within."""
    names = {name.lower() for name in tagged}
    found: set[str] = set()
    for state in states:
        for column in state.columns:
            if column.is_nested:
                _note_holders(column.name, json.loads(column.type), names, found)
    return frozenset(found)


def _note_holders(name: str, kind: Any, names: Set[str], found: set[str]) -> bool:
    """Whether a field is tagged within Iceberg's type `kind`; then `name` is a holder."""
    if not isinstance(kind, dict):
        return False
    inner = [(str(one["name"]), one["type"]) for one in kind.get("fields") or ()]
    has_tagged = [inner_name.lower() in names for inner_name, _ in inner]
    has_tagged += [_note_holders(inner_name, inner_kind, names, found) for inner_name, inner_kind in inner]
    has_tagged += [_note_holders(name, kind[part], names, found) for part in _PARTS if part in kind]
    if any(has_tagged):
        found.add(name)
    return any(has_tagged)


def personal_columns(
    sql: str, columns: Iterable[Column], tagged: frozenset[str], holders: frozenset[str] = frozenset()
) -> list[str]:
    """Those of a query's columns that hold tagged fields: by their names, by the structs that they are of, or
    since the query makes them of columns with such names. `holders` have tagged fields within; a field of
    them that is named may leave, all of them may not. Counts hold no value."""
    names = {name.lower() for name in tagged}
    if not names:
        return []
    wholes = {name.lower() for name in holders} - names
    makings = _makings(sql)
    grown = True
    while grown:
        before = len(names) + len(wholes)
        names |= {name for name, made in makings if made.is_of(names)}
        wholes |= {name for name, made in makings if made.is_whole_of(wholes)} - names
        grown = len(names) + len(wholes) > before
    return [column.name for column in columns if _ANY in names or _is_personal(column, names, wholes)]


def _is_personal(column: Column, names: Set[str], wholes: Set[str]) -> bool:
    parts = [part.lower() for part in column.path]
    if column.name.lower() in names or parts[-1] in wholes or not names.isdisjoint(parts):
        return True
    # What the query gives no name is called as it is made: `upper(email)`.
    made = [_made(part) for part in column.path if _WORD.fullmatch(part) is None]
    return any(one.is_of(names) or one.is_whole_of(wholes) for one in made)


@dataclass(frozen=True)
class _Made:
    """What a value is made of: each part of the paths of its columns, and the last parts alone.
    `has_star`: of whatever columns there are."""

    parts: Set[str]
    wholes: Set[str]
    has_star: bool = False

    def is_of(self, names: Set[str]) -> bool:
        return self.has_star or not self.parts.isdisjoint(names)

    def is_whole_of(self, names: Set[str]) -> bool:
        return not self.wholes.isdisjoint(names)


def _makings(sql: str) -> list[tuple[str, _Made]]:
    """The names that a query gives, wherever it does, and what each is made of."""
    try:
        tree = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError:
        # Spark may know more than what reads here: names alone are left.
        return []
    given = [*_aliases(tree), *_listed(tree), *_generated(tree), *_unions(tree), *_unpivoted(tree)]
    return [(name.lower(), made) for name, made in given if name]


def _aliases(tree: exp.Expr) -> Iterator[tuple[str, _Made]]:
    for alias in tree.find_all(exp.Alias):
        yield alias.alias, _mentioned(alias.this)
    for aliases in tree.find_all(exp.Aliases):
        yield from ((one.name, _mentioned(aliases.this)) for one in aliases.expressions)


def _listed(tree: exp.Expr) -> Iterator[tuple[str, _Made]]:
    """Columns that are named behind a query or a function that gives rows: `(SELECT …) AS q(x)`."""
    for alias in tree.find_all(exp.TableAlias):
        source = alias.parent.this if alias.parent is not None else None
        if isinstance(source, exp.Subquery):
            source = source.unnest()
        if isinstance(source, exp.Query):
            for select in _branches(source):
                # What a star stands for is not known here.
                each = [_mentioned(one) for one in select.selects]
                if any(one.has_star for one in each):
                    each = [_Made(frozenset(), frozenset(), has_star=True)] * len(alias.columns)
                yield from zip((one.name for one in alias.columns), each, strict=False)
        elif isinstance(source, exp.Func):
            yield from ((one, _mentioned(source)) for one in [*(c.name for c in alias.columns), *_GIVEN])


def _generated(tree: exp.Expr) -> Iterator[tuple[str, _Made]]:
    """What a function that gives rows is called in a SELECT that does not say: `SELECT explode(emails)`."""
    for select in tree.find_all(exp.Select):
        for one in select.selects:
            if isinstance(one, exp.Func):
                yield from ((name, _mentioned(one)) for name in (*_GIVEN, *_NUMBERED))


def _unions(tree: exp.Expr) -> Iterator[tuple[str, _Made]]:
    """Columns of all branches have the names of the first."""
    for union in tree.find_all(exp.SetOperation):
        first, *others = _branches(union)
        for other in others:
            if first.is_star != other.is_star:
                # Which column of a star another one stands beside is not known here.
                names = [_ANY] if first.is_star else [one.alias_or_name for one in first.selects]
                yield from ((name, _mentioned(one)) for name in names for one in other.selects)
                continue
            yield from (
                (name.alias_or_name, _mentioned(one))
                for name, one in zip(first.selects, other.selects, strict=False)
                if not (name.is_star or one.is_star)
            )


def _branches(query: exp.Query) -> list[exp.Select]:
    inner = query.unnest() if isinstance(query, exp.Subquery) else query
    if isinstance(inner, exp.SetOperation):
        return [*_branches(inner.left), *_branches(inner.right)]
    return [inner] if isinstance(inner, exp.Select) else []


def _unpivoted(tree: exp.Expr) -> Iterator[tuple[str, _Made]]:
    for pivot in tree.find_all(exp.Pivot):
        yield from ((one.name, _mentioned(pivot)) for one in pivot.expressions)


def _made(text: str) -> _Made:
    """What an expression is made of, by its text."""
    try:
        return _mentioned(sqlglot.parse_one(text, dialect="spark"))
    except SqlglotError:
        words = frozenset(word.lower() for word in _WORD.findall(text))
        return _Made(words, words)


def _mentioned(node: exp.Expr) -> _Made:
    """What a value is made of. Of a path, the columns that it leads through are no whole."""
    if isinstance(node, _COUNTS):
        return _Made(frozenset(), frozenset())
    parts: set[str] = set()
    wholes: set[str] = set()
    has_star = isinstance(node, exp.Star)
    if isinstance(node, exp.Column):
        parts.update(part.name.lower() for part in node.parts)
        wholes.add(node.name.lower())
    is_path = isinstance(node, exp.Dot)
    if is_path:
        parts.add(node.name.lower())
        wholes.add(node.name.lower())
    for child in node.iter_expressions():
        inner = _mentioned(child)
        parts |= inner.parts
        has_star |= inner.has_star
        wholes |= set() if is_path else inner.wholes
    return _Made(frozenset(parts), frozenset(wholes), has_star)
