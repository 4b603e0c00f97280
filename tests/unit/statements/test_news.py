"""What a query's batches have shown is taken in once each, whatever the wall clock does meanwhile."""

import json
from dataclasses import dataclass
from typing import Any, cast

from headgate.statements.query import StatementQuery


@dataclass(frozen=True)
class Told:
    """Spark's progress of a trigger."""

    number: int
    at: str

    def batchId(self) -> int:  # noqa: N802 - Scala's names
        return self.number

    def timestamp(self) -> str:
        return self.at

    def json(self) -> str:
        return json.dumps({"batchId": self.number, "timestamp": self.at})


class Spark:
    """A query of Spark's that keeps the last of its progress."""

    def __init__(self) -> None:
        self.kept: list[Told] = []

    @property
    def _jsq(self) -> "Spark":
        return self

    def recentProgress(self) -> list[Told]:  # noqa: N802
        return self.kept


class Query(StatementQuery):
    """One that only listens."""

    def __init__(self, spark: Spark) -> None:
        self._query = cast(Any, spark)
        self._last_told = None
        self.taken: list[int] = []

    def listen(self) -> list[int]:
        """The numbers of the batches that are new."""
        news = self._new_progress()
        for told in news:
            self._last_told = (told["batchId"], told["timestamp"])
        return [told["batchId"] for told in news]


def test_each_batch_is_told_once_also_when_the_wall_clock_is_put_back() -> None:
    spark = Spark()
    query = Query(spark)
    assert query.listen() == []
    spark.kept += [Told(0, "2026-03-01T12:00:00.000Z"), Told(1, "2026-03-01T12:00:01.000Z")]
    assert query.listen() == [0, 1]
    assert query.listen() == []
    # An hour back; then the clock comes to where it was.
    spark.kept += [Told(2, "2026-03-01T11:00:02.000Z"), Told(2, "2026-03-01T11:00:12.000Z")]
    assert query.listen() == [2, 2]
    spark.kept += [Told(3, "2026-03-01T12:00:01.000Z")]
    assert query.listen() == [3]
    # Of what is kept no longer only the rest is told.
    spark.kept = [Told(5, "2026-03-01T12:00:03.000Z"), Told(6, "2026-03-01T12:00:04.000Z")]
    assert query.listen() == [5, 6]
