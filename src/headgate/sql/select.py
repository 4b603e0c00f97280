"""SELECT, step by step: FROM, WHERE, GROUP BY, HAVING, the columns, DISTINCT; and UNION ALL of them."""

from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql import changes, dedup, distinct, exists, grouping, joins, rolling, unions, unnest, windows
from headgate.sql.conditions import conjuncts
from headgate.sql.dialect import WindowTable
from headgate.sql.expressions import Compiler
from headgate.sql.functions import Session
from headgate.sql.lake import check_no_lake
from headgate.sql.operators import FilterRows, ProjectRows, ScanRows
from headgate.sql.refusals import check_said, refuse
from headgate.sql.relation import (
    Numbered,
    Refs,
    Relation,
    coordinates_of,
    filtered_op,
    refuse_changing,
    refuse_moving,
)
from headgate.sql.scope import Attribute, Origin, Scope, under
from headgate.sql.statements import CreateView
from headgate.sql.tables import OP, SYSTEM, TableInfo, Tables
from headgate.sql.typed import Typed
from headgate.sql.types import INT

_CLAUSES = {
    "order": (
        "ORDER BY",
        "A stream has no end to be sorted at. ROW_NUMBER() OVER (… ORDER BY …) = 1 keeps one row of a key.",
    ),
    "limit": ("LIMIT inside a query", "A stream has no first rows. At the end of a SELECT it is fine."),
    "offset": ("OFFSET", "A stream has no first rows."),
    "qualify": ("QUALIFY", "Put ROW_NUMBER() into a subquery, and WHERE its name = 1 outside."),
    "laterals": ("LATERAL VIEW", "Write CROSS JOIN UNNEST(…)."),
    "into": ("SELECT INTO", "Write INSERT INTO."),
    "sample": ("TABLESAMPLE", "Filter by a hash of the key: WHERE MOD(ASCII(MD5(k)), 10) = 0."),
    "locks": ("FOR UPDATE", ""),
    "cluster": ("CLUSTER BY", ""),
    "distribute": ("DISTRIBUTE BY", ""),
    "sort": ("SORT BY", ""),
    "pivots": ("PIVOT", "Write SUM(CASE WHEN k = 'a' THEN v END) AS a."),
}
_KNOWN = {
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "distinct",
    "with_",
    "operation_modifiers",
    "windows",
}
_MAX_DEPTH = 20


