"""Rows with signs: each came (1), or was taken back (-1). What is made of them: rows that replace each other
again, and the first rows of a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType

from headgate.errors import InvalidRequest
from headgate.sql import changes, stages
from headgate.sql.functions.retracting import first_left
from headgate.sql.operators import Building, Operator, ProjectRows, col, ranked, unmarked, unpacked
from headgate.sql.relation import Numbered, Relation, maps_of
from headgate.sql.scope import Attribute, Scope
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed
from headgate.sql.types import quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects


def signed(selects: Selects, relation: Relation) -> Relation:
    """The same rows with signs. Those of an upsert relation are still told apart by its key."""
    if relation.sign is not None:
        # What is made of a retract table's rows is no table's any more.
        return replace(relation, changelog="append")
    if relation.changelog == "upsert":
        return replace(changes.changes(selects, relation), key=relation.key)
    sign = selects.refs.new("$sign")
    kept = [a.ref for _, a in relation.scope.columns]
    one = Typed("1", IntegerType(), False, True, 1)
    return replace(relation, operator=ProjectRows(relation.operator, kept, [(sign, one)]), sign=sign)


def ready(selects: Selects, relation: Relation) -> Relation:
    """Rows with signs, as something with state can stand above."""
    return stages.whole(selects, signed(selects, relation), relation.key)


def settled(selects: Selects, relation: Relation) -> Relation:
    """Rows with signs as rows that replace each other by their key: of each key the one that is left."""
    if relation.sign is None:
        return relation
    if not relation.key:
        if any(a.window is not None for _, a in relation.scope.columns):
            raise InvalidRequest(
                "Windows over rows that change are for GROUP BY: each row may be taken back.",
                "Group by window_start and window_end, with an aggregate.",
            )
        raise InvalidRequest(
            "The rows of this query may be taken back, and no column tells them apart: they are of a UNION "
            "ALL, an UNNEST or a join of rows that change, one with another many.",
            "GROUP BY and SELECT DISTINCT make rows with a key of them. A join has one if both of its sides "
            "have a PRIMARY KEY, or if it is by the whole key of its right side.",
        )
    made = stages.whole(selects, relation, relation.key)
    rest = dict.fromkeys(a.ref for _, a in made.scope.columns if a.ref not in made.key)
    operator, op = changes.greatest_left(selects, made, made.key, list(rest))
    return replace(
        made,
        operator=operator,
        changelog="upsert",
        op=op,
        sign=None,
        coordinates=(),
        stateful=True,
    )


@dataclass(eq=False)
class KeepLeft(Operator):
    """The first rows of each key by an order, of those that are left, each with its place. A place that has
    none any more is deleted."""

    child: Operator
    keys: Sequence[str]
    order: Sequence[str]
    greatest: bool
    number: str
    most: int
    sign: str
    op: str
    #: What a row is made of: it is taken back by all of it, wherever it came from.
    columns: frozenset[str]
    unordered: frozenset[str] = frozenset()
    changing = True

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    def build(self, on: Building) -> DataFrame:
        rows = self.child.build(on)
        rest = [c for c in rows.columns if c in self.columns and c not in self.keys and c in on.mentioned]
        # Rows that are the same in their order are told apart by the rest of them, never by chance.
        whole = ranked(self.order, rest).alias("$one")
        one = rows.select(*(unmarked(k) for k in self.keys), whole, col(self.sign).alias("$sign"))
        tops = one.groupBy(*(col(k) for k in self.keys)).agg(
            F.expr(first_left("`$one`", "`$sign`", self.most, self.greatest)).alias("$left"),
            F.expr("sum(CASE WHEN `$sign` > 0 THEN 1 ELSE 0 END)").alias("$came"),
        )
        # Nobody was ever at a place beyond the number of rows that came.
        places = F.expr(f"explode(sequence(1, CAST(least(`$came`, {self.most}) AS INT)))")
        each = tops.filter("`$came` > 0").select(
            *(col(k) for k in self.keys), col("$left"), places.alias(self.number)
        )
        found = each.withColumn("$at", F.expr(f"get(`$left`, {quote(self.number)} - 1)"))
        return found.select(
            *(col(k) for k in self.keys),
            *unpacked("`$at`.`$row`", rest),
            col(self.number),
            F.when(col("$at").isNotNull(), F.lit("u")).otherwise(F.lit("d")).alias(self.op),
        )

    def describe(self) -> str:
        keys = ", ".join(quote(k) for k in self.keys)
        which = "greatest" if self.greatest else "least"
        return (
            f"Keep {self.most} by ({keys}), the {which} {quote(self.order[0])} of the rows that are left, as "
            "they change"
        )

    def state(self) -> str:
        return f"every row that came or was taken back, for each key; {FOR_EVER}"


def keep(selects: Selects, relation: Relation, number: Attribute, most: int) -> Relation:
    """So many rows of each key, of those that are left. With one it is the key's, with more the place is a
    part of the key."""
    rank: Numbered = relation.numbered[number.ref]
    told = tuple(ref for ref in relation.key if ref not in rank.order)
    # The number comes out of this step: no cut below it has that column.
    there = tuple((alias, a) for alias, a in relation.scope.columns if a.ref not in relation.numbered)
    below = ready(selects, replace(relation, numbered={}, scope=Scope(there)))
    assert below.sign is not None
    op = selects.refs.new("$op")
    operator = KeepLeft(
        below.operator,
        rank.keys,
        (*rank.order, *told),
        rank.greatest,
        number.ref,
        most,
        below.sign,
        op,
        frozenset(a.ref for _, a in below.scope.columns if a.ref not in below.coordinates),
        maps_of(below.scope),
    )
    selects.warn(
        "ROW_NUMBER over rows that change keeps every row that came, for ever; sql.state-ttl does not free "
        "them."
    )
    scope = Scope(
        tuple(
            (alias, replace(a, origin=None, window=None))
            for alias, a in relation.scope.columns
            if a.ref in operator.keys or a.ref == number.ref or below.scope.by_ref(a.ref) is not None
        )
    )
    key = rank.keys if most == 1 else (*rank.keys, number.ref)
    return Relation(operator, scope, "upsert", key, op, stateful=True)
