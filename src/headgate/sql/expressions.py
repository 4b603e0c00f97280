"""Expressions of a query become typed pieces of Spark SQL. Every kind of node is known here, or refused by
name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructField,
    StructType,
    YearMonthIntervalType,
)
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.casts import cast
from headgate.sql.dialect import CastTo, JsonCall
from headgate.sql.durations import Span, span_of
from headgate.sql.functions import FUNCTIONS, Session
from headgate.sql.functions.documents import index, json_call
from headgate.sql.functions.numbers import arithmetic
from headgate.sql.functions.times import to_unit
from headgate.sql.refusals import WHY_NOT, check_said, refuse, refuse_function, refused, where
from headgate.sql.scope import Scope
from headgate.sql.typed import Typed, boolean, call, column, null, number, string, unify
from headgate.sql.types import (
    BOOLEAN,
    DATE,
    TIMESTAMP,
    SqlType,
    is_number,
    is_time,
    name_of,
    quote,
    text,
)

INTERVALS = (DayTimeIntervalType, YearMonthIntervalType)
# Names that are functions without parentheses, unless a column has them.
_BARE = ("CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP", "NOW")
_COMPARE: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
# What the compiler reads of a node, beside its operands. Anything else that is said must not be passed over.
_READ: dict[type[exp.Expr], frozenset[str]] = {
    exp.Like: frozenset({"negate"}),
    exp.Is: frozenset({"negate"}),
    exp.Between: frozenset({"low", "high"}),
    exp.In: frozenset({"query", "unnest"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Literal: frozenset({"is_string"}),
    exp.Interval: frozenset({"unit", "fraction_in_string"}),
    exp.Cast: frozenset({"to"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Array: frozenset({"bracket_notation"}),
    exp.Bracket: frozenset({"offset"}),
    CastTo: frozenset({"to", "safe"}),
    JsonCall: frozenset({"name", "path", "returning", "on_empty", "on_error"}),
}


@dataclass(frozen=True)
class Compiler:
    """Expressions at one place. `replaced` answers first: GROUP BY and windows put columns for expressions
    there."""

    scope: Scope
    session: Session
    replaced: Callable[[exp.Expr], Typed | None] | None = None

    def compile(self, node: exp.Expr) -> Typed:
        if self.replaced is not None and (found := self.replaced(node)) is not None:
            return found
        check_said(node, _READ.get(type(node), frozenset()))
        match node:
            case exp.Paren():
                return self.compile(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Dot():
                return self._field(self.compile(node.this), node.expression.name, node)
            case exp.Literal():
                return string(str(node.this)) if node.is_string else number(str(node.this))
            case exp.Boolean():
                return boolean(bool(node.this))
            case exp.Null():
                return null()
            case exp.Interval():
                return _interval(span_of(node))
            case exp.Neg():
                return self._negative(node)
            case exp.Not():
                return call("(NOT {0})", BOOLEAN, [self.condition(node.this)])
            case exp.And() | exp.Or():
                word = "AND" if isinstance(node, exp.And) else "OR"
                sides = [self.condition(node.this), self.condition(node.expression)]
                return call(f"({{0}} {word} {{1}})", BOOLEAN, sides)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._compare(_COMPARE[type(node)], node.this, node.expression)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                same = self._compare("<=>", node.this, node.expression)
                sql = same.sql if isinstance(node, exp.NullSafeEQ) else f"(NOT {same.sql})"
                return replace(same, sql=sql, nullable=False)
            case exp.Between():
                return self._between(node)
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._negated(node, self._is(node))
            case exp.Like():
                return self._negated(node, self._like(node, None))
            case exp.Escape():
                return self._negated(node.this, self._like(node.this, node.expression))
            case exp.Case():
                return self._case(node)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._arithmetic(_ARITHMETIC[type(node)], node)
            case exp.DPipe():
                return self._apply("CONCAT", [self.compile(node.this), self.compile(node.expression)], node)
            case CastTo():
                return cast(
                    self.compile(node.this), node.args["to"], bool(node.args.get("safe")), self.session
                )
            case exp.Cast():
                return self._typed_literal(node)
            case exp.Bracket() if self._is_map(node.this):
                return self._map(node, [self.compile(e) for e in node.expressions])
            case exp.Bracket():
                return index(self.compile(node.this), self.compile(node.expressions[0]))
            case exp.Array():
                return self._array(node)
            case JsonCall():
                return self._json(node)
            case exp.Anonymous():
                return self._call(node)
            case exp.Tuple():
                return self._row(node.expressions)
        for kind, why in WHY_NOT.items():
            if isinstance(node, kind):
                refuse(f"{why}.", node)
        raise refused(
            f"{type(node).__name__} is not known in an expression.", node, "See the reference of SQL."
        )

    def condition(self, node: exp.Expr) -> Typed:
        value = self.compile(node)
        if not isinstance(value.type, BooleanType):
            if value.known and value.literal is None:
                return value.cast(BOOLEAN)
            refuse(
                f"a condition is expected where {name_of(value.type)} stands.",
                node,
                "Compare it with something.",
            )
        return value

    # --- names

    def _column(self, node: exp.Column) -> Typed:
        parts = [part.name for part in node.parts]
        if len(parts) == 1 and parts[0].upper() in _BARE and self.scope.find(parts[0]) is None:
            return FUNCTIONS[parts[0].upper()].apply([], self.session)
        if isinstance(node.this, exp.Star):
            refuse("* is for SELECT and COUNT.", node)
        found, rest = None, parts
        if len(parts) > 1 and self.scope.has_table(parts[0]):
            found, rest = self.scope.find(parts[1], parts[0]), parts[2:]
        if found is None:
            found, rest = self.scope.find(parts[0]), parts[1:]
        if found is None:
            near = get_close_matches(parts[-1], self.scope.names(), 1)
            hint = f"Is it '{near[0]}'?" if near else f"There are {', '.join(self.scope.names()) or 'none'}."
            refuse(f"there is no column '{'.'.join(parts)}'.", node, hint)
        value = column(found.ref, found.type, found.nullable, found)
        for name in rest:
            value = self._field(value, name, node)
        return value

    def _field(self, value: Typed, name: str, node: exp.Expr) -> Typed:
        if not isinstance(value.type, StructType):
            refuse(f"{name_of(value.type)} has no field '{name}'.", node)
        for field in value.type.fields:
            if field.name == name:
                return call(f"{{0}}.{quote(name)}", field.dataType, [value], value.nullable or field.nullable)
        near = ", ".join(value.type.names)
        raise refused(f"there is no field '{name}'.", node, f"There are {near}.")

    # --- operators

    def _negative(self, node: exp.Neg) -> Typed:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            return number(f"-{node.this.this}")
        value = self.compile(node.this)
        if not is_number(value.type) and not isinstance(value.type, INTERVALS):
            refuse(f"{name_of(value.type)} has no negative.", node)
        return call("(- {0})", value.type, [value])

    def _compare(self, operator: str, left: exp.Expr, right: exp.Expr) -> Typed:
        one, other = self.compile(left), self.compile(right)
        return compare(operator, one, other, left)

    def _between(self, node: exp.Between) -> Typed:
        low = self._compare(">=", node.this, node.args["low"])
        high = self._compare("<=", node.this, node.args["high"])
        return call("({0} AND {1})", BOOLEAN, [low, high])

    def _in(self, node: exp.In) -> Typed:
        if node.args.get("query") is not None or node.args.get("unnest") is not None:
            refuse("IN takes a list of values here.", node, "Write a JOIN for rows of another table.")
        values = unify([self.compile(e) for e in (node.this, *node.expressions)], "IN")
        inner = ", ".join(v.sql for v in values[1:])
        return call("{sql}", BOOLEAN, values, sql=f"({values[0].sql} IN ({inner}))")

    def _negated(self, node: exp.Expr, value: Typed) -> Typed:
        return call("(NOT {0})", BOOLEAN, [value]) if node.args.get("negate") else value

    def _is(self, node: exp.Is) -> Typed:
        value, what = self.compile(node.this), node.expression
        if isinstance(what, exp.Null):
            return call("({0} IS NULL)", BOOLEAN, [value], False)
        if isinstance(what, exp.Boolean):
            value = self.condition(node.this)
            return call(f"({{0}} IS {'TRUE' if what.this else 'FALSE'})", BOOLEAN, [value], False)
        if what.name.upper() == "UNKNOWN" or what.sql().upper() == "UNKNOWN":
            return call("({0} IS NULL)", BOOLEAN, [self.condition(node.this)], False)
        if isinstance(what, exp.JSON) or what.name.upper() == "JSON":
            return self._apply("IS_JSON", [value], node)
        raise refused("IS takes NULL, TRUE, FALSE, UNKNOWN or JSON.", node)

    def _like(self, node: exp.Expr, escape: exp.Expr | None) -> Typed:
        if not isinstance(node, exp.Like):
            refuse(f"{type(node).__name__} with ESCAPE is not known.", node)
        value, pattern = self.compile(node.this), self.compile(node.expression)
        for side in (value, pattern):
            if not isinstance(side.type, StringType):
                refuse(f"LIKE compares STRINGs, not {name_of(side.type)}.", node, "Make it one with CAST.")
        mark = str(self.compile(escape).literal) if escape is not None else None
        if pattern.known and isinstance(pattern.literal, str):
            # A backslash is nothing special in a pattern that names no other character.
            free = mark if mark is not None else _free_mark(pattern.literal)
            return call(
                "({0} LIKE {pattern} ESCAPE {mark})", BOOLEAN, [value], pattern=pattern.sql, mark=text(free)
            )
        if mark is None:
            return call("({0} LIKE replace({1}, '\\\\', '\\\\\\\\'))", BOOLEAN, [value, pattern])
        return call("({0} LIKE {1} ESCAPE {mark})", BOOLEAN, [value, pattern], mark=text(mark))

    def _case(self, node: exp.Case) -> Typed:
        operand = node.this
        branches = node.args["ifs"]
        default = node.args.get("default")
        conditions = [
            self._compare("=", operand, branch.this) if operand is not None else self.condition(branch.this)
            for branch in branches
        ]
        results = [self.compile(branch.args["true"]) for branch in branches]
        results.append(self.compile(default) if default is not None else null())
        results = unify(results, "CASE")
        inner = " ".join(f"WHEN {c.sql} THEN {r.sql}" for c, r in zip(conditions, results[:-1], strict=True))
        sql = f"CASE {inner} ELSE {results[-1].sql} END"
        nullable = any(r.nullable for r in results)
        return call("{sql}", results[0].type, [*conditions, *results], nullable, sql=sql)

    def _arithmetic(self, operator: str, node: exp.Expr) -> Typed:
        left, right = self.compile(node.this), self.compile(node.expression)
        if isinstance(left.type, INTERVALS) or isinstance(right.type, INTERVALS):
            return self._shift(operator, left, right, node)
        if is_time(left.type) or is_time(right.type) or DATE in (left.type, right.type):
            refuse(
                f"{name_of(left.type)} {operator} {name_of(right.type)} is not known.",
                node,
                "TIMESTAMPDIFF(SECOND, a, b) is the time between, t + INTERVAL '1' DAY a later time.",
            )
        for side in (left, right):
            if not is_number(side.type) and not (side.known and side.literal is None):
                refuse(
                    f"'{operator}' takes numbers, not {name_of(side.type)}.", node, "Make it one with CAST."
                )
        return arithmetic(operator, left, right)

    def _shift(self, operator: str, left: Typed, right: Typed, node: exp.Expr) -> Typed:
        if isinstance(left.type, INTERVALS) and isinstance(right.type, INTERVALS) and operator in "+-":
            return call(f"({{0}} {operator} {{1}})", left.type, [left, right])
        if isinstance(left.type, INTERVALS) and operator == "+":
            left, right = right, left
        if isinstance(left.type, INTERVALS) or operator not in "+-":
            refuse(f"'{operator}' does not take an INTERVAL there.", node, "Write t + INTERVAL '1' DAY.")
        if isinstance(left.type, DateType):
            span = right.literal
            day = 86_400_000_000
            if isinstance(span, Span) and span.micros % day == 0 and not span.months:
                return call(f"date_add({{0}}, {operator}{span.micros // day})", DATE, [left])
            if not isinstance(right.type, YearMonthIntervalType):
                left = left.cast(TIMESTAMP)
        elif not is_time(left.type):
            refuse(
                f"{name_of(left.type)} {operator} INTERVAL is not known.",
                node,
                "Make a TIMESTAMP of it first.",
            )
        return call(f"({{0}} {operator} {{1}})", left.type, [left, right])

    # --- values

    def _typed_literal(self, node: exp.Cast) -> Typed:
        """`DATE '2026-01-31'`, `TIMESTAMP '2026-01-31 12:00:00'`."""
        kind = node.to.sql().upper()
        if not isinstance(node.this, exp.Literal) or not node.this.is_string:
            refuse(f"{kind} takes text in quotes.", node, "Or write CAST(x AS …).")
        if kind.startswith("DATE") and kind != "DATETIME":
            target = SqlType(DATE)
        elif kind.startswith("TIMESTAMP") and "TZ" not in kind:
            target = SqlType(TIMESTAMP)
        else:
            refuse(
                f"a literal of {kind} is not known.", node, "DATE '…', TIMESTAMP '…' and INTERVAL '…' are."
            )
        value = cast(string(str(node.this.this)), target, False, self.session)
        return replace(value, nullable=False)

    def _array(self, node: exp.Array) -> Typed:
        if not node.expressions:
            refuse("an ARRAY without elements has no type.", node)
        values = unify([self.compile(e) for e in node.expressions], "ARRAY")
        kind = ArrayType(values[0].type, any(v.nullable for v in values))
        return call("{sql}", kind, values, False, sql=f"array({', '.join(v.sql for v in values)})")

    def _is_map(self, node: exp.Expr) -> bool:
        """`MAP['k', 1]`: the word, unless it is a column."""
        return (
            isinstance(node, exp.Column) and node.name.upper() == "MAP" and self.scope.find(node.name) is None
        )

    def _map(self, node: exp.Expr, args: list[Typed]) -> Typed:
        if not args or len(args) % 2:
            refuse("MAP takes a key and a value for each entry.", node)
        keys, values = unify(args[::2], "MAP"), unify(args[1::2], "MAP")
        inner = ", ".join(f"{k.sql}, {v.sql}" for k, v in zip(keys, values, strict=True))
        return call("{sql}", MapType(keys[0].type, values[0].type), args, False, sql=f"map({inner})")

    def _row(self, nodes: list[exp.Expr]) -> Typed:
        values = [self.compile(e) for e in nodes]
        fields = [StructField(f"EXPR${i}", v.type, v.nullable) for i, v in enumerate(values)]
        inner = ", ".join(f"{text(f.name)}, {v.sql}" for f, v in zip(fields, values, strict=True))
        return call("{sql}", StructType(fields), values, False, sql=f"named_struct({inner})")

    def _json(self, node: JsonCall) -> Typed:
        on = {
            key: value if isinstance(value, str) else self.compile(value)
            for key in ("on_empty", "on_error")
            if (value := node.args.get(key)) is not None
        }
        returning = node.args.get("returning")
        kind: DataType | None = returning.spark if returning is not None else None
        return json_call(
            node.args["name"], self.compile(node.this), self.compile(node.args["path"]), kind, on
        )

    def _call(self, node: exp.Anonymous) -> Typed:
        name = str(node.name).upper()
        if name == "MAP":
            return self._map(node, [self.compile(e) for e in node.expressions])
        if name == "ROW":
            return self._row(node.expressions)
        if (
            name in ("CEIL", "FLOOR")
            and len(node.expressions) == 2
            and isinstance(node.expressions[1], exp.Var)
        ):
            return to_unit(name, self.compile(node.expressions[0]), node.expressions[1].name.upper())
        if name not in FUNCTIONS:
            refuse_function(name, node)
        units = name in ("TIMESTAMPADD", "TIMESTAMPDIFF")
        args = [
            string(e.name.upper()) if isinstance(e, exp.Var) or (units and i == 0) else self.compile(e)
            for i, e in enumerate(node.expressions)
        ]
        return self._apply(name, args, node)

    def _apply(self, name: str, args: list[Typed], node: exp.Expr) -> Typed:
        known = FUNCTIONS.get(name)
        if known is None:
            refuse_function(name, node)
        try:
            return known.apply(args, self.session)
        except InvalidRequest as error:
            raise InvalidRequest(where(node) + error.message, error.remedy) from error


def compare(operator: str, left: Typed, right: Typed, node: exp.Expr) -> Typed:
    """Both sides made one type; a TIMESTAMP meets a TIMESTAMP_LTZ as a moment of the session's zone."""
    try:
        one, other = unify([left, right], f"'{operator}'")
    except InvalidRequest as error:
        raise InvalidRequest(where(node) + error.message, error.remedy) from error
    if isinstance(one.type, MapType):
        refuse("MAPs cannot be compared.", node)
    return call(f"({{0}} {operator} {{1}})", BOOLEAN, [one, other], False if operator == "<=>" else None)


def _interval(span: Span) -> Typed:
    if span.months:
        return Typed(f"INTERVAL '{span.months}' MONTH", YearMonthIntervalType(), False, True, span)
    sign = "-" if span.micros < 0 else ""
    seconds, micros = divmod(abs(span.micros), 1_000_000)
    return Typed(f"INTERVAL '{sign}{seconds}.{micros:06d}' SECOND", DayTimeIntervalType(), False, True, span)


def _free_mark(pattern: str) -> str:
    """A character that is not in the pattern, to be its escape: Spark's default is a backslash."""
    return next((mark for mark in "!#~^|" if mark not in pattern), "\x01")