class Selects:
    """Plans queries against the tables that there are. `warnings` gathers what users should know."""

    def __init__(
        self,
        tables: Tables,
        zone: str,
        ttl_ms: int | None,
        default_delay_ms: int,
        refs: Refs,
        by_key: bool = False,
    ) -> None:
        self.tables = tables
        self.session = Session(zone)
        self.ttl_ms = ttl_ms or None
        self.default_delay_ms = default_delay_ms
        self.refs = refs
        self.warnings: list[str] = []
        #: How many internal topics the query goes through.
        self.stages = 0
        #: How many queries around this place gather rows, views and CTEs included.
        self.gathering = 0
        #: Whether the rows go into a table that keeps the last row of each key.
        self.by_key = by_key
        #: Whether the rows of the query at this place go there as they are.
        self._as_is = by_key
        #: See `planned` and its options.
        self.bounded, self.first_at_once, self.replaceable = False, True, False
        #: Whether a first row that may be replaced was planned.
        self.replaced = False
        #: Whether the rows of FROM, filtered, are those of the whole query.
        self.direct = False
        self._direct_below = True
        self._ctes: list[dict[str, exp.CTE]] = []
        self._views: list[str] = []

    def check_plain(self, relation: Relation, what: str) -> None:
        """Rows that do not change, and wait for nothing."""
        refuse_changing(relation, what)
        self.check_waiting(relation, what)

    def check_waiting(self, relation: Relation, what: str) -> None:
        """Rows that wait for nothing."""
        if relation.numbered or relation.session is not None:
            raise InvalidRequest(
                f"{what} of a ROW_NUMBER() without its `= 1`, or of a SESSION without its GROUP BY.",
                "Put that into a subquery of its own.",
            )

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)

    def compiler(self, scope: Scope) -> Compiler:
        return Compiler(scope, self.session)

    # --- queries

    def query(self, tree: exp.Expr) -> Relation:
        if isinstance(tree, exp.Subquery):
            self._check_clauses(tree, {"this", "alias"})
            return self.query(tree.this)
        ctes = {cte.alias: cte for cte in tree.ctes} if isinstance(tree, exp.Query) else {}
        with_ = tree.args.get("with_")
        if with_ is not None and with_.args.get("recursive"):
            refuse("WITH RECURSIVE is not supported.", tree)
        self._ctes.append(ctes)
        try:
            if isinstance(tree, exp.Union):
                self._check_clauses(tree, {"this", "expression", "distinct", "with_"})
                self._as_is = self._direct_below = False
                return unions.union(self, tree)
            if isinstance(tree, exp.SetOperation):
                refuse(f"{type(tree).__name__.upper()} is not supported: only UNION ALL is.", tree)
            if not isinstance(tree, exp.Select):
                refuse(f"{type(tree).__name__} is not a query that is known.", tree, "Write SELECT … FROM ….")
            return self._select(tree)
        finally:
            self._ctes.pop()

    def _check_clauses(self, tree: exp.Expr, known: set[str]) -> None:
        for name, value in tree.args.items():
            if value and name not in known:
                clause, instead = _CLAUSES.get(name, (name.rstrip("_").upper(), ""))
                refuse(f"{clause} is not supported.", tree, instead)

    def _select(self, tree: exp.Select) -> Relation:
        gathers, as_is, direct = _gathers(tree), self._as_is, self._direct_below
        self.gathering += gathers
        try:
            return self._selected(tree)
        finally:
            self.gathering -= gathers
            self._as_is, self._direct_below = as_is, direct

    def _selected(self, tree: exp.Select) -> Relation:
        self._check_clauses(tree, _KNOWN)
        source = tree.args.get("from_")
        if source is None:
            refuse("a query reads a table: FROM is missing.", tree)
        conditions = conjuncts(tree.args["where"].this) if tree.args.get("where") is not None else []
        plain = not (_gathers(tree) or tree.args.get("joins") or isinstance(source.this, WindowTable))
        direct = self._direct_below and plain
        self._direct_below = direct and not conditions
        relation, conditions = self._from(tree, source.this, conditions)
        self.direct = direct
        relation = self._where(relation, conditions)
        self.direct = False
        if tree.args.get("group") is not None or tree.args.get("having") is not None or _has_aggregate(tree):
            relation = grouping.group(self, relation, tree)
        elif relation.session is not None:
            refuse(
                "SESSION windows are made by GROUP BY window_start, window_end.",
                tree,
                "Add it, with an aggregate.",
            )
        else:
            named = rolling.named_windows(tree.args.get("windows") or [])
            relation = self._columns(relation, tree.expressions, named)
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on") is not None:
                refuse("DISTINCT ON is not supported.", tree, "ROW_NUMBER() = 1 keeps one row of a key.")
            relation = distinct.distinct(self, relation)
        return relation

    # --- FROM

    def _from(
        self, query: exp.Select, source: exp.Expr, conditions: list[exp.Expr]
    ) -> tuple[Relation, list[exp.Expr]]:
        more: list[exp.Join] = query.args.get("joins") or []
        as_is = self._as_is and not _gathers(query)
        self._as_is = as_is and not more and not conditions
        relation = self.table(source)
        self._as_is = False
        for join in more:
            if isinstance(join.this, exp.Unnest):
                # Rows are numbered before they are taken apart.
                relation, conditions = dedup.kept(self, relation, conditions)
                self.check_waiting(relation, "UNNEST")
                relation = unnest.unnest(self, relation, join)
            elif isinstance(join.this, exp.Lateral):
                refuse("LATERAL is not supported.", join, "CROSS JOIN UNNEST(…) takes arrays apart.")
            else:
                last = as_is and join is more[-1]
                relation, conditions = joins.join(self, relation, join, conditions, last)
        return relation, conditions

    def table(self, tree: exp.Expr) -> Relation:
        """What stands in FROM, under its alias."""
        if isinstance(tree, WindowTable):
            return windows.assign(self, tree)
        if isinstance(tree, exp.Subquery):
            self._check_clauses(tree, {"this", "alias"})
            return _aliased(self.query(tree.this), tree)
        if isinstance(tree, exp.Unnest):
            refuse(
                "UNNEST stands beside the table whose array it takes apart: FROM t CROSS JOIN UNNEST(t.a).",
                tree,
            )
        if isinstance(tree, exp.Values):
            refuse("VALUES is not a stream.", tree, "Produce the rows into a topic, and read that.")
        if not isinstance(tree, exp.Table):
            refuse(f"{type(tree).__name__} cannot be read from.", tree)
        if tree.args.get("version") is not None:
            refuse(
                "FOR SYSTEM_TIME AS OF stands behind JOIN: FROM f JOIN d FOR SYSTEM_TIME AS OF f.t ON ….",
                tree,
            )
        if isinstance(tree.this, exp.Func):
            refuse(
                f"table function {tree.this.name} is not known.", tree, "Windows are FROM TABLE(TUMBLE(…))."
            )
        self._check_clauses(tree, {"this", "alias", "db", "catalog"})
        name = ".".join(part.name for part in tree.parts)
        if tree.args.get("db") is not None:
            check_no_lake(tree)
            refuse(
                f"a topic whose name has dots is written in backticks: `{name}`.",
                tree,
            )
        return _aliased(self._named(name, tree), tree, name)

    def _named(self, name: str, tree: exp.Expr) -> Relation:
        for depth in range(len(self._ctes) - 1, -1, -1):
            if name in self._ctes[depth]:
                return self._cte(self._ctes[depth][name], depth)
        view = self.tables.view(name)
        if view is not None:
            return self._view(view, tree)
        table = self.tables.get(name)
        if table is None:
            near = get_close_matches(name, list(self.tables.names()), 1)
            refuse(
                f"there is no table '{name}'.",
                tree,
                f"Is it '{near[0]}'?"
                if near
                else "A topic with a schema is a table; CREATE TABLE makes one.",
            )
        return self._scan(table)

    def _cte(self, cte: exp.CTE, depth: int) -> Relation:
        check_said(cte, {"alias"})
        # A CTE sees those before it, never itself.
        saved, names = self._ctes, list(self._ctes[depth])
        before = {n: self._ctes[depth][n] for n in names[: names.index(cte.alias)]}
        self._ctes = [*self._ctes[:depth], before]
        try:
            relation = self.query(cte.this)
        finally:
            self._ctes = saved
        return _renamed(relation, [c.name for c in cte.args["alias"].columns], cte.alias)

    def _view(self, view: CreateView, tree: exp.Expr) -> Relation:
        if view.name in self._views or len(self._views) > _MAX_DEPTH:
            refuse(f"view '{view.name}' is made of itself.", tree)
        saved = self._ctes
        self._ctes = []
        self._views.append(view.name)
        try:
            relation = self.query(view.query.tree)
        finally:
            self._ctes = saved
            self._views.pop()
        return _renamed(relation, list(view.columns), view.name)

    def _scan(self, table: TableInfo) -> Relation:
        scan = ScanRows(self.refs.number(), table)
        attributes = [
            Attribute(
                f.name,
                scan.ref(f.name),
                f.dataType,
                f.nullable or (table.by_key and f.name not in table.primary_key),
                Origin(scan, f.name),
            )
            for f in table.columns.fields
        ]
        if table.changelog == "retract" and not table.primary_key:
            return changes.taken_back(self, scan, attributes)
        attributes += [
            Attribute(name, scan.ref(name), kind, False, Origin(scan, name), hidden=True)
            for name, kind in SYSTEM.items()
        ]
        upsert = table.by_key
        if upsert and not table.primary_key:
            raise InvalidRequest(
                f"Table '{table.name}' is an upsert table without a PRIMARY KEY.", "Declare its key."
            )
        return Relation(
            scan,
            under(table.name, attributes),
            "upsert" if upsert else "append",
            tuple(scan.ref(name) for name in table.primary_key) if upsert else (),
            scan.ref(OP) if upsert else None,
            coordinates_of(scan),
        )

    # --- WHERE, SELECT

    def _where(self, relation: Relation, conditions: list[exp.Expr]) -> Relation:
        relation, conditions = dedup.kept(self, relation, conditions)
        if relation.numbered:
            raise InvalidRequest(
                "ROW_NUMBER() keeps one row of each key: `= 1` must stand in the WHERE around it.",
                "Several rows of a key are kept with `<= 3`.",
            )
        nested = [condition for condition in conditions if exists.is_exists(condition)]
        for condition in conditions:
            if not any(condition is one for one in nested):
                relation = self.filter(relation, self.compiler(relation.scope).condition(condition))
        for condition in nested:
            relation = exists.keep(self, relation, condition)
        return relation

    def filter(self, relation: Relation, condition: Typed) -> Relation:
        refuse_moving(relation, [condition])
        if relation.changelog == "upsert":
            return filtered_op(relation, condition, self.refs)
        return replace(relation, operator=FilterRows(relation.operator, condition))

    def _columns(self, relation: Relation, trees: list[exp.Expr], named: dict[str, exp.Window]) -> Relation:
        over = rolling.Rolling(self, relation, named)
        compiler = Compiler(relation.scope, self.session, over.replaced)
        attributes: list[Attribute] = []
        added: list[tuple[str, Typed]] = []
        numbered: dict[str, Numbered] = {}
        for place, tree in enumerate(trees):
            if isinstance(tree, exp.Star) or (
                isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star)
            ):
                attributes += self._star(relation, tree)
                numbered |= relation.numbered
                continue
            name = _name(tree, place)
            inner = tree.this if isinstance(tree, exp.Alias) else tree
            if isinstance(inner, exp.Window) and not rolling.is_rolling(inner):
                attribute = Attribute(name, self.refs.new(name), INT, False)
                rank, relation = dedup.number(self, relation, inner)
                numbered[attribute.ref] = rank
                attributes.append(attribute)
                continue
            value = compiler.compile(inner)
            if value.attribute is not None:
                attributes.append(replace(value.attribute, name=name, hidden=False))
                if value.attribute.ref in relation.numbered:
                    numbered[value.attribute.ref] = relation.numbered[value.attribute.ref]
                continue
            ref = self.refs.new(name)
            attributes.append(Attribute(name, ref, value.type, value.nullable))
            added.append((ref, value))
        kept = [a.ref for a in attributes if a.ref not in dict(added) and a.ref not in numbered]
        # What the key, the order and the time of rows need goes along unseen.
        kept += [ref for ref in (*relation.key, *relation.coordinates, *relation.events) if ref not in kept]
        ranked = [ref for rank in numbered.values() for ref in (*rank.keys, *rank.order)]
        kept += [ref for ref in ranked if ref not in kept]
        if over.used:
            if numbered:
                refuse("ROW_NUMBER and an aggregate OVER (…) need a query each.", trees[0])
            relation = over.under()
        if numbered and relation.session is not None:
            refuse("ROW_NUMBER over a SESSION window is not supported.", trees[0])
        refuse_moving(relation, [value for _, value in added])
        operator = ProjectRows(relation.operator, kept, added)
        attributes += relation.scope.unseen(dict.fromkeys((*relation.key, *ranked)), attributes)
        return replace(relation, operator=operator, scope=under("", attributes), numbered=numbered)

    def _star(self, relation: Relation, tree: exp.Expr) -> list[Attribute]:
        star = tree.this if isinstance(tree, exp.Column) else tree
        if any(star.args.get(word) for word in ("except_", "except", "replace", "rename")):
            refuse("* with EXCEPT or REPLACE is not supported.", tree, "Name the columns.")
        table = tree.table if isinstance(tree, exp.Column) else None
        found = [attribute for _, attribute in relation.scope.visible(table or None)]
        if not found:
            refuse(f"there is no table '{table}' for {table}.*.", tree)
        return found


