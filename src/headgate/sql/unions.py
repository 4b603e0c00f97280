"""UNION ALL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.sql import signed
from headgate.sql.operators import ScanRows, UnionRows
from headgate.sql.refusals import refuse
from headgate.sql.relation import SIDE, Relation, coordinate_type
from headgate.sql.scope import Attribute, under
from headgate.sql.tables import ROWTIME, SYSTEM, Watermark
from headgate.sql.typed import Typed, column, unify
from headgate.sql.types import INT

if TYPE_CHECKING:
    from headgate.sql.select import Selects


def union(selects: Selects, tree: exp.Union) -> Relation:
    """Rows of both queries, column by column, each made the type that both have in common."""
    if tree.args.get("distinct"):
        refuse("UNION would keep every row for ever, to know which came before.", tree, "Write UNION ALL.")
    sides = [selects.query(tree.this), selects.query(tree.expression)]
    for side in sides:
        selects.check_waiting(side, "UNION ALL")
    if any(side.changes for side in sides):
        # Signs go through: what is grouped above takes rows back, whichever side they are of.
        sides = [signed.signed(selects, side) for side in sides]
    listed = [[a for _, a in side.scope.visible()] for side in sides]
    if len(listed[0]) != len(listed[1]):
        refuse(f"UNION ALL of {len(listed[0])} and {len(listed[1])} columns.", tree)
    values: list[list[Typed]] = [[], []]
    attributes: list[Attribute] = []
    events: dict[str, int] = {}
    for one, other in zip(*listed, strict=True):
        pair = [column(a.ref, a.type, a.nullable, a) for a in (one, other)]
        left, right = unify(pair, f"Column '{one.name}' of UNION ALL")
        ref = selects.refs.new(one.name)
        attributes.append(Attribute(one.name, ref, left.type, one.nullable or other.nullable))
        values[0].append(left)
        values[1].append(right)
        delay = _event(sides, (one, other)) if sides[0].sign is None else None
        if delay is not None:
            events[ref] = delay
    coordinates: tuple[str, ...] = ()
    refs = [a.ref for a in attributes]
    sign = None
    if sides[0].sign is not None:
        sign = selects.refs.new("$sign")
        refs.append(sign)
        for side, chosen in zip(sides, values, strict=True):
            chosen.append(Typed(f"`{side.sign}`", INT, False))
    elif all(side.coordinates for side in sides):
        coordinates = _told_apart(selects, sides, values)
        refs += coordinates
    operator = UnionRows([side.operator for side in sides], values, refs)
    return Relation(
        operator,
        under("", attributes),
        coordinates=coordinates,
        events=events,
        stateful=any(side.stateful for side in sides),
        sign=sign,
    )


def _told_apart(selects: Selects, sides: list[Relation], values: list[list[Typed]]) -> tuple[str, ...]:
    """The coordinates of the union: those of both sides, which may be equal, and the side."""
    longest = max((side.coordinates for side in sides), key=len)
    for number, (side, chosen) in enumerate(zip(sides, values, strict=True)):
        chosen += [Typed(f"`{ref}`", coordinate_type(ref)) for ref in side.coordinates]
        missing = longest[len(side.coordinates) :]
        chosen += [Typed("0", INT, False) for _ in missing]
        chosen.append(Typed(str(number), INT, False))
    return (*(selects.refs.new(ref.rpartition("#")[0]) for ref in longest), selects.refs.new(SIDE))


def _event(sides: list[Relation], pair: tuple[Attribute, Attribute]) -> int | None:
    """A column is an event time of the union if it is one on both sides, on the very column."""
    delays: list[int] = []
    chosen: list[tuple[ScanRows, Watermark]] = []
    for side, attribute in zip(sides, pair, strict=True):
        if attribute.ref in side.events:
            delays.append(side.events[attribute.ref])
            continue
        origin = attribute.origin
        mark = origin.scan.table.watermark if origin is not None else None
        if origin is None or mark is None or mark.column != origin.column:
            return None
        if attribute.type != SYSTEM[ROWTIME] or origin.scan.chosen_for not in (None, mark.column):
            return None
        chosen.append((origin.scan, mark))
        delays.append(mark.delay_ms)
    for scan, mark in chosen:
        scan.choose(mark.column, mark.delay_ms, mark.declared)
    return max(delays)
