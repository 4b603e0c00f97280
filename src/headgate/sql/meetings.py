"""Joins of rows that come and are taken back, each with every other that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from sqlglot import exp

from headgate.sql import signed
from headgate.sql.conditions import all_of
from headgate.sql.operators import Building, Operator, col, unmarked, with_secrets, without_secrets
from headgate.sql.relation import Relation, refuse_moving
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed
from headgate.sql.updating import joined_scope

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(eq=False)
class JoinSigned(Operator):
    """Each change of the left with each change of the right. What is taken back on one side takes back
    every pair that it was in; what is taken back on both comes twice, and cancels out."""

    left: Operator
    right: Operator
    condition: Typed
    signs: tuple[str, str]
    sign: str

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.right)

    def build(self, on: Building) -> DataFrame:
        # No watermark goes along: a row is never late for a partner that may be taken back.
        left, right = (
            rows.select(*(unmarked(c) for c in rows.columns if c in on.mentioned))
            for rows in (self.left.build(on), self.right.build(on))
        )
        pairs = with_secrets(left, [self.condition], on).join(right, F.expr(self.condition.sql), "inner")
        product = (col(self.signs[0]) * col(self.signs[1])).alias(self.sign)
        names = [c for c in without_secrets(pairs).columns if c not in self.signs]
        return pairs.select(*(col(c) for c in names), product)

    def describe(self) -> str:
        return f"Join inner of the changes of both sides: {self.condition.sql}"

    def state(self) -> str:
        return f"every change of both sides; {FOR_EVER}"


def join(selects: Selects, left: Relation, right: Relation, own: list[exp.Expr]) -> Relation:
    """Every pair, with a sign. Pairs are told apart by the keys of both sides, if both have one."""
    left, right = signed.ready(selects, left), signed.ready(selects, right)
    assert left.sign is not None
    assert right.sign is not None
    compiler = selects.compiler(left.scope.joined(right.scope))
    conditions = [compiler.condition(c) for c in own]
    refuse_moving(left, conditions)
    sign = selects.refs.new("$sign")
    operator = JoinSigned(
        left.operator,
        right.operator,
        all_of(conditions),
        (left.sign, right.sign),
        sign,
    )
    selects.warn(
        "The join keeps every change of both sides, for ever; a pair comes out at once, and is taken back "
        "when one of its rows changes."
    )
    key = (*left.key, *right.key) if left.key and right.key else ()
    return Relation(operator, joined_scope(left, right), key=key, stateful=True, sign=sign)
