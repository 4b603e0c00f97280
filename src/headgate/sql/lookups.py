"""Joins of rows that change with the row that they name: each left row by its own key, with the right row of
which it has the key. Many left rows may name one right row, and all of them change with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType

from headgate.sql import stages
from headgate.sql.conditions import all_of
from headgate.sql.operators import Building, Operator, col, unmarked, unpacked, with_secrets, without_secrets
from headgate.sql.relation import Relation, coordinate_type
from headgate.sql.scope import Attribute, Scope, under
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed
from headgate.sql.types import BOOLEAN, STRING, quote
from headgate.sql.updating import LEFT, RIGHT, Meeting, also, joined, joined_scope

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(eq=False)
class VersionPairs(Operator):
    """Each version of a left row alone, and with each version of the right row that it names. Which of them
    are the latest is seen above: nothing is taken back here."""

    left: Operator
    right: Operator
    condition: Typed
    met: str

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.right)

    def build(self, on: Building) -> DataFrame:
        alone, again, right = (
            rows.select(*(unmarked(c) for c in rows.columns if c in on.mentioned))
            for rows in (self.left.build(on), self.left.build(on), self.right.build(on))
        )
        pairs = with_secrets(again, [self.condition], on).join(right, F.expr(self.condition.sql), "inner")
        met = without_secrets(pairs).withColumn(self.met, F.lit(True))
        return met.unionByName(alone, allowMissingColumns=True)

    def describe(self) -> str:
        return f"Versions of both sides: {self.condition.sql}"

    def state(self) -> str:
        return f"every version of both sides; {FOR_EVER}: it grows with their changes"


@dataclass(frozen=True)
class Versions:
    """One of the two sides: its columns, what orders its versions, and what tells deletes."""

    #: A set: that they are here is no reason to keep them.
    columns: frozenset[str]
    order: Sequence[str]
    op: str | None


@dataclass(eq=False)
class LatestPair(Operator):
    """For each key the latest version of the left, with the latest version of the right that it met."""

    child: Operator
    keys: Sequence[str]
    one: Versions
    other: Versions
    how: str
    met: str
    op: str
    also: Typed | None = None
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        # A version that met none is older than those of the same row that met one.
        order = F.struct(
            *(unmarked(c).alias(f"$o{n}") for n, c in enumerate((*self.one.order, *self.other.order)))
        )
        rest = [c for c in rows.columns if c not in self.keys]
        latest = rows.groupBy(*(col(k) for k in self.keys)).agg(
            F.max_by(F.struct(*(unmarked(c) for c in rest)), order).alias("$row"),
            F.max(self.met).alias("$ever"),
        )
        if self.how == "inner":
            # A row that never met another is not spoken of.
            latest = latest.filter(col("$ever"))
        alive = [
            F.lit(True) if side.op is None else F.col(f"`$row`.{quote(side.op)}").eqNullSafe("u")
            for side in (self.one, self.other)
        ]
        left, right = ([c for c in rest if c in side.columns] for side in (self.one, self.other))
        flat = latest.select(
            *(col(k) for k in self.keys),
            *unpacked("`$row`", (*left, *right)),
            alive[0].alias(LEFT),
            (F.col(f"`$row`.{quote(self.met)}").isNotNull() & alive[1]).alias(RIGHT),
        )
        return joined(flat, [*self.keys, *left], right, self.how, self.also, self.op, on)

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        return f"Join {self.how} by ({keys}), the latest versions{also(self.also)}"

    def state(self) -> str:
        return f"one row for each key; {FOR_EVER}"


def join(
    selects: Selects, left: Relation, right: Relation, how: str, meeting: Meeting, key: Sequence[str]
) -> Relation:
    """`left`, told apart by its key, or else by where its rows came from, with the row of `right` that it
    names."""
    left, right = stages.whole(selects, left, key), stages.whole(selects, right, right.key)
    key = key or left.coordinates
    scope = joined_scope(left, right)
    met, op = selects.refs.new("$met"), selects.refs.new("$op")
    compiler = selects.compiler(left.scope.joined(right.scope))
    pairs = VersionPairs(
        left.operator, right.operator, all_of([compiler.condition(c) for c in meeting.equal]), met
    )
    carried: dict[str, DataType] = {met: BOOLEAN}
    for side in (left, right):
        if side.op is not None:
            carried[side.op] = STRING
        carried |= {ref: coordinate_type(ref) for ref in side.coordinates}
    unseen = [
        Attribute(f"${ref}", ref, kind, hidden=True)
        for ref, kind in carried.items()
        if scope.by_ref(ref) is None
    ]
    below = Relation(pairs, scope.joined(under("", unseen)), stateful=True)
    cut = stages.cut(selects, below, key)
    operator = LatestPair(
        cut.operator,
        list(key),
        Versions(frozenset(a.ref for _, a in left.scope.columns), left.coordinates, left.op),
        Versions(frozenset(a.ref for _, a in right.scope.columns), right.coordinates, right.op),
        how,
        met,
        op,
        all_of([selects.compiler(scope).condition(c) for c in meeting.others]) if meeting.others else None,
    )
    selects.warn(
        "The join keeps every version of both sides, for ever; a row comes out at once, and again when a "
        "side changes."
    )
    told = [a for a in unseen if a.ref in key]
    seen = Scope(tuple((alias, replace(a, origin=None)) for alias, a in scope.columns))
    return Relation(operator, seen.joined(under("", told)), "upsert", tuple(key), op, stateful=True)
