"""Plans by hand, as the language would make them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.statements.runnable import Changelog, Scan


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

    @property
    def sources(self) -> list[Source]:
        return [Source(table, table.watermark) for table in self.tables]

    @property
    def output_mode(self) -> str:
        return "append" if self.changelog == "append" else "update"

    def build(self, scan: Scan) -> DataFrame:
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


def counts(source: Table, seconds: int = 60) -> Plan:
    """How many in each window, once it is over."""
    columns = t.StructType(
        [
            t.StructField("start", t.TimestampType()),
            t.StructField("who", t.StringType()),
            t.StructField("n", t.LongType()),
        ]
    )

    def make(events: DataFrame) -> DataFrame:
        window = f.window("ts", f"{seconds} seconds")
        counted = events.groupBy(window, "who").agg(f.count(f.lit(1)).alias("n"))
        return counted.select(f.col("window.start").alias("start"), "who", "n")

    return Plan(columns, [source], make, stateful=True)


def interval_join(left: Table, right: Table, seconds: int) -> Plan:
    """Rows of the left with those of the right of the same id, at most so much older."""
    columns = t.StructType([t.StructField("id", t.LongType()), t.StructField("pair", t.StringType())])

    def make(one: DataFrame, other: DataFrame) -> DataFrame:
        near = f.expr(f"other.ts BETWEEN one.ts - INTERVAL {seconds} SECONDS AND one.ts")
        joined = one.alias("one").join(other.alias("other"), (f.col("one.id") == f.col("other.id")) & near)
        return joined.select("one.id", f.concat_ws("-", "one.who", "other.who").alias("pair"))

    return Plan(columns, [left, right], make, stateful=True)
