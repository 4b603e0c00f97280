"""EXISTS and NOT EXISTS within an interval of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headgate.sql import joins
from headgate.sql.conditions import conjuncts, sides_of
from headgate.sql.operators import FilterRows, ProjectRows
from headgate.sql.refusals import refuse
from headgate.sql.relation import Relation
from headgate.sql.scope import Scope
from headgate.sql.typed import Typed
from headgate.sql.types import BOOLEAN, quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects

_FORM = "Write [NOT] EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.t BETWEEN a.t AND a.t + INTERVAL '1' DAY)."


def is_exists(tree: exp.Expr) -> bool:
    return _inner(tree) is not None


def _inner(tree: exp.Expr) -> tuple[exp.Exists, bool] | None:
    """The EXISTS of a condition, and whether it stands behind NOT."""
    if isinstance(tree, exp.Paren):
        return _inner(tree.this)
    if isinstance(tree, exp.Not):
        found = _inner(tree.this)
        return None if found is None else (found[0], not found[1])
    return (tree, False) if isinstance(tree, exp.Exists) else None


def keep(selects: Selects, left: Relation, tree: exp.Expr) -> Relation:
    """The rows of `left` for which the condition holds, each once."""
    found = _inner(tree)
    assert found is not None
    node, negated = found
    query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
    if not isinstance(query, exp.Select) or any(
        value for word, value in query.args.items() if word not in ("expressions", "from_", "where")
    ):
        refuse("EXISTS takes a SELECT of one table with WHERE.", node, _FORM)
    right = selects.table(query.args["from_"].this)
    for side in (left, right):
        selects.check_plain(side, "EXISTS")
    where = query.args.get("where")
    own = [_qualified(c, right.scope) for c in conjuncts(where.this)] if where is not None else []
    met = []
    for condition in own:
        if sides_of(condition, Scope(()), right.scope) == {"right"}:
            right = selects.filter(right, selects.compiler(right.scope).condition(condition))
        else:
            met.append(condition)
    if not negated:
        return _joined(selects, left, right, met, "left_semi", node)
    there = selects.refs.new("$there")
    kept = [a.ref for _, a in right.scope.columns]
    marked = ProjectRows(right.operator, kept, [(there, Typed("true", BOOLEAN, False))])
    joined = _joined(selects, left, replace(right, operator=marked), met, "left", node)
    alone = Typed(f"{quote(there)} IS NULL", BOOLEAN, False)
    return replace(joined, operator=FilterRows(joined.operator, alone))


def _joined(
    selects: Selects, left: Relation, right: Relation, conditions: list[exp.Expr], how: str, node: exp.Expr
) -> Relation:
    joined = joins.within(selects, left, right, conditions, how, node)
    if joined is None:
        refuse("EXISTS needs an equality and a bound of time, on columns with a WATERMARK.", node, _FORM)
    return replace(joined, scope=left.scope, coordinates=left.coordinates, events=left.events)


def _qualified(tree: exp.Expr, scope: Scope) -> exp.Expr:
    """Names without a table are first of all those of the inner one."""
    made = tree.copy()
    for node in made.find_all(exp.Column):
        if not node.table and scope.find(node.name) is not None and scope.columns:
            node.set("table", exp.to_identifier(scope.columns[0][0], quoted=True))
    return made
