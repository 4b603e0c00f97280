"""A JSON Schema becomes the columns of a table.

JSON has no names for the branches of a union and few types, so what has no column type of its own is a text
column that holds the value as JSON: unions of several types, values of any type, objects without known keys.

Validation is the producer's business: minimum, pattern, enum and the like are not looked at. What matters is
that a value is in the table as it was written, or that the record is not in the table.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import CONNECT_DECIMAL, Conversion, conversion, decimal_type
from headgate.decode.json_document import (
    Document,
    Entries,
    Exact,
    Flag,
    Items,
    JsonDocumentReader,
    Logical,
    Node,
    Real,
    Record,
    Text,
    Whole,
    column_type,
)
from headgate.errors import UnsupportedSchema

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6}0*)?"
# RFC 3339, with no more digits than a timestamp holds.
_INSTANT = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_TIME}(?:[Zz]|[+-][0-9]{{2}}:[0-9]{{2}})$"
_LOCAL = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[Tt ]{_TIME}$"
_WHOLE_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
# Names that Iceberg keeps for columns of its own.
_RESERVED = {
    "_file",
    "_pos",
    "_deleted",
    "_spec_id",
    "_partition",
    "_row_id",
    "_last_updated_sequence_number",
    "_change_type",
    "_change_ordinal",
    "_commit_snapshot_id",
}
# Definitions are written out wherever they stand: a few of them can make columns without end.
_MAX_COLUMNS = 10_000
_MAX_DEPTH = 60
_UNIONS = ("oneOf", "anyOf")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# Keywords that say what a value is, not only what it may be.
_SHAPE = {"type", "properties", "items", "additionalProperties", "allOf", "enum", "const", *_UNIONS}


class JsonSchemaReader(JsonDocumentReader):
    """Reads JSON by its schema. `references` are the schemas that it refers to, by name and text.

    A document that is no object is the column `column`.
    """

    def __init__(
        self, schema_text: str, references: Sequence[tuple[str, str]] = (), column: str = "value"
    ) -> None:
        library = Library(schema_text, references)
        super().__init__(_Walk(library).root(column), column)
        root = library.root
        title = root.schema.get("title") if isinstance(root.schema, dict) else None
        self.record_name = title if isinstance(title, str) else None


def _instant(text: Column) -> Column:
    return f.when(text.rlike(_INSTANT), f.upper(text).try_cast("timestamp"))


def _local_timestamp(text: Column) -> Column:
    return f.when(text.rlike(_LOCAL), f.upper(text).try_cast("timestamp_ntz"))


def _date(text: Column) -> Column:
    return f.when(text.rlike(_DATE), text.try_cast("date"))


def _bytes(text: Column) -> Column:
    decoded = f.try_to_binary(text, f.lit("base64"))
    return f.when(f.base64(decoded) == text, decoded)


DATE = Logical(Text(), Conversion(t.DateType(), _date))
INSTANT = Logical(Text(), Conversion(t.TimestampType(), _instant))
LOCAL_TIMESTAMP = Logical(Text(), Conversion(t.TimestampNTZType(), _local_timestamp))
BYTES = Logical(Text(), Conversion(t.BinaryType(), _bytes))


def named(node: Node, name: Any, parameters: Any) -> Node:
    """What Connect's name for a logical type makes of `node`."""
    if not isinstance(name, str):
        return node
    texts = {key: str(value) for key, value in parameters.items()} if isinstance(parameters, dict) else {}
    if name == CONNECT_DECIMAL and isinstance(node, Real):
        kind = decimal_type(texts)
        return node if kind is None else Exact(kind)
    found = _conversion(name, column_type(node), tuple(texts.items()))
    return node if found is None else Logical(node, found)


@cache
def _conversion(name: str, plain: t.DataType, parameters: tuple[tuple[str, str], ...]) -> Conversion | None:
    """The same one for the same type: fields that are converted alike are checked together."""
    return conversion(name, plain, dict(parameters))


