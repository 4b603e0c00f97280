"""Joins of streams: within an interval of time, or regular ones whose state a TTL bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql import changing, dedup, temporal
from headgate.sql.conditions import FLIP, all_of, comparisons, conjuncts, is_key, sides_of, time_term
from headgate.sql.durations import format_ms
from headgate.sql.operators import ScanRows
from headgate.sql.refusals import check_said, refuse
from headgate.sql.relation import Relation, alter_for, event_column
from headgate.sql.scope import Attribute, Origin, Scope
from headgate.sql.stateful import JoinRows, TimeBound
from headgate.sql.tables import ROWTIME, SYSTEM

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(frozen=True)
class Between:
    """left time against right time + [lower, upper], as the conditions of a join say it."""

    left: Attribute
    right: Attribute
    lower_ms: int | None = None
    upper_ms: int | None = None

    @property
    def whole(self) -> bool:
        return self.lower_ms is not None and self.upper_ms is not None


def join(
    selects: Selects, left: Relation, tree: exp.Join, conditions: list[exp.Expr], as_is: bool
) -> tuple[Relation, list[exp.Expr]]:
    """`left` with another table; of the WHERE, what is no condition of this join is left. `as_is`: but for
    the WHERE, the rows go as they are into a table that keeps the last row of each key."""
    how = _how(tree)
    if isinstance(tree.this, exp.Table) and tree.this.args.get("version") is not None:
        left, conditions = dedup.kept(selects, left, conditions)
        # Rows that are left out anyway need no version.
        mine = [c for c in conditions if sides_of(c, left.scope, Scope(())) == {"left"}]
        for condition in mine:
            left = selects.filter(left, selects.compiler(left.scope).condition(condition))
        conditions = [c for c in conditions if not any(c is m for m in mine)]
        return temporal.join(selects, left, tree, how), conditions
    right = selects.table(tree.this)
    on = tree.args.get("on")
    own = conjuncts(on) if on is not None else []
    left, conditions = dedup.kept(selects, left, conditions)
    if how == "inner":
        left, own = dedup.kept(selects, left, own)
        right, own = dedup.kept(selects, right, own)
        right, conditions = dedup.kept(selects, right, conditions)
    scope = left.scope.joined(right.scope)
    if how == "inner":
        mine = [c for c in conditions if sides_of(c, left.scope, right.scope) == {"left", "right"}]
        own += mine
        conditions = [c for c in conditions if not any(c is m for m in mine)]
    compiler = selects.compiler(scope)
    typed = [compiler.condition(c) for c in own]
    if not any(is_key(c, left.scope, right.scope) for c in own):
        refuse(
            "a join of streams needs an equality between columns of both.",
            tree,
            "Add ON a.key = b.key, or to WHERE.",
        )
    bounds = _bounds(own, left.scope, right.scope)
    if left.changes or right.changes or (how == "left" and not bounds):
        for side in (left, right):
            selects.check_waiting(side, "JOIN")
        if as_is:
            # The last row of a key is the last of those that are not left out.
            left, conditions = _filtered(selects, left, right, conditions)
        last_counts = as_is and not conditions
        return changing.join(selects, left, right, how, own, bool(bounds), last_counts, tree), conditions
    for side in (left, right):
        selects.check_plain(side, "JOIN")
    bound, ttl = _time_bound(selects, left, right, bounds, how, tree)
    operator = JoinRows(left.operator, right.operator, how, all_of(typed), bound, ttl)
    joined = Relation(
        operator,
        Scope(
            (
                *_nullable(left.scope, how in ("right", "full")),
                *_nullable(right.scope, how in ("left", "full")),
            )
        ),
        coordinates=(*left.coordinates, *right.coordinates),
        events={**left.events, **right.events},
        stateful=True,
    )
    return joined, conditions


def _filtered(
    selects: Selects, left: Relation, right: Relation, conditions: list[exp.Expr]
) -> tuple[Relation, list[exp.Expr]]:
    """The left's rows without those that a condition on them alone leaves out, and the other conditions."""
    others: list[exp.Expr] = []
    for condition in conditions:
        if condition.find(exp.Query) is None and sides_of(condition, left.scope, right.scope) == {"left"}:
            left = selects.filter(left, selects.compiler(left.scope).condition(condition))
        else:
            others.append(condition)
    return left, others


def within(
    selects: Selects, left: Relation, right: Relation, own: list[exp.Expr], how: str, node: exp.Expr
) -> Relation | None:
    """The join of two sides within a whole interval of time; None if the conditions say none."""
    if not any(is_key(c, left.scope, right.scope) for c in own):
        return None
    compiler = selects.compiler(left.scope.joined(right.scope))
    typed = [compiler.condition(c) for c in own]
    found = _bounded(selects, left, right, _bounds(own, left.scope, right.scope), True)
    if found is None:
        return None
    operator = JoinRows(left.operator, right.operator, how, all_of(typed), found[0], None)
    return Relation(operator, left.scope.joined(right.scope), stateful=True)


def _how(tree: exp.Join) -> str:
    check_said(tree, {"on", "side", "kind", "using", "method"})
    side, kind, method = tree.side.upper(), tree.kind.upper(), tree.method.upper()
    if method:
        refuse(f"{method} JOIN is not supported.", tree, "Say with ON what belongs together.")
    if tree.args.get("using"):
        refuse("JOIN … USING is not supported.", tree, "Write ON a.key = b.key.")
    if kind not in ("", "INNER", "OUTER", "CROSS") or side not in ("", "LEFT", "RIGHT", "FULL"):
        refuse(f"{side} {kind} JOIN is not supported.", tree, "INNER, LEFT, RIGHT and FULL are.")
    if side and tree.args.get("on") is None:
        refuse(f"{side} JOIN needs ON.", tree)
    return side.lower() or "inner"


