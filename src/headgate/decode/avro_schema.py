"""An Avro schema is walked once; what has no exact column is refused with the path of the field.

Paths that people read are `lines[].price` and `tags{}.note`; paths of columns, as Iceberg has them, are
`lines.element.price` and `tags.value.note`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import types as t

from headgate.decode import avro_part as part
from headgate.decode import connect
from headgate.decode.avro_part import Field, Part
from headgate.errors import UnsupportedSchema

# Plain types that Spark decodes exactly.
_PLAIN: Mapping[str, t.DataType] = {
    "long": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "bytes": t.BinaryType(),
}
_PRIMITIVES = {"null", "boolean", "int", "string", *_PLAIN}
_NAMED = ("record", "error", "enum", "fixed")
# Logical types that Spark decodes exactly.
_TIMESTAMPS: Mapping[str, t.DataType] = {
    "timestamp-millis": t.TimestampType(),
    "timestamp-micros": t.TimestampType(),
    "local-timestamp-millis": t.TimestampNTZType(),
    "local-timestamp-micros": t.TimestampNTZType(),
}
# Unions of two number types that are one column of the wider.
_WIDENED: Mapping[frozenset[str], t.DataType] = {
    frozenset({"int", "long"}): t.LongType(),
    frozenset({"float", "double"}): t.DoubleType(),
}
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
# Named types are written out wherever they stand: a few of them can make columns without end.
_MAX_COLUMNS = 10_000
_MAX_DEPTH = 60


@dataclass(frozen=True)
class Message:
    """What a schema says of messages."""

    part: Part
    #: The fields of a message that is a record and nothing else; None for all others.
    fields: Sequence[Field] | None
    record_name: str | None
    former_names: Mapping[str, tuple[str, ...]]


class Place(NamedTuple):
    """Where in a schema we are."""

    path: str  # for people
    column: str  # for tables
    namespace: str = ""
    depth: int = 0

    def field(self, name: str) -> "Place":
        return self._deeper(f"{self.path}.{name}", name)

    def items(self) -> "Place":
        return self._deeper(f"{self.path}[]", "element")

    def values(self) -> "Place":
        return self._deeper(f"{self.path}{{}}", "value")

    def _deeper(self, path: str, name: str) -> "Place":
        column = f"{self.column}.{name}".lstrip(".")
        return Place(path.lstrip("."), column, self.namespace, self.depth + 1)


class _Definition(NamedTuple):
    """A named type, and the namespace that holds inside it."""

    schema: Mapping[str, Any]
    namespace: str


def read_schema(text: str, column: str) -> Message:
    """What messages of this schema are as columns; one that is no record is the column `column`."""
    schema = _parsed(text)
    try:
        return _read(schema, column)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnsupportedSchema(
            f"The schema is not an Avro schema ({error!r}).",
            "Register a valid one, or choose the format raw.",
        ) from error


def _read(schema: Any, column: str) -> Message:
    walk = _Walk()
    if isinstance(schema, dict) and schema.get("type") in ("record", "error"):
        fields = walk.fields(schema, Place("", ""))
        found = part.record(walk.new_name(), fields)
        return Message(found, fields, _full_name(schema, "")[0], walk.former_names)
    place = Place("", "") if _is_spread(schema) else Place(column, column)
    found = walk.part(schema, place)
    return Message(found, None, _name_of_single(schema), walk.former_names)


def _parsed(text: str) -> Any:
    if text.strip() in _PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedSchema(
            "The Avro schema is not JSON.", "Register a valid one, or choose the format raw."
        ) from error


def _is_spread(schema: Any) -> bool:
    """Whether the columns are those of a record or the branches of a union."""
    real = _real(schema)
    if len(real) == 1:
        return isinstance(real[0], dict) and real[0].get("type") in ("record", "error")
    return _wider(real) is None


def _name_of_single(schema: Any) -> str | None:
    real = _real(schema)
    if len(real) == 1 and isinstance(real[0], dict) and real[0].get("type") in _NAMED:
        return _full_name(real[0], "")[0]
    return None


def _real(schema: Any) -> list[Any]:
    """The types other than null."""
    branches = schema if isinstance(schema, list) else [schema]
    return [branch for branch in branches if not _is_null(branch)]


def _is_null(schema: Any) -> bool:
    return schema in ("null", {"type": "null"})


class _Walk:
    """One way through a schema, with the named types met so far."""

    def __init__(self) -> None:
        self.former_names: dict[str, tuple[str, ...]] = {}
        self._named: dict[str, _Definition] = {}
        self._open: list[str] = []
        self._new_names = 0
        self._columns = 0

    def new_name(self) -> str:
        """Types of the shadow are named anew: Avro wants names that are used once."""
        self._new_names += 1
        return f"t{self._new_names}"

    def part(self, schema: Any, place: Place) -> Part:
        if place.depth > _MAX_DEPTH:
            raise _refused(place, f"more than {_MAX_DEPTH} types inside each other")
        if isinstance(schema, list):
            return self._union(schema, place)
        if isinstance(schema, str):
            return self._by_name(schema, {}, place)
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self.part(kind, place._replace(depth=place.depth + 1))
        if kind in _NAMED:
            full, inner = _full_name(schema, place.namespace)
            self._named.setdefault(full, _Definition(schema, inner))
            return self._definition(full, place)
        match kind:
            case "array":
                return part.array(self.part(schema["items"], place.items()), place.path)
            case "map":
                values = self.part(schema["values"], place.values())
                return part.mapping(self.new_name(), values, place.path)
            case _:
                return self._by_name(kind, schema, place)

    def fields(self, schema: Mapping[str, Any], place: Place) -> list[Field]:
        full, inner = _full_name(schema, place.namespace)
        self._named.setdefault(full, _Definition(schema, inner))
        with self._inside(full, place):
            return self._fields(schema, place._replace(namespace=inner))

    def _by_name(self, name: str, schema: Mapping[str, Any], place: Place) -> Part:
        if name in _PRIMITIVES:
            self._count(place)
            return _primitive(name, schema, self, place)
        full = name if "." in name or not place.namespace else f"{place.namespace}.{name}"
        for candidate in (full, name):
            if candidate in self._named:
                return self._definition(candidate, place)
        raise _refused(place, f"the undefined type {full}")

    def _definition(self, full: str, place: Place) -> Part:
        schema, namespace = self._named[full]
        match schema["type"]:
            case "enum":
                self._count(place)
                return part.enum(schema["symbols"], place.path)
            case "fixed":
                self._count(place)
                return _fixed(schema, self.new_name(), place)
        if schema.get("connect.name") == connect.VARIABLE_SCALE_DECIMAL:
            names = [field["name"] for field in schema["fields"]]
            if sorted(names) == ["scale", "value"]:
                self._count(place)
                return part.variable_scale_decimal(self.new_name(), place.path, names[0] == "scale")
        with self._inside(full, place):
            return part.record(self.new_name(), self._fields(schema, place._replace(namespace=namespace)))

    def _fields(self, schema: Mapping[str, Any], place: Place) -> list[Field]:
        if not schema["fields"]:
            raise _refused(place, "a record without fields")
        seen: dict[str, str] = {}
        found = []
        for field in schema["fields"]:
            name = field["name"]
            there = place.field(name)
            _check_name(name, seen, place, there)
            self._remember(field, there)
            found.append(Field(name, self.part(field["type"], there)))
        return found

    def _union(self, branches: list[Any], place: Place) -> Part:
        real = _real(branches)
        if not real:
            raise _refused(place, "a type that is always null")
        if len(real) == 1:
            found = self.part(real[0], place)
            if len(branches) == 1:
                return part.only_branch(found)
            return part.optional(found, null_first=_is_null(branches[0]))
        names = [self.new_name() for _ in branches]
        wider = _wider(real)
        if wider is not None:
            parts = [None if _is_null(branch) else self.part(branch, place) for branch in branches]
            return part.widened(parts, names, wider)
        seen: dict[str, str] = {}
        fields = [None if _is_null(branch) else self._branch(branch, seen, place) for branch in branches]
        return part.union(fields, names)

    def _branch(self, branch: Any, seen: dict[str, str], place: Place) -> Field:
        name = _branch_name(branch)
        there = place.field(name)
        if name.lower() in seen:
            raise _refused(place, f"a union of two types that are both named '{name}'")
        _check_name(name, seen, place, there)
        found = self.part(branch, there)
        if isinstance(branch, dict):
            self._remember(branch, there)
        return Field(name, found)

    def _remember(self, named: Mapping[str, Any], place: Place) -> None:
        former = named.get("aliases")
        if isinstance(former, list) and former:
            self.former_names[place.column] = tuple(alias.rpartition(".")[2] for alias in former)

    @contextmanager
    def _inside(self, full: str, place: Place) -> Iterator[None]:
        if full in self._open:
            raise _refused(place, f"the recursive type {full}")
        self._open.append(full)
        yield
        self._open.pop()

    def _count(self, place: Place) -> None:
        self._columns += 1
        if self._columns > _MAX_COLUMNS:
            raise _refused(place, f"the column after {_MAX_COLUMNS:,} others")


def _primitive(kind: str, schema: Mapping[str, Any], walk: _Walk, place: Place) -> Part:
    """A primitive type, as its logical type has it. Those that are unknown or invalid say nothing, as Avro
    wants; so do Connect's names on types that they do not belong to."""
    logical = _logical(kind, schema)
    match kind, logical:
        case "null", _:
            raise _refused(place, "a type that is always null")
        case "boolean", _:
            return part.boolean(walk.new_name(), place.path)
        case "int", "date":
            return part.date(place.path)
        case "int", "time-millis":
            return part.time_millis(place.path)
        case "int", _:
            return part.integer(place.path)
        case "string", connect.ZONED_TIMESTAMP:
            return part.zoned_timestamp(place.path)
        case "string", _:
            return part.text(place.path)
        case "long", str() if logical in _TIMESTAMPS:
            return part.plain({"type": "long", "logicalType": logical}, _TIMESTAMPS[logical])
        case "bytes", "big-decimal":
            raise _refused(place, "the logical type big-decimal of bytes")
        case "bytes", "decimal":
            digits = _digits(schema, place)
            if digits is not None:
                return part.decimal_of_bytes(*digits, place.path)
    return part.plain(kind, _PLAIN[kind])


