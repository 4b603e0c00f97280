"""What a statement runs: the seam between the language, which plans, and what reads and writes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, Self

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from headgate.sql.late import LateRows

Changelog = Literal["append", "upsert", "retract"]

# What a scan has beside the table's own columns.
ROWTIME, PARTITION, OFFSET, HEADERS = "$rowtime", "$partition", "$offset", "$headers"
# What a row does: scans of tables that are not append-only have it, and so have results that change. Of a
# result that is `retract` it is one of headgate.sql.tables' four, else one of these.
OP = "$op"
UPSERT, DELETE = "u", "d"


class Watermark(Protocol):
    """How event time is told, and how far out of order it may be."""

    @property
    def column(self) -> str:
        """The column that carries event time: one of the table's, `$rowtime`, or one that is added."""

    @property
    def expression(self) -> str | None:
        """What makes the added column, a piece of Spark SQL; None if the column is there."""

    @property
    def delay_ms(self) -> int: ...


class Table(Protocol):
    """A topic as a table."""

    @property
    def name(self) -> str:
        """The topic's name."""

    @property
    def columns(self) -> t.StructType: ...
    @property
    def primary_key(self) -> tuple[str, ...]: ...
    @property
    def changelog(self) -> Changelog: ...


class Source(Protocol):
    """One reading of a table. A table that is named twice is read twice."""

    @property
    def table(self) -> Table: ...
    @property
    def watermark(self) -> Watermark | None: ...


Scan = Callable[[Source], DataFrame]


class Runnable(Protocol):
    """A planned query.

    `build` gives the columns, and `$op` where the result is updating. It may pass on `$rowtime`, which is
    then the time of the records, and `$partition` with `$offset`, which keep rows of one key in the order of
    their topic.
    """

    @property
    def columns(self) -> t.StructType: ...
    @property
    def changelog(self) -> Changelog: ...
    @property
    def key(self) -> tuple[str, ...]: ...
    @property
    def sources(self) -> Sequence[Source]: ...
    @property
    def output_mode(self) -> str:
        """Spark's: `append` or `update`."""

    @property
    def stateful(self) -> bool:
        """Whether it remembers anything from batch to batch."""

    def due_ms(self, time_ms: int) -> int:
        """The watermark, in milliseconds, at which all that it makes of rows up to a time has come out."""

    @property
    def settings(self) -> Mapping[str, str]:
        """What its Spark session must have."""

    @property
    def stages(self) -> "Sequence[StageOf]":
        """Those that come before, in order; none for a query that is one."""

    def build(self, scan: Scan, late: LateRows | None = None) -> DataFrame: ...


class StageOf(Protocol):
    """What is known of a stage."""

    @property
    def name(self) -> str: ...
    @property
    def runnable(self) -> Runnable: ...
    @property
    def key(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Stage:
    """A query whose rows go into an internal topic, which later queries of the same statement read."""

    #: The name of the table under which later queries scan it, such as `$stage1`.
    name: str
    #: Its own `stages` are ignored: they stand before it in the statement's list.
    runnable: Runnable
    #: The columns by which its records are spread over partitions, and stay in order.
    key: tuple[str, ...]


def tables_read(found: Runnable) -> list[str]:
    """The names of the tables that its queries read, without those between them."""
    queries = [*(stage.runnable for stage in found.stages), found]
    names = {source.table.name for query in queries for source in query.sources}
    return sorted(names - {stage.name for stage in found.stages})


def is_stateful(found: Runnable) -> bool:
    """Whether any of its queries remembers anything from batch to batch."""
    return found.stateful or any(stage.runnable.stateful for stage in found.stages)


@dataclass(frozen=True)
class Output:
    """The topic that a statement writes.

    `columns`: those of the topic, by the names of the query's; a column that is not nullable takes no NULL.
    `key`: what tells its rows apart. Records have it as their key; without one they have none, and a retract
    topic has all records of equal rows in one partition still.
    """

    topic: str
    columns: t.StructType
    key: tuple[str, ...] = ()
    changelog: Changelog = "append"
    format: Literal["avro", "json"] = "avro"
    partitions: int = 4
    #: Of how many partitions the records were that its rows are, if each is to go where its own was, one
    #: after the other: a topic with a part of the rows of another is then no less in order. 0: it is not.
    in_place: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "columns": self.columns.jsonValue(), "key": list(self.key)}

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        columns, key = t.StructType.fromJson(said["columns"]), tuple(said["key"])
        return cls(**{**said, "columns": columns, "key": key})


@dataclass(frozen=True)
class Job:
    """All that is needed to run a statement."""

    runnable: Runnable
    output: Output
