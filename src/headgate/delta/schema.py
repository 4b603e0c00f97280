"""Iceberg's schemas as Delta's: columns are mapped by field id, and named as the Parquet files name them.

Readers of Delta find a column in a file by its physical name, or by its id, as they please. So both must be
right in every live file: a name that files hold under another id, or an id under another name, makes those
files unreadable for some.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from headgate.errors import UnsupportedSchema

ID_KEY = "delta.columnMapping.id"
PHYSICAL_KEY = "delta.columnMapping.physicalName"
CHANGES_KEY = "delta.typeChanges"
DELTA_TYPES: Mapping[str, str] = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "string": "string",
    "binary": "binary",
    "variant": "variant",
    # Without a type of their own in Delta. Their bytes are exact, their meaning is Iceberg's.
    "uuid": "binary",
    "time": "long",
}
INEXACT = frozenset({"uuid", "time", "fixed"})
# What a type asks of those who read and write the table.
FEATURES: Mapping[str, str] = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
WIDENING = "typeWidening"

Json = dict[str, Any]
# How Iceberg's Parquet writer spells a column's name.
Spelling = Callable[[str], str]


@dataclass(frozen=True)
class Leaf:
    """A column that can have statistics: its place by physical names, and Iceberg's type."""

    path: tuple[str, ...]
    type: str


@dataclass(frozen=True)
class DeltaSchema:
    """What the log says of a table's columns."""

    text: str
    features: frozenset[str]
    leaves: Mapping[int, Leaf]
    last_id: int
    # Columns whose type is Iceberg's alone, by name.
    inexact: tuple[str, ...] = ()


@dataclass
class _Conversion:
    spelling: Spelling
    history: Mapping[int, tuple[str, ...]]
    features: set[str] = field(default_factory=set)
    leaves: dict[int, Leaf] = field(default_factory=dict)
    ids: list[int] = field(default_factory=lambda: [0])
    inexact: list[str] = field(default_factory=list)

    def struct(self, fields: Iterable[Json], shown: str, path: tuple[str, ...] | None) -> Json:
        """`path` is None below lists and maps, where there are no statistics."""
        found = []
        for one in fields:
            name, physical = one["name"], self.spelling(one["name"])
            self.ids.append(one["id"])
            if one["type"] == "unknown":
                continue  # no file holds it; it is there once it has a type
            inner = None if path is None else (*path, physical)
            metadata: Json = {ID_KEY: one["id"], PHYSICAL_KEY: physical}
            if one.get("doc"):
                metadata["comment"] = one["doc"]
            metadata |= self._changes(one)
            found.append(
                {
                    "name": name,
                    "type": self.type(one["type"], f"{shown}{name}", inner, one["id"]),
                    "nullable": not one["required"],
                    "metadata": metadata,
                }
            )
        return {"type": "struct", "fields": found}

    def type(self, kind: Any, shown: str, path: tuple[str, ...] | None, field_id: int) -> Any:
        if isinstance(kind, str):
            delta = self._primitive(kind, shown)
            if path is not None:
                self.leaves[field_id] = Leaf(path, kind)
            return delta
        match kind["type"]:
            case "struct":
                return self.struct(kind["fields"], f"{shown}.", path)
            case "list":
                self.ids.append(kind["element-id"])
                return {
                    "type": "array",
                    "elementType": self.type(kind["element"], f"{shown}[]", None, kind["element-id"]),
                    "containsNull": not kind["element-required"],
                }
            case "map":
                self.ids += [kind["key-id"], kind["value-id"]]
                return {
                    "type": "map",
                    "keyType": self.type(kind["key"], f"{shown}{{key}}", None, kind["key-id"]),
                    "valueType": self.type(kind["value"], f"{shown}{{}}", None, kind["value-id"]),
                    "valueContainsNull": not kind["value-required"],
                }
        raise AssertionError(f"Iceberg has no type {kind['type']}")

    def _primitive(self, kind: str, shown: str) -> str:
        plain = kind.replace(" ", "")
        if plain.startswith("decimal("):
            return plain
        if plain.startswith("fixed["):
            self.inexact.append(shown)
            return "binary"
        delta = DELTA_TYPES.get(plain)
        if delta is None:
            raise UnsupportedSchema(
                f"Column '{shown}' has the type {kind}, which Delta does not know.",
                "Leave the delta format away for this table, or give the column another type.",
            )
        if plain in INEXACT:
            self.inexact.append(shown)
        if delta in FEATURES:
            self.features.add(FEATURES[delta])
        return delta

    def _changes(self, one: Json) -> Json:
        """Types that the field, or what it holds, had before: files of that time still hold them."""
        found = []
        for field_id, place in _primitives_of(one):
            types = [self._primitive(kind, one["name"]) for kind in self.history.get(field_id, ())]
            for before, after in pairwise(types):
                change: Json = {"fromType": before, "toType": after}
                if place:
                    change["fieldPath"] = place
                found.append(change)
        if not found:
            return {}
        self.features.add(WIDENING)
        return {CHANGES_KEY: found}