def _fixed(schema: Mapping[str, Any], new_name: str, place: Place) -> Part:
    size = schema["size"]
    if size < 1:
        # A list of such items could be as long as it says, in no bytes at all.
        raise _refused(place, "a fixed of no bytes")
    match schema.get("logicalType"):
        case "uuid" if size == 16:
            return part.uuid(new_name)
        case "duration" if size == 12:
            return part.duration(new_name)
        case "decimal":
            digits = _digits(schema, place)
            if digits is not None:
                return part.decimal_of_fixed(new_name, size, *digits, place.path)
    return part.fixed(new_name, size)


def _logical(kind: str, schema: Mapping[str, Any]) -> str | None:
    """The logical type; Connect's name for it comes first: a timestamp of Debezium's has no zone."""
    name = str(schema.get("connect.name"))
    plain, same = connect.SAME_IN_AVRO.get(name, (None, None))
    if plain == kind:
        return same
    if name == connect.ZONED_TIMESTAMP:
        return connect.ZONED_TIMESTAMP
    if name == connect.CONNECT_DECIMAL:
        return "decimal"
    logical = schema.get("logicalType")
    return logical if isinstance(logical, str) else None


def _digits(schema: Mapping[str, Any], place: Place) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None if they are invalid."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    of_connect = schema.get("connect.name") == connect.CONNECT_DECIMAL
    if of_connect:
        found = connect.decimal_type(schema.get("connect.parameters") or {})
        if "precision" not in schema and found is not None:
            return found.precision, found.scale
        if isinstance(precision, int):
            # Connect says 64 where it does not know.
            precision = min(precision, connect.MAX_DIGITS)
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision > 0:
        return None
    if "size" in schema and precision > part.digits_of(schema["size"]):
        return None
    if precision > connect.MAX_DIGITS:
        raise _refused(place, f"a decimal of {precision} digits, more than {connect.MAX_DIGITS}")
    return precision, scale


