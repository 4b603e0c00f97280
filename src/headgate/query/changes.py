"""What changed in a table between two of its snapshots: rows that came, went, or are others now."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHANGE = "_change"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"
_COORDINATES = ("_kafka_partition", "_kafka_offset")


def changes(
    spark: "SparkSession", topic: str, key: Sequence[str], start: str | None, end: str | None
) -> "DataFrame":
    """`start` and `end` are snapshot ids or times; None is before the first and as of now.

    A row that is in the same file at the same place in both is the same. Compaction moves rows: those that
    came of the same record are the same too. Without a key, all that is left came or went.
    """
    from pyspark.sql import functions as f

    now = _rows(spark, topic, end)
    was = now.where(f.lit(False)) if start is None else _rows(spark, topic, start)
    place = ["_headgate_file", "_headgate_pos"]
    gone, come = (
        was.join(now.select(*place), place, "left_anti"),
        now.join(was.select(*place), place, "left_anti"),
    )
    if not key:
        found = _told(come, INSERT).unionByName(_told(gone, DELETE), allowMissingColumns=True)
        return found.drop(*place)
    same = [f.col(f"b.`{name}`").eqNullSafe(f.col(f"a.`{name}`")) for name in key]
    moved = [f.col(f"b.{name}").eqNullSafe(f.col(f"a.{name}")) for name in _COORDINATES]
    before, after = gone.alias("b"), come.alias("a")
    changed = before.join(after, [*same, ~(moved[0] & moved[1])])
    found = _told(come.alias("a").join(gone.alias("b"), same, "left_anti"), INSERT)
    for rows, change in (
        (changed.select("b.*"), BEFORE),
        (changed.select("a.*"), AFTER),
        (before.join(after, same, "left_anti"), DELETE),
    ):
        found = found.unionByName(_told(rows, change), allowMissingColumns=True)
    names = [f.col(f"`{name}`") for name in key]
    return found.orderBy(*names, f.col(CHANGE).desc()).drop(*place)


def _told(rows: "DataFrame", change: str) -> "DataFrame":
    from pyspark.sql import functions as f

    return rows.select(f.lit(change).alias(CHANGE), "*")


def _rows(spark: "SparkSession", topic: str, when: str | None) -> "DataFrame":
    """With the place of each row, which tells whether it is the same."""
    from pyspark.sql import functions as f

    reader = spark.read
    if when is not None:
        reader = reader.option("versionAsOf" if when.isdigit() else "timestampAsOf", when)
    rows = reader.table("`" + topic.replace("`", "``") + "`")
    columns: list[Column] = [f.col(f"`{name.replace('`', '``')}`") for name in rows.columns]
    file, pos = f.col("_file").alias("_headgate_file"), f.col("_pos").alias("_headgate_pos")
    return rows.select(*columns, file, pos)
