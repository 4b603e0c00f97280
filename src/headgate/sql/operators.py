"""The physical operators of a plan. Each builds itself of Spark's own, and says what state it keeps.

Columns have names that no other column of the plan has (`order_id#3`). Those that begin with `$` go along
through every operator that keeps rows apart: coordinates, event times, windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from headgate.errors import InvalidRequest
from headgate.sql.durations import format_ms
from headgate.sql.functions.masks import pads, secret_columns
from headgate.sql.late import LateRows
from headgate.sql.tables import (
    CAME,
    EVENT,
    GONE,
    OP,
    SYSTEM,
    Scan,
    Source,
    SourceWatermark,
    TableInfo,
    source_watermark,
)
from headgate.sql.typed import Typed
from headgate.sql.types import quote

# How Spark marks a column that carries a watermark. Operators that free state by time look for it.
DELAY = "spark.watermarkDelayMs"


@dataclass(frozen=True)
class Building:
    """What operators need when they build themselves."""

    scan: Scan
    secret: Callable[[str], str]
    #: The columns that the plan speaks of; others need not be kept.
    mentioned: frozenset[str]
    #: All of the data is there, and nothing follows: cuts are not needed.
    at_once: bool = False
    #: Who counts rows that come too late, if anybody does.
    late: LateRows | None = None


class Operator(ABC):
    """A step of a plan."""

    inputs: Sequence[Operator] = ()
    #: Whether its rows come out as they change, and not when they are known for good.
    changing = False
    #: Columns that it cannot keep: whole rows are put in order, and these have none.
    unordered: frozenset[str] = frozenset()
    #: Whether it puts the rows of a batch in order.
    orders_batches = False
    #: Of an operator with state: whether each of its rows is still the one of a record.
    of_records = False

    @property
    def behind_ms(self) -> int:
        """How far the watermark that Spark gives to the step above stays behind that of the tables. A join
        holds it up by its bound of time: of one of its sides, rows that old may come out of it."""
        return max((one.behind_ms for one in self.inputs), default=0)

    @property
    def held_ms(self) -> int:
        """How far a join below holds up the watermark that Spark gives to the step above, where nothing makes
        up for it."""
        return max((one.held_ms for one in self.inputs), default=0)

    def reach_ms(self, time_ms: int) -> int:
        """The greatest event time of the rows that come of those up to a time."""
        return max((one.reach_ms(time_ms) for one in self.inputs), default=time_ms)

    def due_ms(self, time_ms: int) -> int:
        """The watermark of the tables at which all that comes of rows up to a time has come out."""
        return max((one.due_ms(time_ms) for one in self.inputs), default=time_ms)

    @abstractmethod
    def build(self, on: Building) -> DataFrame:
        """The rows of this step."""

    @abstractmethod
    def describe(self) -> str:
        """The step in one line."""

    def state(self) -> str | None:
        """What it keeps between batches and when that is freed; None if nothing."""
        return None

    @property
    def has_state(self) -> bool:
        """Whether it, or anything below it, keeps anything between batches."""
        return any(step.state() is not None for step in self.walk())

    def walk(self) -> Iterator[Operator]:
        yield self
        for one in self.inputs:
            yield from one.walk()


def col(ref: str) -> Column:
    return F.col(quote(ref))


def with_secrets(rows: DataFrame, values: Iterable[Typed], on: Building) -> DataFrame:
    """The pads of every key that these expressions use, as columns beside the rows."""
    added: dict[str, Column] = {}
    for name in sorted(frozenset().union(*(value.secrets for value in values))):
        for ref, pad in zip(secret_columns(name), pads(on.secret(name)), strict=True):
            added[ref] = F.lit(bytearray(pad))
    return rows.withColumns(added) if added else rows


def without_secrets(rows: DataFrame) -> DataFrame:
    used = [name for name in rows.columns if name.startswith("$secret.")]
    return rows.drop(*(F.col(quote(name)) for name in used)) if used else rows


@dataclass(eq=False)
class ScanRows(Operator):
    """A table. Its watermark is chosen by the first operator above it that needs event time."""

    number: int
    table: TableInfo
    chosen: SourceWatermark | None = None
    chosen_for: str | None = None

    def ref(self, column: str) -> str:
        return f"{column}#{self.number}"

    def choose(self, column: str, delay_ms: int, declared: bool) -> str:
        """The watermark is on this column from now on; the name of the column that carries it."""
        wanted = source_watermark(self.table, column, delay_ms, declared)
        if self.chosen is not None and self.chosen_for != column:
            raise InvalidRequest(
                f"The query takes the time of table '{self.table.name}' from '{self.chosen_for}' and "
                f"from '{column}'.",
                "A statement knows one event time per table: write one of the two steps into a table of "
                "its own.",
            )
        self.chosen, self.chosen_for = self.chosen or wanted, column
        return self.ref(self.chosen.column)

    @property
    def source(self) -> Source:
        return Source(self.number, self.table, self.chosen)

    def build(self, on: Building) -> DataFrame:
        rows = on.scan(self.source)
        names = [*self.table.columns.names, *SYSTEM]
        if self.table.changelog != "append":
            names.append(OP)
        if self.chosen is not None and self.chosen.expression is not None:
            names.append(EVENT)
        return rows.select(*(col(name).alias(self.ref(name)) for name in names))

    def describe(self) -> str:
        time = ""
        if self.chosen is not None:
            late = f", rows up to {format_ms(self.chosen.delay_ms)} late" if self.chosen.delay_ms else ""
            time = f", event time {self.chosen_for}{late}"
        return f"Scan {self.table.name} ({self.table.changelog}{time})"


@dataclass(eq=False)
class FilterRows(Operator):
    child: Operator
    condition: Typed

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = with_secrets(self.child.build(on), [self.condition], on)
        return without_secrets(rows.filter(F.expr(self._guarded(rows))))

    def _guarded(self, rows: DataFrame) -> str:
        """Spark would filter before it looks at times, and a row that is left out would not move the
        watermark. A condition that speaks of the time stays where it is."""
        condition = self.condition.sql
        timed = [f for f in rows.schema.fields if DELAY in f.metadata] if rows.isStreaming else []
        if not timed:
            return condition
        time = quote(timed[0].name) + (".end" if isinstance(timed[0].dataType, T.StructType) else "")
        never = "TIMESTAMP '0001-01-01 00:00:00Z'"
        return f"CASE WHEN {time} < {never} THEN {condition} WHEN {condition} THEN true ELSE false END"

    def describe(self) -> str:
        return f"Filter {self.condition.sql}"


@dataclass(eq=False)
class ProjectRows(Operator):
    """New columns beside those that stay. What begins with `$` stays too."""

    child: Operator
    kept: Sequence[str]
    added: Sequence[tuple[str, Typed]]

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = with_secrets(self.child.build(on), [value for _, value in self.added], on)
        kept = [ref for ref in dict.fromkeys(self.kept) if ref in rows.columns]
        added = [F.expr(value.sql).alias(ref) for ref, value in self.added]
        apart = [*kept, *(ref for ref, _ in self.added)]
        rest = [
            c for c in rows.columns if c.startswith("$") and not c.startswith("$secret.") and c not in apart
        ]
        return rows.select(*(col(ref) for ref in kept), *added, *(col(ref) for ref in rest))

    def describe(self) -> str:
        shown = [f"{value.sql} AS {f'`{ref}`'}" for ref, value in self.added]
        return f"Project {', '.join(shown)}"


@dataclass(eq=False)
class UnnestRows(Operator):
    """A row for each element of an array or a map."""

    child: Operator
    value: Typed
    refs: Sequence[str]
    position: str | None
    outer: bool
    fields: Sequence[str] = ()
    #: What tells the rows of one record apart, as no user's column.
    element: str | None = None

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = with_secrets(self.child.build(on), [self.value], on)
        placed = self.position is not None or self.element is not None
        function = ("pos" if placed else "") + ("explode_outer" if self.outer else "explode")
        made = ["$at"] if placed else []
        made += ["$key", "$value"] if isinstance(self.value.type, T.MapType) else ["$element"]
        kept = [col(c) for c in rows.columns if not c.startswith("$secret.")]
        rows = rows.select(*kept, F.expr(f"{function}({self.value.sql})").alias(*made))
        if self.fields:
            values = [F.col(f"`$element`.{quote(name)}") for name in self.fields]
        else:
            values = [col(name) for name in made if name != "$at"]
        new = [value.alias(ref) for value, ref in zip(values, self.refs, strict=True)]
        if self.position:
            new.append((col("$at") + F.lit(1)).alias(self.position))
        if self.element:
            new.append(col("$at").alias(self.element))
        return rows.select(*kept, *new)

    def describe(self) -> str:
        return f"Unnest {self.value.sql}{' or one row of NULLs' if self.outer else ''}"


@dataclass(eq=False)
class UnionRows(Operator):
    """Rows of several steps, as one; each branch gives its values in the same order."""

    children: Sequence[Operator]
    values: Sequence[Sequence[Typed]]
    refs: Sequence[str]

    def __post_init__(self) -> None:
        self.inputs = tuple(self.children)

    def build(self, on: Building) -> DataFrame:
        branches = []
        for child, values in zip(self.children, self.values, strict=True):
            rows = child.build(on)
            branches.append(
                rows.select(*(F.expr(v.sql).alias(ref) for v, ref in zip(values, self.refs, strict=True)))
            )
        whole = branches[0]
        for branch in branches[1:]:
            whole = whole.union(branch)
        return whole

    def describe(self) -> str:
        return "Union all"


@dataclass(eq=False)
class AssignWindows(Operator):
    """Each row with the windows that it is in, as a struct of start and end that carries the watermark."""

    child: Operator
    kind: str
    event: str
    size_ms: int
    step_ms: int
    start_ms: int
    ref: str
    delay_ms: int

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def reach_ms(self, time_ms: int) -> int:
        step = self.size_ms if self.kind == "CUMULATE" else self.step_ms
        latest = super().reach_ms(time_ms)
        return latest - (latest - self.start_ms) % step + self.size_ms

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        size, step, start = (f"{ms} milliseconds" for ms in (self.size_ms, self.step_ms, self.start_ms))
        if self.kind != "CUMULATE":
            window = F.window(col(self.event), size, step, start)
            return rows.select(*(col(c) for c in rows.columns), window.alias(self.ref))
        # Windows that begin together and end one step after the other: the row is in those that end behind
        # it.
        whole = rows.select(
            *(col(c) for c in rows.columns), F.window(col(self.event), size, size, start).alias("$whole")
        )
        micros = self.step_ms * 1000
        first = (
            f"CAST((unix_micros({quote(self.event)}) - unix_micros(`$whole`.start)) DIV {micros} + 1 AS INT)"
        )
        ends = f"explode(sequence({first}, {self.size_ms // self.step_ms}))"
        cut = whole.select(*(col(c) for c in whole.columns), F.expr(ends).alias("$end"))
        struct = (
            f"named_struct('start', `$whole`.start, 'end', `$whole`.start + `$end` * INTERVAL "
            f"'{self.step_ms / 1000:.3f}' SECOND)"
        )
        return cut.select(
            *(col(c) for c in rows.columns),
            F.expr(struct).alias(self.ref, metadata={DELAY: self.delay_ms}),
        )

    def describe(self) -> str:
        more = f" every {format_ms(self.step_ms)}" if self.kind in ("HOP", "CUMULATE") else ""
        return f"Windows {self.kind} of {format_ms(self.size_ms)}{more} by {quote(self.event)}"


def marked(ref: str, delay_ms: int) -> Column:
    """The column, with its watermark's delay said anew."""
    return col(ref).alias(ref, metadata={DELAY: delay_ms})


