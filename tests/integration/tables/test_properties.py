"""Random schemas, random evolutions, random values: the table holds exactly what was produced.

Schemas are trees whose fields have an identity that no evolution changes. What a row must be follows from the
identities alone: a field that its writer did not have is NULL, one that was renamed has its last name.
"""

import copy
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headgate.tables.materialize import Materializer
from tests.integration.tables.drive import Drive
from tests.support.ledger import canonical
from tests.unit.decode.protobuf_samples import message_class

SOAK = os.environ.get("HEADGATE_SOAK") == "1"
EXAMPLES = {"avro": 120, "json": 60, "protobuf": 60} if SOAK else {"avro": 2, "json": 1, "protobuf": 1}
PARTITIONS = 2
topics = itertools.count()

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, -1, 2**53 + 1, 2**63 - 1, -(2**63)]))
UTC_TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
LEAVES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "boolean": ("boolean", st.booleans()),
    "int": ("int", INT),
    "long": ("long", LONG),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "number": ("double", st.floats(allow_nan=False, allow_infinity=False)),
    "bytes": ("bytes", st.binary(max_size=12)),
    "string": ("string", st.text(max_size=12)),
    "date": ({"type": "int", "logicalType": "date"}, st.dates(date(1, 1, 1), date(9999, 12, 31))),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        UTC_TIMES.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    ),
    "micros": ({"type": "long", "logicalType": "timestamp-micros"}, UTC_TIMES),
    "local": (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    ),
}
WIDER = {"int": "long", "float": "double"}


@dataclass(frozen=True)
class Form:
    """What a schema language has, and how it can evolve."""

    name: str
    leaves: tuple[str, ...]
    changes: tuple[str, ...]
    # Whether a list or a map may be missing, and may hold lists and maps itself.
    free: bool = True


FORMS = {
    "avro": Form(
        "avro",
        (*LEAVES, "decimal", "enum", "fixed"),
        ("add", "widen", "drop", "rename", "rename", "reorder", "loosen"),
    ),
    "json": Form(
        "json",
        ("boolean", "long", "number", "string", "date", "micros"),
        ("add", "drop", "reorder", "loosen"),
    ),
    "protobuf": Form(
        "protobuf",
        ("boolean", "int", "long", "float", "double", "bytes", "string"),
        ("add", "widen", "drop", "rename", "rename", "reorder"),
        free=False,
    ),
}


@dataclass
class Node:
    """A type: a leaf by its name, or a record, or a list or a map of another."""

    kind: str
    number: int
    inner: "Node | None" = None
    fields: "list[Field]" = field(default_factory=list)
    precision: int = 0
    scale: int = 0


@dataclass
class Field:
    """`number` is what it is, in all versions; the name is what it is called in this one."""

    number: int
    name: str
    node: Node
    optional: bool
    aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """Versions of one record type, and batches of (version, value); registered one by one, or all at once."""

    form: str
    versions: list[Node]
    batches: list[list[tuple[int, dict[str, Any]]]]
    early: bool


class Numbers:
    def __init__(self) -> None:
        self._next = itertools.count(1)

    def new(self) -> int:
        return next(self._next)


# -- schemas


@st.composite
def nodes(draw: st.DrawFn, form: Form, numbers: Numbers, depth: int, inside: bool = False) -> Node:
    kinds = ["record"] if inside and not form.free else ["record", "array", "map"]
    kind = draw(st.sampled_from([*form.leaves, *(kinds * 3 if depth < 2 else [])]))
    node = Node(kind, numbers.new())
    match kind:
        case "decimal":
            node.precision = draw(st.integers(1, 38))
            node.scale = draw(st.integers(0, node.precision))
        case "record":
            node.fields = [draw(fields(form, numbers, depth + 1)) for _ in range(draw(st.integers(1, 3)))]
        case "array" | "map":
            node.inner = draw(nodes(form, numbers, depth + 1, True))
    return node


@st.composite
def fields(draw: st.DrawFn, form: Form, numbers: Numbers, depth: int, optional: bool | None = None) -> Field:
    number = numbers.new()
    chosen = draw(st.booleans()) if optional is None else optional
    node = draw(nodes(form, numbers, depth))
    if not form.free and node.kind in ("array", "map"):
        chosen = False
    return Field(number, f"f{number}", node, chosen)


