"""Rows that come too late for an aggregate, counted before it gathers them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

ROWS = "rows"


class LateRows:
    """Counts, for each aggregate of a query that lets groups go by event time, the rows that come behind it.

    Spark counts what it leaves out when each task has gathered its rows already: by group.
    """

    def __init__(self, passed: Column) -> None:
        """`passed`: the watermark by which rows of a batch are late, in microseconds, DECIMAL(18, 0)."""
        self._passed = passed
        #: Of the observations, one for each aggregate.
        self.names: list[str] = []

    def counted(self, rows: DataFrame, due: Column) -> DataFrame:
        """The rows as they are. `due`: when the group of a row has come out."""
        if not rows.isStreaming:
            return rows
        name = f"late{len(self.names)}"
        self.names.append(name)
        # In the type of the literal as it is: Spark would compile its code again for each number.
        moment = F.unix_micros(due).try_cast("decimal(18,0)")
        return rows.observe(name, F.count_if(moment <= self._passed).alias(ROWS))
