"""Rows that replace each other, as changes: the row that was is taken back, the one that is comes in its
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.internal import InternalFunction

from headgate.errors import InvalidRequest
from headgate.sql import stages
from headgate.sql.operators import Building, Operator, col, unmarked
from headgate.sql.relation import Relation, maps_of
from headgate.sql.stateful import FOR_EVER
from headgate.sql.types import quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(eq=False)
class RowChanges(Operator):
    """For each key of a batch: the row that it had before with -1, the one that it has now with 1.

    A batch has the last row of each key first; of these the two latest are kept, which are the one before
    and the one now.
    """

    child: Operator
    keys: Sequence[str]
    order: Sequence[str]
    op: str | None
    sign: str
    unordered: frozenset[str] = frozenset()
    changing = True
    orders_batches = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        apart = {*self.keys, *self.order, self.op}
        rest = [c for c in rows.columns if c not in apart and c in on.mentioned]
        last = Window.partitionBy(*(col(k) for k in self.keys)).orderBy(
            *(col(o).desc() for o in reversed(self.order))
        )
        one = rows.withColumn("$place", F.row_number().over(last)).filter("`$place` = 1")
        alive = F.lit(True) if self.op is None else col(self.op) == F.lit("u")
        if not rows.isStreaming:
            made = one.filter(alive).withColumn(self.sign, F.lit(1))
            return made.select(*(col(c) for c in (*self.keys, *rest, self.sign)))
        whole = F.struct(
            *(unmarked(o).alias(f"$o{n}") for n, o in enumerate(reversed(self.order))),
            alive.alias("$alive"),
            F.struct(*(unmarked(c) for c in rest), F.lit(0).alias("$none")).alias("$row"),
        )
        two = one.groupBy(*(col(k) for k in self.keys)).agg(
            F.reverse(F.array_sort(InternalFunction.collect_top_k(whole, 2, False))).alias("$two")
        )
        same = "size(`$two`) = 2 AND `$two`[0].`$alive` = `$two`[1].`$alive` AND `$two`[0].`$row` <=> `$two`[1].`$row`"
        both = (
            "filter(array(named_struct('sign', 1, 'of', get(`$two`, 0)), named_struct('sign', -1, 'of', "
            f"get(`$two`, 1))), x -> x.of.`$alive` AND NOT ({same}))"
        )
        each = two.select(*(col(k) for k in self.keys), F.explode(F.expr(both)).alias("$change"))
        return each.select(
            *(col(k) for k in self.keys),
            *(F.col(f"`$change`.of.`$row`.{quote(c)}").alias(c) for c in rest),
            F.col("`$change`.sign").alias(self.sign),
        )

    def describe(self) -> str:
        return f"Changes by ({', '.join(quote(k) for k in self.keys)})"

    def state(self) -> str:
        return f"two rows for each key, the one before and the one now; {FOR_EVER}"


def changes(selects: Selects, relation: Relation, key: Sequence[str] = ()) -> Relation:
    """Rows of an upsert relation as changes, behind a cut: what stands above may have state of its own."""
    if not relation.key:
        raise InvalidRequest(
            "The query has one row that changes, without a key, and reads it again.",
            "Write it as one query.",
        )
    relation = stages.whole(selects, relation, relation.key)
    sign = selects.refs.new("$sign")
    operator = RowChanges(
        relation.operator, relation.key, relation.coordinates, relation.op, sign, maps_of(relation.scope)
    )
    stay = [(alias, a) for alias, a in relation.scope.columns if a.ref not in relation.coordinates]
    scope = replace(relation.scope, columns=tuple(stay))
    made = replace(
        relation,
        operator=operator,
        scope=scope,
        changelog="append",
        op=None,
        key=(),
        coordinates=(),
        events={},
        sign=sign,
        stateful=True,
    )
    return stages.cut(selects, made, list(key) or list(relation.key))
