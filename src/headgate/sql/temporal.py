"""Temporal joins: each row with the version of a table that was valid at its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.classic.column import Column
from sqlglot import exp

from headgate.sql.conditions import FLIP, all_of, comparisons, conjuncts, is_key, time_term
from headgate.sql.durations import format_ms, span_of
from headgate.sql.operators import (
    DELAY,
    Building,
    FilterRows,
    Operator,
    ScanRows,
    col,
    interval,
    packed,
    timed,
    timed_as,
    unmarked,
    unpacked,
)
from headgate.sql.refusals import refuse
from headgate.sql.relation import Relation, alter_for, event_column
from headgate.sql.scope import Attribute, Origin, Scope
from headgate.sql.stateful import FOR_EVER
from headgate.sql.tables import BEFORE, HEADERS, OP_CODES, OP_HEADER, ROWTIME, SYSTEM
from headgate.sql.typed import Typed
from headgate.sql.types import BOOLEAN, quote, text

if TYPE_CHECKING:
    from headgate.sql.select import Selects


_UNTIL = "$until"
#: Longer than any version is valid; years 1 and 9999 are still times with it.
_AGES = "INTERVAL '36500000' DAY"


@dataclass(frozen=True)
class Age:
    """How long before a row its version may have begun: `most_ms`, or less than that if `below`."""

    most_ms: int
    below: bool = False
    #: Nobody bounded it but `sql.state-ttl`.
    ttl: bool = False

    def sql(self, until: str, at: str) -> str:
        return f"{quote(at)} {'<' if self.below else '<='} {quote(until)}"


@dataclass(eq=False)
class VersionJoin(Operator):
    """Each left row once, when the watermark has passed its time, with the version of the right that has the
    greatest (time, partition, offset) not after it. A version that deletes is none.

    Versions that are too old may be left out before the greatest is looked for: if that one is too old, so
    are the others. A delete is as old as its record.
    """

    left: Operator
    right: Operator
    how: str
    condition: Typed
    left_time: str
    right_time: str
    #: What tells left rows apart beside their time.
    row: Sequence[str]
    #: What orders versions of the same time.
    order: Sequence[str]
    op: str | None
    #: How old a version may be; None is any age.
    age: Age | None = None

    def __post_init__(self) -> None:
        self.inputs = (self.left, self.right)

    @property
    def behind_ms(self) -> int:
        # Versions are freed by their end, which the watermark passes as it passes rows of the left.
        return self.left.behind_ms

    def due_ms(self, time_ms: int) -> int:
        return max(super().due_ms(time_ms), self.left.reach_ms(time_ms) + self.left.held_ms)

    def build(self, on: Building) -> DataFrame:
        left, right = self.left.build(on), self.right.build(on)
        apart = list(dict.fromkeys([self.left_time, *self.row]))
        own = [c for c in left.columns if c not in apart and c in on.mentioned]
        theirs = [c for c in right.columns if c in on.mentioned]
        behind = self.left.behind_ms
        facts, at = timed(left, self.left_time, behind, "$at")
        changes, since = timed(right, self.right_time, behind, "$since")
        changes = self._with_end(changes, since)
        begun = (_as_event_time(changes, since) if changes.isStreaming else col(since)) <= col(at)
        condition = F.expr(f"{self.condition.sql} AND {self._until(since, at)}") & begun
        pairs = facts.join(changes, condition, self.how).drop(_UNTIL)
        versions = F.struct(*(col(c) for c in (self.right_time, *self.order)))
        pairs, due = timed(pairs, self.left_time, self.behind_ms, "$due")
        found = pairs.groupBy(*(col(c) for c in dict.fromkeys([due, *apart]))).agg(
            F.first(packed(own)).alias("$own"),
            F.max_by(packed(theirs), versions).alias("$version"),
            *([F.count(col(self.right_time)).alias("$versions")] if self.how == "left" else []),
        )
        if self.how == "left":
            # Else Spark leaves the join out where no column of the right is asked for, and the table with it:
            # event time would wait for one that is not read.
            found = found.filter("`$versions` >= 0").drop("$versions")
        valid = F.lit(True) if self.op is None else F.col(f"`$version`.{quote(self.op)}") == F.lit("u")
        if self.how == "inner":
            found = found.filter(valid)
        return found.select(
            *(timed_as(c, left) for c in apart),
            *unpacked("`$own`", own),
            *(F.when(valid, F.col(f"`$version`.{quote(c)}")).alias(c) for c in theirs),
        )

    def _with_end(self, changes: DataFrame, since: str) -> DataFrame:
        """The versions with the last time for which they may be asked, which carries their watermark.

        Spark leaves out rows that the watermark has passed, by that column, and frees them by it: so a
        version that comes late serves the rows that are not passed yet.
        """
        age = _AGES if self.age is None else interval(self.age.most_ms)
        until = F.expr(f"{quote(since)} + {age}")
        if not changes.isStreaming:
            return changes.withColumn(_UNTIL, until)
        others = (unmarked(c) if c == since else col(c) for c in changes.columns)
        return changes.select(until.alias(_UNTIL, metadata={DELAY: 0}), *others)

    def _until(self, since: str, at: str) -> str:
        if self.age is not None:
            return self.age.sql(_UNTIL, at)
        # Always so. It keeps the column, and is not such that Spark would look through all versions for those
        # to be freed.
        return f"({quote(at)} <= {quote(_UNTIL)} OR {quote(since)} > {quote(_UNTIL)})"

    def describe(self) -> str:
        old = "" if self.age is None else f", if it is at most {format_ms(self.age.most_ms)} old"
        return (
            f"Temporal join {self.how}: {self.condition.sql}, the version at {quote(self.left_time)} by "
            f"{quote(self.right_time)}{old}"
        )

    def state(self) -> str:
        left = "left rows until the watermark passes them"
        if self.age is None:
            return (
                f"{left}; every version of the right, {FOR_EVER}: it grows with the changes of that table. A "
                "bound of their age in ON frees them"
            )
        ttl = " (sql.state-ttl)" if self.age.ttl else ""
        return f"{left}; versions until it is {format_ms(self.age.most_ms)} past them{ttl}"


def _as_event_time(rows: DataFrame, ref: str) -> Column:
    """The column of these rows, as a condition of a join speaks of one that carries the watermark.

    Spark frees the other side by what a condition says of such a column, and allows one for each side: the
    rows have another by which they are late.
    """
    jvm, frame = cast(Any, rows.sparkSession)._jvm, cast(Any, rows)._jdf
    (attribute,) = (a for a in _each(frame.queryExecution().analyzed().output()) if a.name() == ref)
    builder = jvm.org.apache.spark.sql.types.MetadataBuilder().putLong(DELAY, 0)
    marked = attribute.withMetadata(builder.build())
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(marked))


def _each(items: Any) -> Iterator[Any]:
    """The items of a sequence of Scala."""
    return (items.apply(place) for place in range(items.size()))


def join(selects: Selects, left: Relation, tree: exp.Join, how: str) -> Relation:
    """`left` JOIN table FOR SYSTEM_TIME AS OF left.t ON …"""
    table = tree.this
    version = table.args["version"]
    plain = table.copy()
    plain.set("version", None)
    right = selects.table(plain)
    if how not in ("inner", "left"):
        refuse(f"{how.upper()} JOIN … FOR SYSTEM_TIME AS OF is not supported.", tree, "INNER and LEFT are.")
    scan = right.operator
    if not isinstance(scan, ScanRows) or not scan.table.primary_key:
        refuse(
            f"FOR SYSTEM_TIME AS OF takes a table with a PRIMARY KEY, and '{table.alias_or_name}' is none.",
            tree,
            "CREATE TABLE … (PRIMARY KEY (k) NOT ENFORCED, WATERMARK FOR t AS …) AS SELECT … makes one.",
        )
    selects.check_plain(left, "A temporal join, as its left side,")
    time = _left_time(selects, left, version.expression, tree)
    right_time = _right_time(selects, right, scan)
    on = conjuncts(tree.args["on"]) if tree.args.get("on") is not None else []
    keys = [c for c in on if is_key(c, left.scope, right.scope)]
    others = [c for c in on if not any(c is key for key in keys)]
    _check_key(scan, keys, right.scope, tree)
    valid_from = ROWTIME if scan.table.watermark is None else scan.table.watermark.column
    age, others = _age(others, _Times(left.scope, right.scope, time, scan, valid_from))
    if age is None and selects.ttl_ms is not None:
        age = Age(selects.ttl_ms, ttl=True)
        selects.warn(
            f"Versions of '{scan.table.name}' that began more than {format_ms(selects.ttl_ms)} "
            "(sql.state-ttl) before a row are not found: it is as if there were none."
        )
    if others and how != "inner":
        refuse(
            "LEFT JOIN … FOR SYSTEM_TIME AS OF takes equalities with the key, and a bound of the version's "
            "age.",
            tree,
            "Put other conditions into CASE WHEN … THEN … END around the columns.",
        )
    compiler = selects.compiler(left.scope.joined(right.scope))
    operator: Operator = VersionJoin(
        left.operator,
        _versions(scan),
        how,
        all_of([compiler.condition(c) for c in keys]),
        time,
        right_time,
        left.coordinates,
        right.coordinates,
        right.op,
        age,
    )
    for other in others:
        operator = FilterRows(operator, compiler.condition(other))
    theirs = [
        (alias, replace(a, origin=None, nullable=a.nullable or how == "left"))
        for alias, a in right.scope.columns
    ]
    # The left's times go on; the table it was read from cannot choose another.
    scope = Scope((*left.scope.columns, *theirs))
    return replace(left, operator=operator, scope=scope, stateful=True)


def _versions(scan: ScanRows) -> Operator:
    """Of an update, the row before ends nothing: the one after does, at a time of its own."""
    if scan.table.changelog != "retract":
        return scan
    said = f"element_at({quote(scan.ref(HEADERS))}, {text(OP_HEADER)})"
    before = f"X'{OP_CODES[BEFORE].hex()}'"
    return FilterRows(scan, Typed(f"NOT ({said} <=> {before})", BOOLEAN, False))


@dataclass(frozen=True)
class _Times:
    """Where the times of both sides are: the left's column, and the column of the right's table."""

    left: Scope
    right: Scope
    at: str
    scan: ScanRows
    valid_from: str

    def is_left(self, attribute: Attribute) -> bool:
        # A time without a zone has its moment beside it.
        origin = attribute.origin
        return attribute.ref == self.at or (
            origin is not None
            and origin.scan.chosen_for == origin.column
            and origin.scan.chosen is not None
            and origin.scan.ref(origin.scan.chosen.column) == self.at
        )

    def is_right(self, attribute: Attribute) -> bool:
        origin = attribute.origin
        return origin is not None and origin.scan is self.scan and origin.column == self.valid_from


def _age(conditions: list[exp.Expr], times: _Times) -> tuple[Age | None, list[exp.Expr]]:
    """The bound of a version's age that the conditions say, and those that say something else."""
    ages: list[Age] = []
    others: list[exp.Expr] = []
    for condition in conditions:
        said = [_ages(kind, one, other, times) for kind, one, other in comparisons(condition)]
        known = [one for one in said if one is not None]
        # State is freed by milliseconds.
        whole = not any(span_of(one).micros % 1000 for one in condition.find_all(exp.Interval))
        if said and len(known) == len(said) and whole:
            ages += [age for one in known for age in one]
        else:
            others.append(condition)
    return min(ages, key=lambda age: (age.most_ms, not age.below), default=None), others


