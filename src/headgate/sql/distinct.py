"""SELECT DISTINCT, of rows that stay and of rows that change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.sql import changes, signed
from headgate.sql.operators import ProjectRows, ScanRows
from headgate.sql.relation import Relation, event_column, live_op
from headgate.sql.scope import Attribute, Origin, Scope
from headgate.sql.stateful import AggregateRows, DistinctRows
from headgate.sql.tables import ROWTIME, SYSTEM
from headgate.sql.typed import Typed, column
from headgate.sql.types import BIGINT, quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects


def distinct(selects: Selects, relation: Relation) -> Relation:
    """Each combination of values once."""
    if relation.changes:
        return _of_changes(selects, relation)
    visible = [a for _, a in relation.scope.visible()]
    event: str | None = None
    if selects.ttl_ms is not None:
        scans = [s for s in relation.operator.walk() if isinstance(s, ScanRows)]
        if len(scans) == 1 and not relation.stateful:
            rowtime = Attribute(
                ROWTIME, scans[0].ref(ROWTIME), SYSTEM[ROWTIME], False, Origin(scans[0], ROWTIME)
            )
            chosen = scans[0].chosen_for
            if chosen in (None, ROWTIME):
                found = event_column(relation, rowtime, selects.default_delay_ms)
                event = found[0] if found is not None else None
        if event is None:
            selects.warn("DISTINCT keeps every row for ever: sql.state-ttl does not reach it in this query.")
    else:
        selects.warn("DISTINCT keeps every row for ever; SET 'sql.state-ttl' bounds it.")
    ttl = selects.ttl_ms if event is not None else None
    operator = DistinctRows(relation.operator, [a.ref for a in visible], event, ttl)
    return replace(relation, operator=operator, stateful=True)


def _of_changes(selects: Selects, relation: Relation) -> Relation:
    """Each combination of values once, for as long as a row has it."""
    visible = [a for _, a in relation.scope.visible()]
    made = signed.ready(selects, relation)
    assert made.sign is not None
    refs = list(dict.fromkeys(a.ref for a in visible))
    changes.check_maps(made, refs)
    attributes = {a.ref: a for a in visible}
    live, op = selects.refs.new("$live"), selects.refs.new("$op")
    operator = AggregateRows(
        made.operator,
        [(ref, column(ref, attributes[ref].type, True)) for ref in refs],
        [(live, Typed(f"sum({quote(made.sign)})", BIGINT, False))],
        taken_back=True,
    )
    selects.warn(
        "DISTINCT over rows that change keeps every row that came, with how often; sql.state-ttl does not "
        "free them."
    )
    return Relation(
        ProjectRows(operator, refs, [(op, live_op(live))]),
        Scope(tuple((alias, replace(a, origin=None, window=None)) for alias, a in relation.scope.visible())),
        "upsert",
        tuple(refs),
        op,
        stateful=True,
    )