def unmarked(ref: str) -> Column:
    """The column, carrying no watermark."""
    return col(ref).alias(ref, metadata={"headgate": "no watermark"})


def packed(refs: Iterable[str]) -> Column:
    """The columns as one value, which is there even if there are none. It carries no watermark."""
    return F.struct(*(unmarked(ref) for ref in refs), F.lit(0).alias("$none"))


def ranked(order: Iterable[str], refs: Iterable[str]) -> Column:
    """The columns as `$row` of a value that is compared by others first, and then by all of them."""
    first = (unmarked(ref).alias(f"$o{n}") for n, ref in enumerate(order))
    return F.struct(*first, packed(refs).alias("$row"))


def unpacked(where: str, refs: Iterable[str]) -> list[Column]:
    """The columns out of such a value; `where` is a piece of Spark SQL."""
    return [F.col(f"{where}.{quote(ref)}").alias(ref) for ref in refs]


def interval(ms: int) -> str:
    return f"INTERVAL '{'-' if ms < 0 else ''}{abs(ms) / 1000:.3f}' SECOND"


def timed(rows: DataFrame, time: str, behind_ms: int, name: str) -> tuple[DataFrame, str]:
    """The rows, and the column that carries their watermark: one that is as far before `time` as the
    watermark is behind. What waits for that one does not wait longer than for `time`."""
    if not behind_ms or not rows.isStreaming:
        return rows, time
    kept = [unmarked(c) if c == time else col(c) for c in rows.columns]
    moment = quote(time) + (".end" if isinstance(rows.schema[time].dataType, T.StructType) else "")
    due = F.expr(f"{moment} - {interval(behind_ms)}").alias(name, metadata={DELAY: 0})
    return rows.select(*kept, due), name