def delta_schema(schema: Json, earlier: Iterable[Json], spelling: Spelling) -> DeltaSchema:
    """`schema` as Iceberg writes it in JSON, `earlier` the table's schemas up to it, the oldest first."""
    conversion = _Conversion(spelling, _types(earlier))
    found = conversion.struct(schema["fields"], "", ())
    return DeltaSchema(
        json.dumps(found, separators=(",", ":")),
        frozenset(conversion.features),
        conversion.leaves,
        max(conversion.ids),
        tuple(conversion.inexact),
    )


def _primitives_of(one: Json) -> Iterator[tuple[int, str]]:
    """The field itself, or elements, keys and values in it; fields of structs speak for themselves."""

    def inside(kind: Any, field_id: int, place: str) -> Iterator[tuple[int, str]]:
        if isinstance(kind, str):
            yield field_id, place
        elif kind["type"] == "list":
            yield from inside(kind["element"], kind["element-id"], _joined(place, "element"))
        elif kind["type"] == "map":
            yield from inside(kind["key"], kind["key-id"], _joined(place, "key"))
            yield from inside(kind["value"], kind["value-id"], _joined(place, "value"))

    return inside(one["type"], one["id"], "")


def _joined(place: str, step: str) -> str:
    return f"{place}.{step}" if place else step


def _types(schemas: Iterable[Json]) -> dict[int, tuple[str, ...]]:
    """The types that each id had, one after the other. A table that went back and forth has the last way."""
    found: dict[int, list[str]] = {}
    for schema in schemas:
        for field_id, one in _fields(schema):
            if not isinstance(one.type, str) or one.type == "unknown":
                continue
            types = found.setdefault(field_id, [])
            if one.type in types:
                del types[types.index(one.type) + 1 :]
            else:
                types.append(one.type)
    return {field_id: tuple(types) for field_id, types in found.items()}


def widened_types(schemas: Iterable[Json]) -> dict[int, str]:
    """The present type of each field that had another one before; `schemas` the oldest first."""
    return {field_id: types[-1] for field_id, types in _types(schemas).items() if len(types) > 1}


# -- names in files


@dataclass(frozen=True)
class Named:
    """Where a field is: the id of what holds it, its name there, its type."""

    parent: int | None
    name: str
    type: Any
    has_default: bool = False


def _fields(schema: Json) -> Iterator[tuple[int, Named]]:
    def of_struct(fields: Iterable[Json], parent: int | None) -> Iterator[tuple[int, Named]]:
        for one in fields:
            default = one.get("initial-default") is not None
            yield one["id"], Named(parent, one["name"], one["type"], default)
            yield from of_type(one["type"], one["id"])

    def of_type(kind: Any, parent: int) -> Iterator[tuple[int, Named]]:
        if isinstance(kind, str):
            return
        match kind["type"]:
            case "struct":
                yield from of_struct(kind["fields"], parent)
            case "list":
                yield kind["element-id"], Named(parent, "element", kind["element"])
                yield from of_type(kind["element"], kind["element-id"])
            case "map":
                yield kind["key-id"], Named(parent, "key", kind["key"])
                yield from of_type(kind["key"], kind["key-id"])
                yield kind["value-id"], Named(parent, "value", kind["value"])
                yield from of_type(kind["value"], kind["value-id"])

    return of_struct(schema["fields"], None)


Names = Mapping[int, tuple[int | None, str]]


def names_of(schema: Json, spelling: Spelling) -> dict[int, tuple[int | None, str]]:
    """Each field's place and physical name in files written by this schema."""
    return {field_id: (one.parent, spelling(one.name)) for field_id, one in _fields(schema)}


def may_conflict(schemas: Iterable[Json], spelling: Spelling) -> bool:
    """Whether files of the table may differ in how they name their columns; if not, none need be opened."""
    by_id: dict[int, tuple[int | None, str]] = {}
    by_name: dict[tuple[int | None, str], int] = {}
    for schema in schemas:
        for field_id, one in _fields(schema):
            place = (one.parent, spelling(one.name))
            if by_id.setdefault(field_id, place) != place or by_name.setdefault(place, field_id) != field_id:
                return True
            if one.has_default:
                return True
    return False


def conflict(schema: Json, spelling: Spelling, held: Names) -> str | None:
    """Why a file that holds these names cannot be read as Delta by this schema; None when it can."""
    by_place = {place: field_id for field_id, place in held.items()}
    for field_id, one in _fields(schema):
        place = (one.parent, spelling(one.name))
        if field_id in held and held[field_id] != place:
            return f"holds column '{one.name}' under the name '{held[field_id][1]}'"
        if field_id not in held and place in by_place:
            return f"holds another column under the name '{one.name}'"
        if field_id not in held and one.has_default:
            return f"lacks column '{one.name}', whose value in older rows is a default"
    return None
