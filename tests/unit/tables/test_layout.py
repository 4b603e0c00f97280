"""What a table is partitioned by, and why."""

import pytest
from pyspark.sql.types import DateType, LongType, StringType, StructField, StructType, TimestampType

from headgate.model import Metadata, TableMode, TableSpec
from headgate.tables.layout import laid_out, partition_of

COLUMNS = StructType(
    [
        StructField("ts", TimestampType()),
        StructField("day", DateType()),
        StructField("text", StringType()),
        StructField("number", LongType()),
        StructField("renamed", TimestampType()),
    ]
)


@pytest.mark.parametrize(
    ("spec", "fields", "reason"),
    [
        (TableSpec("t", watermark="ts"), ["day(ts)"], "WATERMARK"),
        (TableSpec("t", watermark="day"), ["day(day)"], "WATERMARK"),
        (TableSpec("t", watermark="was", renames={"was": "renamed"}), ["day(was)"], "WATERMARK"),
        (TableSpec("t", watermark="ts", event_time="day"), ["day(day)"], "asked for"),
        (TableSpec("t", watermark="ts", partition=()), [], "as asked for"),
        (TableSpec("t", watermark="ts", partition=("hour(day)",)), ["hour(day)"], "as asked for"),
        (TableSpec("t", watermark="ts", mode=TableMode.UPSERT), [], "replaced"),
        (TableSpec("t", watermark="text"), [f"day({Metadata.TIMESTAMP.column})"], "no WATERMARK"),
        (TableSpec("t", watermark="of_the_key"), [f"day({Metadata.TIMESTAMP.column})"], "no WATERMARK"),
        (TableSpec("t"), [f"day({Metadata.TIMESTAMP.column})"], "no WATERMARK"),
        (TableSpec("t", metadata=()), [], "no timestamp"),
    ],
)
def test_a_table_is_laid_out_by_its_time(spec: TableSpec, fields: list[str], reason: str) -> None:
    spec = laid_out(spec, COLUMNS)
    assert [str(field) for field in partition_of(spec)] == fields
    assert reason in spec.partition_reason


def test_a_spec_keeps_its_watermark() -> None:
    spec = TableSpec("t", watermark="ts")
    assert TableSpec.from_dict(spec.to_dict()) == spec
    before = {name: value for name, value in spec.to_dict().items() if name != "watermark"}
    assert TableSpec.from_dict(before).watermark is None
