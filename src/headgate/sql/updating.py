"""Joins without a bound of time: a row comes out at once, and again whenever one of its two sides changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from sqlglot import exp

from headgate.sql import stages
from headgate.sql.conditions import find, is_key, sides_of
from headgate.sql.operators import Building, Operator, col, unmarked
from headgate.sql.refusals import refuse
from headgate.sql.relation import Relation
from headgate.sql.scope import Attribute, Scope
from headgate.sql.stateful import FOR_EVER
from headgate.sql.types import quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(frozen=True)
class Side:
    """One of the two: its keys, in the order of the other's, what orders its rows, and what tells deletes."""

    keys: Sequence[str]
    order: Sequence[str]
    op: str | None


@dataclass(eq=False)
class LatestOfBoth(Operator):
    """For each key the latest row of the left with the latest of the right, as they change."""

    left: Operator
    right: Operator
    how: str
    one: Side
    other: Side
    op: str
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.right)

    def build(self, on: Building) -> DataFrame:
        left, right = self.left.build(on), self.right.build(on)
        kept = [
            [c for c in rows.columns if c in on.mentioned or c in (*side.keys, side.op)]
            for rows, side in ((left, self.one), (right, self.other))
        ]
        sides = [
            rows.select(
                *(unmarked(key).alias(f"$k{n}") for n, key in enumerate(side.keys)),
                F.struct(*(unmarked(c) for c in columns)).alias(f"$row{place}"),
                F.struct(*(unmarked(o) for o in side.order)).alias(f"$order{place}"),
            )
            for place, (rows, side, columns) in enumerate(
                ((left, self.one, kept[0]), (right, self.other, kept[1]))
            )
        ]
        both = sides[0].unionByName(sides[1], allowMissingColumns=True)
        groups = both.groupBy(*(col(f"$k{n}") for n in range(len(self.one.keys)))).agg(
            *(F.max_by(f"`$row{n}`", f"`$order{n}`").alias(f"$latest{n}") for n in (0, 1))
        )
        # A row of the right that never met one of the left is not spoken of.
        known = groups.filter("`$latest0` IS NOT NULL")
        left_there, right_there = (_there(n, side.op) for n, side in ((0, self.one), (1, self.other)))
        live = left_there
        if self.how == "inner":
            live = left_there & right_there
            known = known.filter("`$latest1` IS NOT NULL")
        keys = {key: col(f"$k{n}") for n, key in enumerate(self.one.keys)}
        return known.select(
            *(keys.get(c, F.col(f"`$latest0`.{quote(c)}")).alias(c) for c in kept[0]),
            *(F.when(right_there, F.col(f"`$latest1`.{quote(c)}")).alias(c) for c in kept[1]),
            F.when(live, F.lit("u")).otherwise(F.lit("d")).alias(self.op),
        )

    def describe(self) -> str:
        keys = ", ".join(
            f"{quote(a)} = {quote(b)}" for a, b in zip(self.one.keys, self.other.keys, strict=True)
        )
        return f"Join {self.how}, as both sides change: {keys}"

    def state(self) -> str:
        return f"the latest row of both sides for each key; {FOR_EVER}"


def _there(place: int, op: str | None) -> Column:
    there = F.col(f"`$latest{place}`").isNotNull()
    return there if op is None else there & (F.col(f"`$latest{place}`.{quote(op)}") == F.lit("u"))


def join(
    selects: Selects, left: Relation, right: Relation, how: str, own: list[exp.Expr], tree: exp.Join
) -> Relation:
    """The join of two sides by the key of the left, of which the right has one row each."""
    if how not in ("inner", "left"):
        refuse(f"{how.upper()} JOIN of rows that change is not supported.", tree, "INNER and LEFT are.")
    pairs: list[tuple[Attribute, Attribute]] = []
    for condition in own:
        pair = _pair(condition, left.scope, right.scope)
        if pair is not None:
            pairs.append(pair)
        elif sides_of(condition, left.scope, right.scope) == {"right"}:
            right = selects.filter(right, selects.compiler(right.scope).condition(condition))
        else:
            refuse(
                "a join without a bound of time takes equalities of columns, and conditions on its "
                "right side.",
                condition,
                "Put others into WHERE, or bound it: b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR.",
            )
    left_keys = [one.ref for one, _ in pairs]
    right_keys = [other.ref for _, other in pairs]
    if left.key and not set(left.key) <= set(left_keys):
        names = ", ".join((left.scope.by_ref(ref) or pairs[0][0]).name for ref in left.key)
        refuse(
            f"a join without a bound of time gives one row for each key of its left side, ({names}), "
            f"and is not "
            "by that key.",
            tree,
            "Join by it; or bound the join: b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR.",
        )
    if right.changelog == "upsert" and set(right.key) != set(right_keys):
        refuse(
            "a join without a bound of time takes the row of its right side by that side's whole key.",
            tree,
            "Join by the PRIMARY KEY of the right table.",
        )
    if right.changelog == "append":
        selects.warn(
            "The right side of the join only takes new rows: of those with the same key the last "
            "that came counts."
        )
    left, right = (
        stages.whole(selects, side, keys) for side, keys in ((left, left_keys), (right, right_keys))
    )
    op = selects.refs.new("$op")
    operator = LatestOfBoth(
        left.operator,
        right.operator,
        how,
        Side(left_keys, left.coordinates, left.op),
        Side(right_keys, right.coordinates, right.op),
        op,
    )
    selects.warn(
        "The join has no bound of time: the last row of both sides is kept for each key, for ever; a "
        "row comes "
        "out at once, and again when a side changes."
    )
    scope = Scope(
        (
            *((alias, replace(a, origin=None)) for alias, a in left.scope.columns),
            *((alias, replace(a, origin=None, nullable=True)) for alias, a in right.scope.columns),
        )
    )
    return Relation(operator, scope, "upsert", tuple(left_keys), op, stateful=True)


def _pair(tree: exp.Expr, left: Scope, right: Scope) -> tuple[Attribute, Attribute] | None:
    """The two columns of `a.k = b.k`."""
    if not is_key(tree, left, right):
        return None
    one, other = tree.this, tree.expression
    if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
        return None
    if sides_of(one, left, right) == {"right"}:
        one, other = other, one
    found = find(one, left), find(other, right)
    return None if found[0] is None or found[1] is None else (found[0], found[1])