@st.composite
def roots(draw: st.DrawFn, form: Form, numbers: Numbers) -> Node:
    root = Node("record", numbers.new())
    root.fields = [draw(fields(form, numbers, 0)) for _ in range(draw(st.integers(1, 5)))]
    return root


def records_of(node: Node) -> Iterator[Node]:
    """Every record in it, itself included."""
    if node.kind == "record":
        yield node
    for below in [node.inner] if node.inner is not None else [one.node for one in node.fields]:
        yield from records_of(below)


def leaves_of(node: Node) -> Iterator[Node]:
    if node.inner is not None:
        yield from leaves_of(node.inner)
    elif node.kind == "record":
        for one in node.fields:
            yield from leaves_of(one.node)
    else:
        yield node


@st.composite
def evolved(draw: st.DrawFn, form: Form, before: Node, numbers: Numbers) -> Node:
    """The next version: one to three changes, each anywhere in it."""
    root = copy.deepcopy(before)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(list(records_of(root))))
        match draw(st.sampled_from(form.changes)):
            case "add":
                at = draw(st.integers(0, len(place.fields)))
                place.fields.insert(at, draw(fields(form, numbers, 1, True)))
            case "widen":
                widen(draw, [leaf for leaf in leaves_of(root) if leaf.kind in (*WIDER, "decimal")])
            case "drop" if len(place.fields) > 1:
                place.fields.remove(draw(st.sampled_from(place.fields)))
            case "rename":
                one = draw(st.sampled_from(place.fields))
                one.aliases = [one.name, *one.aliases]
                one.name = f"{one.name.partition('_')[0]}_{len(one.aliases)}"
            case "reorder":
                place.fields = list(draw(st.permutations(place.fields)))
            case "loosen":
                draw(st.sampled_from(place.fields)).optional = True
    return root


def widen(draw: st.DrawFn, chosen: list[Node]) -> None:
    if not chosen:
        return
    leaf = draw(st.sampled_from(chosen))
    if leaf.kind == "decimal":
        leaf.precision = draw(st.integers(leaf.precision, 38))
    else:
        leaf.kind = WIDER[leaf.kind]


def avro(node: Node) -> Any:
    match node.kind:
        case "record":
            return {
                "type": "record",
                "name": f"T{node.number}",
                "fields": [
                    {
                        "name": one.name,
                        "type": ["null", avro(one.node)] if one.optional else avro(one.node),
                        **({"default": None} if one.optional else {}),
                        **({"aliases": one.aliases} if one.aliases else {}),
                    }
                    for one in node.fields
                ],
            }
        case "array" | "map":
            assert node.inner is not None
            return {"type": node.kind, "items" if node.kind == "array" else "values": avro(node.inner)}
        case "decimal":
            digits = {"precision": node.precision, "scale": node.scale}
            return {"type": "bytes", "logicalType": "decimal", **digits}
        case "enum":
            return {"type": "enum", "name": f"T{node.number}", "symbols": ["A", "B", "C"]}
        case "fixed":
            return {"type": "fixed", "name": f"T{node.number}", "size": 3}
    return LEAVES[node.kind][0]


def json_schema(node: Node) -> Any:
    match node.kind:
        case "record":
            return {
                "type": "object",
                "title": f"T{node.number}",
                "properties": {one.name: json_schema(one.node) for one in node.fields},
                "required": [one.name for one in node.fields if not one.optional],
                "additionalProperties": False,
            }
        case "array":
            assert node.inner is not None
            return {"type": "array", "items": json_schema(node.inner)}
        case "map":
            assert node.inner is not None
            return {"type": "object", "additionalProperties": json_schema(node.inner)}
    return JSON_TYPES[node.kind]


JSON_TYPES: dict[str, Any] = {
    "boolean": {"type": "boolean"},
    "long": {"type": "integer"},
    "number": {"type": "number"},
    "string": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "micros": {"type": "string", "format": "date-time"},
}
PROTO_TYPES = {"boolean": "bool", "int": "int32", "long": "int64"}


