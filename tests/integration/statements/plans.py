"""Plans by hand, as the language would make them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.sql.late import LateRows
from headgate.sql.types import quote
from headgate.statements.runnable import OFFSET, PARTITION, ROWTIME, Changelog, Scan, Stage

PLACE = (ROWTIME, PARTITION, OFFSET)


@dataclass(frozen=True)
class Watermark:
    column: str
    delay_ms: int = 0
    expression: str | None = None


@dataclass(frozen=True)
class Table:
    name: str
    columns: t.StructType
    primary_key: tuple[str, ...] = ()
    changelog: Changelog = "append"
    watermark: Watermark | None = None


@dataclass(frozen=True)
class Source:
    table: Table
    watermark: Watermark | None


@dataclass(frozen=True)
class Plan:
    """`make` gets the scans of the tables, in their order."""

    columns: t.StructType
    tables: Sequence[Table]
    make: Callable[..., DataFrame] = field(repr=False)
    key: tuple[str, ...] = ()
    changelog: Changelog = "append"
    stateful: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    stages: Sequence[Stage] = ()
    window_ms: int | None = None

    @property
    def sources(self) -> list[Source]:
        return [Source(table, table.watermark) for table in self.tables]

    @property
    def output_mode(self) -> str:
        return "append" if self.changelog == "append" else "update"

    def due_ms(self, time_ms: int) -> int:
        return time_ms if self.window_ms is None else (time_ms // self.window_ms + 1) * self.window_ms

    def build(self, scan: Scan, late: LateRows | None = None) -> DataFrame:
        return self.make(*(scan(source) for source in self.sources))


EVENTS = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("who", t.StringType()),
        t.StructField("amount", t.IntegerType()),
        t.StructField("ts", t.TimestampType()),
    ]
)


def projection(source: Table) -> Plan:
    """Some rows, some columns."""
    columns = t.StructType(
        [
            t.StructField("id", t.LongType()),
            t.StructField("who", t.StringType()),
            t.StructField("cents", t.IntegerType()),
        ]
    )

    def make(events: DataFrame) -> DataFrame:
        wanted = (
            "id",
            "who",
            (f.col("amount") * 100).alias("cents"),
            "`$partition`",
            "`$offset`",
            "`$rowtime`",
        )
        return events.where("amount >= 0").select(*wanted)

    return Plan(columns, [source], make)


def keep_last(source: Table) -> Plan:
    """The newest amount of each, by place in the topic."""
    columns = t.StructType([t.StructField("who", t.StringType()), t.StructField("amount", t.IntegerType())])

    def make(events: DataFrame) -> DataFrame:
        place = f.struct("`$partition`", "`$offset`")
        last = events.groupBy("who").agg(f.max_by("amount", place).alias("amount"))
        gone = f.col("amount").isNull()
        return last.select("who", "amount", f.when(gone, f.lit("d")).otherwise(f.lit("u")).alias("$op"))

    return Plan(columns, [source], make, key=("who",), changelog="upsert", stateful=True)


def counts(source: Table, seconds: int = 60, time: str = "ts") -> Plan:
    """How many in each window, once it is over."""
    columns = t.StructType(
        [
            t.StructField("start", t.TimestampType()),
            t.StructField("who", t.StringType()),
            t.StructField("n", t.LongType()),
        ]
    )

    def make(events: DataFrame) -> DataFrame:
        window = f.window(quote(time), f"{seconds} seconds")
        counted = events.groupBy(window, "who").agg(f.count(f.lit(1)).alias("n"))
        return counted.select(f.col("window.start").alias("start"), "who", "n")

    return Plan(columns, [source], make, stateful=True, window_ms=seconds * 1000)


def interval_join(left: Table, right: Table, seconds: int) -> Plan:
    """Rows of the left with those of the right of the same id, at most so much older."""
    columns = t.StructType([t.StructField("id", t.LongType()), t.StructField("pair", t.StringType())])

    def make(one: DataFrame, other: DataFrame) -> DataFrame:
        near = f.expr(f"other.ts BETWEEN one.ts - INTERVAL {seconds} SECONDS AND one.ts")
        joined = one.alias("one").join(other.alias("other"), (f.col("one.id") == f.col("other.id")) & near)
        return joined.select("one.id", f.concat_ws("-", "one.who", "other.who").alias("pair"))

    return Plan(columns, [left, right], make, stateful=True)


def staged(*stages: Stage, last: Plan) -> Plan:
    return replace(last, stages=stages)


def internal(name: str, plan: Plan, op: bool = False) -> Table:
    """What a stage is to those after it."""
    fields = [*plan.columns.fields, *([t.StructField("$op", t.StringType())] if op else [])]
    return Table(name, t.StructType(fields))


def copy_of(source: Table) -> Plan:
    """All columns of all rows, in the order of their topic."""

    def make(rows: DataFrame) -> DataFrame:
        return rows.select(*(f.col(quote(n)) for n in (*source.columns.names, *PLACE)))

    return Plan(source.columns, [source], make)


def totals(source: Table) -> Plan:
    """Over the windows of each: how many there are, and how many events."""
    columns = t.StructType(
        [
            t.StructField("who", t.StringType()),
            t.StructField("windows", t.LongType()),
            t.StructField("n", t.LongType()),
        ]
    )

    def make(rows: DataFrame) -> DataFrame:
        summed = rows.groupBy("who").agg(f.count(f.lit(1)).alias("windows"), f.sum("n").alias("n"))
        return summed.select("who", "windows", "n", f.lit("u").alias("$op"))

    return Plan(columns, [source], make, key=("who",), changelog="upsert", stateful=True)


def windows_then_totals(source: Table) -> Plan:
    """An append-mode operator and one in update mode, which Spark does not run as one query."""
    first = counts(source)
    return staged(Stage("$stage1", first, ("who",)), last=totals(internal("$stage1", first)))


def copies(source: Table) -> Plan:
    """Three steps, each of which copies what the one before gave it."""
    first = projection(source)
    second = copy_of(internal("$stage1", first))
    last = copy_of(internal("$stage2", second))
    return staged(Stage("$stage1", first, ("who",)), Stage("$stage2", second, ("id",)), last=last)


def changes_of_last(source: Table) -> Plan:
    """The changes of an updating stage, with what each does, as rows."""
    first = keep_last(source)
    table = internal("$stage1", first, op=True)
    columns = t.StructType([*first.columns.fields, t.StructField("op", t.StringType())])

    def make(rows: DataFrame) -> DataFrame:
        return rows.select("who", "amount", f.col("`$op`").alias("op"), *(quote(n) for n in PLACE))

    return staged(Stage("$stage1", first, ("who",)), last=Plan(columns, [table], make))
