"""What changed in a table between two of its snapshots: rows that came, went, or are others now."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as t

CHANGE = "_change"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_before", "update_after", "delete"
_COORDINATES = ("_kafka_partition", "_kafka_offset")
_PLACE = ["_headgate_file", "_headgate_pos"]
# In a summary, what stands for the rows themselves.
ROWS = "*"


@dataclass(frozen=True)
class Compared:
    """Two snapshots of a table: the rows that came and went, and those of a key that are others now.

    `before` and `after` are joined in `changed`, under the names `b` and `a`; without a key there are none.
    """

    inserted: "DataFrame"
    deleted: "DataFrame"
    before: "DataFrame"
    after: "DataFrame"
    changed: "DataFrame | None"


def changes(
    spark: "SparkSession", topic: str, key: Sequence[str], start: str | None, end: str | None
) -> "DataFrame":
    """`start` and `end` are snapshot ids or times; None is before the first and as of now.

    A row that is in the same file at the same place in both is the same. Compaction moves rows: those that
    came of the same record are the same too. Without a key, all that is left came or went.
    """
    from pyspark.sql import functions as f

    compared = compare(spark, topic, key, start, end)
    found = _told(compared.inserted, INSERT)
    deleted = (compared.deleted, DELETE)
    if compared.changed is None:
        parts = [deleted]
    else:
        both = compared.changed
        parts = [(both.select("b.*"), BEFORE), (both.select("a.*"), AFTER), deleted]
    for rows, change in parts:
        found = found.unionByName(_told(rows, change), allowMissingColumns=True)
    if key:
        found = found.orderBy(*(f.col(_quoted(name)) for name in key), f.col(CHANGE).desc())
    return found.drop(*_PLACE)


def compare(
    spark: "SparkSession", topic: str, key: Sequence[str], start: str | None, end: str | None
) -> Compared:
    """The rows of both snapshots that are not the same; see `changes`."""
    from pyspark.sql import functions as f

    now = _rows(spark, topic, end)
    was = now.where(f.lit(False)) if start is None else _rows(spark, topic, start)
    gone = was.join(now.select(*_PLACE), _PLACE, "left_anti")
    come = now.join(was.select(*_PLACE), _PLACE, "left_anti")
    if not key:
        return Compared(come, gone, gone, come, None)
    same = [f.col(f"b.{_quoted(name)}").eqNullSafe(f.col(f"a.{_quoted(name)}")) for name in key]
    moved = [f.col(f"b.{name}").eqNullSafe(f.col(f"a.{name}")) for name in _COORDINATES]
    before, after = gone.alias("b"), come.alias("a")
    return Compared(
        come.alias("a").join(gone.alias("b"), same, "left_anti"),
        before.join(after, same, "left_anti"),
        gone,
        come,
        before.join(after, [*same, ~(moved[0] & moved[1])]),
    )


def summary(
    spark: "SparkSession", topic: str, key: Sequence[str], start: str | None, end: str | None
) -> "DataFrame":
    """How much changed: a row for the table's rows, named `*`, and one for each of its columns, with how many
    values came with new rows, are others now, and went with rows. A NULL is no value that comes or goes."""
    from pyspark.sql import functions as f

    compared = compare(spark, topic, key, start, end)
    names = [name for name in compared.after.columns if name not in _PLACE]
    names += [name for name in compared.before.columns if name not in (*_PLACE, *names)]
    counts = _counts(compared.inserted, "inserted", [_there(compared.inserted, "", n) for n in names])
    gone = _counts(compared.deleted, "deleted", [_there(compared.deleted, "", n) for n in names])
    counts = counts.crossJoin(gone)
    if compared.changed is None:
        counts = counts.withColumn("updated", f.array(*(f.lit(0) for _ in (ROWS, *names))))
    else:
        differ = [_differs(compared, name) for name in names]
        counts = counts.crossJoin(_counts(compared.changed, "updated", differ))
    listed = f.array(*(f.lit(name) for name in (ROWS, *names))).alias("column")
    figures = [f.col(name).cast("array<bigint>").alias(name) for name in ("inserted", "updated", "deleted")]
    return counts.select(f.explode(f.arrays_zip(listed, *figures)).alias("found")).select("found.*")


def _counts(rows: "DataFrame", name: str, conditions: "Sequence[Column]") -> "DataFrame":
    """One row: how many rows there are, and for how many of them each condition holds, as an array."""
    from pyspark.sql import functions as f

    return rows.agg(f.array(f.count(f.lit(1)), *map(f.count_if, conditions)).alias(name))


def _there(rows: "DataFrame", side: str, name: str) -> "Column":
    from pyspark.sql import functions as f

    return f.col(f"{side}{_quoted(name)}").isNotNull() if name in rows.columns else f.lit(False)


def _differs(compared: Compared, name: str) -> "Column":
    """Whether a column's value is another one after the change; where there was no column it was NULL."""
    from pyspark.sql import functions as f

    if name not in compared.before.columns:
        return _there(compared.after, "a.", name)
    if name not in compared.after.columns:
        return _there(compared.before, "b.", name)
    before, after = (f.col(f"{side}.{_quoted(name)}") for side in "ba")
    if any(_has_no_equality(rows.schema[name].dataType) for rows in (compared.before, compared.after)):
        before, after = (f.to_json(f.struct(one.alias("v"))) for one in (before, after))
    return ~before.eqNullSafe(after)


def _has_no_equality(kind: "t.DataType") -> bool:
    """Spark compares no maps and no variants."""
    from pyspark.sql import types as t

    match kind:
        case t.MapType() | t.VariantType():
            return True
        case t.ArrayType():
            return _has_no_equality(kind.elementType)
        case t.StructType():
            return any(_has_no_equality(field.dataType) for field in kind.fields)
    return False


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _told(rows: "DataFrame", change: str) -> "DataFrame":
    from pyspark.sql import functions as f

    return rows.select(f.lit(change).alias(CHANGE), "*")


def _rows(spark: "SparkSession", topic: str, when: str | None) -> "DataFrame":
    """With the place of each row, which tells whether it is the same."""
    from pyspark.sql import functions as f

    reader = spark.read
    if when is not None:
        reader = reader.option("versionAsOf" if when.isdigit() else "timestampAsOf", when)
    rows = reader.table(_quoted(topic))
    columns: list[Column] = [f.col(_quoted(name)) for name in rows.columns]
    file, pos = f.col("_file").alias("_headgate_file"), f.col("_pos").alias("_headgate_pos")
    return rows.select(*columns, file, pos)
