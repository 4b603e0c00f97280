"""Joins of the latest rows: one comes out at once, and again whenever one of its two sides changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from sqlglot import exp

from headgate.sql import stages
from headgate.sql.conditions import all_of
from headgate.sql.operators import Building, Operator, col, unmarked, unpacked, with_secrets
from headgate.sql.relation import Relation
from headgate.sql.scope import Attribute, Scope
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed
from headgate.sql.types import quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects

#: Whether the row of a side is there.
LEFT, RIGHT = "$left there", "$right there"


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
    #: What else two rows must be to belong together.
    met: Typed | None = None
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
        # They are grouped by the key, and there NULL is a value like others: in a join it equals nothing.
        equal = " AND ".join(f"`$k{n}` IS NOT NULL" for n in range(len(self.one.keys)))
        if self.how == "inner":
            known = known.filter(f"`$latest1` IS NOT NULL AND {equal}")
        left_there, right_there = (_there(n, side.op) for n, side in ((0, self.one), (1, self.other)))
        right_there = right_there & F.expr(equal)
        keys = {key: col(f"$k{n}") for n, key in enumerate(self.one.keys)}
        flat = known.select(
            *(keys.get(c, F.col(f"`$latest0`.{quote(c)}")).alias(c) for c in kept[0]),
            *unpacked("`$latest1`", kept[1]),
            left_there.alias(LEFT),
            right_there.alias(RIGHT),
        )
        return joined(flat, kept[0], kept[1], self.how, self.met, self.op, on)

    def describe(self) -> str:
        keys = ", ".join(
            f"{quote(a)} = {quote(b)}" for a, b in zip(self.one.keys, self.other.keys, strict=True)
        )
        return f"Join {self.how}, as both sides change: {keys}{also(self.met)}"

    def state(self) -> str:
        return f"the latest row of both sides for each key; {FOR_EVER}"


def joined(
    rows: DataFrame,
    left: Sequence[str],
    right: Sequence[str],
    how: str,
    met: Typed | None,
    op: str,
    on: Building,
) -> DataFrame:
    """Two rows side by side as one: where the right is not there, or is not what it must be, its columns are
    NULL; what is to be deleted says so."""
    there = col(RIGHT)
    if met is not None:
        rows = with_secrets(rows, [met], on)
        there = there & F.coalesce(F.expr(met.sql), F.lit(False))
    live = col(LEFT) & there if how == "inner" else col(LEFT)
    return rows.select(
        *(col(c) for c in left),
        *(F.when(there, col(c)).alias(c) for c in right),
        F.when(live, F.lit("u")).otherwise(F.lit("d")).alias(op),
    )


def also(met: Typed | None) -> str:
    return "" if met is None else f" AND {met.sql}"


def _there(place: int, op: str | None) -> Column:
    there = F.col(f"`$latest{place}`").isNotNull()
    return there if op is None else there & F.col(f"`$latest{place}`.{quote(op)}").eqNullSafe("u")


@dataclass(frozen=True)
class Meeting:
    """What the conditions of a join say: pairs of columns that are equal, and the rest."""

    #: As they were written, and the columns of the left and of the right.
    equal: Sequence[exp.Expr]
    pairs: Sequence[tuple[Attribute, Attribute]]
    others: Sequence[exp.Expr]

    def by(self, key: Sequence[str]) -> Meeting | None:
        """The same with one pair for each column of the right's key, and the rest as other conditions; None
        if a column has none."""
        chosen: dict[str, int] = {}
        for place, (_, other) in enumerate(self.pairs):
            if other.ref in key:
                chosen.setdefault(other.ref, place)
        if not key or set(chosen) != set(key):
            return None
        places = sorted(chosen.values())
        spare = [tree for place, tree in enumerate(self.equal) if place not in places]
        return Meeting(
            [self.equal[p] for p in places], [self.pairs[p] for p in places], [*self.others, *spare]
        )

    @property
    def left(self) -> list[str]:
        return [one.ref for one, _ in self.pairs]

    @property
    def right(self) -> list[str]:
        return [other.ref for _, other in self.pairs]


def latest(selects: Selects, left: Relation, right: Relation, how: str, meeting: Meeting) -> Relation:
    """Both sides have one row for each key: that of the left is the key of the result."""
    if left.changelog == "append":
        names = ", ".join(a.name for a, _ in meeting.pairs)
        selects.warn(
            f"The left side of the join only takes new rows: of those with the same ({names}) the last that "
            "came counts."
        )
    if right.changelog == "append":
        selects.warn(
            "The right side of the join only takes new rows: of those with the same key the last "
            "that came counts."
        )
    left, right = (
        stages.whole(selects, side, keys) for side, keys in ((left, meeting.left), (right, meeting.right))
    )
    scope = joined_scope(left, right)
    compiler = selects.compiler(scope)
    op = selects.refs.new("$op")
    operator = LatestOfBoth(
        left.operator,
        right.operator,
        how,
        Side(meeting.left, left.coordinates, left.op),
        Side(meeting.right, right.coordinates, right.op),
        op,
        all_of([compiler.condition(c) for c in meeting.others]) if meeting.others else None,
    )
    selects.warn(
        "The join keeps the last row of both sides for each key, for ever; a row comes out at once, and "
        "again when a side changes."
    )
    return Relation(operator, scope, "upsert", tuple(dict.fromkeys(meeting.left)), op, stateful=True)


def joined_scope(left: Relation, right: Relation) -> Scope:
    return Scope(
        (
            *((alias, replace(a, origin=None, window=None)) for alias, a in left.scope.columns),
            *(
                (alias, replace(a, origin=None, window=None, nullable=True))
                for alias, a in right.scope.columns
            ),
        )
    )
