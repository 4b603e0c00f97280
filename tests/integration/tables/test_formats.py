"""Every format on its whole way, from real serializers to two engines: values, keys, metadata, partitions."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from headgate.errors import SchemaConflict, TableStopped
from headgate.model import Metadata, OnError, RecordFormat, RecordTypes, TableSpec, Tombstones
from tests.integration.tables.drive import NUMBER, Drive, numbers, record, values

PROTO = """
syntax = "proto3";
package shop;
message Order { int64 id = 1; string %s = 2; optional double price = 3; uint64 big = 4; }
message Refund { int64 id = 1; string why = 2; }
"""
JSON_SCHEMA = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id"],
    "additionalProperties": False,
}


def varint(number: int) -> bytes:
    found = b""
    while number > 0x7F:
        found += bytes([number & 0x7F | 0x80])
        number >>= 7
    return found + bytes([number])


def prefix(schema_id: int) -> bytes:
    return b"\x00" + schema_id.to_bytes(4, "big")


def registry(drive: Drive) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": drive.runtime.registry})


def by_id(drive: Drive) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in drive.rows()}


def want(drive: Drive, **options: Any) -> None:
    drive.spec = replace(drive.spec, **options)


def test_json_schema(drive: Drive) -> None:
    drive.create(1)
    found = registry(drive).register_schema(f"{drive.topic}-value", Schema(json.dumps(JSON_SCHEMA), "JSON"))
    big = 2**63 - 1
    for value in ({"id": big, "name": "ä", "tags": ["x", ""]}, {"id": -5}):
        drive.send(prefix(found) + json.dumps(value).encode())
    drive.flush()
    table = drive.materializer()
    drive.run_all(table)
    wider = {**JSON_SCHEMA, "properties": {**JSON_SCHEMA["properties"], "more": {"type": "number"}}}  # type: ignore[dict-item]
    again = registry(drive).register_schema(f"{drive.topic}-value", Schema(json.dumps(wider), "JSON"))
    drive.send(prefix(again) + b'{"id": 7, "more": 1.5}')
    drive.flush()
    drive.run_all(table)
    rows = by_id(drive)
    assert rows[big] == {"id": big, "name": "ä", "tags": ["x", ""], "more": None}
    assert (rows[-5]["name"], rows[7]["more"]) == (None, 1.5)


def test_protobuf_with_several_messages_and_a_renamed_field(drive: Drive) -> None:
    want(drive, record_types=RecordTypes.UNION)
    drive.create(1)
    client = registry(drive)
    subject = f"{drive.topic}-value"
    first = client.register_schema(subject, Schema(PROTO % "name", "PROTOBUF"))

    def order(number: int, name: bytes) -> bytes:
        return b"\x08" + varint(number) + b"\x12" + bytes([len(name)]) + name + b"\x20" + varint(2**64 - 1)

    drive.send(prefix(first) + b"\x00" + order(1, b"one"))
    drive.send(prefix(first) + b"\x02\x02" + b"\x08\x02\x12\x03why")  # the second message of the file
    drive.send(prefix(first) + b"\x02\x00" + order(3, b"three"))  # the first one, said at length
    drive.flush()
    table = drive.materializer()
    drive.run_all(table)
    later = client.register_schema(subject, Schema(PROTO % "title", "PROTOBUF"))
    drive.send(prefix(later) + b"\x00" + order(4, b"four"))
    drive.send(prefix(first) + b"\x00" + order(5, b"five"))
    drive.flush()
    drive.run_all(table)
    rows = drive.rows()
    orders = {row["Order"]["id"]: row["Order"] for row in rows if row["Order"] is not None}
    refunds = [row["Refund"] for row in rows if row["Refund"] is not None]
    titles = {number: row["title"] for number, row in orders.items()}
    assert titles == {1: "one", 3: "three", 4: "four", 5: "five"}
    assert orders[1] == {"id": 1, "title": "one", "price": None, "big": Decimal(2**64 - 1)}
    assert refunds == [{"id": 2, "why": "why"}]


def test_another_record_type_is_refused(drive: Drive) -> None:
    drive.create(1)
    one = drive.register(record(("n", "int"), name="One"))
    drive.produce(one, record(("n", "int"), name="One"), values(2))
    table = drive.materializer()
    drive.run_all(table)
    drive.set_compatibility("NONE")
    other = drive.register(record(("n", "int"), name="Other"))
    drive.produce(other, record(("n", "int"), name="Other"), values(2))
    with pytest.raises(SchemaConflict, match=r"records of type Other, its table is of type One\..*union"):
        drive.run_all(table)
    assert numbers(drive.rows()) == [0, 1]


@pytest.mark.parametrize(
    ("kind", "value", "column"),
    [
        (RecordFormat.STRING, "grüße".encode(), "grüße"),
        (RecordFormat.BYTES, b"\x00\xff", b"\x00\xff"),
        (RecordFormat.JSON_TEXT, b'{"a": [1]}', '{"a": [1]}'),
    ],
    ids=["string", "bytes", "json-text"],
)
def test_one_column(drive: Drive, kind: RecordFormat, value: bytes, column: object) -> None:
    want(drive, value_format=kind)
    drive.create(1)
    drive.send(value)
    drive.flush()
    drive.run_all(drive.materializer())
    assert drive.rows() == [{"value": column}]


def test_plain_json_with_declared_columns_and_a_key(drive: Drive) -> None:
    drive.spec = TableSpec(
        drive.topic,
        value_format=RecordFormat.JSON,
        value_columns="id bigint, price decimal(12,2), at timestamp",
        key_format=RecordFormat.JSON,
        key_columns="id string, shop string",
        metadata=(),
        on_error=OnError.SKIP,
    )
    drive.create(1)
    producer = Producer({"bootstrap.servers": drive.runtime.kafka})
    value = b'{"id": 9007199254740993, "price": 1234567890.12, "at": "2026-01-31T12:00:00.123456Z"}'
    producer.produce(drive.topic, value, b'{"id": "k", "shop": "north"}')
    producer.produce(drive.topic, b'{"id": 1, "price": 0.001}', b"{}")  # more digits than the column has
    producer.produce(drive.topic, b'{"id": 2}', b"no json")
    producer.produce(drive.topic, b'{"id": 3}', None)
    producer.flush(30)
    (report,) = drive.run_all(drive.materializer())
    assert report.bad == 2
    rows = by_id(drive)
    assert sorted(rows) == [3, 9007199254740993]
    assert rows[9007199254740993] == {
        "id": 9007199254740993,  # the value's own: the key's is left out
        "price": Decimal("1234567890.12"),
        "at": datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC),
        "shop": "north",
    }
    assert rows[3]["shop"] is None


def test_schema_ids_in_headers_and_in_prefixes(drive: Drive) -> None:
    """Side by side in one batch, written by Confluent's own serializer."""
    drive.create(1)
    schema_id = drive.register(NUMBER)
    client = registry(drive)
    write: Any = AvroSerializer(
        client, json.dumps(NUMBER), conf={"schema.id.serializer": header_schema_id_serializer}
    )
    producer = Producer({"bootstrap.servers": drive.runtime.kafka})
    for number in range(3):
        headers: list[tuple[str, str | bytes | None]] = [("own", b"x")]
        context = SerializationContext(drive.topic, MessageField.VALUE, headers)
        producer.produce(drive.topic, write({"n": number}, context), headers=context.headers or headers)
    producer.flush(30)
    drive.produce(schema_id, NUMBER, values(2, 3))
    want(drive, metadata=(Metadata.SCHEMA_ID, Metadata.HEADERS))
    drive.run_all(drive.materializer())
    rows = drive.rows()
    assert numbers(rows) == [0, 1, 2, 3, 4]
    assert {row["_kafka_schema_id"] for row in rows} == {schema_id}
    assert sorted(len(row["_kafka_headers"]) for row in rows) == [0, 0, 2, 2, 2]


