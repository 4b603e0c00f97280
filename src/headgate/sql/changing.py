"""Joins with a side whose rows change, and joins without a bound of time: which of them a query means."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.sql import lookups, meetings, signed, unmatched, updating
from headgate.sql.conditions import find, is_key, sides_of
from headgate.sql.refusals import refuse
from headgate.sql.relation import Relation
from headgate.sql.scope import Attribute, Scope
from headgate.sql.updating import Meeting

if TYPE_CHECKING:
    from headgate.sql.select import Selects


def join(
    selects: Selects,
    left: Relation,
    right: Relation,
    how: str,
    own: list[exp.Expr],
    bounded: bool,
    last_counts: bool,
    tree: exp.Join,
) -> Relation:
    """The join of two sides of which one changes, or that has no bound of time. `last_counts`: its rows go as
    they are into a table that keeps the last row of each key, so that others need not be known."""
    if how not in ("inner", "left"):
        refuse(f"{how.upper()} JOIN of rows that change is not supported.", tree, "INNER and LEFT are.")
    for side in (left, right):
        if side.changelog == "upsert" and not side.key:
            refuse("a join with a row that changes and has no key is not supported.", tree, "Add GROUP BY.")
    if how == "left":
        # One row for each of the left's: it must be known which of them there are.
        left, right = (signed.settled(selects, s) if s.key else s for s in (left, right))
    equal: list[exp.Expr] = []
    pairs: list[tuple[Attribute, Attribute]] = []
    others: list[exp.Expr] = []
    for condition in own:
        pair = _pair(condition, left.scope, right.scope)
        if pair is not None:
            equal.append(condition)
            pairs.append(pair)
        elif sides_of(condition, left.scope, right.scope) == {"right"}:
            right = selects.filter(right, selects.compiler(right.scope).condition(condition))
        else:
            others.append(condition)
    meeting = Meeting(equal, pairs, others)
    one = meeting.by(right.key) if right.changelog == "upsert" else None
    # Each row counts then, also those that are the same by what they are joined by.
    counted = selects.gathering > 0
    plain = left.changelog == "append" and left.sign is None
    if one is not None and left.changelog == "upsert":
        if set(left.key) == set(one.left):
            return updating.latest(selects, left, right, how, one)
        return lookups.join(selects, left, right, how, one, left.key)
    if one is not None and plain and last_counts and not one.others:
        return updating.latest(selects, left, right, how, one)
    if one is not None and plain and not (selects.by_key or counted or one.others):
        return _bag(selects, left, right, how, own)
    apart = bool(left.coordinates) or left.stateful
    if one is not None and plain and apart and (how == "left" or not counted):
        # No column is known to tell the left's rows apart: where they came from does.
        return lookups.join(selects, left, right, how, one, ())
    new = right.changelog == "append" and right.sign is None and not bounded
    by_key = plain or (left.changelog == "upsert" and set(left.key) == set(meeting.left))
    if new and by_key and pairs and not others and last_counts:
        # Of a right side that only takes new rows the last that came counts.
        return updating.latest(selects, left, right, how, meeting)
    if how == "left" and (counted or not selects.by_key):
        return _bag(selects, left, right, how, own)
    if how == "left" and right.changelog == "append" and right.sign is None:
        refuse(
            "this LEFT JOIN takes the last row of its right side for a table with a PRIMARY KEY: by "
            "equalities of columns and conditions on that side, with none in WHERE but on the left, in the "
            "outermost SELECT.",
            tree,
            "Gather its rows with GROUP BY, declare the PRIMARY KEY of the right table, or bound it, if no "
            "side changes: b.t BETWEEN a.t AND a.t + INTERVAL '1' HOUR.",
        )
    if how == "left":
        refuse(
            "LEFT JOIN of rows that change takes the row of its right side by that side's whole key, and its "
            "left has a key.",
            tree,
            "Join by the PRIMARY KEY of the right table, or write JOIN: it gives every pair.",
        )
    return meetings.join(selects, left, right, own)


def _bag(selects: Selects, left: Relation, right: Relation, how: str, own: list[exp.Expr]) -> Relation:
    """Every row of the join, as often as it is there; nothing tells two equal ones apart."""
    if how == "left":
        return unmatched.join(selects, left, right, own)
    return replace(meetings.join(selects, left, right, own), changelog="retract", key=())


def _pair(tree: exp.Expr, left: Scope, right: Scope) -> tuple[Attribute, Attribute] | None:
    """The two columns of `a.k = b.k`."""
    if not is_key(tree, left, right):
        return None
    one, other = tree.this, tree.expression
    if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
        return None
    if sides_of(one, left, right) == {"right"}:
        one, other = other, one
    found = find(one, left), find(other, right)
    return None if found[0] is None or found[1] is None else (found[0], found[1])
