"""Tables as statements see them: topics with a schema, a key, a watermark, and a way of changing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from headgate.sql.statements import CreateView
from headgate.sql.types import TIMESTAMP, TIMESTAMP_LTZ, quote

ROWTIME, PARTITION, OFFSET, HEADERS, OP = "$rowtime", "$partition", "$offset", "$headers", "$op"
# What a scan adds when the watermark's own column cannot carry one: Spark wants a TIMESTAMP_LTZ.
EVENT = "$event"
SYSTEM: dict[str, DataType] = {
    ROWTIME: TIMESTAMP_LTZ,
    PARTITION: IntegerType(),
    OFFSET: LongType(),
    HEADERS: MapType(StringType(), BinaryType()),
}
Changelog = Literal["append", "upsert", "retract"]
# What a row of a retract result does, in `$op`: it came, or is gone; an update is the row before and the one
# after.
CAME, BEFORE, AFTER, GONE = "+I", "-U", "+U", "-D"
# How a record says it, in its header of this name; one without it came.
OP_HEADER = "op"
OP_CODES = {CAME: b"\x00", BEFORE: b"\x01", AFTER: b"\x02", GONE: b"\x03"}


@dataclass(frozen=True)
class Watermark:
    """Rows of `column` come at most `delay_ms` late. `declared` is False for one that nobody asked for."""

    column: str
    delay_ms: int
    declared: bool = True


@dataclass(frozen=True)
class TableInfo:
    """`columns` has TIMESTAMP as TimestampNTZType, TIMESTAMP_LTZ as TimestampType; a field that is not
    nullable is NOT NULL."""

    name: str
    columns: StructType
    primary_key: tuple[str, ...] = ()
    changelog: Changelog = "append"
    watermark: Watermark | None = None

    @property
    def by_key(self) -> bool:
        """Whether a later record replaces the row of its key; of others each is a row, or takes one back."""
        return self.changelog == "upsert" or (self.changelog == "retract" and bool(self.primary_key))


class Tables(Protocol):
    """Who knows the tables and the views. A name is one or the other, or neither."""

    def get(self, name: str) -> TableInfo | None: ...

    def view(self, name: str) -> CreateView | None: ...

    def names(self) -> Iterable[str]: ...

    def record_key(self, name: str) -> tuple[str, ...]:
        """The columns that make the key of a topic's records, which decides their partition; none where
        nothing tells."""


@dataclass
class Catalog:
    """Tables and views in memory: for tests, and for plans of tables that do not exist yet."""

    tables: dict[str, TableInfo] = field(default_factory=dict)
    views: dict[str, CreateView] = field(default_factory=dict)
    record_keys: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def get(self, name: str) -> TableInfo | None:
        return self.tables.get(name)

    def view(self, name: str) -> CreateView | None:
        return self.views.get(name)

    def names(self) -> Iterable[str]:
        return (*self.tables, *self.views)

    def record_key(self, name: str) -> tuple[str, ...]:
        return self.record_keys.get(name, ())


@dataclass(frozen=True)
class SourceWatermark:
    """The watermark that a scan puts on its rows. `column` is a column of the table, `$rowtime`, or
    `$event`, which is then added as `expression`, a piece of Spark SQL."""

    column: str
    delay_ms: int
    expression: str | None = None
    declared: bool = True


@dataclass(frozen=True)
class Source:
    """One reading of a table. A table that is named twice is read twice."""

    number: int
    table: TableInfo
    watermark: SourceWatermark | None


Scan = Callable[[Source], DataFrame]


def source_watermark(table: TableInfo, column: str, delay_ms: int, declared: bool) -> SourceWatermark:
    """The watermark of a column, on itself or on its moment."""
    kind = SYSTEM[column] if column in SYSTEM else table.columns[column].dataType
    if table.by_key and column not in SYSTEM:
        # A delete says nothing but its key: it is of the time of its record.
        moment = (
            f"CASE WHEN {quote(OP)} = 'd' THEN {quote(ROWTIME)} ELSE CAST({quote(column)} AS timestamp) END"
        )
        return SourceWatermark(EVENT, delay_ms, moment, declared)
    if kind == TIMESTAMP:
        return SourceWatermark(EVENT, delay_ms, f"CAST({quote(column)} AS timestamp)", declared)
    return SourceWatermark(column, delay_ms, None, declared)


def watermarked(rows: DataFrame, watermark: SourceWatermark | None) -> DataFrame:
    """`rows` with this watermark: what every scan does with its rows, unless it has a better one."""
    if watermark is None:
        return rows
    if watermark.expression is not None:
        rows = rows.withColumn(watermark.column, F.expr(watermark.expression))
    return rows.withWatermark(quote(watermark.column), f"{watermark.delay_ms} milliseconds")