def test_all_metadata_columns(drive: Drive) -> None:
    want(drive, metadata=tuple(Metadata), partition=None)
    # The record's time is long ago: retention must not look at it.
    drive.create(2, {"retention.ms": "-1"})
    schema_id = drive.register(NUMBER)
    moment = datetime(2026, 1, 31, 23, 59, 59, 999000, tzinfo=UTC)
    producer = Producer({"bootstrap.servers": drive.runtime.kafka})
    value = prefix(schema_id) + b"\x02"
    producer.produce(
        drive.topic,
        value,
        b"k",
        1,
        timestamp=int(moment.timestamp() * 1000),
        headers=[("h", b"v"), ("h", None)],
    )
    producer.flush(30)
    drive.run_all(drive.materializer())
    (row,) = drive.rows()
    assert row == {
        "n": 1,
        "_kafka_topic": drive.topic,
        "_kafka_partition": 1,
        "_kafka_offset": 0,
        "_kafka_timestamp": moment,
        "_kafka_timestamp_type": "create-time",
        "_kafka_key": b"k",
        "_kafka_headers": [{"key": "h", "value": b"v"}, {"key": "h", "value": None}],
        "_kafka_leader_epoch": 0,
        "_kafka_schema_id": schema_id,
    }
    loaded: Any = drive.lake.load(drive.topic)
    assert [field.name() for field in loaded.spec().fields()] == ["_kafka_timestamp_day"]


