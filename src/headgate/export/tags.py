"""Columns that tables and schemas call personal, and what a query makes of them.

A field is tagged as Confluent's registry has it, `"confluent:tags": ["PII"]`, or by `"personal": true`.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from headgate.export.sql import TableName
from headgate.store import Store

TAGS = "confluent:tags"
PERSONAL = frozenset({"pii", "personal", "private", "sensitive"})
_HOLDERS = ("items", "values", "additionalProperties")
# What an aggregate of these gives tells no value.
_COUNTS = (exp.Count, exp.ApproxDistinct, exp.CountIf)


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


def personal_columns(sql: str, columns: Iterable[str], tagged: frozenset[str]) -> list[str]:
    """Those of a query's columns that hold tagged fields: by their names, or since the query makes them of
    columns with such names. Counts hold no value."""
    names = {name.lower() for name in tagged}
    if not names:
        return []
    try:
        aliases = [
            (alias.alias.lower(), _mentioned(alias.this))
            for alias in sqlglot.parse_one(sql, dialect="spark").find_all(exp.Alias)
        ]
    except SqlglotError:
        # Spark may know more than what reads here: names alone are left.
        aliases = []
    grown = True
    while grown:
        more = {alias for alias, mentioned in aliases if mentioned & names} - names
        names |= more
        grown = bool(more)
    return [column for column in columns if column.lower() in names]


def _mentioned(node: exp.Expression) -> set[str]:
    """The columns that a value is made of, each part of their paths."""
    if isinstance(node, _COUNTS):
        return set()
    found = {part.name.lower() for part in node.parts} if isinstance(node, exp.Column) else set()
    if isinstance(node, exp.Dot):
        found.add(node.name.lower())
    for child in node.iter_expressions():
        found |= _mentioned(child)
    return found
