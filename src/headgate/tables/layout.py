"""What a table is partitioned by, once its columns are known."""

from dataclasses import replace

from pyspark.sql import types as t

from headgate.model import TableSpec
from headgate.partition import PartitionField, parse_partition

_TIMES = (t.TimestampType, t.TimestampNTZType, t.DateType)


def laid_out(spec: TableSpec, columns: t.StructType) -> TableSpec:
    """The spec without its WATERMARK where the table has no such column that tells a time: one of the key, or
    text that SQL makes a time of."""
    if spec.watermark is None:
        return spec
    name = spec.renames.get(spec.watermark, spec.watermark)
    is_time = name in columns.names and isinstance(columns[name].dataType, _TIMES)
    return spec if is_time else replace(spec, watermark=None)


def partition_of(spec: TableSpec) -> tuple[PartitionField, ...]:
    return tuple(parse_partition(text) for text in spec.partition_fields)
