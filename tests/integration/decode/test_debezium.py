"""Change events of Debezium, as bytes of every form, read as changes of rows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.decode.debezium import CHANGE, ChangeReader, envelope_columns
from headgate.decode.json_plain import ConnectJsonReader, JsonReader, parse_columns
from headgate.decode.json_schema import JsonSchemaReader
from headgate.decode.project import same_type
from headgate.decode.reader import Reader
from tests.support.debezium import PLACEHOLDER, START, Events, Message, SourceTable
from tests.support.debezium_forms import Database, Form, Row

EVERY = [(database, form) for database in Database for form in Form]
ROWS: dict[Database, Row] = {
    Database.POSTGRES: {
        "id": -(2**31),
        "name": "ä",
        "due": date(1969, 12, 31),
        "total": Decimal("-9999999999.99"),
        "kind": "toy",
        "changed": datetime(2024, 5, 31, 10, 15, 30, 123_456, UTC),
        "placed": datetime(1969, 12, 31, 23, 59, 59, 999_999),
        "weight": Decimal("1.25"),
        "ref": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "data": '{"a": 1}',
        "body": "1",
        "picture": b"\x00\xff",
        "tags": ["a", None],
        "marks": [1, None, -5],
        "attributes": {"colour": "red", "size": None},
    },
    Database.MYSQL: {
        "id": 2**31 - 1,
        "name": None,
        "due": date(9999, 12, 31),
        "total": Decimal("0.01"),
        "kind": "book",
        "changed": datetime(1970, 1, 1, tzinfo=UTC),
        "placed": datetime(2024, 5, 31, 10, 15, 30, 123_000),
        "made": 2024,
        "data": "[]",
        "body": "",
        "picture": b"",
    },
}
SHAPE = (
    "struct<op: string, source: string, position: binary, at: timestamp, missing: array<string>, "
    "snapshot: boolean>"
)


@dataclass(frozen=True)
class Read:
    exact: bool
    row: Row
    change: dict[str, Any]
    problem: str | None


def reader_of(events: Events) -> ChangeReader:
    envelope: Reader
    match events.form:
        case Form.AVRO:
            envelope = AvroReader(json.dumps(events.value_schema))
        case Form.CONNECT_JSON:
            envelope = ConnectJsonReader(events.value_schema or {})
        case Form.JSON:
            envelope = JsonReader(envelope_columns(parse_columns(events.declared)))
    return ChangeReader(envelope)


def read(spark: SparkSession, reader: ChangeReader, bodies: Sequence[bytes | None]) -> list[Read]:
    """Every expression on every body, sound or not."""
    # By way of Arrow: rows of Python would start Python workers.
    table = pyarrow.table(
        {"n": pyarrow.array(range(len(bodies))), "body": pyarrow.array(bodies, pyarrow.binary())}
    )
    raw, body = f.col("raw"), f.col("body")
    decoded = spark.createDataFrame(table).coalesce(1).select("n", "body", reader.raw(body).alias("raw"))
    problem = reader.problem(raw, body)
    assert problem is not None
    frame = decoded.orderBy("n").select(
        reader.is_exact(raw, body).alias("exact"),
        reader.value(raw).alias("row"),
        reader.change(raw).alias("change"),
        problem.alias("problem"),
    )
    assert same_type(frame.schema["row"].dataType, reader.type)
    assert same_type(frame.schema["change"].dataType, CHANGE)
    assert frame.schema["change"].dataType.simpleString() == SHAPE.replace(", ", ",").replace(": ", ":")
    return [Read(**row) for row in frame.toArrow().to_pylist(maps_as_pydicts="strict")]


def values(messages: Sequence[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


@pytest.mark.parametrize(("database", "form"), EVERY)
def test_every_operation(spark: SparkSession, database: Database, form: Form) -> None:
    events = Events(database, form)
    row = ROWS[database]
    other = row | {"name": "before", "total": None, "picture": None}
    key = events.key_only(row)
    written = [
        events.event("c", None, row),
        events.event("r", None, row, events.source(snapshot="true")),
        events.event("u", other, row),
        events.event("u", None, row),
        events.event("d", other, None),
        events.event("d", key, None),
        events.event("d", None, None),
        events.event("t", None, None),
        events.event("m", None, None),
    ]
    reader = reader_of(events)
    found = read(spark, reader, [events.message(row, event).value for event in written])
    assert all(one.exact and one.problem is None for one in found)
    nothing = dict.fromkeys(row)
    rows = [events.as_read(one) for one in (row, row, row, row, other, key)]
    assert [one.row for one in found] == [*rows, nothing, nothing, nothing]
    ops = ["upsert"] * 4 + ["delete"] * 3 + ["truncate", "ignore"]
    assert [one.change["snapshot"] for one in found] == [False, True, *[False] * 7]
    assert [one.change["op"] for one in found] == ops
    postgres = database is Database.POSTGRES
    names = {"postgresql/shop/inventory"} if postgres else {"mysql/shop/223344/mysql-bin"}
    assert {one.change["source"] for one in found} == names
    place = _bytes(24_023_128) if postgres else _bytes(3) + _bytes(484)
    assert [one.change["position"] for one in found] == [place, None] + [place] * 7
    assert {one.change["at"] for one in found} == {START}
    assert all(one.change["missing"] == [] for one in found)
    # Python's equality takes 1 for True and 1.0: the types have the last word.
    assert reader.type.names == list(row)
    if form is not Form.JSON:
        assert reader.record_name == "shop.public.orders.Value"
        assert [reader.type[name].dataType for name in ("due", "total", "changed", "placed")] == [
            t.DateType(),
            t.DecimalType(12, 2),
            t.TimestampType(),
            t.TimestampNTZType(),
        ]


def _bytes(number: int) -> bytes:
    return number.to_bytes(8, "big")


@pytest.mark.parametrize(("database", "form"), EVERY)
def test_a_source_is_rebuilt_from_its_changes(spark: SparkSession, database: Database, form: Form) -> None:
    """In the order of the messages, and by position when they come twice and in any order."""
    source = SourceTable(database, form, seed=7, toast=False)
    messages = [m for m in source.run(60) if m.value is not None]
    found = read(spark, reader_of(source.events), values(messages))
    assert all(one.exact for one in found)
    assert _replayed(found) == source.rows
    assert len(source.rows) > 5
    # Per key no position is lower than one before it; ties are one key's delete and its neighbours.
    mixed = sorted(found + found, key=lambda one: (one.change["position"][::-1], str(one.row)))
    assert _replayed(mixed) == source.rows


def _replayed(changes: Sequence[Read]) -> list[Row]:
    """What an upsert table does, by position alone."""
    newest: dict[int, Read] = {}
    for one in changes:
        key = one.row["id"]
        if key not in newest or one.change["position"] >= newest[key].change["position"]:
            newest[key] = one
    return [newest[key].row for key in sorted(newest) if newest[key].change["op"] == "upsert"]


def test_values_that_are_not_there(spark: SparkSession) -> None:
    for form in Form:
        source = SourceTable(Database.POSTGRES, form, seed=3)
        source.insert(4)
        row = source.state[1] = ROWS[Database.POSTGRES] | {"id": 1}
        told = source.update(1, leave_out=True)
        more = [
            source.events.message(row, source.events.event("u", None, row | {name: value}))
            for name, value in (
                ("picture", PLACEHOLDER.encode() + b"!"),
                ("tags", [PLACEHOLDER, PLACEHOLDER]),
                ("tags", ["3793c2bf-5e6c-3f3e-a1b4-9f9f2b7b1a3c"]),
                ("marks", list(PLACEHOLDER.encode())[:-1]),
                ("attributes", {PLACEHOLDER: None}),
                ("attributes", {PLACEHOLDER: PLACEHOLDER, "a": "b"}),
                ("body", PLACEHOLDER.encode().hex()),
                ("body", f'{{"{PLACEHOLDER}":"{PLACEHOLDER}"}}'),
            )
        ]
        found = read(spark, reader_of(source.events), values([*told, *more]))
        big = ["data", "body", "picture", "tags", "marks", "attributes"]
        assert [one.change["missing"] for one in found] == [big, *([[]] * 6), ["body"], ["body"]]
        assert all(one.exact for one in found)
        kept = {name: value for name, value in found[0].row.items() if name not in big}
        assert kept.items() <= source.rows[0].items()


def test_placeholders_of_other_types(spark: SparkSession) -> None:
    """Arrays have one number for each byte, or one text; shapes of PostGIS are points that no map has."""
    columns = "id int, a array<double>, b array<date>, c array<decimal(5,1)>, d array<decimal(2,1)>,"
    columns += "e array<binary>, f struct<wkb: binary, srid: int>, g variant, h array<boolean>, i double"
    reader = ChangeReader(JsonReader(envelope_columns(parse_columns(columns))), "?gone")
    days = [(date(1970, 1, 1) + timedelta(days=byte)).isoformat() for byte in b"?gone"]
    after = {
        "id": 1,
        "a": list(map(float, b"?gone")),
        "b": days,
        "c": list(b"?gone"),
        "d": [None] * 5,
        "e": ["P2dvbmU="],
        "f": {"wkb": "AQEAACDmEAAAAAAA/IPXl8EAAAD8g9eXwQ==", "srid": 4326},
        "g": "?gone",
        "h": [True] * 5,
        "i": 1.5,
    }
    plain = {"id": 2, "a": [], "b": [days[0]], "c": None, "e": [], "f": {"wkb": "AQ=="}, "g": {"a": 1}}
    found = _changes(spark, reader, [{"op": "u", "after": after}, {"op": "u", "after": plain}])
    assert [one["missing"] for one in found] == [["a", "b", "c", "e", "f", "g"], []]


def _changes(spark: SparkSession, reader: ChangeReader, events: Sequence[Any]) -> list[dict[str, Any]]:
    """Of variants Arrow knows nothing, so only the changes are asked for."""
    bodies = [json.dumps({"source": {}, **event}).encode() for event in events]
    table = pyarrow.table({"n": pyarrow.array(range(len(bodies))), "body": pyarrow.array(bodies)})
    decoded = spark.createDataFrame(table).coalesce(1).select("n", reader.raw(f.col("body")).alias("raw"))
    found = decoded.orderBy("n").select(reader.change(f.col("raw")).alias("change")).toArrow().to_pylist()
    return [row["change"] for row in found]


IDS = JsonReader(envelope_columns(parse_columns("id int")))


def test_positions_sort_as_the_changes_happened(spark: SparkSession) -> None:
    postgres = [0, 1, 255, 256, 2**31, 2**32 + 5, 2**63 - 1, -(2**63), -1]
    mysql = [("b.000009", 9), ("b.000010", 4), ("b.000010", 300), ("b.999999", 2**40), ("b.1000000", 4)]
    server = ["00000027:00000758:0005", "00000027:0000075a:0001", "00000100:00000001:0001"]
    sources = [{"connector": "postgresql", "lsn": lsn} for lsn in postgres]
    sources += [{"connector": "mysql", "file": file, "pos": pos, "row": 3} for file, pos in mysql]
    sources += [{"connector": "mariadb", "gtid": f"0-1-{n}", "file": "m.1", "pos": 7} for n in (9, 10, 2**40)]
    sources += [
        {"connector": "sqlserver", "commit_lsn": commit, "change_lsn": change}
        for commit in server
        for change in server
    ]
    events = [{"op": "u", "after": {"id": n}, "source": source} for n, source in enumerate(sources)]
    reader = ChangeReader(IDS)
    bodies = [json.dumps(event).encode() for event in reversed(events)]
    table = pyarrow.table({"body": pyarrow.array(bodies, pyarrow.binary())})
    raw = spark.createDataFrame(table).coalesce(1).select(reader.raw(f.col("body")).alias("raw"))
    both = raw.select(
        reader.value(f.col("raw"))["id"].alias("id"), reader.change(f.col("raw")).alias("change")
    )
    # As Spark sorts binary, within what can be compared.
    ordered = both.orderBy("change.source", "change.position").toArrow().to_pylist()
    assert all(row["change"]["position"] is not None for row in ordered)
    by_source: dict[str, list[int]] = {}
    for row in ordered:
        by_source.setdefault(row["change"]["source"], []).append(row["id"])
    assert list(by_source) == ["mariadb/gtid-0", "mysql/b", "postgresql", "sqlserver"]
    assert all(ids == sorted(ids) for ids in by_source.values())


def test_where_there_is_no_position(spark: SparkSession) -> None:
    """A position that might not be comparable is none."""
    binlog = {"connector": "mysql", "file": "mysql-bin.000003", "pos": 484}
    sources: list[dict[str, Any]] = [
        {"connector": "postgresql", "lsn": None},
        {"connector": "postgresql"},
        *(
            {"connector": "postgresql", "lsn": 5, "snapshot": mark}
            for mark in ("true", "last", "incremental")
        ),
        binlog | {"snapshot": "first"},
        binlog | {"gtid": "24bc7850-2c16-11e6-a073-0242ac110002:7"},
        binlog | {"pos": -31},
        binlog | {"file": "mysql-bin"},
        binlog | {"file": "mysql-bin." + "9" * 19},
        binlog | {"file": ""},
        {"connector": "mariadb", "gtid": "0-1", "file": "m.1", "pos": 4},
        {"connector": "sqlserver", "commit_lsn": "00000027:00000758:0005", "change_lsn": None},
        {"connector": "sqlserver", "commit_lsn": "NULL", "change_lsn": "00000027:00000758:0005"},
        {"connector": "oracle", "scn": "12345"},
        {"connector": "mongodb", "ord": 1},
        {},
    ]
    events = [{"op": "u", "after": {"id": 1}, "source": source} for source in sources]
    events.append({"op": "u", "after": {"id": 1}, "source": None})  # type: ignore[dict-item]
    events.append({"op": "r", "after": {"id": 1}, "source": {"connector": "postgresql", "lsn": 5}})
    found = _changes(spark, ChangeReader(IDS), events)
    assert [one["position"] for one in found] == [None] * len(events)
    # Rows of an incremental snapshot come between others, and an `r` without a mark may be one.
    assert [one["snapshot"] for one in found] == [False, False, True, True, None, True, *[False] * 12, None]
    # The mark of a snapshot may be left out.
    streamed = [{"connector": "postgresql", "lsn": 5, "snapshot": mark} for mark in (None, "false")]
    marked = [{"op": "c", "after": {"id": 1}, "source": source} for source in streamed]
    assert [one["position"] for one in _changes(spark, ChangeReader(IDS), marked)] == [_bytes(5)] * 2


def test_when_it_happened(spark: SparkSession) -> None:
    events: list[dict[str, Any]] = [
        {"source": {"ts_ms": 1_500, "ts_us": 1_500_001}, "ts_ms": 9},
        {"source": {"ts_ms": 1_500}, "ts_ms": 9, "ts_us": 9},
        {"source": {"ts_ms": 2**63 - 1}, "ts_us": 7_000_007},
        {"source": None, "ts_ms": -1},
        {"source": {}},
    ]
    found = _changes(spark, ChangeReader(IDS), [{"op": "d", **event} for event in events])
    micros = [None if one["at"] is None else one["at"].timestamp() * 1e6 for one in found]
    assert micros == [1_500_001, 1_500_000, 7_000_007, -1000, None]


@pytest.mark.parametrize("form", Form)
def test_malformed_events(spark: SparkSession, form: Form) -> None:
    events = Events(Database.POSTGRES, form)
    row = ROWS[Database.POSTGRES]
    good = events.message(row, events.event("c", None, row)).value
    assert good is not None
    unsound = [events.event(op, row, None) for op in ("c", "r", "u")]
    unsound += [events.event(op, None, row) for op in ("x", "", "C")]
    bodies = [events.message(row, event).value for event in unsound]
    found = read(spark, reader_of(events), [*bodies, good[:-3], b"", b"\xff", b"{}", None, good])
    assert [one.exact for one in found] == [False] * (len(found) - 1) + [True]
    lacks = [f"is a change event of the operation '{op}' without the row after" for op in "cru"]
    unknown = [f"is a change event of the unknown operation '{op}'" for op in ("x", "", "C")]
    assert [one.problem for one in found[:6]] == lacks + unknown
    # The envelope's reader says the rest.
    assert all(one.problem and "change event" not in one.problem for one in found[6:9])
    if form is Form.JSON:
        assert found[9].problem == "is a change event without an operation"


def test_events_of_a_json_schema(spark: SparkSession) -> None:
    """As Connect's converter for JSON Schema writes it: the logical types are titles."""

    def whole(bits: str, title: str | None = None) -> dict[str, Any]:
        return {"type": "integer", "connect.type": bits} | ({"title": title} if title else {})

    def optional(inner: dict[str, Any]) -> dict[str, Any]:
        return {"oneOf": [{"type": "null"}, inner]}

    row = {
        "type": "object",
        "title": "shop.public.orders.Value",
        "properties": {
            "id": whole("int32"),
            "due": optional(whole("int32", "io.debezium.time.Date")),
            "body": optional({"type": "string"}),
        },
    }
    source = {"connector": {"type": "string"}, "name": {"type": "string"}, "lsn": optional(whole("int64"))}
    properties = {
        "before": optional(row),
        "after": optional(row),
        "source": {"type": "object", "properties": source},
        "op": {"type": "string"},
        "ts_ms": optional(whole("int64")),
    }
    schema = {"type": "object", "title": "shop.public.orders.Envelope", "properties": properties}
    reader = ChangeReader(JsonSchemaReader(json.dumps(schema)))
    assert reader.record_name == "shop.public.orders.Value"
    after = {"id": 1, "due": 19_874, "body": PLACEHOLDER}
    event = {
        "op": "u",
        "after": after,
        "source": {"connector": "postgresql", "name": "s", "lsn": 7},
        "ts_ms": 5,
    }
    deleted = event | {"op": "d", "before": {"id": 1}, "after": None}
    found = read(spark, reader, [json.dumps(one).encode() for one in (event, deleted)])
    assert [one.row for one in found] == [
        {"id": 1, "due": date(2024, 5, 31), "body": PLACEHOLDER},
        {"id": 1, "due": None, "body": None},
    ]
    at = datetime(1970, 1, 1, 0, 0, 0, 5_000, UTC)
    change = {"source": "postgresql/s", "position": _bytes(7), "at": at}
    change |= {"snapshot": False}
    assert found[0].change == change | {"op": "upsert", "missing": ["body"]}
    assert found[1].change == change | {"op": "delete", "missing": []}


def test_a_row_before_that_is_another(spark: SparkSession) -> None:
    """A schema of somebody else's: what is the same is taken."""
    after = envelope_columns(parse_columns("id int, name string, new double"))
    before = parse_columns("name string, id bigint")
    fields = [t.StructField("before", before) if x.name == "before" else x for x in after.fields]
    reader = ChangeReader(JsonReader(t.StructType(fields)))
    body = b'{"op": "d", "before": {"id": 5, "name": "x"}, "source": {}}'
    found = read(spark, reader, [body])
    assert found[0] == replace(found[0], exact=True, row={"id": None, "name": "x", "new": None})
