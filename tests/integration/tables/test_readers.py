"""The page of readers, held: what each engine that runs here reads, by format version, deletes and type."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.model import Deletes, RecordFormat, TableFormat, TableMode
from headgate.tables.mirror import DeltaMirror
from scripts.readers import attach
from tests.integration.maintain.test_verify import path_of
from tests.integration.tables.drive import Drive, record
from tests.support.delta import read_delta_duckdb, read_delta_rs, read_delta_spark
from tests.support.ledger import canonical, one_duckdb, read_duckdb, read_pyiceberg, rows_of

SCHEMA = record(
    ("id", "int"),
    ("flag", "boolean"),
    ("big", "long"),
    ("single", "float"),
    ("double", "double"),
    ("raw", "bytes"),
    ("text", "string"),
    ("day", {"type": "int", "logicalType": "date"}),
    ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    ("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("money", {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 9}),
    ("fixed", {"type": "fixed", "name": "F", "size": 4}),
    ("list", {"type": "array", "items": ["null", "long"]}),
    ("map", {"type": "map", "values": "string"}),
    ("nested", ["null", record(("x", "int"), name="N")]),
    ("option", ["null", "string"]),
)


def row(number: int, text: str) -> dict[str, Any]:
    return {
        "id": number,
        "flag": number % 2 == 0,
        "big": 2**62 - number,
        "single": number / 4,
        "double": number * 1e-300,
        "raw": bytes([0, number, 255]),
        "text": text,
        "day": date(2026, 1, 1 + number),
        "at": datetime(1969, 12, 31, 23, 59, number, 999999, tzinfo=UTC),
        "local": datetime(2026, 3, 29, 2, 30, number, 1),
        "money": Decimal(f"-1234567890123456789012345678{number}.123456789"),
        "fixed": bytes([255, 0, 1, number]),
        "list": [number, None, -(2**63)],
        "map": {"a": str(number), "": ""},
        "nested": None if number % 3 == 0 else {"x": number},
        "option": None if number % 2 else "",
    }


@pytest.mark.parametrize(
    ("version", "deletes"),
    [
        (3, Deletes.DELETION_VECTORS),
        (3, Deletes.COPY_ON_WRITE),
        (2, Deletes.POSITION_DELETES),
        (2, Deletes.COPY_ON_WRITE),
    ],
)
def test_engines_read_what_the_page_says(
    drive: Drive, spark: SparkSession, version: int, deletes: Deletes
) -> None:
    both = (TableFormat.ICEBERG, TableFormat.DELTA)
    drive.spec = replace(
        drive.spec, mode=TableMode.UPSERT, key=("id",), formats=both, format_version=version, deletes=deletes
    )
    drive.create(1)
    materializer = drive.materializer()
    materializer._mirror = DeltaMirror(spark, drive.lake, drive.topic)
    schema_id = drive.register(SCHEMA)
    for numbers, text in ((range(6), "first"), (range(2, 4), "second")):
        drive.produce(schema_id, SCHEMA, [row(number, text) for number in numbers])
        drive.run_all(materializer)
    assert materializer.mirror_trouble is None
    assert materializer.facts["format_version"] == version
    expected = [row(n, "second" if 2 <= n < 4 else "first") for n in range(6)]
    table: Any = drive.lake.load(drive.topic)
    folder, iceberg = str(path_of(table.location())), drive.runtime.iceberg
    readers: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "spark": lambda: rows_of(spark.table(drive.lake.sql_name(drive.topic)).toArrow()),
        "duckdb": lambda: read_duckdb(iceberg, "local", drive.topic),
        "pyiceberg": lambda: read_pyiceberg(iceberg, "local", drive.topic),
        "spark on Delta": lambda: read_delta_spark(spark, folder),
        "duckdb on Delta": lambda: read_delta_duckdb(folder),
        "delta-rs": lambda: read_delta_rs(folder),
    }
    wrong = {}
    for name, read in readers.items():
        found = sorted(read(), key=lambda one: one["id"])
        assert len(found) == 6, name
        for column in expected[0]:
            got, want = ([canonical(one[column]) for one in rows] for rows in (found, native(expected)))
            if got != want:
                wrong[name, column] = (got[:2], want[:2])
    assert wrong == {}


def native(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Maps as Arrow gives them: pairs."""
    return [{**one, "map": sorted(one["map"].items())} for one in rows]


def test_variants_are_read_by_spark_and_duckdb(drive: Drive, spark: SparkSession) -> None:
    """delta-rs gives their bytes, and PyIceberg does not open such a table."""
    both = (TableFormat.ICEBERG, TableFormat.DELTA)
    drive.spec = replace(drive.spec, value_format=RecordFormat.JSON_VARIANT, formats=both)
    drive.create(1)
    materializer = drive.materializer()
    materializer._mirror = DeltaMirror(spark, drive.lake, drive.topic)
    for text in ('{"a": 1, "b": [true, null, "x"]}', "[1.5]", '"text"'):
        drive.send(text.encode())
    drive.flush()
    drive.run_all(materializer)
    assert materializer.mirror_trouble is None
    table: Any = drive.lake.load(drive.topic)
    folder = str(path_of(table.location()))
    name = drive.lake.sql_name(drive.topic)
    for frame in (spark.table(name), spark.read.format("delta").load(folder)):
        found = [one[0] for one in frame.selectExpr("to_json(value)").collect()]
        assert sorted(found) == sorted(['{"a":1,"b":[true,null,"x"]}', "[1.5]", '"text"'])
    with one_duckdb().cursor() as connection:
        attach(connection, drive.runtime.iceberg, "variants")
        try:
            rows = connection.execute(f'SELECT * FROM variants.local."{drive.topic}"').fetchall()
        finally:
            connection.execute("DETACH variants")
            connection.execute("DROP SECRET IF EXISTS variants_secret")
    assert sorted((one for (one,) in rows), key=repr) == sorted(
        [{"a": 1, "b": [True, None, "x"]}, [Decimal("1.5")], "text"], key=repr
    )
    # The same bytes, which it does not know as a variant.
    assert {tuple(one["value"]) for one in read_delta_rs(folder)} == {("metadata", "value")}
    with pytest.raises(ValueError, match="variant"):
        list(read_pyiceberg(drive.runtime.iceberg, "local", drive.topic))
