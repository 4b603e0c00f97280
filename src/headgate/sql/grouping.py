"""GROUP BY, HAVING and the columns of an aggregate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import MapType
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql import signed, stages, windows
from headgate.sql.dialect import WINDOW_FUNCTIONS
from headgate.sql.expressions import Compiler
from headgate.sql.functions.aggregates import AGGREGATES, aggregate
from headgate.sql.functions.retracting import retracting
from headgate.sql.operators import ProjectRows
from headgate.sql.refusals import refuse, where
from headgate.sql.relation import Relation, live_op, refuse_moving
from headgate.sql.scope import Attribute, Scope, under
from headgate.sql.stateful import AggregateRows, SessionGap
from headgate.sql.typed import Typed, column
from headgate.sql.types import BIGINT, INT, quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects

_PARTS = {"START": "start", "END": "end", "ROWTIME": "time"}


def aggregates_in(tree: exp.Expr) -> bool:
    """Whether an aggregate stands in it; what is OVER (…) or in a query of its own is not one."""
    if isinstance(tree, (exp.Window, exp.Query)):
        return False
    if isinstance(tree, exp.Anonymous) and str(tree.name).upper() in AGGREGATES:
        return True
    return any(aggregates_in(child) for child in tree.iter_expressions())


@dataclass
class Groups:
    """What is grouped by, and what of it the columns use. Aggregates are added as they are met."""

    selects: Selects
    relation: Relation
    input: Compiler
    keys: list[tuple[str, Typed]] = field(default_factory=list)
    by_sql: dict[str, Attribute] = field(default_factory=dict)
    values: list[tuple[str, Typed]] = field(default_factory=list)
    by_value: dict[str, Typed] = field(default_factory=dict)
    window: windows.WindowSpec | None = None
    window_ref: str | None = None
    session: SessionGap | None = None
    parts: dict[str, Attribute] = field(default_factory=dict)

    def replaced(self, node: exp.Expr) -> Typed | None:
        """A key, a part of the window or an aggregate, as the column that it is above the aggregate."""
        if isinstance(node, exp.Filter) or (
            isinstance(node, exp.Anonymous) and str(node.name).upper() in AGGREGATES
        ):
            return self._aggregate(node)
        if isinstance(node, exp.Anonymous) and (part := self._part_call(node)) is not None:
            return part
        if isinstance(node, (exp.Literal, exp.Null, exp.Boolean, exp.Interval, exp.Var)) or aggregates_in(
            node
        ):
            return None
        try:
            value = self.input.compile(node)
        except InvalidRequest:
            if isinstance(node, exp.Column):
                raise
            return None
        if value.attribute is not None and value.attribute.window is not None:
            return self._part(value.attribute.window.part, value.attribute.window.ref, node)
        key = self.by_sql.get(value.sql)
        if key is not None:
            return column(key.ref, key.type, key.nullable, key)
        if isinstance(node, exp.Column):
            refuse(
                f"column '{node.name}' is neither in GROUP BY nor in an aggregate.",
                node,
                f"Add it to GROUP BY, or write MAX({node.name}).",
            )
        return None

    def _part(self, part: str, ref: str, node: exp.Expr) -> Typed:
        if ref != self.window_ref:
            refuse(f"window_{part} is not in GROUP BY.", node, "Write GROUP BY window_start, window_end.")
        attribute = self.parts[part]
        return column(attribute.ref, attribute.type, False, attribute)

    def _part_call(self, node: exp.Anonymous) -> Typed | None:
        """TUMBLE_START(t, INTERVAL …) and its kin, of the window in GROUP BY."""
        kind, _, part = str(node.name).upper().partition("_")
        if kind not in WINDOW_FUNCTIONS or part not in _PARTS:
            return None
        attribute = self.input.compile(node.expressions[0]).attribute if node.expressions else None
        wanted = (
            windows.spec(self.selects, self.relation, kind, attribute, node.expressions[1:], node)
            if attribute is not None
            else None
        )
        if self.window is None or wanted != self.window:
            refuse(
                f"{node.name} is of a window that is not in GROUP BY.", node, f"Add {kind}(…) to GROUP BY."
            )
        assert self.window_ref is not None
        return self._part(_PARTS[part], self.window_ref, node)

    def _aggregate(self, node: exp.Expr) -> Typed:
        condition: Typed | None = None
        call = node
        if isinstance(node, exp.Filter):
            call = node.this
            condition = self.input.condition(node.expression.this)
        if not isinstance(call, exp.Anonymous):
            refuse("FILTER belongs to an aggregate.", node)
        name = str(call.name).upper()
        trees = call.expressions
        distinct = len(trees) == 1 and isinstance(trees[0], exp.Distinct)
        if distinct:
            trees = trees[0].expressions
        if name == "COUNT" and len(trees) == 1 and isinstance(trees[0], exp.Star):
            trees = []
        if any(aggregates_in(tree) for tree in trees):
            refuse("an aggregate of an aggregate needs a query of its own.", node)
        args = [self.input.compile(tree) for tree in trees]
        if condition is not None:
            first = args[0] if args else Typed("1", INT, False)
            args = [
                replace(first, sql=f"CASE WHEN {condition.sql} THEN {first.sql} END", nullable=True),
                *args[1:],
            ]
        refuse_moving(self.relation, args)
        coordinates = ", ".join(quote(ref) for ref in self.relation.coordinates)
        try:
            if self.relation.sign is not None:
                sql, kind, nullable = retracting(name, args, distinct, quote(self.relation.sign))
            else:
                order = f"struct({coordinates})" if coordinates else ""
                sql, kind, nullable = aggregate(name, args, distinct, order)
        except InvalidRequest as error:
            raise InvalidRequest(where(node) + error.message, error.remedy) from error
        if sql not in self.by_value:
            ref = self.selects.refs.new(name.lower())
            secrets = frozenset().union(
                *(a.secrets for a in args), condition.secrets if condition else frozenset()
            )
            self.values.append((ref, Typed(sql, kind, nullable, secrets=secrets)))
            attribute = Attribute(name.lower(), ref, kind, nullable)
            self.by_value[sql] = column(ref, kind, nullable, attribute)
        return self.by_value[sql]


def group(selects: Selects, relation: Relation, tree: exp.Select) -> Relation:
    if relation.numbered:
        raise InvalidRequest("GROUP BY over a ROW_NUMBER() without its `= 1`.", "Add WHERE its name = 1.")
    if relation.changes:
        relation = signed.ready(selects, relation)
    groups = _groups(selects, relation, tree)
    refuse_moving(relation, [value for _, value in groups.keys])
    if relation.stateful and groups.window_ref is None:
        # Its result changes, that of a join, a ROW_NUMBER or a window below does not.
        relation = stages.cut(selects, relation, [])
        groups = _groups(selects, relation, tree)
    windowed = groups.window_ref is not None and relation.sign is None
    attributes, added, having = _columns(groups, tree)
    live = None
    if relation.sign is not None:
        live = selects.refs.new("$live")
        groups.values.append((live, Typed(f"sum({quote(relation.sign)})", BIGINT, False)))
    operator = AggregateRows(
        groups.relation.operator,
        groups.keys,
        groups.values,
        groups.window_ref,
        groups.session,
        relation.coordinates[0] if relation.coordinates else None,
        live is not None,
    )
    parts = (
        [(a.ref, windows.part_value(a, groups.window_ref)) for a in groups.parts.values()]
        if groups.window_ref
        else []
    )
    flat = [ref for ref, _ in (*groups.keys, *groups.values)]
    op = None
    if live is not None and (groups.keys or groups.window_ref):
        # A group whose rows were all taken back is gone.
        op = selects.refs.new("$op")
        parts.append((op, live_op(live)))
    above = ProjectRows(operator, flat, parts) if parts else operator
    everything = Scope(tuple(("", a) for a in _all(groups)))
    edges = [groups.parts[part].ref for part in ("start", "end")] if groups.window_ref else []
    result = Relation(
        above,
        everything,
        "append" if windowed else "upsert",
        () if windowed else (*edges, *(ref for ref, _ in groups.keys)),
        op,
        stateful=True,
    )
    if having is not None:
        result = selects.filter(result, having)
    if relation.sign is not None and groups.window_ref is not None:
        selects.warn("Windows over rows that change stay open for ever: a row may be taken back at any time.")
    elif not windowed and groups.keys:
        selects.warn(
            "GROUP BY without a window keeps every group for ever; sql.state-ttl does not free them. A "
            "window "
            "(TUMBLE …) does."
        )
    kept = [a.ref for a in attributes if a.ref not in dict(added)]
    kept += [ref for ref in result.key if ref not in kept]
    attributes += everything.unseen(result.key, attributes)
    return replace(result, operator=ProjectRows(result.operator, kept, added), scope=under("", attributes))


def _all(groups: Groups) -> list[Attribute]:
    found = [*groups.by_sql.values(), *groups.parts.values()]
    found += [v.attribute for v in groups.by_value.values() if v.attribute is not None]
    return found


def _groups(selects: Selects, relation: Relation, tree: exp.Select) -> Groups:
    groups = Groups(selects, relation, selects.compiler(relation.scope))
    clause = tree.args.get("group")
    if clause is None:
        return groups
    for word in ("grouping_sets", "cube", "rollup", "totals", "all"):
        if clause.args.get(word):
            refuse(
                f"GROUP BY {word.upper().replace('_', ' ')} is not supported.",
                tree,
                "Write one query for each, with UNION ALL.",
            )
    named = {e.alias: e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    for key in clause.expressions:
        if isinstance(key, (exp.GroupingSets, exp.Cube, exp.Rollup)):
            refuse(
                "GROUP BY GROUPING SETS is not supported.", tree, "Write one query for each, with UNION ALL."
            )
        _key(groups, key, named)
    if relation.session is not None:
        if groups.window_ref is None:
            refuse("a SESSION is grouped by window_start and window_end.", tree)
        wanted, given = set(relation.session.keys), {v.attribute.ref for _, v in groups.keys if v.attribute}
        if wanted != given or len(groups.keys) != len(wanted):
            refuse(
                "GROUP BY of a SESSION names window_start, window_end and the columns of its PARTITION "
                "BY, no others.",
                tree,
            )
    return groups


def _key(groups: Groups, key: exp.Expr, named: dict[str, exp.Expr]) -> None:
    if isinstance(key, exp.Literal):
        refuse("GROUP BY takes expressions, not their places.", key)
    if (
        isinstance(key, exp.Column)
        and not key.table
        and groups.relation.scope.find(key.name) is None
        and key.name in named
    ):
        key = named[key.name]
    kind = str(key.name).upper() if isinstance(key, exp.Anonymous) else ""
    if kind in WINDOW_FUNCTIONS:
        _window_key(groups, key, kind)
        return
    if aggregates_in(key):
        refuse("GROUP BY takes no aggregates.", key)
    value = groups.input.compile(key)
    if value.attribute is not None and value.attribute.window is not None:
        _use_window(groups, value.attribute, key)
        return
    if isinstance(value.type, MapType):
        refuse("a MAP cannot be grouped by.", key)
    if value.sql in groups.by_sql:
        return
    name = value.attribute.name if value.attribute is not None else key.name or "key"
    ref = groups.selects.refs.new(name)
    groups.keys.append((ref, value))
    groups.by_sql[value.sql] = Attribute(name, ref, value.type, value.nullable)


def _window_key(groups: Groups, key: exp.Expr, kind: str) -> None:
    """`GROUP BY TUMBLE(t, INTERVAL '1' HOUR)`."""
    if groups.window_ref is not None:
        refuse("GROUP BY takes one window.", key)
    attribute = groups.input.compile(key.expressions[0]).attribute if key.expressions else None
    if attribute is None:
        refuse(f"{kind} in GROUP BY takes a column of time and INTERVALs.", key)
    window = windows.spec(groups.selects, groups.relation, kind, attribute, key.expressions[1:], key)
    groups.relation, ref = windows.place(groups.selects, groups.relation, window)
    groups.window, groups.window_ref = window, ref
    if kind == "SESSION":
        groups.session = SessionGap(window.event, window.size_ms)
    groups.parts = {
        a.window.part: a for a in windows.window_attributes(groups.selects, window, ref) if a.window
    }


def _use_window(groups: Groups, attribute: Attribute, key: exp.Expr) -> None:
    """window_start, window_end or window_time of a table function."""
    assert attribute.window is not None
    ref = attribute.window.ref
    if groups.window_ref not in (None, ref):
        refuse("GROUP BY takes one window.", key)
    groups.window_ref = ref
    if groups.relation.session is not None:
        groups.session = groups.relation.session.gap
    if not groups.parts:
        found = [a for _, a in groups.relation.scope.columns if a.window is not None and a.window.ref == ref]
        for part in found:
            assert part.window is not None
            new = replace(part, ref=groups.selects.refs.new(part.name))
            groups.parts.setdefault(part.window.part, new)


def _columns(
    groups: Groups, tree: exp.Select
) -> tuple[list[Attribute], list[tuple[str, Typed]], Typed | None]:
    compiler = Compiler(Scope(()), groups.selects.session, groups.replaced)
    attributes: list[Attribute] = []
    added: list[tuple[str, Typed]] = []
    for place, item in enumerate(tree.expressions):
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Star) or (
            isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)
        ):
            refuse("SELECT * and GROUP BY do not go together.", tree, "Name the columns.")
        if isinstance(inner, exp.Window):
            refuse("ROW_NUMBER() over groups needs a query of its own.", inner)
        value = compiler.compile(inner)
        name = (
            str(item.alias)
            if isinstance(item, exp.Alias)
            else (inner.name if isinstance(inner, exp.Column) else f"EXPR${place}")
        )
        if value.attribute is not None:
            attributes.append(replace(value.attribute, name=name, window=None))
            continue
        ref = groups.selects.refs.new(name)
        attributes.append(Attribute(name, ref, value.type, value.nullable))
        added.append((ref, value))
    having = tree.args.get("having")
    return attributes, added, compiler.condition(having.this) if having is not None else None