def record_of(fields: Sequence[tuple[str, Node]], path: str, closed: bool = False) -> Record:
    """A struct whose names a table can have."""
    seen: dict[str, str] = {}
    for name, _ in fields:
        where = f"{path}.{name}" if path else name
        if name.lower() in seen:
            raise refused(where, f"a name that differs only by case from '{seen[name.lower()]}',")
        if not path and name.lower() in _RESERVED:
            raise refused(where, "a name that Iceberg keeps for itself,")
        if not name:
            raise refused(where, "an empty name,")
        seen[name.lower()] = name
    return Record(tuple(fields), closed)


def refused(path: str, what: str) -> UnsupportedSchema:
    subject = f"Field '{path}'" if path else "The message"
    return UnsupportedSchema(
        f"{subject} has {what} which no table column holds.",
        "Leave the field out or give it a type of docs/reference/types.md.",
    )


@dataclass(frozen=True)
class Place:
    """A schema, and what its own references are relative to."""

    schema: Any
    base: str

    def inner(self, schema: Any) -> "Place":
        """A schema inside this one."""
        return Place(schema, _based(schema, self.base))


class Library:
    """All schemas that can be referred to, by their addresses. `root` is the one that was asked for."""

    def __init__(self, text: str, references: Sequence[tuple[str, str]]) -> None:
        self._places: dict[str, Place] = {}
        for name, reference in references:
            self._add(name, _parsed(reference, f"The referenced schema '{name}'"))
        self.root = self._add("", _parsed(text, "The schema"))

    def _add(self, name: str, schema: Any) -> Place:
        place = Place(schema, _based(schema, name))
        self._places[name] = self._places[place.base] = place
        for inner in _inside(place):
            if isinstance(inner.schema, dict):
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(inner.schema.get(keyword), str):
                        self._places[f"{inner.base}#{inner.schema[keyword]}"] = inner
                own = inner.schema.get("$id", inner.schema.get("id"))
                if isinstance(own, str) and own.startswith("#"):
                    self._places[f"{inner.base}{own}"] = inner
                elif isinstance(own, str):
                    self._places.setdefault(inner.base, inner)
        return place

    def find(self, reference: str, base: str) -> Place | None:
        """What `reference` means in a schema at `base`; None if it is nowhere."""
        for address in (urljoin(base, reference) if base else reference, reference):
            document, fragment = urldefrag(address)
            if fragment.startswith("/") or not fragment:
                place = self._places.get(document) if document or reference.startswith("#") else None
                if place is None and not document:
                    place = self.root
                found = None if place is None else _at(place, fragment)
            else:
                found = self._places.get(f"{document}#{fragment}")
            if found is not None:
                return found
        return None


def _parsed(text: str, what: str) -> Any:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedSchema(
            f"{what} is not JSON.", "Register a valid one, or choose the format json."
        ) from error
    if not isinstance(schema, dict | bool):
        raise UnsupportedSchema(f"{what} is no JSON Schema.", "A schema is an object, or true or false.")
    return schema


def _based(schema: Any, base: str) -> str:
    own = schema.get("$id", schema.get("id")) if isinstance(schema, dict) else None
    if not isinstance(own, str) or own.startswith("#"):
        return base
    return urldefrag(urljoin(base, own))[0]


def _inside(place: Place) -> Iterator[Place]:
    """All schemas of a document. Some of what is found is no schema, and does no harm."""
    waiting = [place]
    while waiting:
        here = waiting.pop()
        yield here
        children = here.schema.values() if isinstance(here.schema, dict) else here.schema
        if isinstance(here.schema, dict | list):
            waiting += [here.inner(child) for child in children if isinstance(child, dict | list)]


def _at(place: Place, pointer: str) -> Place | None:
    """What a JSON pointer leads to."""
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        schema = place.schema
        if isinstance(schema, list) and key.isdecimal() and int(key) < len(schema):
            place = place.inner(schema[int(key)])
        elif isinstance(schema, dict) and key in schema:
            place = place.inner(schema[key])
        else:
            return None
    return place


