"""Conditions of joins: what they speak of."""

from sqlglot import exp

from headgate.sql.durations import interval_ms
from headgate.sql.scope import Attribute, Scope
from headgate.sql.typed import Typed, call
from headgate.sql.types import BOOLEAN, is_time

#: What a comparison is from its other side.
FLIP: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    if isinstance(tree, exp.Paren):
        return conjuncts(tree.this)
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def find(node: exp.Column, scope: Scope) -> Attribute | None:
    parts = [part.name for part in node.parts]
    if len(parts) > 1 and scope.has_table(parts[0]):
        return scope.find(parts[1], parts[0])
    return scope.find(parts[0])


def sides_of(tree: exp.Expr, left: Scope, right: Scope) -> set[str]:
    """Which of the two a condition speaks of; `other` for a table that comes later."""
    sides: set[str] = set()
    for node in tree.find_all(exp.Column):
        one, other = find(node, left), find(node, right)
        parts = list(node.parts)
        if len(parts) > 1 and (left.has_table(parts[0].name) != right.has_table(parts[0].name)):
            one, other = (one, None) if left.has_table(parts[0].name) else (None, other)
        if one is not None and other is not None:
            find(node, left.joined(right))
        sides.add("left" if one is not None else "right" if other is not None else "other")
    return sides


def is_key(tree: exp.Expr, left: Scope, right: Scope) -> bool:
    if not isinstance(tree, exp.EQ):
        return False
    one, other = sides_of(tree.this, left, right), sides_of(tree.expression, left, right)
    return (one, other) in (({"left"}, {"right"}), ({"right"}, {"left"}))


def all_of(conditions: list[Typed]) -> Typed:
    return call("{sql}", BOOLEAN, conditions, sql=" AND ".join(c.sql for c in conditions))


def time_term(tree: exp.Expr, scope: Scope) -> tuple[Attribute, int] | None:
    """A column of time, plus so many milliseconds."""
    if isinstance(tree, exp.Paren):
        return time_term(tree.this, scope)
    if isinstance(tree, exp.Column):
        attribute = find(tree, scope)
        return (attribute, 0) if attribute is not None and is_time(attribute.type) else None
    if isinstance(tree, (exp.Add, exp.Sub)) and isinstance(tree.expression, exp.Interval):
        inner, shift = time_term(tree.this, scope), interval_ms(tree.expression)
        if inner is None or shift is None:
            return None
        return inner[0], inner[1] + (shift if isinstance(tree, exp.Add) else -shift)
    return None


def comparisons(tree: exp.Expr) -> list[tuple[type[exp.Expr], exp.Expr, exp.Expr]]:
    """What a condition compares; nothing if it is no comparison."""
    if isinstance(tree, exp.Between):
        return [(exp.GTE, tree.this, tree.args["low"]), (exp.LTE, tree.this, tree.args["high"])]
    if type(tree) in FLIP:
        return [(type(tree), tree.this, tree.expression)]
    return []
