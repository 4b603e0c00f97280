"""Values are exact, or their record is bad; columns follow the schemas."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from headgate.errors import (
    BadRecords,
    TableStopped,
    UnsupportedSchema,
)
from tests.integration.tables.drive import NUMBER, Drive, numbers, record, values
from tests.support.ledger import canonical


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
        (None, "has no value"),
        (b"\x00\x7f\xff\xff\xff\x02", "registry does not have .schema 2147483647"),
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
    with pytest.raises(BadRecords, match=rf"partition 0, offset 5 .*{problem}"):
        drive.run_all(materializer)
    assert numbers(drive.rows()) == [0, 1, 2]
    assert drive.data_files() == files


def test_a_record_cut_short_is_bad(drive: Drive) -> None:
    drive.create(partitions=1)
    schema = record(("text", "string"))
    schema_id = drive.register(schema)
    drive.send(b"\x00" + schema_id.to_bytes(4, "big") + b"\x20short")
    drive.flush()
    with pytest.raises(BadRecords, match=rf"does not decode.*\(schema {schema_id}\)"):
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
    with pytest.raises(BadRecords, match=rf"offset 3 .*\(schema {schema_id}\)"):
        drive.run_all(materializer)


def test_a_schema_that_no_record_uses_changes_nothing(drive: Drive) -> None:
    drive.create(partitions=1)
    drive.set_compatibility("NONE")
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    drive.run_all(drive.materializer())
    drive.register(record(("n", "string"), ("u", ["int", "string"])))
    drive.produce(schema_id, NUMBER, values(2, 3))
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == list(range(5))
    assert set(drive.rows()[0]) == {"n"}


def test_a_schema_that_no_table_can_hold(drive: Drive) -> None:
    drive.create()
    drive.register(record(("d", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2})))
    with pytest.raises(UnsupportedSchema, match=r"'d'.*50 digits"):
        drive.materializer().open(drive.view())
    assert drive.lake.load(drive.topic) is None


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        (record(("t", "string")), b"\x04\xff\xfe"),
        (record(("t", {"type": "array", "items": "string"})), b"\x02\x04\xff\xfe\x00"),
        (record(("t", {"type": "map", "values": "int"})), b"\x02\x04\xff\xfe\x02\x00"),
    ],
    ids=["string", "array", "map"],
)
def test_text_that_is_not_utf8_is_bad(drive: Drive, schema: Any, body: bytes) -> None:
    """Other engines could not read the file it stands in."""
    drive.create(partitions=1)
    schema_id = drive.register(schema)
    drive.send(b"\x00" + schema_id.to_bytes(4, "big") + body)
    drive.flush()
    with pytest.raises(BadRecords, match=rf"(not UTF-8|does not fit its schema) \(schema {schema_id}\)"):
        drive.run_all(drive.materializer())