def _wider(real: Sequence[Any]) -> t.DataType | None:
    """The one column type of a union of numbers; not where one of them means a date or a time."""
    kinds = [_number(branch) for branch in real]
    return _WIDENED.get(frozenset(kind for kind in kinds if kind)) if None not in kinds else None


def _number(branch: Any) -> str | None:
    if isinstance(branch, str):
        return branch
    if isinstance(branch, dict) and isinstance(branch.get("type"), str):
        kind: str = branch["type"]
        return None if _logical(kind, branch) is not None else kind
    return None


def _branch_name(branch: Any) -> str:
    """Named types have names; of the others a union has each once."""
    if isinstance(branch, dict):
        name = branch.get("name") if branch.get("type") in _NAMED else None
        return _branch_name(branch["type"]) if name is None else str(name).rpartition(".")[2]
    return str(branch).rpartition(".")[2]


def _check_name(name: str, seen: dict[str, str], parent: Place, there: Place) -> None:
    if name.lower() in seen:
        raise _refused(there, f"a name that differs only by case from '{seen[name.lower()]}'")
    if not parent.column and name.lower() in _RESERVED:
        raise _refused(there, "a name that Iceberg keeps for itself")
    seen[name.lower()] = name


def _full_name(schema: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The full name of a named type, and the namespace that holds inside it."""
    name = schema["name"]
    if "." in name:
        return name, name.rpartition(".")[0]
    inner = schema.get("namespace", namespace) or ""
    return (f"{inner}.{name}" if inner else name), inner


def _refused(place: Place, what: str) -> UnsupportedSchema:
    where = f"Field '{place.path}'" if place.path else "The message"
    return UnsupportedSchema(
        f"{where} has {what}, which no table column holds exactly.",
        "Leave the field out or give it a type of docs/reference/types.md.",
    )
