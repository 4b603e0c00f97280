"""Keep-first and keep-last: ROW_NUMBER() in a subquery, and `= 1` outside."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql.types import MapType
from sqlglot import exp

from headgate.sql import signed, stages
from headgate.sql.operators import ProjectRows, ScanRows
from headgate.sql.refusals import refuse
from headgate.sql.relation import Numbered, Relation, alter_for, coordinates_of, event_column, maps_of
from headgate.sql.scope import Attribute, Scope, under
from headgate.sql.stateful import KeepBest, KeepEarliest, KeepFirst, KeepTop
from headgate.sql.tables import ROWTIME
from headgate.sql.typed import Typed
from headgate.sql.types import INT, is_time

if TYPE_CHECKING:
    from headgate.sql.select import Selects

MOST = 1000
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
        hidden = under("", [Attribute(ref, ref, v.type, v.nullable, hidden=True) for ref, v in added])
        relation = replace(
            relation,
            operator=ProjectRows(relation.operator, columns, added),
            scope=relation.scope.joined(hidden),
        )
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


def most(condition: exp.Expr) -> tuple[exp.Column, int] | None:
    """The column and the number of `n <= 3` or `n < 4`."""
    if isinstance(condition, exp.Paren):
        return most(condition.this)
    if not isinstance(condition, (exp.LTE, exp.LT)):
        return None
    left, right = condition.this, condition.expression
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Literal) or right.is_string:
        return None
    said = str(right.this)
    if not said.isdigit():
        return None
    return left, int(said) - isinstance(condition, exp.LT)


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
    for condition in conditions:
        found = most(condition) if relation.numbered else None
        attribute = relation.scope.find(found[0].name, found[0].table or None) if found is not None else None
        if found is not None and attribute is not None and attribute.ref in relation.numbered:
            if found[1] > MOST:
                refuse(f"ROW_NUMBER keeps {MOST} rows of a key at most.", condition)
            others = [other for other in conditions if other is not condition]
            return keep_top(selects, relation, attribute, found[1]), others
    return relation, conditions


def keep_top(selects: Selects, relation: Relation, number: Attribute, most: int) -> Relation:
    """So many rows of each key, told apart by their place."""
    if relation.changes:
        return signed.keep(selects, relation, number, most)
    rank = relation.numbered[number.ref]
    kept = replace(relation, numbered={})
    if kept.stateful:
        kept = _cut(selects, relation, rank.keys)
    selects.warn(f"ROW_NUMBER keeps {most} rows of each key for ever; sql.state-ttl does not free them.")
    order = (*rank.order, *kept.coordinates)
    top = KeepTop(kept.operator, rank.keys, order, rank.greatest, number.ref, most, maps_of(kept.scope))
    return replace(
        kept,
        operator=top,
        changelog="upsert",
        key=(*rank.keys, number.ref),
        coordinates=(),
        stateful=True,
        events={},
    )


def keep(selects: Selects, relation: Relation, ref: str) -> Relation:
    """One row of each key."""
    if relation.changes:
        attribute = relation.scope.by_ref(ref)
        assert attribute is not None
        return signed.keep(selects, relation, attribute, 1)
    rank = relation.numbered[ref]
    if rank.event is not None and not rank.greatest:
        if _is_declared(relation, rank.event) or selects.bounded or not selects.first_at_once:
            return _when_due(selects, relation, rank, rank.event, ref)
        if not (selects.replaceable and selects.direct):
            scan = _one_partition_each(selects, relation, rank)
            if scan is not None:
                return _as_it_comes(selects, relation, rank, rank.event, scan, ref)
            return _when_due(selects, relation, rank, rank.event, ref)
        selects.replaced = True
    return _best(selects, relation, rank, ref)


def _best(selects: Selects, relation: Relation, rank: Numbered, ref: str) -> Relation:
    """The least or the greatest row of each key, replaced when there is another."""
    kept = replace(relation, numbered={})
    if relation.stateful:
        # Its result changes, that of a join or a window below does not.
        kept = relation = _cut(selects, relation, rank.keys)
    selects.warn("ROW_NUMBER keeps one row of each key for ever; sql.state-ttl does not free them.")
    best = KeepBest(relation.operator, rank.keys, (*rank.order, *relation.coordinates), rank.greatest)
    return _with_one(
        selects,
        replace(kept, operator=best, changelog="upsert", key=rank.keys, stateful=True, events={}),
        ref,
    )


def _is_declared(relation: Relation, event: Attribute) -> bool:
    """Whether somebody said how late rows of this time may come."""
    if event.ref in relation.events or event.origin is None:
        return True
    mark = event.origin.scan.table.watermark
    return mark is not None and mark.column == event.origin.column and mark.declared


def _one_partition_each(selects: Selects, relation: Relation, rank: Numbered) -> ScanRows | None:
    """The table whose rows these are, if all rows of a key are in one partition of it: the first of them in
    the partition is first for good, whatever comes, and whenever it is read."""
    scans = [step for step in relation.operator.walk() if isinstance(step, ScanRows)]
    if relation.stateful or len(scans) != 1 or relation.coordinates[:2] != coordinates_of(scans[0]):
        return None
    keys = [relation.scope.by_ref(key) for key in rank.keys]
    columns = {key.origin.column for key in keys if key is not None and key.origin is not None}
    record = selects.tables.record_key(scans[0].table.name)
    return scans[0] if record and columns.issuperset(record) else None


def _as_it_comes(
    selects: Selects, relation: Relation, rank: Numbered, event: Attribute, scan: ScanRows, ref: str
) -> Relation:
    """The first row of each key in its partition, at once."""
    assert event.origin is not None
    name, column = scan.table.name, event.origin.column
    selects.warn(
        f"'{column}' of table '{name}' has no WATERMARK: of each key the first record comes out as soon as "
        f"it is read, the one with the least offset, even if a later one has a lesser '{column}'. "
        f"{alter_for(event)} makes it the least '{column}', which comes out when event time has passed it."
    )
    time = None
    if selects.ttl_ms is None:
        _warn_for_ever(selects)
    else:
        # As long as that a key is known; so late a row may be.
        time = scan.ref(scan.chosen.column) if scan.chosen else scan.choose(ROWTIME, selects.ttl_ms, False)
    delay = 0 if scan.chosen is None else scan.chosen.delay_ms
    operator = KeepEarliest(relation.operator, rank.keys, relation.coordinates, time, delay, selects.ttl_ms)
    return _with_one(selects, replace(relation, operator=operator, numbered={}, stateful=True), ref)


def _when_due(selects: Selects, relation: Relation, rank: Numbered, event: Attribute, ref: str) -> Relation:
    """The least row of each key, once event time has passed it."""
    if selects.bounded:
        # All rows are there, and no time is waited for.
        column, delay, ttl = rank.order[0], 0, None
    else:
        found = event_column(relation, event, selects.default_delay_ms)
        column, delay = found or _released_by(selects, event)
        ttl = selects.ttl_ms
        if ttl is None:
            _warn_for_ever(selects)
        if not _is_declared(relation, event):
            selects.warn(_why_waiting(selects, event, rank))
    by = (*rank.order, *relation.coordinates)
    operator = KeepFirst(relation.operator, rank.keys, column, by, delay, ttl)
    return _with_one(selects, replace(relation, operator=operator, numbered={}, stateful=True), ref)


def _warn_for_ever(selects: Selects) -> None:
    selects.warn("ROW_NUMBER remembers every key for ever; SET 'sql.state-ttl' bounds it.")


def _why_waiting(selects: Selects, event: Attribute, rank: Numbered) -> str:
    assert event.origin is not None
    name = event.origin.scan.table.name
    record = selects.tables.record_key(name)
    why = (
        f"PARTITION BY lacks ({', '.join(record)}), the key of the records of '{name}'"
        if record
        else f"nothing tells of which columns the keys of the records of '{name}' are"
    )
    return (
        f"The first row of a key waits until a later record of '{name}' has moved event time past it, so "
        f"that the last ones of a topic that gets no more do not come out: {why}, and rows of one key may "
        "be in several partitions. They come out at once into a table with PRIMARY KEY (the columns of "
        "PARTITION BY), where a lesser row replaces the one of before"
        + ("" if record else ", or if ALTER TABLE … SET ('key.fields' = '…') names those columns")
        + "; and with SET 'sql.snapshot.mode' = 'now' all that is there comes out, and the statement ends."
    )


def _cut(selects: Selects, relation: Relation, keys: tuple[str, ...]) -> Relation:
    """The rows behind a cut. Their number is made above it: what is below knows no such column."""
    below = [(alias, a) for alias, a in relation.scope.columns if a.ref not in relation.numbered]
    made = stages.cut(selects, replace(relation, scope=Scope(tuple(below)), numbered={}), keys)
    numbers = [(alias, a) for alias, a in relation.scope.columns if a.ref in relation.numbered]
    return replace(made, scope=made.scope.joined(Scope(tuple(numbers))))


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
