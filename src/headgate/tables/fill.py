"""Values that a change event does not have: those of the event before it, or of the row that is there."""

from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from headgate.tables.key_places import KeyPlaces
from headgate.tables.orders import is_stale, order_of
from headgate.tables.records import CHANGE, GENERATION_COLUMN

_WHO = f"{CHANGE}.id"


def filled(
    spark: SparkSession,
    changes: DataFrame,
    order: list[Any],
    lacking: set[bytes],
    places: KeyPlaces,
    table: Any,
) -> DataFrame:
    """All changes, kept in memory; those of the keys in `lacking` with every value that can be known.

    `changes` must be kept already, so that nothing here is planned into the decoding. What neither an event
    nor the table has stays Debezium's placeholder: there is nothing else to say.
    """
    names = [name for name in changes.columns if name != CHANGE and not name.startswith("_headgate_")]
    ids = sorted(lacking)
    chosen = f.broadcast(spark.createDataFrame(pa.table({"who": pa.array(ids, pa.binary())})))
    known = dict(zip(ids, places.index.get(ids), strict=True))
    late = f.broadcast(spark.createDataFrame(_late(changes, chosen, known)))
    at = [f.col(f"{CHANGE}.partition"), f.col(f"{CHANGE}.offset")]
    is_late = (at[0] == f.col("late_partition")) & (at[1] == f.col("late_offset"))
    missing = f.col(f"{CHANGE}.missing")
    so_far = Window.partitionBy(_WHO).orderBy(*order)
    with ExitStack() as reading:
        joined = changes.join(late, is_late, "left")
        # An event that is older than the row tells nothing about it.
        tells = f.col("late_partition").isNull()
        columns = []
        there = {place.path for place in known.values() if place is not None}
        paths = sorted(path for path in there if path is not None and path in places.live)
        if paths:
            old = reading.enter_context(places.live.rows(table, [places.live[path] for path in paths]))
            kept = places.present(old)
            kept = kept.select(
                places.id_of(kept).alias("kept_id"),
                *(_value(name).alias(f"kept_{n}") for n, name in enumerate(names)),
            ).join(chosen, f.col("kept_id") == f.col("who"), "left_semi")
            joined = joined.join(f.broadcast(kept), f.col(_WHO) == f.col("kept_id"), "left")
        for number, name in enumerate(names):
            lacks = f.array_contains(missing, f.lit(name))
            told = f.last(f.when(tells & ~lacks, _value(name)), ignorenulls=True).over(so_far)["v"]
            before = [f.col(f"kept_{number}")["v"]] if paths else []
            own = f.col(f"`{name}`")
            columns.append(f.when(lacks, f.coalesce(told, *before, own)).otherwise(own).alias(name))
        found = joined.select(*columns, CHANGE).persist(StorageLevel.MEMORY_AND_DISK)
        # While the files can still be read by their names.
        found.count()
    return found


def _value(name: str) -> Any:
    """In a struct, so that a NULL that was told is not taken for nothing."""
    return f.struct(f.col(f"`{name}`").alias("v"))


def _late(changes: DataFrame, chosen: DataFrame, known: dict[bytes, Any]) -> pa.Table:
    events = changes.join(chosen, f.col(_WHO) == f.col("who"), "left_semi").select(
        *(f.col(f"{CHANGE}.{name}") for name in ("id", "partition", "offset", "source", "position")),
        f.col(GENERATION_COLUMN).alias("generation"),
    )
    late = [
        row
        for row in events.toArrow().to_pylist()
        if (place := known[row["id"]]) is not None
        and is_stale(order_of(row["source"], row["position"], row["generation"]), place.order)
    ]
    return pa.table(
        {
            "late_partition": pa.array([row["partition"] for row in late], pa.int32()),
            "late_offset": pa.array([row["offset"] for row in late], pa.int64()),
        }
    )