def _aliased(relation: Relation, tree: exp.Expr, name: str = "") -> Relation:
    alias = tree.args.get("alias")
    columns = [c.name for c in alias.columns] if alias is not None else []
    return _renamed(relation, columns, alias.name if alias is not None and alias.name else name)


def _renamed(relation: Relation, names: list[str], alias: str) -> Relation:
    if not names:
        return relation.under(alias)
    visible = [a for _, a in relation.scope.visible()]
    if len(names) != len(visible):
        raise InvalidRequest(f"'{alias}' names {len(names)} columns, the query has {len(visible)}.")
    renamed = [replace(a, name=n) for a, n in zip(visible, names, strict=True)]
    return replace(relation, scope=under(alias, [*renamed, *relation.scope.unseen(relation.key, renamed)]))


def _name(tree: exp.Expr, place: int) -> str:
    if isinstance(tree, exp.Alias):
        return str(tree.alias)
    if isinstance(tree, (exp.Column, exp.Dot)):
        return str(tree.name) if isinstance(tree, exp.Column) else str(tree.expression.name)
    return f"EXPR${place}"


def _gathers(tree: exp.Select) -> bool:
    """Whether it makes fewer rows of many: groups, different rows, the first ones."""
    said = any(tree.args.get(word) is not None for word in ("group", "having", "distinct"))
    return said or _has_aggregate(tree) or any(e.find(exp.Window) is not None for e in tree.expressions)


def _has_aggregate(tree: exp.Select) -> bool:
    return any(grouping.aggregates_in(e) for e in tree.expressions)
