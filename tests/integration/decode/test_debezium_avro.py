"""Change events of Debezium, with the schemas that its Avro converter registers, as columns."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from headgate.decode.avro import AvroReader
from headgate.decode.connect import is_envelope
from tests.integration.decode.avro_reading import encoded, read, rows


def connect(kind: str, name: str, **parameters: str) -> dict[str, Any]:
    """A type as Connect's converter writes it."""
    more: dict[str, Any] = {"connect.parameters": parameters} if parameters else {}
    return {"type": kind, "connect.version": 1, **more, "connect.name": name}


def optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def required(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """Connect names the digits twice: as parameters of its own, and as Avro does."""
    return {
        "type": "bytes",
        "scale": scale,
        "precision": precision,
        "connect.version": 1,
        "connect.parameters": {"scale": str(scale), "connect.decimal.precision": str(precision)},
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "logicalType": "decimal",
    }


VARIABLE = {
    "type": "record",
    "name": "VariableScaleDecimal",
    "namespace": "io.debezium.data",
    "fields": [required("scale", "int"), required("value", "bytes")],
    "connect.doc": "Variable scaled decimal",
    "connect.version": 1,
    "connect.name": "io.debezium.data.VariableScaleDecimal",
}
POINT = {
    "type": "record",
    "name": "Point",
    "namespace": "io.debezium.data.geometry",
    "fields": [
        required("x", "double"),
        required("y", "double"),
        optional("wkb", "bytes"),
        optional("srid", "int"),
    ],
    "connect.version": 1,
    "connect.name": "io.debezium.data.geometry.Point",
}
SNAPSHOT = {
    "name": "snapshot",
    "type": [
        {
            "type": "string",
            "connect.version": 1,
            "connect.parameters": {"allowed": "first,first_in_data_collection,last,true,false,incremental"},
            "connect.default": "false",
            "connect.name": "io.debezium.data.Enum",
        },
        "null",
    ],
    "default": "false",
}
TRANSACTION = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [
        required("id", "string"),
        required("total_order", "long"),
        required("data_collection_order", "long"),
    ],
    "connect.version": 1,
    "connect.name": "event.block",
}


def envelope(
    prefix: str, row: list[dict[str, Any]], connector: str, source: list[dict[str, Any]]
) -> dict[str, Any]:
    """`before` defines the row's type, `after` names it."""
    value = {"type": "record", "name": "Value", "fields": row, "connect.name": f"{prefix}.Value"}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": prefix,
        "fields": [
            optional("before", value),
            optional("after", "Value"),
            required(
                "source",
                {
                    "type": "record",
                    "name": "Source",
                    "namespace": f"io.debezium.connector.{connector}",
                    "fields": [
                        required("version", "string"),
                        required("connector", "string"),
                        required("name", "string"),
                        required("ts_ms", "long"),
                        SNAPSHOT,
                        required("db", "string"),
                        optional("sequence", "string"),
                        optional("ts_us", "long"),
                        optional("ts_ns", "long"),
                        *source,
                    ],
                    "connect.name": f"io.debezium.connector.{connector}.Source",
                },
            ),
            optional("transaction", TRANSACTION),
            required("op", "string"),
            optional("ts_ms", "long"),
            optional("ts_us", "long"),
            optional("ts_ns", "long"),
        ],
        "connect.version": 2,
        "connect.name": f"{prefix}.Envelope",
    }