class _Walk:
    """Makes nodes of schemas, and remembers which references it is in.

    A value can be described in several places at once: beside a `$ref`, in each schema of an `allOf`. So all
    of them, its facets, are carried together, each with what its own references are relative to.
    """

    def __init__(self, library: Library) -> None:
        self._library = library
        self._open: list[int] = [id(library.root.schema)]
        self._columns = 0
        self._depth = 0

    def root(self, column: str) -> Node:
        found = self.node([self._library.root], "")
        # The path of what is in a single column begins with its name.
        return found if isinstance(found, Record) else self.node([self._library.root], column)

    def node(self, places: Sequence[Place], path: str) -> Node:
        self._columns += 1
        self._depth += 1
        if self._columns > _MAX_COLUMNS or self._depth > _MAX_DEPTH:
            raise refused(path, "more fields around it, or above it, than a table can have,")
        opened = len(self._open)
        try:
            return self._node([facet for place in places for facet in self._facets(place, path)], path)
        finally:
            del self._open[opened:]
            self._depth -= 1

    def _facets(self, place: Place, path: str) -> Iterator[Place]:
        schema = place.schema
        if not isinstance(schema, dict):
            yield place
            return
        keyword = next((k for k in _REFERENCES if isinstance(schema.get(k), str)), None)
        if keyword is not None:
            yield from self._facets(self._target(place, schema[keyword], path), path)
        for inner in schema.get("allOf", ()):
            yield from self._facets(place.inner(inner), path)
        rest = {key: value for key, value in schema.items() if key not in (keyword, "allOf")}
        if rest or (keyword is None and "allOf" not in schema):
            yield Place(rest, place.base)

    def _target(self, place: Place, reference: str, path: str) -> Place:
        target = self._library.find(reference, place.base)
        if target is None:
            raise refused(path, f"a reference to '{reference}', which is nowhere,")
        if isinstance(target.schema, dict):
            if id(target.schema) in self._open:
                raise refused(path, f"the recursive type '{reference}',")
            self._open.append(id(target.schema))
        return target

    def _node(self, facets: Sequence[Place], path: str) -> Node:
        shaped = [facet for facet in facets if isinstance(facet.schema, dict)]
        if len(shaped) < len(facets):
            return Document()
        for facet in shaped:
            for keyword in _UNIONS:
                if keyword in facet.schema and not _only_demands(facet.schema[keyword]):
                    return self._union(shaped, facet, keyword, path)
        match _types(shaped):
            case ["object"]:
                return _with_names(self._object(shaped, path), shaped)
            case ["array"]:
                return self._array(shaped, path)
            case ["string"]:
                return _with_names(_string(shaped), shaped)
            case ["integer"]:
                return _with_names(Whole(_WHOLE_BITS.get(_first(shaped, "connect.type"), 64)), shaped)
            case ["number"]:
                return _with_names(Real(_first(shaped, "connect.type") == "float32"), shaped)
            case ["boolean"]:
                return Flag()
        return Document()

    def _union(self, facets: Sequence[Place], facet: Place, keyword: str, path: str) -> Node:
        """One branch beside null is an optional value. Branches that are all the same column are that one."""
        branches = [facet.inner(branch) for branch in facet.schema[keyword] if not _is_null(branch)]
        rest = Place({k: v for k, v in facet.schema.items() if k != keyword}, facet.base)
        beside = [rest if other is facet else other for other in facets]
        if len(branches) == 1:
            return self.node([*beside, branches[0]], path)
        if any(not other.schema.keys().isdisjoint(_SHAPE) for other in beside):
            return Document()
        try:
            found = [self.node([*beside, branch], path) for branch in branches]
        except UnsupportedSchema:
            # The text of a value can hold what columns cannot.
            return Document()
        return found[0] if found and all(other == found[0] for other in found) else Document()

    def _object(self, facets: Sequence[Place], path: str) -> Node:
        properties: dict[str, list[Place]] = {}
        for facet in facets:
            for name, schema in facet.schema.get("properties", {}).items():
                properties.setdefault(name, []).append(facet.inner(schema))
        allowed = {n: p for n, p in properties.items() if all(place.schema is not False for place in p)}
        if allowed:
            fields = [(n, self.node(p, f"{path}.{n}" if path else n)) for n, p in allowed.items()]
            return record_of(fields, path, _is_closed(facets))
        values = [place for facet in facets for place in _values(facet)]
        return Entries(self.node(values, f"{path}{{}}")) if len(values) == 1 else Document()

    def _array(self, facets: Sequence[Place], path: str) -> Node:
        if any(
            "prefixItems" in facet.schema or isinstance(facet.schema.get("items"), list) for facet in facets
        ):
            return Document()
        items = [facet.inner(facet.schema["items"]) for facet in facets if "items" in facet.schema]
        return Items(self.node(items, f"{path}[]") if items else Document())


