"""Aggregates OVER the rows of a key up to each row: within a span of time before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import MapType
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.durations import format_ms, interval_ms
from headgate.sql.functions.aggregates import AGGREGATES, aggregate
from headgate.sql.operators import (
    Building,
    Operator,
    ProjectRows,
    col,
    interval,
    packed,
    timed,
    unmarked,
    unpacked,
    with_secrets,
    without_secrets,
)
from headgate.sql.refusals import refuse, where
from headgate.sql.relation import Relation, alter_for, event_column, refuse_changing
from headgate.sql.scope import Attribute
from headgate.sql.stateful import FOR_EVER
from headgate.sql.typed import Typed, column
from headgate.sql.types import INT, quote

if TYPE_CHECKING:
    from headgate.sql.select import Selects

_FORM = (
    "It is written SUM(v) OVER (PARTITION BY k ORDER BY t RANGE BETWEEN INTERVAL '30' DAY PRECEDING AND "
    "CURRENT ROW)."
)
_AT = "$at"


@dataclass(frozen=True)
class Frame:
    """Which rows an aggregate is of: those of the same keys, up to `span_ms` before; None is all before."""

    keys: tuple[str, ...]
    event: str
    span_ms: int | None


@dataclass(eq=False)
class RollingRows(Operator):
    """Each row once, when the watermark has passed it, with aggregates of the rows before it and of its time.

    The rows are read twice and joined with themselves within the longest span; each row gathers its own.
    """

    child: Operator
    keys: Sequence[str]
    event: str
    span_ms: int | None
    row: Sequence[str]
    values: Sequence[tuple[str, Typed]]

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    @property
    def behind_ms(self) -> int:
        return self.child.behind_ms + (self.span_ms or 0)

    def due_ms(self, time_ms: int) -> int:
        return max(super().due_ms(time_ms), self.reach_ms(time_ms) + self.child.held_ms)

    def build(self, on: Building) -> DataFrame:
        each, before = self.child.build(on), self.child.build(on)
        apart = list(dict.fromkeys(self.row))
        rest = [c for c in each.columns if c not in (self.event, *apart) and c in on.mentioned]
        one, at = timed(self._ones(each, apart, rest), _AT, self.child.behind_ms, "$when")
        others, since = timed(before, self.event, self.child.behind_ms, "$since")
        same = [f"`$k{n}` <=> {quote(key)}" for n, key in enumerate(self.keys)]
        near = [f"{quote(since)} <= {quote(at)}"]
        if self.span_ms is not None:
            near.append(f"{quote(since)} >= {quote(at)} - {interval(self.span_ms)}")
        used = [value for _, value in self.values]
        pairs = one.join(with_secrets(others, used, on), F.expr(" AND ".join([*same, *near])), "inner")
        pairs, due = timed(pairs, _AT, self.behind_ms, "$due")
        groups = dict.fromkeys([due, _AT, *(f"$r{n}" for n in range(len(apart)))])
        found = pairs.groupBy(*(col(c) for c in groups)).agg(
            F.first("$row").alias("$row"), *(F.expr(value.sql).alias(ref) for ref, value in self.values)
        )
        event = col(_AT).alias(self.event, metadata=dict(each.schema[self.event].metadata))
        return without_secrets(found).select(
            event,
            *(col(f"$r{n}").alias(c) for n, c in enumerate(apart)),
            *unpacked("`$row`", rest),
            *(col(ref) for ref, _ in self.values),
        )

    def _ones(self, each: DataFrame, apart: Sequence[str], rest: Sequence[str]) -> DataFrame:
        """Each row that gathers, by other names than those that it gathers."""
        return each.select(
            col(self.event).alias(_AT),
            *(unmarked(c).alias(f"$r{n}") for n, c in enumerate(apart)),
            *(unmarked(k).alias(f"$k{n}") for n, k in enumerate(self.keys)),
            packed(rest).alias("$row"),
        )

    def describe(self) -> str:
        span = "all time" if self.span_ms is None else format_ms(self.span_ms)
        keys = ", ".join(quote(k) for k in self.keys)
        values = ", ".join(value.sql for _, value in self.values)
        return f"Rolling by ({keys}) over {span} before {quote(self.event)}: {values}"

    def state(self) -> str:
        if self.span_ms is None:
            return f"every row; {FOR_EVER}"
        return f"rows until the watermark is {format_ms(self.span_ms)} past them"


def is_rolling(node: exp.Expr) -> bool:
    """An aggregate OVER (…), not ROW_NUMBER."""
    call = node.this if isinstance(node, exp.Window) else None
    call = call.this if isinstance(call, exp.Filter) else call
    return isinstance(call, exp.Anonymous) and str(call.name).upper() in AGGREGATES


class Rolling:
    """The aggregates OVER of one SELECT: gathered as its columns are read, then put under them."""

    def __init__(self, selects: Selects, relation: Relation, named: dict[str, exp.Window]) -> None:
        self._selects = selects
        self._relation = relation
        self._named = named
        self._frames: dict[tuple[tuple[str, ...], str], int | None] = {}
        #: By their SQL: the column, the call, and its frame.
        self._values: dict[tuple[tuple[str, ...], str], dict[str, tuple[str, exp.Window, Frame]]] = {}
        self._added: list[tuple[str, Typed]] = []

    def replaced(self, node: exp.Expr) -> Typed | None:
        """The column that an aggregate OVER becomes."""
        if not isinstance(node, exp.Window) or not is_rolling(node):
            return None
        refuse_changing(self._relation, "An aggregate OVER (…)")
        frame = self._frame(node)
        value = self._value(node, frame, True)
        at = (frame.keys, frame.event)
        known = self._values.setdefault(at, {})
        if at in self._frames:
            spans = [self._frames[at], frame.span_ms]
            self._frames[at] = None if None in spans else max(s for s in spans if s is not None)
        else:
            self._frames[at] = frame.span_ms
        if value.sql not in known:
            ref = self._selects.refs.new(str(node.this.name or "over").lower())
            known[value.sql] = (ref, node, frame)
        ref = known[value.sql][0]
        return column(ref, value.type, value.nullable, Attribute(ref, ref, value.type, value.nullable))

    @property
    def used(self) -> bool:
        return bool(self._frames)

    def under(self) -> Relation:
        """The relation with these aggregates as columns."""
        if len(self._frames) > 2:
            raise InvalidRequest(
                "Aggregates OVER more than two different PARTITION BY in one query read their table "
                "too often.",
                "Write one of them into a table of its own.",
            )
        relation = self._relation
        self._selects.check_plain(relation, "An aggregate OVER (…)")
        if not relation.coordinates:
            raise InvalidRequest(
                "An aggregate OVER (…) needs rows of a table or of a join.",
                "Write the inner query into a table of its own.",
            )
        operator = relation.operator
        if self._added:
            kept = [a.ref for _, a in relation.scope.columns]
            operator = ProjectRows(operator, kept, self._added)
        for (keys, event), span in self._frames.items():
            if span is None:
                self._selects.warn("OVER without a bound (UNBOUNDED PRECEDING) keeps every row for ever.")
            # Rows are gathered for the longest span: a shorter one leaves some out.
            values = [
                (ref, self._value(node, frame, frame.span_ms != span))
                for ref, node, frame in self._values[keys, event].values()
            ]
            operator = RollingRows(operator, keys, event, span, relation.coordinates, values)
        return replace(relation, operator=operator, stateful=True)

    def _frame(self, node: exp.Window) -> Frame:
        name = node.args.get("alias")
        if name is not None:
            known = self._named.get(name.name.lower())
            if known is None:
                refuse(f"there is no WINDOW {name.name}.", node, "Write WINDOW w AS (…) after FROM.")
            source = known
        else:
            source = node
        order, spec = source.args.get("order"), source.args.get("spec")
        if order is None or len(order.expressions) != 1 or order.expressions[0].args.get("desc"):
            refuse("an aggregate OVER (…) is ordered by one column of time, upwards.", node, _FORM)
        compiler = self._selects.compiler(self._relation.scope)
        attribute = compiler.compile(order.expressions[0].this).attribute
        found = (
            None
            if attribute is None
            else event_column(self._relation, attribute, self._selects.default_delay_ms)
        )
        if attribute is None or found is None:
            remedy = (
                f"{alter_for(attribute)} gives it one."
                if attribute is not None and attribute.origin is not None
                else "It must come from a table as it is, with its WATERMARK."
            )
            refuse("OVER (… ORDER BY t) needs a column with a WATERMARK.", node, remedy)
        keys = tuple(self._key(compiler.compile(key), key) for key in source.args.get("partition_by") or [])
        if not keys:
            refuse("an aggregate OVER (…) needs PARTITION BY.", node, _FORM)
        return Frame(keys, found[0], self._span(spec, node))

    def _key(self, value: Typed, tree: exp.Expr) -> str:
        if isinstance(value.type, MapType):
            refuse("a MAP is no key.", tree)
        if value.attribute is not None:
            return value.attribute.ref
        for ref, known in self._added:
            if known.sql == value.sql:
                return ref
        self._added.append((self._selects.refs.new("$key"), value))
        return self._added[-1][0]

    def _span(self, spec: exp.Expr | None, node: exp.Expr) -> int | None:
        if spec is None:
            return None
        if spec.args.get("kind") != "RANGE":
            refuse("ROWS BETWEEN is not supported: a row may still come between two others.", node, _FORM)
        end, start = spec.args.get("end"), spec.args.get("start")
        if end not in (None, "CURRENT ROW") or spec.args.get("start_side") != "PRECEDING":
            refuse("OVER is of the rows BETWEEN … PRECEDING AND CURRENT ROW.", node, _FORM)
        if start == "UNBOUNDED":
            return None
        span = interval_ms(start) if isinstance(start, exp.Interval) else None
        if span is None or span < 0:
            refuse("RANGE BETWEEN takes an INTERVAL of a fixed length.", node, _FORM)
        return span

    def _value(self, node: exp.Window, frame: Frame, bounded: bool) -> Typed:
        call, condition = node.this, None
        compiler = self._selects.compiler(self._relation.scope)
        if isinstance(call, exp.Filter):
            condition = compiler.condition(call.expression.this)
            call = call.this
        name, trees = str(call.name).upper(), call.expressions
        distinct = len(trees) == 1 and isinstance(trees[0], exp.Distinct)
        if distinct:
            trees = trees[0].expressions
        if name == "COUNT" and len(trees) == 1 and isinstance(trees[0], exp.Star):
            trees = []
        args = [compiler.compile(tree) for tree in trees]
        near = None
        if bounded and frame.span_ms is not None:
            near = f"{quote(frame.event)} >= `{_AT}` - {interval(frame.span_ms)}"
        checks = [check for check in (near, condition.sql if condition is not None else None) if check]
        if checks:
            first = args[0] if args else Typed("1", INT, False)
            sql = f"CASE WHEN {' AND '.join(checks)} THEN {first.sql} END"
            args = [replace(first, sql=sql, nullable=True, attribute=None), *args[1:]]
        order = f"struct({', '.join(quote(ref) for ref in (frame.event, *self._relation.coordinates))})"
        try:
            sql, kind, nullable = aggregate(name, args, distinct, order)
        except InvalidRequest as error:
            raise InvalidRequest(where(node) + error.message, error.remedy) from error
        secrets = frozenset().union(
            *(a.secrets for a in args), condition.secrets if condition is not None else frozenset()
        )
        return Typed(sql, kind, nullable, secrets=secrets)


def named_windows(trees: Sequence[exp.Expr]) -> dict[str, exp.Window]:
    """WINDOW w AS (…), by name."""
    found: dict[str, exp.Window] = {}
    for tree in trees:
        if not isinstance(tree, exp.Window):
            refuse("WINDOW is written WINDOW w AS (PARTITION BY … ORDER BY …).", tree)
        found[tree.this.name.lower()] = tree
    return found
