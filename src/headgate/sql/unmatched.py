"""LEFT JOIN of any rows, however often each is there: every pair, and the left rows without a match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType
from sqlglot import exp

from headgate.sql import meetings, signed, stages
from headgate.sql.changes import RowChanges
from headgate.sql.conditions import all_of
from headgate.sql.operators import Building, Operator, col, unmarked
from headgate.sql.relation import Relation, maps_of
from headgate.sql.scope import Attribute, under
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed
from headgate.sql.updating import joined_scope

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(eq=False)
class UnmatchedCounts(Operator):
    """For each different row of the left, how often it is there without a match: as often as it is there at
    all, or never. Equal rows have the same matches, so that their pairs need only be counted."""

    left: Operator
    pairs: Operator
    left_sign: str
    pair_sign: str
    count: str
    #: By which the changes of a row stay in one partition.
    spread: str
    op: str
    columns: frozenset[str]
    #: The columns that leave this step: it tells rows apart by these and no others.
    leaving: Callable[[], Sequence[str]]
    unordered: frozenset[str] = frozenset()
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.pairs)

    def build(self, on: Building) -> DataFrame:
        kept = [c for c in self.leaving() if c in self.columns]
        sides = (
            (self.left, self.left_sign, "$rows", "$pairs"),
            (self.pairs, self.pair_sign, "$pairs", "$rows"),
        )
        left, pairs = (
            side.build(on).select(
                *(unmarked(c) for c in kept),
                col(sign).cast("bigint").alias(counted),
                F.lit(0).cast("bigint").alias(other),
            )
            for side, sign, counted, other in sides
        )
        sums = (
            left.unionByName(pairs)
            .groupBy(*(col(c) for c in kept))
            .agg(*(F.sum(c).alias(c) for c in ("$rows", "$pairs")))
        )
        alone = "CASE WHEN `$pairs` = 0 AND `$rows` > 0 THEN `$rows` ELSE 0L END"
        return sums.select(
            *(col(c) for c in kept),
            F.expr(alone).alias(self.count),
            F.xxhash64(F.lit(0), *(col(c) for c in kept)).alias(self.spread),
            F.expr(f"CASE WHEN {alone} > 0 THEN 'u' ELSE 'd' END").alias(self.op),
        )

    def describe(self) -> str:
        return "Count the rows of the left without a match"

    def state(self) -> str:
        return f"how often each different row of the left is there, and matched; {FOR_EVER}"


@dataclass(eq=False)
class UnmatchedChanges(Operator):
    """The changes of these counts: so many rows come, or are retracted."""

    child: stages.CutRows
    count: str
    order: Sequence[str]
    op: str
    sign: str
    columns: frozenset[str]
    #: What it speaks of tells rows of the left apart, whether or not anybody above asks for it.
    condition: Typed
    changing = True
    orders_batches = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        keys = [c for c in self.child.schema.names if c in self.columns]
        changes = RowChanges(self.child, keys, self.order, self.op, self.sign).build(on)
        each = F.expr(f"explode(sequence(1L, `{self.count}`))").alias("$each")
        return changes.select(*(col(c) for c in (*keys, self.sign)), each).drop("$each")

    def describe(self) -> str:
        return "Changes of the rows of the left without a match"

    def state(self) -> str:
        return f"the count before and the count now of each different row of the left; {FOR_EVER}"


@dataclass(eq=False)
class OuterPairs(Operator):
    """The pairs, and the rows without a match with NULLs in place of the right's columns."""

    pairs: Operator
    unmatched: Operator
    signs: tuple[str, str]
    sign: str
    columns: frozenset[str]

    def __post_init__(self) -> None:
        self.inputs = (self.pairs, self.unmatched)

    def build(self, on: Building) -> DataFrame:
        pairs, unmatched = (
            rows.select(
                *(unmarked(c) for c in rows.columns if c in self.columns and c in on.mentioned),
                col(sign).alias(self.sign),
            )
            for rows, sign in zip((self.pairs.build(on), self.unmatched.build(on)), self.signs, strict=True)
        )
        return pairs.unionByName(unmatched, allowMissingColumns=True)

    def describe(self) -> str:
        return "Join left: every pair, and the rows without a match"


def join(selects: Selects, left: Relation, right: Relation, own: list[exp.Expr]) -> Relation:
    """The changes of `left` LEFT JOIN `right`. Nothing tells two equal rows of it apart."""
    left, right = signed.ready(selects, left), signed.ready(selects, right)
    assert left.sign is not None
    compiler = selects.compiler(left.scope.joined(right.scope))
    condition = all_of([compiler.condition(c) for c in own])
    pairs = stages.cut(selects, meetings.join(selects, left, right, own), [])
    assert pairs.sign is not None
    count, spread, op = (selects.refs.new(name) for name in ("$count", "$spread", "$op"))
    columns = frozenset(a.ref for _, a in left.scope.columns)
    behind: list[stages.CutRows] = []
    counts = UnmatchedCounts(
        left.operator,
        pairs.operator,
        left.sign,
        pairs.sign,
        count,
        spread,
        op,
        columns,
        lambda: behind[0].schema.names,
        maps_of(left.scope),
    )
    unseen = [Attribute(ref, ref, LongType(), False, hidden=True) for ref in (count, spread)]
    scope = left.scope.joined(under("", unseen))
    counted = stages.cut(selects, Relation(counts, scope, "upsert", op=op, stateful=True), [spread])
    assert isinstance(counted.operator, stages.CutRows)
    behind.append(counted.operator)
    sign = selects.refs.new("$sign")
    changes = UnmatchedChanges(counted.operator, count, counted.coordinates, op, sign, columns, condition)
    alone = stages.cut(selects, Relation(changes, left.scope, sign=sign, stateful=True), [])
    whole = selects.refs.new("$sign")
    joined = joined_scope(left, right)
    everything = frozenset(a.ref for _, a in joined.columns)
    operator = OuterPairs(pairs.operator, alone.operator, (pairs.sign, sign), whole, everything)
    selects.warn(
        "LEFT JOIN keeps every change of both sides, for ever; a row without a match comes out at once, and "
        "is retracted when a match comes."
    )
    return Relation(operator, joined, "retract", sign=whole)