def timed_as(ref: str, rows: DataFrame) -> Column:
    """The column, marked as it is in `rows`."""
    return col(ref).alias(ref, metadata=dict(rows.schema[ref].metadata))


@dataclass(eq=False)
class OutputRows(Operator):
    """The columns of the result by their names, checked for NULLs, with `$op` for results that change.

    Of rows that are taken back whole, `sign` says which those are, and `op` how, if that is known.
    """

    child: Operator
    columns: Sequence[tuple[str, Typed]]
    op: str | None
    upsert: bool
    limit: int | None = None
    # The time and the coordinates of the record that a row was made of, by name.
    record: Sequence[tuple[str, str]] = ()
    sign: str | None = None

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = with_secrets(self.child.build(on), [value for _, value in self.columns], on)
        columns = [F.expr(value.sql).alias(name) for name, value in self.columns]
        if self.sign is not None:
            came = F.when(col(self.sign) < 0, F.lit(GONE)).otherwise(F.lit(CAME))
            columns.append((came if self.op is None else col(self.op)).alias(OP))
        elif self.upsert:
            columns.append((col(self.op) if self.op is not None else F.lit("u")).alias(OP))
        columns += [col(ref).alias(name) for name, ref in self.record]
        made = rows.select(*columns)
        return made.limit(self.limit) if self.limit is not None else made

    def describe(self) -> str:
        shown = ", ".join(f"{value.sql} AS {name}" for name, value in self.columns)
        mode = "retract" if self.sign is not None else "upsert" if self.upsert else "append"
        return f"Output {mode}: {shown}"