def _ages(kind: type[exp.Expr], one: exp.Expr, other: exp.Expr, times: _Times) -> list[Age] | None:
    """What a comparison says of the age: a bound, nothing that is not so anyway, or None: it is no such."""
    scope = times.left.joined(times.right)
    since, at = time_term(one, scope), time_term(other, scope)
    if since is None or at is None:
        return None
    if times.is_left(since[0]):
        since, at, kind = at, since, FLIP[kind]
    if not times.is_right(since[0]) or not times.is_left(at[0]):
        return None
    shift = at[1] - since[1]
    if kind in (exp.GT, exp.GTE) and shift <= 0:
        return [Age(-shift, kind is exp.GT)]
    return [] if (kind is exp.LTE and shift >= 0) or (kind is exp.LT and shift > 0) else None


def _left_time(selects: Selects, left: Relation, tree: exp.Expr, node: exp.Expr) -> str:
    attribute = selects.compiler(left.scope).compile(tree).attribute
    found = None if attribute is None else event_column(left, attribute, selects.default_delay_ms)
    if attribute is None or found is None:
        remedy = (
            f"{alter_for(attribute)} gives it one."
            if attribute is not None and attribute.origin is not None
            else "It must be a column of the table on the left as it is, with its WATERMARK."
        )
        refuse("FOR SYSTEM_TIME AS OF needs a column with a WATERMARK.", node, remedy)
    if not left.coordinates:
        refuse(
            "FOR SYSTEM_TIME AS OF needs rows of a table or of a join on its left.",
            node,
            "Write the inner query into a table of its own.",
        )
    return found[0]


