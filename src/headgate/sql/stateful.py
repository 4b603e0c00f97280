"""The operators that keep state: aggregates, keep-first and keep-last, joins, distinct rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.internal import InternalFunction

from headgate.sql.durations import format_ms
from headgate.sql.operators import (
    Building,
    Operator,
    col,
    interval,
    marked,
    packed,
    ranked,
    timed,
    timed_as,
    unmarked,
    unpacked,
    with_secrets,
    without_secrets,
)
from headgate.sql.typed import Typed
from headgate.sql.types import quote

FOR_EVER = "kept for ever"
_DUE = "$due"


@dataclass(frozen=True)
class SessionGap:
    """Rows that are at most `gap_ms` apart are one window."""

    event: str
    gap_ms: int


@dataclass(eq=False)
class AggregateRows(Operator):
    """Groups. With a window a group comes out once, when the watermark passes its end; without one it
    comes out whenever it changes."""

    child: Operator
    keys: Sequence[tuple[str, Typed]]
    values: Sequence[tuple[str, Typed]]
    window: str | None = None
    session: SessionGap | None = None
    idle_key: str | None = None
    #: Rows are taken back, also those of windows that are long over: groups come out as they change.
    taken_back: bool = False

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    @property
    def changing(self) -> bool:  # type: ignore[override]
        return self.window is None or self.taken_back

    def reach_ms(self, time_ms: int) -> int:
        return super().reach_ms(time_ms) + (self.session.gap_ms if self.session is not None else 0)

    def due_ms(self, time_ms: int) -> int:
        if self.changing:
            return super().due_ms(time_ms)
        return max(super().due_ms(time_ms), self.reach_ms(time_ms) + self.child.held_ms)

    def build(self, on: Building) -> DataFrame:
        used = [value for _, value in (*self.keys, *self.values)]
        rows = with_secrets(self.child.build(on), used, on)
        groups = [F.expr(value.sql).alias(ref) for ref, value in self.keys]
        if self.window is not None and not self.changing and on.late is not None and not self.child.has_state:
            rows = on.late.counted(rows, self._ends())
        if self.session is not None and self.window is not None:
            groups.append(
                F.session_window(col(self.session.event), f"{self.session.gap_ms} milliseconds").alias(
                    self.window
                )
            )
            if not self.keys and self.idle_key is not None:
                # Spark wants a key beside a session: one that is the same for all rows.
                groups.insert(0, F.pmod(F.coalesce(col(self.idle_key), F.lit(0)), F.lit(1)).alias("$all"))
        elif self.window is not None:
            marked_so = timed_as(self.window, rows)
            rows, due = timed(rows, self.window, self.child.behind_ms, _DUE)
            groups += [col(c) for c in dict.fromkeys([due, self.window])]
        values = [F.expr(value.sql).alias(ref) for ref, value in self.values]
        if not values:
            values = [F.count(F.lit(1)).alias("$rows")]
        found = without_secrets(rows.groupBy(*groups).agg(*values))
        if _DUE not in found.columns:
            return found
        kept = [marked_so if c == self.window else col(c) for c in found.columns if c != _DUE]
        return found.select(*kept)

    def _ends(self) -> Column:
        """When the window of a row is over."""
        if self.session is not None:
            return F.expr(f"{quote(self.session.event)} + {interval(self.session.gap_ms)}")
        assert self.window is not None
        return F.col(f"{quote(self.window)}.end")

    def describe(self) -> str:
        keys = [value.sql for _, value in self.keys]
        if self.window is not None:
            gap = f" SESSION with gaps of {format_ms(self.session.gap_ms)}" if self.session else ""
            keys.insert(0, f"window{gap}")
        values = ", ".join(value.sql for _, value in self.values)
        return f"Aggregate by ({', '.join(keys)}): {values or 'nothing'}"

    def state(self) -> str:
        if self.window is not None and not self.taken_back:
            return "one row for each open group; freed when the watermark passes the end of its window"
        if self.taken_back and any("collect_list(" in value.sql for _, value in self.values):
            values = "every value that came, of MIN, MAX and DISTINCT, or every row where one is left"
            return f"one row for each group, with {values}; {FOR_EVER}"
        return f"one row for each group; {FOR_EVER}"


@dataclass(eq=False)
class KeepFirst(Operator):
    """The row of each key with the least `by`, time and coordinates, once the watermark has passed its
    `event`.

    Rows wait in an aggregate by (key, time), which lets them go in the order of their times. Of those that
    go in one batch the least is taken; a key that was let go before is not let go again.
    """

    child: Operator
    keys: Sequence[str]
    event: str
    by: Sequence[str]
    delay_ms: int
    ttl_ms: int | None
    orders_batches = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def due_ms(self, time_ms: int) -> int:
        return max(super().due_ms(time_ms), self.reach_ms(time_ms) + self.child.held_ms)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        first = Window.partitionBy(*(col(k) for k in self.keys)).orderBy(*(col(b) for b in self.by))
        timed = rows.filter(
            F.expr(
                f"{quote(self.event)} IS NOT NULL OR "
                "raise_error('ROW_NUMBER: a row has no time; leave such rows out with IS NOT NULL') IS NULL"
            )
        )
        if not rows.isStreaming:
            return (
                timed.withColumn("$place", F.row_number().over(first)).filter("`$place` = 1").drop("$place")
            )
        if on.late is not None and not self.child.has_state:
            timed = on.late.counted(timed, col(self.event))
        grouped = dict.fromkeys([*self.keys, self.event])
        rest = [c for c in rows.columns if c not in grouped and c in on.mentioned]
        whole = packed(rest)
        # Two rows of a key may have the very same time.
        least = F.struct(*(col(b) for b in self.by))
        due = timed.groupBy(*(col(c) for c in grouped)).agg(F.min_by(whole, least).alias("$row"))
        flat = due.select(*(col(c) for c in grouped), *unpacked("`$row`", rest))
        one = flat.withColumn("$place", F.row_number().over(first)).filter("`$place` = 1").drop("$place")
        if self.ttl_ms is None:
            return one.dropDuplicates([*self.keys])
        others = [c for c in one.columns if c != self.event]
        timed = one.select(*(unmarked(c) for c in others), marked(self.event, self.ttl_ms))
        kept = timed.dropDuplicatesWithinWatermark([*self.keys])
        return kept.select(*(col(c) for c in others), marked(self.event, self.delay_ms))

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        after = "" if self.by[0] == self.event else f" of those that {quote(self.event)} lets go together"
        return f"Keep first by ({keys}), least {quote(self.by[0])}{after}"

    def state(self) -> str:
        seen = (
            FOR_EVER
            if self.ttl_ms is None
            else f"kept {format_ms(self.ttl_ms)} of event time (sql.state-ttl)"
        )
        return (
            "rows that the watermark has not passed, which come out when a later record moves it; and the "
            f"keys that came out, {seen}"
        )


@dataclass(eq=False)
class KeepEarliest(Operator):
    """The row of each key with the least coordinates, as soon as it comes: all rows of a key are in one
    partition, which is read in its order."""

    child: Operator
    keys: Sequence[str]
    by: Sequence[str]
    #: By which column keys are forgotten, and how far the watermark is behind it.
    event: str | None
    delay_ms: int
    ttl_ms: int | None
    orders_batches = True
    of_records = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        first = Window.partitionBy(*(col(k) for k in self.keys)).orderBy(*(col(b) for b in self.by))
        one = rows.withColumn("$place", F.row_number().over(first)).filter("`$place` = 1").drop("$place")
        if not rows.isStreaming:
            return one
        if self.ttl_ms is None or self.event is None:
            return one.dropDuplicates([*self.keys])
        others = [c for c in one.columns if c != self.event]
        # Spark adds this to the time of a row, and waits for the watermark.
        kept_ms = max(self.ttl_ms - self.delay_ms, 0)
        timed = one.select(*(unmarked(c) for c in others), marked(self.event, kept_ms))
        kept = timed.dropDuplicatesWithinWatermark([*self.keys])
        return kept.select(*(col(c) for c in others), marked(self.event, self.delay_ms))

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        return f"Keep first by ({keys}), least {quote(self.by[1])} of its partition, at once"

    def state(self) -> str:
        seen = (
            FOR_EVER
            if self.ttl_ms is None
            else f"kept {format_ms(self.ttl_ms)} of event time (sql.state-ttl)"
        )
        return f"the keys that came out, {seen}"


@dataclass(eq=False)
class KeepBest(Operator):
    """The row of each key with the least, or the greatest, order: a result that changes."""

    child: Operator
    keys: Sequence[str]
    order: Sequence[str]
    greatest: bool
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        rest = [c for c in rows.columns if c not in self.keys and c in on.mentioned]
        choose = F.max_by if self.greatest else F.min_by
        whole = packed(rest)
        best = rows.groupBy(*(col(k) for k in self.keys)).agg(
            choose(whole, F.struct(*(col(o) for o in self.order))).alias("$row")
        )
        return best.select(*(col(k) for k in self.keys), *unpacked("`$row`", rest))

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        return f"Keep {'last' if self.greatest else 'first'} by ({keys}), as it changes"

    def state(self) -> str:
        return f"one row for each key; {FOR_EVER}"


@dataclass(eq=False)
class KeepTop(Operator):
    """The first rows of each key by an order, each with its place: a result that changes."""

    child: Operator
    keys: Sequence[str]
    order: Sequence[str]
    greatest: bool
    number: str
    most: int
    unordered: frozenset[str] = frozenset()
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        rest = [c for c in rows.columns if c not in self.keys and c in on.mentioned]
        whole = ranked(self.order, rest)
        found = F.array_sort(InternalFunction.collect_top_k(whole, self.most, not self.greatest))
        tops = rows.groupBy(*(col(k) for k in self.keys)).agg(
            (F.reverse(found) if self.greatest else found).alias("$top")
        )
        each = tops.select(*(col(k) for k in self.keys), F.posexplode("$top").alias("$at", "$one"))
        return each.select(
            *(col(k) for k in self.keys),
            *unpacked("`$one`.`$row`", rest),
            (col("$at") + F.lit(1)).alias(self.number),
        )

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        which = "greatest" if self.greatest else "least"
        return f"Keep {self.most} by ({keys}), the {which} {quote(self.order[0])}, as they change"

    def state(self) -> str:
        return f"{self.most} rows for each key; {FOR_EVER}"


@dataclass(frozen=True)
class TimeBound:
    """left.time between right.time + lower and right.time + upper, both in milliseconds; None is open."""

    left: str
    right: str
    lower_ms: int | None
    upper_ms: int | None

    def sql(self) -> str:
        parts = []
        for bound, operator in ((self.lower_ms, ">="), (self.upper_ms, "<=")):
            if bound is not None:
                sign = "-" if bound < 0 else ""
                shift = f"INTERVAL '{sign}{abs(bound) / 1000:.3f}' SECOND"
                parts.append(f"{quote(self.left)} {operator} {quote(self.right)} + {shift}")
        return " AND ".join(parts)


@dataclass(eq=False)
class JoinRows(Operator):
    """Two streams. `bound` frees the state of both; `ttl_ms` is what the bound was made of when the query
    had none."""

    left: Operator
    right: Operator
    how: str
    condition: Typed
    bound: TimeBound | None
    ttl_ms: int | None = None

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.right)

    @property
    def held_ms(self) -> int:
        return super().held_ms + self._waits_ms

    def due_ms(self, time_ms: int) -> int:
        if self.how == "inner":
            return super().due_ms(time_ms)
        # A row without a partner is known to have none when event time has passed all that it may meet.
        return max(super().due_ms(time_ms), self.reach_ms(time_ms) + self.held_ms)

    @property
    def _waits_ms(self) -> int:
        # A TTL is no promise of the data: event time is never taken so far ahead for it.
        if self.bound is None or self.ttl_ms is not None:
            return 0
        return max(-(self.bound.lower_ms or 0), self.bound.upper_ms or 0, 0) + 1

    def build(self, on: Building) -> DataFrame:
        left = with_secrets(self.left.build(on), [self.condition], on)
        right = self.right.build(on)
        sql = self.condition.sql if self.bound is None else f"{self.condition.sql} AND {self.bound.sql()}"
        pairs = left.join(right, F.expr(sql), self.how)
        if self.bound is not None and self.how in ("left", "right"):
            # Always so. Else Spark leaves the join out where an aggregate asks for no column of a side that
            # may be missing, and does not read that side: event time would wait for it for ever.
            time = quote(self.bound.right if self.how == "left" else self.bound.left)
            pairs = pairs.filter(f"coalesce(unix_micros(CAST({time} AS TIMESTAMP)), 0L) > -{2**63 - 1}L")
        return without_secrets(pairs)

    def describe(self) -> str:
        kind = "regular" if self.bound is None or self.ttl_ms is not None else "interval"
        bound = "" if self.bound is None else f" AND {self.bound.sql()}"
        return f"Join {kind} {self.how}: {self.condition.sql}{bound}"

    def state(self) -> str:
        if self.bound is None:
            return f"the rows of both sides; {FOR_EVER}"
        if self.ttl_ms is not None:
            return f"the rows of both sides; kept {format_ms(self.ttl_ms)} (sql.state-ttl)"
        # A left row waits for right rows up to -lower later, a right row for left rows up to upper later.
        left = None if self.bound.lower_ms is None else max(-self.bound.lower_ms, 0)
        right = None if self.bound.upper_ms is None else max(self.bound.upper_ms, 0)
        sides = []
        for name, wait in (("left", left), ("right", right)):
            if wait is None:
                sides.append(f"{name} rows {FOR_EVER}")
            else:
                sides.append(f"{name} rows until the watermark is {format_ms(wait)} past them")
        return "; ".join(sides)


@dataclass(eq=False)
class DistinctRows(Operator):
    """Each combination of values once."""

    child: Operator
    refs: Sequence[str]
    event: str | None
    ttl_ms: int | None

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        refs = list(dict.fromkeys(self.refs))
        if self.ttl_ms is None or self.event is None or not rows.isStreaming:
            return rows.dropDuplicates(refs)
        others = [c for c in rows.columns if c != self.event]
        timed = rows.select(*(unmarked(c) for c in others), marked(self.event, self.ttl_ms))
        return timed.dropDuplicatesWithinWatermark(refs)

    def describe(self) -> str:
        return f"Distinct ({', '.join(quote(ref) for ref in self.refs)})"

    def state(self) -> str:
        kept = FOR_EVER if self.ttl_ms is None else f"kept {format_ms(self.ttl_ms)} (sql.state-ttl)"
        return f"every row that came; {kept}"
