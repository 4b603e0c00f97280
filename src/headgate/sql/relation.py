"""What the planner knows of a step: its columns, whether its rows change, and where they came from."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headgate.errors import InvalidRequest
from headgate.sql.operators import Operator, ProjectRows, ScanRows
from headgate.sql.scope import Attribute, Scope
from headgate.sql.stateful import SessionGap
from headgate.sql.tables import OFFSET, PARTITION, ROWTIME, Changelog
from headgate.sql.typed import Typed, call
from headgate.sql.types import BIGINT, INT, STRING, is_time, quote

_MOVING = re.compile(r"\b(current_timestamp|localtimestamp|current_date)\(\)")


@dataclass(frozen=True)
class SessionTable:
    """A SESSION window that waits for its GROUP BY: Spark makes sessions of groups."""

    gap: SessionGap
    keys: tuple[str, ...]
    ref: str


@dataclass(frozen=True)
class Relation:
    """Rows of a step. `key` is set for rows that change: the columns by which a later row replaces an
    earlier one. `op` is the column that tells deletes. `coordinates` are the columns that tell in which
    order rows came, and one row from another. Those of a `retract` relation have no key but a `sign`: each
    comes, or is taken back."""

    operator: Operator
    scope: Scope
    changelog: Changelog = "append"
    key: tuple[str, ...] = ()
    op: str | None = None
    coordinates: tuple[str, ...] = ()
    # Columns that carry a watermark already, by name: their delay.
    events: dict[str, int] = field(default_factory=dict)
    # Whether an operator with state is below: an aggregate without a window cannot stand above one.
    stateful: bool = False
    session: SessionTable | None = None
    # The column that says of rows of changes whether one came (1) or was taken back (-1).
    sign: str | None = None
    # Column -> (keys, order columns, greatest) of a ROW_NUMBER that waits for its `= 1`.
    numbered: dict[str, "Numbered"] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Whether a row may still be replaced or taken back."""
        return self.changelog == "upsert" or self.sign is not None

    def under(self, alias: str) -> "Relation":
        """The same rows, seen by the name of a subquery."""
        return replace(self, scope=Scope(tuple((alias, attribute) for _, attribute in self.scope.columns)))


@dataclass(frozen=True)
class Numbered:
    """ROW_NUMBER() OVER (PARTITION BY keys ORDER BY order)."""

    keys: tuple[str, ...]
    order: tuple[str, ...]
    greatest: bool
    event: Attribute | None


class Refs:
    """Names for columns that no other column of the plan has."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = count(1)

    def number(self) -> int:
        return next(self._numbers)

    def new(self, name: str) -> str:
        return f"{name}#{self.number()}"


def filtered_op(relation: Relation, condition: Typed, refs: Refs) -> Relation:
    """A filter on rows that change: a row that no longer passes is a delete of its key."""
    before = f"`{relation.op}` = 'u' AND " if relation.op is not None else ""
    op = refs.new("$op")
    value = call(
        "{sql}", STRING, [condition], False, sql=f"CASE WHEN {before}{condition.sql} THEN 'u' ELSE 'd' END"
    )
    kept = [attribute.ref for _, attribute in relation.scope.columns]
    return replace(relation, operator=ProjectRows(relation.operator, kept, [(op, value)]), op=op)


def event_column(relation: Relation, attribute: Attribute, default_ms: int) -> tuple[str, int] | None:
    """The column that carries the watermark of this one, and its delay; None if it has none. From now on
    the table has this event time."""
    if attribute.ref in relation.events:
        return attribute.ref, relation.events[attribute.ref]
    origin = attribute.origin
    if origin is None or not is_time(attribute.type):
        return None
    mark = origin.scan.table.watermark
    if mark is not None and mark.column == origin.column:
        return origin.scan.choose(origin.column, mark.delay_ms, mark.declared), mark.delay_ms
    if origin.column == ROWTIME:
        return origin.scan.choose(ROWTIME, default_ms, False), default_ms
    return None


#: Of several rows of one record: which element of an array, which side of a UNION ALL, which window.
ELEMENT, SIDE, BEGAN, ENDED = "$element", "$side", "$began", "$ended"


def coordinate_type(ref: str) -> DataType:
    """The type of a column that tells rows apart."""
    return INT if ref.rpartition("#")[0] in (PARTITION, ELEMENT, SIDE) else BIGINT


def coordinates_of(scan: ScanRows) -> tuple[str, str]:
    return scan.ref(PARTITION), scan.ref(OFFSET)


def alter_for(attribute: Attribute) -> str:
    """The statement that would give a column its watermark."""
    assert attribute.origin is not None
    column, table = attribute.origin.column, attribute.origin.scan.table.name
    name = table if table.isidentifier() else f"`{table}`"
    return f"ALTER TABLE {name} MODIFY WATERMARK FOR `{column}` AS `{column}` - INTERVAL '5' SECOND"


def refuse_moving(relation: Relation, values: Iterable[Typed]) -> None:
    """What is taken back must be what came, and the time of day is another one then."""
    if relation.sign is not None and any(_MOVING.search(value.sql) for value in values):
        raise InvalidRequest(
            "The time of day over rows that are taken back is another one each time.",
            "Take a column of time instead of NOW(), CURRENT_DATE and their kin.",
        )


def refuse_changing(relation: Relation, what: str) -> None:
    if relation.changes:
        raise InvalidRequest(
            f"{what} over rows that change is not supported.",
            "It works over a table whose changelog.mode is 'append', or over a window's result. Over rows "
            "that change there are GROUP BY, TUMBLE, HOP, CUMULATE, JOIN, DISTINCT and ROW_NUMBER.",
        )


def live_op(live: str) -> Typed:
    """Of a group that has so many rows: it is there, or it is gone."""
    return Typed(f"CASE WHEN {quote(live)} > 0 THEN 'u' ELSE 'd' END", STRING, False)


def maps_of(scope: Scope) -> frozenset[str]:
    """The columns that cannot be put in order or compared, since a MAP is in them."""
    return frozenset(attribute.ref for _, attribute in scope.columns if _has_map(attribute.type))


def _has_map(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return True
    if isinstance(kind, ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, StructType) and any(_has_map(field.dataType) for field in kind.fields)
