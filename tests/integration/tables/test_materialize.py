"""A table follows its topic: values exact, in every order of events."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from headgate.errors import (
    BadRecords,
    NotFound,
    OffsetsLost,
    PositionMissing,
    StaleBatch,
    TableStopped,
    TopicReplaced,
    UnsupportedSchema,
)
from headgate.model import POSITION_KEY, Start, StartKind
from tests.integration.tables.drive import Drive
from tests.support.ledger import canonical


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [_field(name, kind) for name, kind in fields]}


def _field(name: str, kind: Any) -> dict[str, Any]:
    optional = isinstance(kind, list) and kind[0] == "null"
    return {"name": name, "type": kind, **({"default": None} if optional else {})}


NUMBER = record(("n", "int"))


def numbers(rows: Iterable[dict[str, Any]]) -> list[int]:
    return sorted(row["n"] for row in rows)


def values(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"n": n} for n in range(first, first + count)]


def test_every_avro_type_is_exact(drive: Drive) -> None:
    utc = datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    schema = record(
        ("flag", "boolean"),
        ("small", "int"),
        ("big", "long"),
        ("single", "float"),
        ("double", "double"),
        ("raw", "bytes"),
        ("text", "string"),
        ("day", {"type": "int", "logicalType": "date"}),
        ("millis", {"type": "long", "logicalType": "timestamp-millis"}),
        ("micros", {"type": "long", "logicalType": "timestamp-micros"}),
        ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("money", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}),
        ("fixed", {"type": "fixed", "name": "F", "size": 4}),
        ("kind", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
        ("list", {"type": "array", "items": ["null", "long"]}),
        ("map", {"type": "map", "values": "string"}),
        ("nested", ["null", record(("x", "int"), name="N")]),
        ("option", ["null", "string"]),
    )
    rows: list[dict[str, Any]] = [
        {
            "flag": True,
            "small": -(2**31),
            "big": 2**63 - 1,
            "single": 1.5,
            "double": 1e-300,
            "raw": bytes(range(256)),
            "text": "snö ☃ \x00 '\"`",
            "day": date(1, 1, 1),
            "millis": utc,
            "micros": utc + timedelta(microseconds=1),
            "local": datetime(1583, 1, 1, 0, 0, 0, 1),
            "money": Decimal("12345678901234567890123456789.123456789"),
            "fixed": b"\xff\x00\x01\x02",
            "kind": "B",
            "list": [1, None, -(2**63)],
            "map": {"a": "1", "": ""},
            "nested": {"x": 7},
            "option": None,
        },
        {
            "flag": False,
            "small": 2**31 - 1,
            "big": -(2**63),
            "single": -0.0,
            "double": float("inf"),
            "raw": b"",
            "text": "",
            "day": date(9999, 12, 31),
            "millis": datetime(1, 1, 1, tzinfo=UTC),
            "micros": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            "local": datetime(1, 1, 1),
            "money": Decimal("-0.000000001"),
            "fixed": bytes(4),
            "kind": "A",
            "list": [],
            "map": {},
            "nested": None,
            "option": "",
        },
    ]
    drive.create()
    drive.produce(drive.register(schema), schema, rows)
    drive.run_all(drive.materializer())
    expected = [{**row, "map": sorted(row["map"].items())} for row in rows]
    assert sorted(map(canonical, drive.rows())) == sorted(map(canonical, expected))


def test_batches_are_bounded_and_follow_one_another(drive: Drive) -> None:
    drive.create(partitions=3)
    schema_id = drive.register(NUMBER)
    for partition in range(3):
        drive.produce(schema_id, NUMBER, values(100, partition * 1000), partition)
    drive.max_rows = 70
    reports = drive.run_all(drive.materializer())
    assert len(reports) > 3
    assert all(r.rows <= 73 for r in reports)
    assert all(a.batch.end == b.batch.start for a, b in pairwise(reports))
    assert numbers(drive.rows()) == sorted(v["n"] for p in range(3) for v in values(100, p * 1000))


def test_a_new_materializer_goes_on_at_the_tables_position(drive: Drive) -> None:
    drive.create()
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(10))
    drive.run_all(drive.materializer())
    assert drive.run_all(drive.materializer()) == []
    drive.produce(schema_id, NUMBER, values(5, 10))
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == list(range(15))


def test_a_new_field_and_a_wider_type_by_a_new_schema(drive: Drive) -> None:
    """Both schemas in one batch; rows of the old one have NULL in the new column."""
    drive.create()
    old = record(("n", "int"), ("inner", record(("a", "int"), name="I")))
    inner = record(("a", "int"), ("b", ["null", "string"]), name="I")
    new = record(("n", "long"), ("inner", inner), ("more", ["null", "double"]))
    first = drive.register(old)
    drive.produce(first, old, [{"n": 1, "inner": {"a": 1}}])
    materializer = drive.materializer()
    drive.run_all(materializer)
    second = drive.register(new)
    drive.produce(second, new, [{"n": 2**40, "inner": {"a": 2, "b": "x"}, "more": 0.5}])
    drive.produce(first, old, [{"n": 3, "inner": {"a": 3}}])
    drive.run_all(materializer)
    assert sorted(drive.rows(), key=lambda row: row["inner"]["a"]) == [
        {"n": 1, "inner": {"a": 1, "b": None}, "more": None},
        {"n": 2**40, "inner": {"a": 2, "b": "x"}, "more": 0.5},
        {"n": 3, "inner": {"a": 3, "b": None}, "more": None},
    ]


def test_a_field_of_another_type_stops_the_table(drive: Drive) -> None:
    drive.create()
    drive.set_compatibility("NONE")
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    other = record(("n", "string"))
    drive.produce(drive.register(other), other, [{"n": "x"}])
    with pytest.raises(TableStopped, match="n"):
        drive.run_all(materializer)
    assert numbers(drive.rows()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"junk", "does not begin with a schema id"),
        (b"", "does not begin with a schema id"),
        (None, "value is null"),
        (b"\x00\x7f\xff\xff\xff\x02", "schema 2147483647 is not registered"),
    ],
    ids=["junk", "empty", "null", "unknown"],
)
def test_a_bad_record_stops_the_table_and_writes_nothing(
    drive: Drive, value: bytes | None, problem: str
) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    files = drive.data_files()
    drive.produce(schema_id, NUMBER, values(2, 3))
    drive.send(value)
    drive.flush()
    with pytest.raises(BadRecords, match=rf"partition 0, offset 5\): its .*{problem}"):
        drive.run_all(materializer)
    assert numbers(drive.rows()) == [0, 1, 2]
    assert drive.data_files() == files


def test_a_record_cut_short_is_bad(drive: Drive) -> None:
    drive.create(partitions=1)
    schema = record(("text", "string"))
    schema_id = drive.register(schema)
    drive.send(b"\x00" + schema_id.to_bytes(4, "big") + b"\x20short")
    drive.flush()
    with pytest.raises(BadRecords, match=f"its bytes do not fit schema {schema_id}"):
        drive.run_all(drive.materializer())


def test_a_record_of_nulls_is_a_row_and_broken_bytes_are_not(drive: Drive) -> None:
    """Spark decodes both alike when every field may be null."""
    drive.create(partitions=1)
    schema = record(("a", ["null", "int"]), ("b", ["null", "string"]))
    schema_id = drive.register(schema)
    drive.produce(schema_id, schema, [{"a": None, "b": None}, {"a": 1, "b": None}, {"a": None, "b": ""}])
    materializer = drive.materializer()
    drive.run_all(materializer)
    expected = [{"a": None, "b": None}, {"a": 1, "b": None}, {"a": None, "b": ""}]
    assert sorted(map(canonical, drive.rows())) == sorted(map(canonical, expected))
    drive.send(b"\x00" + schema_id.to_bytes(4, "big") + b"\x00")
    drive.flush()
    with pytest.raises(BadRecords, match=f"offset 3.*do not fit schema {schema_id}"):
        drive.run_all(materializer)


def test_aborted_and_open_transactions(drive: Drive) -> None:
    """Only what was committed, and nothing past a transaction that is still open."""
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    prefix = b"\x00" + schema_id.to_bytes(4, "big")

    def send(producer: Any, *items: int) -> None:
        for item in items:
            producer.produce(drive.topic, prefix + bytes([item * 2]), partition=0)
        producer.flush(30)

    committed = drive.transaction("committed")
    send(committed, 1, 2)
    committed.commit_transaction(30)
    aborted = drive.transaction("aborted")
    send(aborted, 3, 4)
    aborted.abort_transaction(30)
    still_open = drive.transaction("open")
    send(still_open, 5)
    drive.produce(schema_id, NUMBER, [{"n": 6}])
    materializer = drive.materializer()
    drive.run_all(materializer)
    assert numbers(drive.rows()) == [1, 2]
    still_open.commit_transaction(30)
    drive.run_all(materializer)
    assert numbers(drive.rows()) == [1, 2, 5, 6]


@pytest.mark.parametrize("kind", [StartKind.LATEST, StartKind.OFFSETS])
def test_the_start_is_pinned_when_the_table_is_opened(drive: Drive, kind: StartKind) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(10))
    start = Start(kind, offsets={0: 7} if kind is StartKind.OFFSETS else None)
    assert drive.materializer(start).open(drive.view())
    drive.produce(schema_id, NUMBER, values(2, 10))
    # Another engine: the start is not worked out again.
    drive.run_all(drive.materializer(start))
    assert numbers(drive.rows()) == ([10, 11] if kind is StartKind.LATEST else [7, 8, 9, 10, 11])


def test_enabled_again_it_goes_on_and_takes_no_other_start(drive: Drive) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    drive.run_all(drive.materializer())
    drive.produce(schema_id, NUMBER, values(3, 3))
    drive.enablement = "second"
    with pytest.raises(TableStopped, match="cannot start from latest"):
        drive.run_all(drive.materializer(Start(StartKind.LATEST)))
    drive.run_all(drive.materializer(Start()))
    assert numbers(drive.rows()) == list(range(6))


def test_the_slower_of_two_loses_and_its_files_go(drive: Drive) -> None:
    drive.create()
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    fast, slow = drive.materializer(), drive.materializer()
    assert fast.open(drive.view())
    assert slow.open(drive.view())
    drive.run_all(fast)
    files = drive.data_files()
    with pytest.raises(StaleBatch):
        drive.run_all(slow)
    assert drive.data_files() == files
    slow.forget()
    assert drive.run_all(slow) == []
    assert numbers(drive.rows()) == [0, 1, 2]


def test_partitions_added_while_running(drive: Drive) -> None:
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewPartitions

    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    admin = AdminClient({"bootstrap.servers": drive.runtime.kafka})
    for future in admin.create_partitions([NewPartitions(drive.topic, 3)]).values():
        future.result()
    drive.new_producer()
    drive.produce(schema_id, NUMBER, values(2, 3), partition=2)
    drive.run_all(materializer)
    assert numbers(drive.rows()) == list(range(5))


def test_a_topic_created_anew_stops_the_table(drive: Drive) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    drive.topics.delete(drive.topic)
    drive.create(partitions=1)
    drive.produce(schema_id, NUMBER, values(9, 100))
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        drive.run_all(materializer)
    assert numbers(drive.rows()) == [0, 1, 2]


def test_retention_that_overtakes_stops_the_table(drive: Drive) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    drive.produce(schema_id, NUMBER, values(5, 3))
    admin = AdminClient({"bootstrap.servers": drive.runtime.kafka})
    for future in admin.delete_records([TopicPartition(drive.topic, 0, 6)]).values():
        future.result()
    with pytest.raises(OffsetsLost, match="partition 0: 3 to 5"):
        drive.run_all(materializer)


def test_history_without_a_position_is_never_a_fresh_start(drive: Drive) -> None:
    drive.create(partitions=1)
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    table = drive.lake.load(drive.topic)
    assert table is not None
    assert POSITION_KEY in table.currentSnapshot().summary()
    # As a tool that is not ours could do it: a snapshot without a position, and all before it expired.
    table.updateProperties().set("headgate.managed", "false").commit()
    append = table.newAppend()
    append.set("by", "another").commit()
    newest = table.currentSnapshot()
    table.expireSnapshots().expireOlderThan(newest.timestampMillis() + 1).retainLast(1).commit()
    materializer.forget()
    with pytest.raises(PositionMissing, match="none of its snapshots carries a position"):
        drive.run_all(materializer)


def test_a_schema_that_no_table_can_hold(drive: Drive) -> None:
    drive.create()
    drive.register(record(("u", ["int", "string"])))
    with pytest.raises(UnsupportedSchema, match="'u' has a union of 2 types"):
        drive.materializer().open(drive.view())
    assert drive.lake.load(drive.topic) is None


def test_dropped_and_enabled_again_it_starts_afresh(drive: Drive) -> None:
    drive.create()
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    drive.run_all(drive.materializer())
    assert drive.lake.drop(drive.topic)
    assert not drive.lake.drop(drive.topic)
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == [0, 1, 2]


def test_a_topic_that_is_gone(drive: Drive) -> None:
    drive.create()
    drive.produce(drive.register(NUMBER), NUMBER, values(3))
    materializer = drive.materializer()
    view = drive.view()
    assert materializer.open(view)
    drive.topics.delete(drive.topic)
    assert drive.source.views([drive.topic]) == {}
    with pytest.raises(NotFound):
        drive.source.describe(drive.topic)
