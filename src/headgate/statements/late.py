"""The watermark by which rows are late, as a value in a plan that Spark plans again for each batch."""

from typing import Any, cast

from pyspark.sql import Column, SparkSession


class LateBefore:
    """A literal whose number is ours to set. A batch has what was set before it began.

    A query is built once, and Spark makes the tasks of each batch from it again. No row may hang on this:
    it is for counts only, and the plan does not say its value.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._jvm = cast(Any, spark._jvm).org.apache.spark.sql
        self._number = self._jvm.types.Decimal()
        self.set(0)

    def set(self, time_ms: int) -> None:
        self._number.set(time_ms * 1000, 18, 0)

    def column(self) -> Column:
        """In microseconds."""
        literal = self._jvm.catalyst.expressions.Literal(self._number, self._jvm.types.DecimalType(18, 0))
        return Column(self._jvm.classic.ExpressionUtils.column(literal))