def test_partitions_evolve_on_the_live_table(drive: Drive) -> None:
    schema = record(("n", "int"), ("at", {"type": "long", "logicalType": "timestamp-millis"}))
    drive.create(1)
    schema_id = drive.register(schema)
    want(drive, partition=("day(at)",))
    day = 86_400_000
    drive.produce(schema_id, schema, [{"n": n, "at": n * day} for n in range(40)])
    drive.run_all(drive.materializer())
    want(drive, partition=("bucket(4, n)", "month(at)"))
    drive.produce(schema_id, schema, [{"n": n, "at": n * day} for n in range(40, 50)])
    drive.run_all(drive.materializer())
    loaded: Any = drive.lake.load(drive.topic)
    fields = {f.name(): f.transform().toString() for f in loaded.spec().fields()}
    assert {name: kind for name, kind in fields.items() if kind != "void"} == {
        "n_bucket_4": "bucket[4]",
        "at_month": "month",
    }
    assert len(loaded.specs()) == 2
    assert numbers(drive.rows()) == list(range(50))
    want(drive, partition=("day(nothing)",))
    with pytest.raises(TableStopped, match=r"cannot be partitioned by day\(nothing\)"):
        drive.run_all(drive.materializer())


def test_renames_keep_values(drive: Drive) -> None:
    drive.create(1)
    old = record(("n", "int"), ("a", ["null", "string"]))
    new = {**old, "fields": [old["fields"][0], {**old["fields"][1], "name": "b", "aliases": ["a"]}]}
    first = drive.register(old)
    drive.produce(first, old, [{"n": 0, "a": "x"}])
    table = drive.materializer()
    drive.run_all(table)
    second = drive.register(new)
    drive.produce(second, new, [{"n": 1, "b": "y"}])
    drive.produce(first, old, [{"n": 2, "a": "z"}])
    drive.run_all(table)
    # Another engine, which has seen neither schema yet.
    drive.produce(first, old, [{"n": 3, "a": "w"}])
    drive.run_all(drive.materializer())
    want(drive, renames={"b": "c"})
    drive.produce(second, new, [{"n": 4, "b": "v"}])
    drive.run_all(drive.materializer())
    assert {row["n"]: row["c"] for row in drive.rows()} == {0: "x", 1: "y", 2: "z", 3: "w", 4: "v"}
    assert set(drive.rows()[0]) == {"n", "c"}


def test_a_metadata_column_and_a_field_of_its_name(drive: Drive) -> None:
    want(drive, metadata=(Metadata.OFFSET,))
    drive.create(1)
    drive.register(record(("_kafka_offset", "long")))
    with pytest.raises(SchemaConflict, match=r"'_kafka_offset'.*metadata"):
        drive.materializer().open(drive.view())


def test_tombstones_can_be_left_out(drive: Drive) -> None:
    want(drive, tombstones=Tombstones.SKIP)
    drive.create(1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(2))
    drive.send(None)
    drive.flush()
    (report,) = drive.run_all(drive.materializer())
    assert (report.rows, report.bad) == (2, 0)
    drive.send(None)
    drive.flush()
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == [0, 1]


def test_subjects_named_after_records(drive: Drive) -> None:
    """No subject of the topic's name: the records themselves tell the schema."""
    drive.create(1)
    schema = record(("n", "int"), name="named.after.Records")
    assert not drive.materializer().open(drive.view())
    schema_id = registry(drive).register_schema("named.after.Records", Schema(json.dumps(schema), "AVRO"))
    drive.produce(schema_id, schema, values(3))
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == [0, 1, 2]