def _nullable(scope: Scope, outer: bool) -> tuple[tuple[str, Attribute], ...]:
    if not outer:
        return scope.columns
    return tuple((alias, replace(attribute, nullable=True)) for alias, attribute in scope.columns)


# --- bounds of time


def _bounds(conditions: list[exp.Expr], left: Scope, right: Scope) -> list[Between]:
    scope = left.joined(right)
    refs = {attribute.ref for _, attribute in left.columns}
    found: dict[tuple[str, str], Between] = {}
    for condition in conditions:
        for kind, one, other in comparisons(condition):
            a, b = time_term(one, scope), time_term(other, scope)
            if a is None or b is None or (a[0].ref in refs) == (b[0].ref in refs):
                continue
            if a[0].ref not in refs:
                a, b, kind = b, a, FLIP[kind]
            shift = b[1] - a[1]
            pair = (a[0].ref, b[0].ref)
            known = found.get(pair, Between(a[0], b[0]))
            lower, upper = known.lower_ms, known.upper_ms
            if kind in (exp.GT, exp.GTE, exp.EQ):
                lower = shift if lower is None else max(lower, shift)
            if kind in (exp.LT, exp.LTE, exp.EQ):
                upper = shift if upper is None else min(upper, shift)
            found[pair] = replace(known, lower_ms=lower, upper_ms=upper)
    return sorted(found.values(), key=lambda between: not between.whole)


def _has_watermark(relation: Relation, attribute: Attribute) -> bool:
    if attribute.ref in relation.events:
        return True
    if attribute.origin is None:
        return False
    mark = attribute.origin.scan.table.watermark
    return attribute.origin.column == ROWTIME or (mark is not None and mark.column == attribute.origin.column)


def _time_bound(
    selects: Selects, left: Relation, right: Relation, bounds: list[Between], how: str, tree: exp.Join
) -> tuple[TimeBound | None, int | None]:
    found = _bounded(selects, left, right, bounds, how != "inner")
    if found is None:
        return _regular(selects, left, right, bounds, how, tree)
    bound, between = found
    if not between.whole:
        selects.warn(
            f"The join bounds '{between.left.name}' and '{between.right.name}' on one side only: rows of the "
            "other are kept for ever."
        )
    return bound, None


def _bounded(
    selects: Selects, left: Relation, right: Relation, bounds: list[Between], whole: bool
) -> tuple[TimeBound, Between] | None:
    """The first bound between columns with watermarks; `whole`: only one from both sides will do."""
    for between in bounds:
        if not (_has_watermark(left, between.left) and _has_watermark(right, between.right)):
            continue
        if whole and not between.whole:
            continue
        one = event_column(left, between.left, selects.default_delay_ms)
        other = event_column(right, between.right, selects.default_delay_ms)
        if one is not None and other is not None:
            return TimeBound(one[0], other[0], between.lower_ms, between.upper_ms), between
    return None


def _regular(
    selects: Selects, left: Relation, right: Relation, bounds: list[Between], how: str, tree: exp.Join
) -> tuple[TimeBound | None, int | None]:
    """No bound that frees state: `sql.state-ttl` does, by the times at which the records came."""
    alters = [
        alter_for(attribute)
        for between in bounds[:1]
        for relation, attribute in ((left, between.left), (right, between.right))
        if not _has_watermark(relation, attribute) and attribute.origin is not None
    ]
    remedy = (
        f"{' and '.join(alters)} would bound its state."
        if alters
        else "A condition such as b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR, on columns with a "
        "WATERMARK, would bound its state."
    )
    ttl = selects.ttl_ms
    bound = _ttl_bound(selects, left, right, ttl) if ttl is not None else None
    if how != "inner" and bound is None:
        refuse(
            f"{how.upper()} JOIN without a bound of time would wait for ever.",
            tree,
            f"{remedy} So does SET 'sql.state-ttl'.",
        )
    if bound is None:
        why = "for ever" if ttl is None else "for ever (sql.state-ttl does not reach it in this query)"
        selects.warn(f"The join runs as a regular join: the rows of both sides are kept {why}. {remedy}")
        return None, None
    assert ttl is not None
    selects.warn(
        f"The join runs as a regular join: rows whose records came more than {format_ms(ttl)} apart "
        f"(sql.state-ttl) do not "
        f"meet. {remedy}"
    )
    return bound, ttl


def _ttl_bound(selects: Selects, left: Relation, right: Relation, ttl_ms: int) -> TimeBound | None:
    refs: list[str] = []
    for relation in (left, right):
        scans = [step for step in relation.operator.walk() if isinstance(step, ScanRows)]
        if relation.stateful or len(scans) != 1 or scans[0].chosen_for not in (None, ROWTIME):
            return None
        refs.append(scans[0].ref(ROWTIME))
        rowtime = Attribute(ROWTIME, refs[-1], SYSTEM[ROWTIME], False, Origin(scans[0], ROWTIME))
        if event_column(relation, rowtime, selects.default_delay_ms) is None:
            raise InvalidRequest("A table has no $rowtime.")
    return TimeBound(refs[0], refs[1], -ttl_ms, ttl_ms)