def _right_time(selects: Selects, right: Relation, scan: ScanRows) -> str:
    """The watermark's column, or else the time of the records."""
    mark = scan.table.watermark
    column = ROWTIME if mark is None else mark.column
    if mark is None:
        selects.warn(
            f"Table '{scan.table.name}' has no WATERMARK: its versions are valid from the time of "
            f"their records on."
        )
    kind = SYSTEM[column] if column in SYSTEM else scan.table.columns[column].dataType
    attribute = Attribute(column, scan.ref(column), kind, False, Origin(scan, column))
    found = event_column(right, attribute, selects.default_delay_ms)
    assert found is not None
    return found[0]


def _check_key(scan: ScanRows, keys: list[exp.Expr], scope: Scope, tree: exp.Join) -> None:
    named: set[str] = set()
    for key in keys:
        for node in key.find_all(exp.Column):
            found = scope.find(node.name, node.table or None) if _of(scope, node) else None
            if found is not None and found.origin is not None and node.parent is key:
                named.add(found.origin.column)
    missing = [name for name in scan.table.primary_key if name not in named]
    if missing:
        refuse(
            f"FOR SYSTEM_TIME AS OF needs an equality with each column of the PRIMARY KEY of "
            f"'{scan.table.name}': {', '.join(missing)} has none.",
            tree,
            f"Add ON … = {missing[0]}.",
        )


def _of(scope: Scope, node: exp.Column) -> bool:
    return not node.table or scope.has_table(node.table)
