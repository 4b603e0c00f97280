"""Rows in parts that fit into the driver's memory, whatever a LIMIT has brought into one."""

from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

PART_ROWS = 200_000
# Each part is a job of some milliseconds, also one that turns out to be empty.
MOST_PARTS = 128
_NUMBER = "_headgate_row"


def in_parts(rows: DataFrame) -> DataFrame:
    """The same rows in the same order. The driver holds one part at a time while it gives them."""
    query = cast(Any, rows)._jdf.queryExecution()
    most = query.optimizedPlan().maxRows()
    if not most.isDefined() or int(most.get()) <= PART_ROWS:
        return rows
    if query.executedPlan().outputPartitioning().numPartitions() != 1:
        return rows
    size = max(PART_ROWS, -(-int(most.get()) // MOST_PARTS))
    count = -(-int(most.get()) // size)
    # In one part these are 0, 1, 2 …
    numbered = rows.select("*", f.monotonically_increasing_id().alias(_NUMBER))
    number = f.col(_NUMBER)
    spread = numbered.repartitionById(count, f.floor(number / f.lit(size)).cast("int"))
    return spread.sortWithinPartitions(number).drop(_NUMBER)
