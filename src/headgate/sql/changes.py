"""Rows that replace each other, as changes: the row that was is taken back, the one that is comes in its
place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.internal import InternalFunction
from pyspark.sql.types import StructField, StructType

from headgate.errors import InvalidRequest
from headgate.sql import stages
from headgate.sql.functions.retracting import best_left
from headgate.sql.operators import Building, Operator, ProjectRows, ScanRows, col, packed, unmarked, unpacked
from headgate.sql.relation import Relation, coordinates_of, live_op, maps_of
from headgate.sql.scope import Attribute, Scope, under
from headgate.sql.stateful import FOR_EVER, AggregateRows
from headgate.sql.tables import AFTER, BEFORE, CAME, GONE, OP
from headgate.sql.typed import Typed, column
from headgate.sql.types import BIGINT, INT, quote

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
    #: A column that says of each change whether the row came, is gone, or is half of an update.
    kind: str | None = None
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
            said = [] if self.kind is None else [F.lit(CAME).alias(self.kind)]
            return made.select(*(col(c) for c in (*self.keys, *rest, self.sign)), *said)
        whole = F.struct(
            *(unmarked(o).alias(f"$o{n}") for n, o in enumerate(reversed(self.order))),
            alive.alias("$alive"),
            packed(rest).alias("$row"),
        )
        two = one.groupBy(*(col(k) for k in self.keys)).agg(
            F.reverse(F.array_sort(InternalFunction.collect_top_k(whole, 2, False))).alias("$two")
        )
        same = (
            "size(`$two`) = 2 AND `$two`[0].`$alive` = `$two`[1].`$alive` AND "
            + "`$two`[0].`$row` <=> `$two`[1].`$row`"
        )
        both = (
            "filter(array(named_struct('sign', 1, 'of', get(`$two`, 0)), named_struct('sign', -1, 'of', "
            f"get(`$two`, 1))), x -> x.of.`$alive` AND NOT ({same}))"
        )
        halves = "size(`$two`) = 2 AND `$two`[0].`$alive` AND `$two`[1].`$alive`"
        each = two.select(
            *(col(k) for k in self.keys),
            F.explode(F.expr(both)).alias("$change"),
            *([] if self.kind is None else [F.expr(halves).alias("$halves")]),
        )
        said = []
        if self.kind is not None:
            came, half = F.col("`$change`.sign") > 0, col("$halves")
            update = F.when(came, F.lit(AFTER)).otherwise(F.lit(BEFORE))
            whole_row = F.when(came, F.lit(CAME)).otherwise(F.lit(GONE))
            said = [F.when(half, update).otherwise(whole_row).alias(self.kind)]
        return each.select(
            *(col(k) for k in self.keys),
            *unpacked("`$change`.of.`$row`", rest),
            F.col("`$change`.sign").alias(self.sign),
            *said,
        )

    def describe(self) -> str:
        return f"Changes by ({', '.join(quote(k) for k in self.keys)})"

    def state(self) -> str:
        return f"two rows for each key, the one before and the one now; {FOR_EVER}"


def taken_back(selects: Selects, scan: ScanRows, attributes: Sequence[Attribute]) -> Relation:
    """A retract table without a key: its records are changes already. What the system knows of a record is
    not to be had, since the one that takes a row back has other times and places."""
    sign = selects.refs.new("$sign")
    value = Typed(f"CASE WHEN {quote(scan.ref(OP))} = 'd' THEN -1 ELSE 1 END", INT, False)
    operator = ProjectRows(scan, [attribute.ref for attribute in attributes], [(sign, value)])
    return Relation(
        operator,
        under(scan.table.name, attributes),
        "retract",
        coordinates=coordinates_of(scan),
        sign=sign,
    )


def changes(selects: Selects, relation: Relation, key: Sequence[str] = ()) -> Relation:
    """Rows of an upsert relation as changes, behind a cut: what stands above may have state of its own."""
    made = _changes(selects, relation)
    return stages.cut(selects, made, list(key) or list(relation.key))


def written_out(selects: Selects, relation: Relation) -> Relation:
    """Rows of an upsert relation as changes that leave the statement, each with what it does."""
    if not relation.key:
        relation = _the_only_row(selects, relation)
    return replace(_changes(selects, relation, selects.refs.new("$op")), changelog="retract")


def _the_only_row(selects: Selects, relation: Relation) -> Relation:
    """One row that changes, with a key that is always the same."""
    only = Attribute("$only", selects.refs.new("$only"), INT, False, hidden=True)
    kept = [attribute.ref for _, attribute in relation.scope.columns]
    operator = ProjectRows(relation.operator, kept, [(only.ref, Typed("0", INT, False))])
    scope = Scope((*relation.scope.columns, ("", only)))
    return replace(relation, operator=operator, scope=scope, key=(only.ref,))


def _changes(selects: Selects, relation: Relation, kind: str | None = None) -> Relation:
    if not relation.key:
        raise InvalidRequest(
            "The query has one row that changes, without a key, and reads it again.",
            "Write it as one query.",
        )
    relation = stages.whole(selects, relation, relation.key)
    sign = selects.refs.new("$sign")
    operator = RowChanges(
        relation.operator,
        relation.key,
        relation.coordinates,
        relation.op,
        sign,
        maps_of(relation.scope),
        kind,
    )
    stay = [(alias, a) for alias, a in relation.scope.columns if a.ref not in relation.coordinates]
    scope = replace(relation.scope, columns=tuple(stay))
    return replace(
        relation,
        operator=operator,
        scope=scope,
        changelog="append",
        op=kind,
        key=(),
        coordinates=(),
        events={},
        sign=sign,
        stateful=True,
    )


def one_of_each(selects: Selects, relation: Relation, key: Sequence[str]) -> Relation:
    """Rows that change, told apart by fewer columns than their key: of those that are the same then, the one
    whose other columns of the key are the greatest."""
    others = [ref for ref in relation.key if ref not in key]
    attributes = {a.ref: a for _, a in relation.scope.columns}
    names = ", ".join(attributes[ref].name for ref in others if ref in attributes)
    selects.warn(
        f"Rows that differ in {names} only are one row of the table: the one with the greatest {names}."
    )
    return _greatest_of_each(selects, relation, key)


def rekeyed(selects: Selects, relation: Relation, key: Sequence[str]) -> Relation:
    """The rows of a table by other columns than its key: a row whose columns of these change is retracted
    where it was. Of several rows that have the same, the one whose own key is the greatest."""
    attributes = {a.ref: a for _, a in relation.scope.columns}
    own, other = (", ".join(attributes[ref].name for ref in refs) for refs in (relation.key, key))
    selects.warn(
        f"Rows that are told apart by {own} are written by {other}: a row whose {other} changes is deleted "
        f"where it was. Of rows with the same {other} the table has the one with the greatest {own}. Every "
        "row is kept for that, for ever."
    )
    return _greatest_of_each(selects, relation, key)


def _greatest_of_each(selects: Selects, relation: Relation, key: Sequence[str]) -> Relation:
    others = [ref for ref in relation.key if ref not in key]
    attributes = {a.ref: a for _, a in relation.scope.columns}
    made = changes(selects, relation, key)
    assert made.sign is not None
    rest = [ref for ref in dict.fromkeys([*others, *attributes]) if ref not in key and made.scope.by_ref(ref)]
    operator, op = greatest_left(selects, made, key, rest)
    return replace(relation, operator=operator, key=tuple(key), op=op, coordinates=(), stateful=True)


def greatest_left(
    selects: Selects, relation: Relation, key: Sequence[str], rest: Sequence[str]
) -> tuple[Operator, str]:
    """Of rows with signs, for each key the greatest of those that are left; and the column that says whether
    one is."""
    check_maps(relation, rest)
    assert relation.sign is not None
    kinds = {a.ref: a.type for _, a in relation.scope.columns}
    best, live, op = (selects.refs.new(name) for name in ("$best", "$live", "$op"))
    sign = quote(relation.sign)
    values = [(live, Typed(f"sum({sign})", BIGINT, False))]
    if rest:
        fields = ", ".join(f"'f{n}', {quote(ref)}" for n, ref in enumerate(rest))
        whole = StructType([StructField(f"f{n}", kinds[ref]) for n, ref in enumerate(rest)])
        values.append((best, Typed(best_left(f"named_struct({fields})", sign, True), whole)))
    grouped = [(ref, column(ref, kinds[ref], True)) for ref in key]
    operator = AggregateRows(relation.operator, grouped, values, taken_back=True)
    added = [(ref, Typed(f"{quote(best)}.f{n}", kinds[ref])) for n, ref in enumerate(rest)]
    return ProjectRows(operator, list(key), [*added, (op, live_op(live))]), op


def check_maps(relation: Relation, refs: Sequence[str]) -> None:
    for ref in sorted(maps_of(relation.scope) & set(refs)):
        raise InvalidRequest(
            f"Column '{ref.rpartition('#')[0]}' is a MAP, or has one, and rows that change are compared: a "
            "MAP cannot be.",
            "Leave it out, or take what is needed from it: m['key'].",
        )