POSTGRES = envelope(
    "shop.public.orders",
    [
        {"name": "id", "type": {"type": "int", "connect.default": 0}, "default": 0},
        required("placed", connect("long", "io.debezium.time.MicroTimestamp")),
        optional("changed", connect("string", "io.debezium.time.ZonedTimestamp")),
        optional("due", connect("int", "io.debezium.time.Date")),
        optional("opens", connect("long", "io.debezium.time.MicroTime")),
        optional("closes", connect("string", "io.debezium.time.ZonedTime")),
        required("total", decimal(12, 2)),
        optional("weight", VARIABLE),
        optional("volume", "io.debezium.data.VariableScaleDecimal"),
        optional("ref", connect("string", "io.debezium.data.Uuid")),
        optional("data", connect("string", "io.debezium.data.Json")),
        optional("note", connect("string", "io.debezium.data.Xml")),
        optional("flags", connect("bytes", "io.debezium.data.Bits", length="12")),
        optional("place", POINT),
        optional("small", {"type": "int", "connect.type": "int16"}),
        optional("tags", {"type": "array", "items": ["null", "string"]}),
        optional("attributes", {"type": "map", "values": ["null", "string"]}),
    ],
    "postgresql",
    [
        required("schema", "string"),
        required("table", "string"),
        optional("txId", "long"),
        optional("lsn", "long"),
        optional("xmin", "long"),
    ],
)
MYSQL = envelope(
    "shop.inventory.products",
    [
        required("id", "long"),
        optional("sold", connect("long", "io.debezium.time.Timestamp")),
        optional("stored", connect("int", "org.apache.kafka.connect.data.Date") | {"logicalType": "date"}),
        optional(
            "seen",
            connect("long", "org.apache.kafka.connect.data.Timestamp") | {"logicalType": "timestamp-millis"},
        ),
        optional("lasts", connect("long", "io.debezium.time.MicroTime")),
        optional("opens", connect("int", "io.debezium.time.Time")),
        optional("made", connect("int", "io.debezium.time.Year")),
        optional("exact", connect("long", "io.debezium.time.NanoTimestamp")),
        optional("kind", connect("string", "io.debezium.data.Enum", allowed="book,toy")),
        optional("marks", connect("string", "io.debezium.data.EnumSet", allowed="new,used")),
        optional("price", decimal(64, 4)),
    ],
    "mysql",
    [
        optional("table", "string"),
        required("server_id", "long"),
        optional("gtid", "string"),
        required("file", "string"),
        required("pos", "long"),
        required("row", "int"),
        optional("thread", "long"),
        optional("query", "string"),
    ],
)

ORDER = {
    "id": 1001,
    "placed": -1,
    "changed": "2024-05-31T10:15:30.123456Z",
    "due": 19874,
    "opens": 30_600_000_000,
    "closes": "17:30:00Z",
    "total": Decimal("1234567890.12"),
    "weight": {"scale": 3, "value": (1250).to_bytes(2, "big")},
    "volume": {"scale": -2, "value": b"\xff"},
    "ref": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "data": '{"a": 1}',
    "note": "<a/>",
    "flags": b"\x01\x0a",
    "place": {"x": 1.5, "y": -2.5, "wkb": b"\x01", "srid": None},
    "small": -32768,
    "tags": ["a", None],
    "attributes": {"colour": "red", "size": None},
}
ORDER_ROW = ORDER | {
    "placed": datetime(1969, 12, 31, 23, 59, 59, 999_999),
    "changed": datetime(2024, 5, 31, 10, 15, 30, 123_456, UTC),
    "due": date(2024, 5, 31),
    "weight": Decimal("1.25"),
    "volume": Decimal(-100),
    "attributes": [("colour", "red"), ("size", None)],
}
SOURCE = {
    "version": "3.0.0.Final",
    "connector": "postgresql",
    "name": "shop",
    "ts_ms": 1_717_150_530_123,
    "snapshot": "false",
    "db": "shop",
    "sequence": '["24023128","24023128"]',
    "ts_us": 1_717_150_530_123_456,
    "ts_ns": 1_717_150_530_123_456_000,
    "schema": "public",
    "table": "orders",
    "txId": 556,
    "lsn": 24_023_128,
    "xmin": None,
}


def event(op: str, before: Any, after: Any, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": source,
        "transaction": None,
        "op": op,
        "ts_ms": 1_717_150_530_500,
        "ts_us": None,
        "ts_ns": None,
        **more,
    }


def test_events_of_postgres(spark: SparkSession) -> None:
    before = ORDER | {"changed": None, "weight": None, "place": None, "tags": [], "total": Decimal("-0.01")}
    before_row = ORDER_ROW | {
        "changed": None,
        "weight": None,
        "place": None,
        "tags": [],
        "total": Decimal("-0.01"),
    }
    block = {"id": "556:24023128", "total_order": 1, "data_collection_order": 1}
    written = [
        event("c", None, ORDER, SOURCE, transaction=block),
        event("u", before, ORDER, SOURCE),
        event("d", before, None, SOURCE),
        event("r", None, ORDER, SOURCE | {"snapshot": "first", "txId": None, "lsn": None}),
        event("t", None, None, SOURCE, ts_us=1, ts_ns=2),
    ]
    expected = [
        event("c", None, ORDER_ROW, SOURCE, transaction=block),
        event("u", before_row, ORDER_ROW, SOURCE),
        event("d", before_row, None, SOURCE),
        event("r", None, ORDER_ROW, SOURCE | {"snapshot": "first", "txId": None, "lsn": None}),
        event("t", None, None, SOURCE, ts_us=1, ts_ns=2),
    ]
    assert rows(spark, POSTGRES, written) == expected