def protobuf(root: Node) -> str:
    return f'syntax = "proto3";\n{_message(root)}'


def _message(node: Node) -> str:
    inner = "".join(_message(below) for one in node.fields for below in _messages_in(one.node))
    lines = "".join(f"{_proto_type(one)} {one.name} = {one.number};\n" for one in node.fields)
    return f"message T{node.number} {{\n{inner}{lines}}}\n"


def _messages_in(node: Node) -> list[Node]:
    held = node if node.inner is None else node.inner
    return [held] if held.kind == "record" else []


def _proto_type(one: Field) -> str:
    node = one.node
    match node.kind:
        case "array":
            assert node.inner is not None
            return f"repeated {_proto_name(node.inner)}"
        case "map":
            assert node.inner is not None
            return f"map<string, {_proto_name(node.inner)}>"
    return ("optional " if one.optional and node.kind != "record" else "") + _proto_name(node)


def _proto_name(node: Node) -> str:
    return f"T{node.number}" if node.kind == "record" else PROTO_TYPES.get(node.kind, node.kind)


# -- values


def values(node: Node) -> st.SearchStrategy[Any]:
    match node.kind:
        case "record":
            each = {one.name: values(one.node) for one in node.fields}
            for one in node.fields:
                if one.optional:
                    each[one.name] = st.none() | each[one.name]
            return st.fixed_dictionaries(each)
        case "array":
            assert node.inner is not None
            return st.lists(values(node.inner), max_size=2)
        case "map":
            assert node.inner is not None
            return st.dictionaries(st.text(max_size=4), values(node.inner), max_size=2)
        case "decimal":
            most, scale = 10**node.precision - 1, node.scale
            return st.integers(-most, most).map(lambda n: exact_decimal(n, scale))
        case "enum":
            return st.sampled_from("ABC")
        case "fixed":
            return st.binary(min_size=3, max_size=3)
    return LEAVES[node.kind][1]


def exact_decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((unscaled < 0, digits, -scale))


@st.composite
def cases(draw: st.DrawFn, form: Form) -> Case:
    numbers = Numbers()
    versions = [draw(roots(form, numbers))]
    for _ in range(draw(st.integers(1, 4))):
        versions.append(draw(evolved(form, versions[-1], numbers)))
    newest = 0
    batches: list[list[tuple[int, dict[str, Any]]]] = []
    while newest < len(versions):
        newest += draw(st.integers(1, 2))
        there = list(range(min(newest, len(versions))))
        used = draw(st.lists(st.sampled_from(there), min_size=2, max_size=6))
        if newest >= len(versions):
            # Every version is used by some record, in whatever order.
            used = list(draw(st.permutations([*used, *range(len(versions))])))
        batches.append([(version, draw(values(versions[version]))) for version in used])
    return Case(form.name, versions, batches, draw(st.booleans()))


# -- what the table must hold


@dataclass
class Columns:
    """All fields that any version has, by what they are, with their last names."""

    names: dict[int, str]
    fields: dict[int, list[int]]

    @classmethod
    def of(cls, versions: Sequence[Node]) -> "Columns":
        found = cls({}, {})
        for root in versions:
            for place in records_of(root):
                known = found.fields.setdefault(place.number, [])
                for one in place.fields:
                    found.names[one.number] = one.name
                    if one.number not in known:
                        known.append(one.number)
        return found

    def row(self, node: Node, value: Any) -> Any:
        if value is None:
            return None
        match node.kind:
            case "record":
                given = {one.number: self.row(one.node, value[one.name]) for one in node.fields}
                return {self.names[one]: given.get(one) for one in self.fields[node.number]}
            case "array":
                assert node.inner is not None
                return [self.row(node.inner, item) for item in value]
            case "map":
                assert node.inner is not None
                return sorted((key, self.row(node.inner, item)) for key, item in value.items())
        return value


# -- the test


