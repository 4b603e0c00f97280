"""Queries that Spark cannot run as one are cut: what is below a cut goes through an internal topic.

Spark streams one operator whose rows change for each query, and nothing with state above or below it. A cut
stands between: below it is a query of its own, and above it its rows are read as those of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, IntegerType, StructField, StructType

from headgate.sql.late import LateRows
from headgate.sql.operators import Building, Operator, ScanRows, col
from headgate.sql.pruning import mentioned
from headgate.sql.relation import Relation
from headgate.sql.tables import OFFSET, PARTITION, Changelog, Scan, Source, TableInfo
from headgate.sql.types import STRING

if TYPE_CHECKING:
    from headgate.sql.select import Selects


@dataclass(eq=False)
class CutRows(Operator):
    """Rows that go through an internal topic, spread by `key`. Of all columns, those that are spoken of
    above go along: `schema`, which is known when the plan is whole."""

    child: Operator
    name: str
    types: Mapping[str, DataType]
    key: Sequence[str]
    partition: str
    offset: str
    schema: StructType = field(default_factory=StructType)

    def __post_init__(self) -> None:
        self.inputs = (self.child,)

    @property
    def behind_ms(self) -> int:
        return 0  # No watermark goes through a topic.

    @property
    def held_ms(self) -> int:
        return 0

    def reach_ms(self, time_ms: int) -> int:
        return time_ms

    def due_ms(self, time_ms: int) -> int:
        return time_ms

    @property
    def source(self) -> Source:
        return Source(0, TableInfo(self.name, self.schema), None)

    def build(self, on: Building) -> DataFrame:
        if on.at_once:
            rows = self.child.build(on)
            place, number = F.lit(0), F.monotonically_increasing_id()
        else:
            rows = on.scan(self.source)
            place, number = col(PARTITION), col(OFFSET)
        return rows.select(
            *(col(name) for name in self.schema.names), place.alias(self.partition), number.alias(self.offset)
        )

    def describe(self) -> str:
        return f"Read {self.name}, an internal topic"


@dataclass(frozen=True)
class StageQuery:
    """What is below a cut, as a query of its own."""

    cut: CutRows
    mentioned: frozenset[str]
    secret: Callable[[str], str]
    settings: Mapping[str, str]
    changelog: Changelog = "append"
    key: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    @property
    def columns(self) -> StructType:
        return self.cut.schema

    @property
    def sources(self) -> tuple[Source, ...]:
        return sources(self.cut.child)

    @property
    def output_mode(self) -> str:
        return output_mode(self.cut.child)

    @property
    def stateful(self) -> bool:
        return any(step.state() is not None for step in part(self.cut.child))

    def due_ms(self, time_ms: int) -> int:
        return self.cut.child.due_ms(time_ms)

    def build(self, scan: Scan, late: LateRows | None = None) -> DataFrame:
        rows = self.cut.child.build(Building(scan, self.secret, self.mentioned, late=late))
        return rows.select(*(col(name) for name in self.columns.names))


@dataclass(frozen=True)
class Stage:
    """A query whose rows go into an internal topic, which later queries of the same statement read."""

    name: str
    runnable: StageQuery
    key: tuple[str, ...]


def part(root: Operator) -> Iterator[Operator]:
    """The steps of one query: down to its tables and cuts."""
    yield root
    if not isinstance(root, CutRows):
        for one in root.inputs:
            yield from part(one)


def sources(root: Operator) -> tuple[Source, ...]:
    """The tables that one query reads, those between queries included."""
    return tuple(step.source for step in part(root) if isinstance(step, (ScanRows, CutRows)))


def output_mode(root: Operator) -> str:
    """Spark's: `update` when rows come out as they change."""
    return "update" if any(step.changing for step in part(root)) else "append"


def cuts(root: Operator) -> list[CutRows]:
    """Those of a plan, each behind those that it reads."""
    found: list[CutRows] = []
    for one in root.inputs:
        found += [cut for cut in cuts(one) if cut not in found]
    return [*found, root] if isinstance(root, CutRows) else found


def settle(root: Operator) -> None:
    """Say of each cut which columns go through it."""
    for one in cuts(root):
        above = mentioned(root, one)
        one.schema = StructType(
            [StructField(ref, kind) for ref, kind in one.types.items() if ref in above or ref in one.key]
        )


def cut(selects: Selects, relation: Relation, key: Sequence[str]) -> Relation:
    """The same rows behind a cut. What is above knows neither their tables nor their event time."""
    columns: dict[str, DataType] = {a.ref: a.type for _, a in relation.scope.columns}
    if relation.op is not None:
        columns[relation.op] = STRING
    if relation.sign is not None:
        columns[relation.sign] = IntegerType()
    partition, offset = selects.refs.new(PARTITION), selects.refs.new(OFFSET)
    columns = {ref: kind for ref, kind in columns.items() if ref not in relation.coordinates}
    selects.stages += 1
    name = f"$stage{selects.stages}"
    operator = CutRows(relation.operator, name, columns, list(key), partition, offset)
    scope = replace(
        relation.scope,
        columns=tuple((alias, replace(a, origin=None, window=None)) for alias, a in relation.scope.columns),
    )
    return replace(
        relation,
        operator=operator,
        scope=scope,
        coordinates=(partition, offset),
        events={},
        stateful=False,
    )


def whole(selects: Selects, relation: Relation, key: Sequence[str]) -> Relation:
    """The relation as something with state can stand above: cut if there is state below."""
    return cut(selects, relation, key) if relation.stateful else relation