def test_events_of_mysql(spark: SparkSession) -> None:
    source = {
        **{name: SOURCE[name] for name in ("version", "name", "ts_ms", "db", "ts_us", "ts_ns")},
        "connector": "mysql",
        "snapshot": "last",
        "sequence": None,
        "table": "products",
        "server_id": 223344,
        "gtid": None,
        "file": "mysql-bin.000003",
        "pos": 484,
        "row": 0,
        "thread": 7,
        "query": None,
    }
    written = {
        "id": 2**63 - 1,
        "sold": -62_135_596_800_000,
        "stored": date(2024, 5, 31),
        "seen": datetime(2024, 5, 31, 10, 15, 30, 123_000, UTC),
        # The longest time that MySQL has.
        "lasts": -3_020_399_000_000,
        "opens": 30_600_000,
        "made": 2024,
        "exact": 1_717_150_530_123_456_789,
        "kind": "book",
        "marks": "new,used",
        "price": Decimal("12345678901234567890123456789012.3456"),
    }
    row = written | {"sold": datetime(1, 1, 1), "opens": 30_600_000_000}
    nothing = dict.fromkeys(written) | {"id": 1}
    found = rows(spark, MYSQL, [event("c", None, _raw(written), source), event("d", nothing, None, source)])
    assert found == [event("c", None, row, source), event("d", nothing, None, source)]


def _raw(row: dict[str, Any]) -> dict[str, Any]:
    """fastavro rounds decimals that long; bytes it leaves alone."""
    return row | {"price": int(str(row["price"]).replace(".", "")).to_bytes(16, "big")}


def test_the_columns(spark: SparkSession) -> None:
    reader = AvroReader(json.dumps(POSTGRES))
    assert is_envelope(reader.type)
    assert reader.record_name == "shop.public.orders.Envelope"
    assert reader.type.names == ["before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns"]
    after = reader.type["after"].dataType
    assert after == reader.type["before"].dataType
    assert isinstance(after, t.StructType)
    assert after["placed"].dataType == t.TimestampNTZType()
    assert after["changed"].dataType == t.TimestampType()
    assert after["weight"].dataType == after["volume"].dataType == t.DecimalType(38, 18)
    assert after["total"].dataType == t.DecimalType(12, 2)


def test_values_that_no_column_holds_exactly(spark: SparkSession) -> None:
    bad = [
        ("changed", "2024-05-31T10:15:30.123456789Z", "timestamp"),
        ("changed", "infinity", "timestamp"),
        ("weight", {"scale": 19, "value": b"\x01"}, "decimal(38,18)"),
        ("weight", {"scale": 2**31 - 1, "value": b"\x01"}, "decimal(38,18)"),
        ("weight", {"scale": 0, "value": (10**20).to_bytes(9, "big")}, "decimal(38,18)"),
        ("volume", {"scale": -(2**31), "value": b"\x01"}, "decimal(38,18)"),
    ]
    bodies: list[bytes | None] = [
        encoded(POSTGRES, event("c", None, ORDER | {name: value}, SOURCE)) for name, value, _ in bad
    ]
    found = read(spark, POSTGRES, bodies, why=True)
    assert [one.exact for one in found] == [False] * len(bad)
    for (name, _, kind), one in zip(bad, found, strict=True):
        assert one.problem == f"has a value in 'after.{name}' that {kind} does not hold exactly"
    good = ORDER | {
        "weight": {"scale": 2**31 - 1, "value": b"\x00"},
        "changed": "2024-05-31T10:15:30.123456000Z",
    }
    row = rows(spark, POSTGRES, [event("c", None, good, SOURCE)])[0]
    assert row is not None
    assert row["after"]["weight"] == 0
