"""Schemas that change on the way: a field more, a wider type, another name."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headgate.datagen.scenario import Record, Schema

Row = dict[str, Any]


@dataclass(frozen=True)
class Evolution:
    """What becomes of the schema of a topic's rows.

    `added` is the new field, `computed` its value of a row, `inside` the path of the record that gets it.
    `widened` are paths of fields of 32 bits. `renamed` has the new names by the old.
    """

    added: Schema | None = None
    computed: Callable[[Row], Any] = lambda row: None
    inside: tuple[str, ...] = ()
    widened: tuple[tuple[str, ...], ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)

    def schema(self, schema: Schema, renames: bool) -> Schema:
        """The later schema."""
        later = schema
        for path in self.widened:
            later = _changed(later, path[:-1], partial(_widen, path[-1]))
        if self.added is not None:
            later = _changed(later, self.inside, partial(_add, self.added))
        if renames:
            later = later | {"fields": [self._renamed(each) for each in later["fields"]]}
        return later

    def row(self, row: Row) -> Row:
        """The row as the later schema has it. What is renamed it has under both names."""
        later = row
        if self.added is not None:
            later = _with_value(later, self.inside, self.added["name"], self.computed(row))
        return later | {new: row[old] for old, new in self.renamed.items()}

    def _renamed(self, old: Schema) -> Schema:
        new = self.renamed.get(old["name"])
        return old if new is None else old | {"name": new, "aliases": [old["name"]]}


def evolved(
    records: Iterable[Record], counted: str, after: int, later: Callable[[str, Row], Row]
) -> Iterator[Record]:
    """From the record of topic `counted` on that follows `after` others of it, all have later values."""
    left = after
    for record in records:
        if left >= 0 and record.topic == counted:
            left -= 1
        if left >= 0:
            yield record
        else:
            yield record._replace(value=later(record.topic, record.value), version=1)


def _changed(schema: Schema, path: tuple[str, ...], change: Callable[[Schema], Schema]) -> Schema:
    """The schema of a record with a change of the record that the path leads to."""
    if not path:
        return change(schema)
    fields = [
        field | {"type": _within(field["type"], path[1:], change)} if field["name"] == path[0] else field
        for field in schema["fields"]
    ]
    return schema | {"fields": fields}


def _within(kind: Any, path: tuple[str, ...], change: Callable[[Schema], Schema]) -> Any:
    if isinstance(kind, list):
        return [kind[0], _within(kind[1], path, change)]
    if kind["type"] == "array":
        return kind | {"items": _within(kind["items"], path, change)}
    return _changed(kind, path, change)


def _add(added: Schema, record: Schema) -> Schema:
    return record | {"fields": [*record["fields"], added]}


def _widen(name: str, record: Schema) -> Schema:
    fields = [
        field | {"type": {"int": "long", "float": "double"}[field["type"]]}
        if field["name"] == name
        else field
        for field in record["fields"]
    ]
    return record | {"fields": fields}


def _with_value(row: Row, path: tuple[str, ...], name: str, value: Any) -> Row:
    if not path:
        return row | {name: value}
    inner = row[path[0]]
    return row if inner is None else row | {path[0]: _with_value(inner, path[1:], name, value)}