def _types(facets: Sequence[Place]) -> list[str]:
    """The types that a value can have, other than null. Without `type`, what the other keywords are about."""
    allowed: set[str] | None = None
    for facet in facets:
        said = _said_types(facet.schema)
        if said is not None:
            allowed = said if allowed is None else _both(allowed, said)
    found = (allowed or set()) - {"null"}
    if "number" in found:
        found -= {"integer"}
    return sorted(found)


def _said_types(schema: Mapping[str, Any]) -> set[str] | None:
    said = schema.get("type")
    if isinstance(said, str | list):
        return {said} if isinstance(said, str) else {str(one) for one in said}
    if "const" in schema:
        return {_type_of(schema["const"])}
    if isinstance(schema.get("enum"), list):
        return {_type_of(value) for value in schema["enum"]}
    if "properties" in schema:
        return {"object"}
    return {"array"} if "items" in schema else None


def _both(one: set[str], other: set[str]) -> set[str]:
    found = one & other
    # A whole number is a number too.
    if ("integer" in one and "number" in other) or ("integer" in other and "number" in one):
        found.add("integer")
    return found


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def _is_null(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return (
        schema.get("type") in ("null", ["null"])
        or schema.get("const", 0) is None
        or schema.get("enum") == [None]
    )


def _only_demands(branches: Any) -> bool:
    """Whether the branches of a union only say what must be there, as `{"required": […]}` does."""
    return all(isinstance(b, dict) and not {*_SHAPE, *_REFERENCES} & b.keys() for b in branches)


def _is_closed(facets: Sequence[Place]) -> bool:
    if any("patternProperties" in facet.schema for facet in facets):
        return False
    if any(facet.schema.get("unevaluatedProperties") is False for facet in facets):
        return True
    objects = [facet.schema for facet in facets if "properties" in facet.schema]
    return len(objects) == 1 and objects[0].get("additionalProperties") is False


def _values(facet: Place) -> Iterator[Place]:
    """The schemas of the values of an object that has no keys of its own."""
    additional = facet.schema.get("additionalProperties")
    patterns = facet.schema.get("patternProperties", {})
    if isinstance(additional, dict):
        yield facet.inner(additional)
    elif additional is not False and patterns:
        # Any other key may have any value.
        yield Place(True, facet.base)
    for schema in patterns.values():
        yield facet.inner(schema)


def _string(facets: Sequence[Place]) -> Node:
    if _first(facets, "connect.type") == "bytes" or _first(facets, "contentEncoding") == "base64":
        return BYTES
    match _first(facets, "format"):
        case "date":
            return DATE
        case "date-time":
            return INSTANT
    return Text()


def _with_names(node: Node, facets: Sequence[Place]) -> Node:
    parameters = _first(facets, "connect.parameters")
    found = (named(node, facet.schema.get("title"), parameters) for facet in facets)
    return next((logical for logical in found if logical != node), node)


def _first(facets: Sequence[Place], keyword: str) -> Any:
    return next((facet.schema[keyword] for facet in facets if keyword in facet.schema), None)