class Writer:
    """Writes values of one version as a producer does; Avro and Protobuf by Confluent's serializers."""

    def __init__(self, drive: Drive, form: str, version: Node) -> None:
        self._drive = drive
        self._form = form
        self._version = version
        self._client = SchemaRegistryClient({"url": drive.runtime.registry})
        self._serializer: Any = None
        if form == "avro":
            self._serializer = AvroSerializer(self._client, json.dumps(avro(version)))
        elif form == "protobuf":
            self._kind = message_class(protobuf(version), f"T{version.number}")
            self._serializer = ProtobufSerializer(self._kind, self._client, {"use.deprecated.format": False})
        self._context = SerializationContext(drive.topic, MessageField.VALUE)
        self._schema_id = 0

    def register(self) -> None:
        subject = f"{self._drive.topic}-value"
        match self._form:
            case "avro":
                self._schema_id = self._drive.register(avro(self._version))
            case "json":
                schema = Schema(json.dumps(json_schema(self._version)), "JSON")
                self._schema_id = self._client.register_schema(subject, schema)
            case _:
                self.write({})

    def write(self, value: dict[str, Any]) -> bytes:
        if self._form == "json":
            return b"\x00" + self._schema_id.to_bytes(4, "big") + json_text(value).encode()
        given = _filled(self._kind(), self._version, value) if self._form == "protobuf" else value
        found: bytes | None = self._serializer(given, self._context)
        assert found is not None
        return found


def json_text(value: dict[str, Any]) -> str:
    def plain(item: Any) -> Any:
        match item:
            case dict():
                return {key: plain(one) for key, one in item.items() if one is not None}
            case list():
                return [plain(one) for one in item]
            case datetime() | date():
                return item.isoformat()
        return item

    return json.dumps(plain(value), ensure_ascii=False)


def _filled(message: Any, node: Node, value: dict[str, Any]) -> Any:
    for one in node.fields:
        given = value.get(one.name)
        if given is None:
            continue
        place = getattr(message, one.name)
        match one.node.kind:
            case "record":
                place.SetInParent()
                _filled(place, one.node, given)
            case "array" if one.node.inner is not None and one.node.inner.kind == "record":
                for item in given:
                    _filled(place.add(), one.node.inner, item)
            case "array":
                place.extend(given)
            case "map" if one.node.inner is not None and one.node.inner.kind == "record":
                for key, item in given.items():
                    _filled(place[key], one.node.inner, item)
            case "map":
                place.update(given)
            case _:
                setattr(message, one.name, given)
    return message


def another(drive: Drive) -> Drive:
    """One topic for each case."""
    return Drive(
        drive.runtime, drive.source, drive.lake, drive._make, f"{drive.topic}.{next(topics)}", drive.index
    )


def run(drive: Drive, case: Case) -> None:
    drive.create(PARTITIONS)
    # Required fields may come by themselves and go again: the table is not the registry's judge.
    drive.set_compatibility("NONE")
    writers = [Writer(drive, case.form, version) for version in case.versions]
    registered = -1
    columns = Columns.of(case.versions)
    table: Materializer | None = None
    expected: list[str] = []
    for number, batch in enumerate(case.batches):
        newest = len(writers) - 1 if case.early else max(version for version, _ in batch)
        for version in range(registered + 1, newest + 1):
            # In the order of versions, as producers come.
            writers[version].register()
        registered = max(registered, newest)
        for at, (version, value) in enumerate(batch):
            drive.send(writers[version].write(value), at % PARTITIONS)
            expected.append(canonical(columns.row(case.versions[version], value)))
        drive.flush()
        if table is None or number % 2 == 0:
            table = drive.materializer()  # as after a restart
        drive.run_all(table)
    found = sorted(map(canonical, drive.rows()))
    text = {"avro": avro, "json": json_schema, "protobuf": protobuf}[case.form]
    assert found == sorted(expected), [text(version) for version in case.versions]


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_random_schemas_evolutions_and_values(drive: Drive, form: str) -> None:
    @settings(
        max_examples=EXAMPLES[form],
        deadline=None,
        database=None,
        print_blob=True,
        # Each case is a topic, a table and some Spark jobs: what fails is told as it is.
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(FORMS[form]))
    def follows(case: Case) -> None:
        run(another(drive), case)

    follows()
