"""Keep-first and keep-last: ROW_NUMBER() in a subquery, and `= 1` outside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import MapType
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.operators import ProjectRows
from headgate.sql.refusals import refuse
from headgate.sql.relation import Numbered, Relation, alter_for, event_column, refuse_changing
from headgate.sql.scope import Attribute
from headgate.sql.stateful import KeepBest, KeepFirst
from headgate.sql.tables import ROWTIME
from headgate.sql.typed import Typed
from headgate.sql.types import INT, is_time

if TYPE_CHECKING:
    from headgate.sql.select import Selects

_HOW = (
    "Write SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM t) WHERE n = 1."
)


def number(selects: Selects, relation: Relation, node: exp.Window) -> tuple[Numbered, Relation]:
    """What a ROW_NUMBER() OVER (…) numbers by; the relation has those columns then."""
    call = node.this
    if not isinstance(call, exp.Anonymous) or str(call.name).upper() != "ROW_NUMBER":
        refuse(
            f"{call.name or type(call).__name__} OVER (…) is not supported: ROW_NUMBER() is.",
            node,
            "Aggregates take GROUP BY, or a window function such as TUMBLE.",
        )
    refuse_changing(relation, "ROW_NUMBER")
    if node.args.get("spec") is not None:
        refuse("ROW_NUMBER takes no frame of rows.", node)
    order = node.args.get("order")
    keys = node.args.get("partition_by") or []
    if order is None or not keys:
        refuse("ROW_NUMBER needs PARTITION BY and ORDER BY.", node, _HOW)
    compiler = selects.compiler(relation.scope)
    added: list[tuple[str, Typed]] = []

    def ref_of(tree: exp.Expr) -> str:
        value = compiler.compile(tree)
        if isinstance(value.type, MapType):
            refuse("a MAP has no order and is no key.", tree)
        if value.attribute is not None:
            return value.attribute.ref
        ref = selects.refs.new("$key")
        added.append((ref, value))
        return ref

    key_refs = tuple(ref_of(key) for key in keys)
    directions = {bool(one.args.get("desc")) for one in order.expressions}
    if len(directions) > 1:
        refuse("ORDER BY of ROW_NUMBER goes one way: all ASC, or all DESC.", node)
    for one in order.expressions:
        # NULL is the least value: first when it goes up, last when it goes down.
        if bool(one.args.get("nulls_first")) == bool(one.args.get("desc")):
            refuse("NULLS FIRST and NULLS LAST are not supported: NULL is the least value.", node)
    order_refs = tuple(ref_of(one.this) for one in order.expressions)
    event = None
    if len(order.expressions) == 1:
        first = compiler.compile(order.expressions[0].this).attribute
        if (
            first is not None
            and is_time(first.type)
            and (first.origin is not None or first.ref in relation.events)
        ):
            event = first
    if added:
        columns = [attribute.ref for _, attribute in relation.scope.columns]
        relation = replace(relation, operator=ProjectRows(relation.operator, columns, added))
    return Numbered(key_refs, order_refs, directions.pop(), event), relation


def is_first(condition: exp.Expr) -> exp.Column | None:
    """The column of `n = 1`, `1 = n`, `n <= 1` or `n < 2`."""
    if isinstance(condition, exp.Paren):
        return is_first(condition.this)
    if not isinstance(condition, (exp.EQ, exp.LTE, exp.LT, exp.GTE)):
        return None
    left, right = condition.this, condition.expression
    if isinstance(condition, (exp.EQ, exp.GTE)) and isinstance(left, exp.Literal):
        left, right = right, left
    elif isinstance(condition, exp.GTE):
        return None
    wanted = "2" if isinstance(condition, exp.LT) else "1"
    if isinstance(left, exp.Column) and isinstance(right, exp.Literal) and str(right.this) == wanted:
        return left
    return None


def numbered_by(relation: Relation, condition: exp.Expr) -> str | None:
    """The ROW_NUMBER column that this condition wants to be 1."""
    column = is_first(condition)
    if column is None or not relation.numbered:
        return None
    attribute = relation.scope.find(column.name, column.table or None)
    return attribute.ref if attribute is not None and attribute.ref in relation.numbered else None


def kept(selects: Selects, relation: Relation, conditions: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
    """The relation after the `= 1` of its ROW_NUMBER, if one of the conditions is that; and the others."""
    for condition in conditions:
        ref = numbered_by(relation, condition)
        if ref is not None:
            others = [other for other in conditions if other is not condition]
            return keep(selects, relation, ref), others
    return relation, conditions


def keep(selects: Selects, relation: Relation, ref: str) -> Relation:
    """One row of each key."""
    rank = relation.numbered[ref]
    kept = replace(relation, numbered={})
    if rank.event is not None and not rank.greatest:
        found = event_column(relation, rank.event, selects.default_delay_ms)
        by = (*rank.order, *relation.coordinates)
        if found is None:
            found = _released_by(selects, rank.event)
        event, delay = found
        if selects.ttl_ms is None:
            selects.warn("ROW_NUMBER remembers every key for ever; SET 'sql.state-ttl' bounds it.")
        operator = KeepFirst(relation.operator, rank.keys, event, by, delay, selects.ttl_ms)
        return _with_one(selects, replace(kept, operator=operator, stateful=True), ref)
    if relation.stateful:
        raise InvalidRequest(
            "A keep-last, or a keep-first that is not ordered by event time, cannot stand above a join "
            "or a window: its "
            "result changes, theirs does not.",
            "Write the inner query into a table of its own.",
        )
    selects.warn("ROW_NUMBER keeps one row of each key for ever; sql.state-ttl does not free them.")
    best = KeepBest(relation.operator, rank.keys, (*rank.order, *relation.coordinates), rank.greatest)
    return _with_one(
        selects,
        replace(kept, operator=best, changelog="upsert", key=rank.keys, stateful=True, events={}),
        ref,
    )


def _released_by(selects: Selects, attribute: Attribute) -> tuple[str, int]:
    """Rows ordered by a time that has no watermark wait for another one: that of their records. No row is
    lost for being late by a time that nobody spoke of; but one that comes when its key has come out is not
    first any more."""
    assert attribute.origin is not None
    scan = attribute.origin.scan
    selects.warn(
        f"'{attribute.origin.column}' of table '{scan.table.name}' has no WATERMARK: the first row is "
        f"the least of those that "
        "have come when the time of their records has passed; one that comes later is left out even if "
        "it is less. "
        f"{alter_for(attribute)} says how late rows may be."
    )
    if scan.chosen is not None:
        return scan.ref(scan.chosen.column), scan.chosen.delay_ms
    return scan.choose(ROWTIME, selects.default_delay_ms, False), selects.default_delay_ms


def _with_one(selects: Selects, relation: Relation, ref: str) -> Relation:
    """The number itself, which is 1."""
    kept = [a.ref for _, a in relation.scope.columns if a.ref != ref]
    kept += [r for r in relation.key if r not in kept]
    one = Typed("1", INT, False, True, 1)
    return replace(relation, operator=ProjectRows(relation.operator, kept, [(ref, one)]))
