"""What a table is laid out by, in which format version, and what it counts of itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.model import FILES_KEY, RECORDS_KEY, SECONDS_KEY
from tests.integration.tables.drive import NUMBER, Drive, numbers, record, values

MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
EVENT = record(("n", "int"), ("ts", MOMENT))
FIRST = datetime(2026, 1, 5, tzinfo=UTC)


def format_of(drive: Drive) -> int:
    table: Any = drive.lake.load(drive.topic)
    return int(table.operations().current().formatVersion())


def test_an_append_table_of_version_2_is_written_evolved_and_taken_to_3(drive: Drive) -> None:
    drive.spec = replace(drive.spec, readers=("athena",), format_version=2)
    drive.create()
    first = drive.register(NUMBER)
    drive.produce(first, NUMBER, values(5))
    drive.run_all(drive.materializer())
    assert format_of(drive) == 2
    wider = record(("n", "int"), ("more", ["null", "string"]))
    second = drive.register(wider)
    drive.produce(second, wider, [{"n": 5, "more": "x"}])
    drive.run_all(drive.materializer())
    assert numbers(drive.rows()) == list(range(6))
    assert format_of(drive) == 2

    drive.spec = replace(drive.spec, format_version=3)
    drive.produce(second, wider, [{"n": 6, "more": None}])
    materializer = drive.materializer()
    drive.run_all(materializer)
    assert (format_of(drive), materializer.facts["format_version"]) == (3, 3)
    assert sorted((row["n"], row["more"]) for row in drive.rows()) == [
        *((number, None) for number in range(5)),
        (5, "x"),
        (6, None),
    ]


def test_a_table_is_partitioned_by_the_day_of_its_watermark(drive: Drive) -> None:
    drive.spec = replace(drive.spec, partition=None, watermark="ts")
    drive.create()
    schema_id = drive.register(EVENT)
    drive.produce(schema_id, EVENT, [{"n": n, "ts": FIRST + timedelta(hours=12 * n)} for n in range(6)])
    materializer = drive.materializer()
    drive.run_all(materializer)
    assert materializer.facts["partition"] == ["day(ts)"]
    assert "WATERMARK" in materializer.facts["partition_reason"]
    assert materializer.facts["files"] == 3, "a file for each day"
    assert numbers(drive.rows()) == list(range(6))


def test_a_watermark_on_no_time_of_the_table_lays_nothing_out(drive: Drive) -> None:
    drive.spec = replace(drive.spec, partition=None, watermark="n")
    drive.create()
    schema_id = drive.register(NUMBER)
    drive.produce(schema_id, NUMBER, values(3))
    materializer = drive.materializer()
    drive.run_all(materializer)
    assert materializer.facts["partition"] == []
    assert numbers(drive.rows()) == [0, 1, 2]


def test_what_was_taken_in_is_counted_across_engines(drive: Drive) -> None:
    drive.create(partitions=1)
    schema_id = drive.register(NUMBER)
    for number in range(3):
        drive.produce(schema_id, NUMBER, values(10, number * 10))
        materializer = drive.materializer()
        drive.run_all(materializer)
    assert (materializer.facts["records_materialized"], materializer.facts["files_created"]) == (30, 3)
    table: Any = drive.lake.load(drive.topic)
    summary = table.currentSnapshot().summary()
    assert (summary.get(RECORDS_KEY), summary.get(FILES_KEY)) == ("30", "3")
    assert float(summary.get(SECONDS_KEY)) > 0
    assert numbers(drive.rows()) == list(range(30))
