"""What a world is, and what its tables hold once all records of a seed have come through."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from headgate.datagen import SCENARIOS
from headgate.datagen.scenario import Record

Row = dict[str, Any]
Rows = list[Row]
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Figure:
    """What a table comes to: its rows, and the sum of one of its columns."""

    rows: int
    total: Decimal | None


@dataclass(frozen=True)
class Expected:
    """What comes of the records of a seed: rows of topics as the generator has them, rows of data products as
    readers of their tables give them."""

    records: Mapping[str, int]
    tables: Mapping[str, Rows]
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class World:
    """A world: its scenario, its tables with a column to add up, and how it comes to an end."""

    name: str
    limit: int
    seed: int
    #: By table, a column of numbers; None where there is none.
    totals: Mapping[str, str | None]
    #: By data product, its rows.
    products: Callable[[Sequence[Record]], Mapping[str, Rows]]
    #: Statements that hold rows until event time has passed them, each after those it reads.
    finishes: tuple[str, ...] = ()
    #: Whether rows of its database come as change events.
    cdc: bool = False

    def expected(self, limit: int | None = None, seed: int | None = None) -> Expected:
        """Computed from the generator's records alone."""
        limit, seed = self.limit if limit is None else limit, self.seed if seed is None else seed
        scenario = SCENARIOS[self.name](seed)
        records = list(scenario.records(limit))
        # Changes of rows are told otherwise, and mean the same.
        sent = SCENARIOS[self.name](seed, cdc=True).records(limit) if self.cdc else records
        values = {topic: values_of(records, topic) for topic in scenario.schemas}
        tables = {**values, **self.products(records)}
        found = {table: tables[table] for table in self.totals}
        return Expected(
            dict(Counter(record.topic for record in sent)),
            found,
            {table: self._figure(table, rows) for table, rows in found.items()},
        )

    def _figure(self, table: str, rows: Rows) -> Figure:
        column = self.totals[table]
        if column is None:
            return Figure(len(rows), None)
        return Figure(
            len(rows), sum((Decimal(row[column]) for row in rows if row[column] is not None), Decimal(0))
        )


def values_of(records: Sequence[Record], topic: str) -> Rows:
    """The values of a topic's records, in the order in which they are written."""
    return [record.value for record in records if record.topic == topic]


def moment(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


def first_of(rows: Rows, key: str) -> Rows:
    """The first row of each key to come."""
    found: dict[Any, Row] = {}
    for row in rows:
        found.setdefault(row[key], row)
    return list(found.values())


def last_of(rows: Rows, key: str) -> dict[Any, Row]:
    """The last row of each key to come."""
    return {row[key]: row for row in rows}
