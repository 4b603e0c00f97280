"""Queries become plans: trees of physical operators, built before anything runs and explained by the same
tree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType
from sqlglot import exp

from headgate.errors import InvalidRequest
from headgate.sql.explain import explain
from headgate.sql.late import LateRows
from headgate.sql.operators import Building, Operator, OutputRows, ScanRows
from headgate.sql.pruning import mentioned
from headgate.sql.relation import Refs, Relation
from headgate.sql.select import Selects
from headgate.sql.signed import settled
from headgate.sql.stages import Stage, StageQuery, cuts, output_mode, settle, sources
from headgate.sql.statements import Query
from headgate.sql.tables import OFFSET, PARTITION, ROWTIME, Changelog, Scan, Source, TableInfo, Tables
from headgate.sql.typed import Typed, column


def _no_secret(name: str) -> str:
    raise InvalidRequest(f"There is no secret '{name}'.", "Secrets are named in the configuration.")


_AT_ONCE = (
    "Reads its topics up to their ends, all at once: nothing waits, no row is late, no state stays, and no "
    "topics are needed between steps."
)


@dataclass(frozen=True)
class Options:
    """What a statement was started with."""

    state_ttl_ms: int | None = None
    zone: str = "UTC"
    # For event time that no WATERMARK declares: $rowtime, and the column that a keep-first is ordered by.
    default_delay_ms: int = 5_000
    #: The tables are whole, and nothing follows: what comes out need not wait for anything.
    bounded: bool = False
    #: Whether the first row of a key may come out before event time has passed it; not so in statements that
    #: were made before it was.
    first_at_once: bool = True
    secret: Callable[[str], str] = field(default=_no_secret, repr=False)


@dataclass(frozen=True)
class Plan:
    """A query that can run. `key` are the columns of `columns` by which rows of an upsert result replace
    each other; it is empty for a result of one row."""

    root: OutputRows
    columns: StructType
    changelog: Changelog
    key: tuple[str, ...]
    warnings: tuple[str, ...]
    options: Options
    limit: int | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """The tables that this query reads, each with the watermark that it needs; those of its stages are
        theirs."""
        return sources(self.root)

    @property
    def tables(self) -> dict[str, TableInfo]:
        """The users' tables that it reads, through all of its stages."""
        scans = [step for step in self.root.walk() if isinstance(step, ScanRows)]
        return {scan.table.name: scan.table for scan in scans}

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The queries that come before this one; it reads what they write."""
        speaks = mentioned(self.root)
        return tuple(
            Stage(
                cut.name,
                StageQuery(cut, speaks, self.options.secret, self.settings),
                tuple(cut.key),
            )
            for cut in cuts(self.root)
        )

    @property
    def output_mode(self) -> str:
        """Spark's: `update` when rows come out as they change."""
        return output_mode(self.root)

    @property
    def in_place(self) -> bool:
        """Whether its rows are those of records that were not left out, each known by its coordinates."""
        kept = any(step.of_records for step in self.root.walk())
        return kept and any(name == PARTITION for name, _ in self.root.record)

    @property
    def stateful(self) -> bool:
        return any(step.state() is not None for step in self.root.walk())

    def due_ms(self, time_ms: int) -> int:
        """The watermark at which all that this query makes of rows up to a time has come out."""
        return self.root.due_ms(time_ms)

    @property
    def settings(self) -> dict[str, str]:
        """What the Spark session of this query must have."""
        settings = {
            "spark.sql.session.timeZone": self.options.zone,
            "spark.sql.ansi.enabled": "true",
            "spark.sql.caseSensitive": "true",
            "spark.sql.timestampType": "TIMESTAMP_LTZ",
        }
        if any(step.orders_batches for step in self.root.walk()):
            # The rows of one batch are put in order, which the check takes for an order of the whole stream.
            settings["spark.sql.streaming.unsupportedOperationCheck"] = "false"
        return settings

    @property
    def values(self) -> Iterator[Typed]:
        """All that it computes."""
        return _values(self.root)

    @property
    def secrets(self) -> frozenset[str]:
        """The names of those that it needs."""
        return frozenset().union(*(value.secrets for value in self.values))

    def explain(self) -> str:
        said = explain(self.root, self.changelog, self.key, self.warnings)
        return f"{_AT_ONCE}\n\n{said}" if self.options.bounded else said

    def build(self, scan: Scan, late: LateRows | None = None, at_once: bool = False) -> DataFrame:
        """The rows; `$op` if they change, 'u' or 'd' of an upsert result, what each does of a retract
        result; `$rowtime`, `$partition` and `$offset` of the
        record if each is made of one. The session must have `settings`. `at_once`: the tables are whole, and
        need no stages. `late` counts rows that come too late."""
        return self.root.build(Building(scan, self.options.secret, mentioned(self.root), at_once, late))


def _values(part: object) -> Iterator[Typed]:
    """All that a step, those below it included, computes."""
    if isinstance(part, Typed):
        yield part
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _values(one)
    elif isinstance(part, Operator):
        for name, one in vars(part).items():
            if name != "inputs":
                yield from _values(one)


@dataclass(frozen=True)
class Planned:
    """A query's rows before they are named and checked for where they go."""

    relation: Relation
    columns: list[tuple[str, Typed]]
    selects: Selects
    limit: int | None

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self.selects.warnings)


def plan(query: Query | exp.Query, tables: Tables, options: Options | None = None) -> Plan:
    """The plan of a query; InvalidRequest names what cannot be planned, and what would work."""
    options = options or Options()
    found = planned(query, tables, options)
    check_names([name for name, _ in found.columns])
    return finish(found.relation, found.columns, options, found.warnings, found.limit)


def planned(
    query: Query | exp.Query,
    tables: Tables,
    options: Options,
    by_key: bool = False,
    replaceable: bool = False,
) -> Planned:
    """`by_key`: the rows go into a table that keeps the last row of each key. `replaceable`: there the first
    row of a key may be replaced by a lesser one."""
    selects = Selects(tables, options.zone, options.state_ttl_ms, options.default_delay_ms, Refs(), by_key)
    selects.bounded, selects.first_at_once = options.bounded, options.first_at_once
    selects.replaceable = replaceable
    tree, limit = _limit(query.tree if isinstance(query, Query) else query)
    relation = selects.query(tree)
    if relation.numbered:
        raise InvalidRequest(
            "ROW_NUMBER() keeps one row of each key: `= 1` must stand in a WHERE around it.",
            "Write SELECT … FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) AS n FROM t) "
            "WHERE n = 1.",
        )
    if relation.changelog != "retract":
        relation = settled(selects, relation)
    elif limit is not None:
        raise InvalidRequest(
            "LIMIT of rows that are taken back one by one is not supported.", "Leave it out."
        )
    columns = [
        (attribute.name, column(attribute.ref, attribute.type, attribute.nullable, attribute))
        for _, attribute in relation.scope.visible()
    ]
    return Planned(relation, columns, selects, limit)


def finish(
    relation: Relation,
    columns: list[tuple[str, Typed]],
    options: Options,
    warnings: tuple[str, ...],
    limit: int | None = None,
) -> Plan:
    upsert = relation.changelog == "upsert"
    names = {value.attribute.ref: name for name, value in reversed(columns) if value.attribute is not None}
    missing = [ref for ref in relation.key if ref not in names]
    if upsert and missing:
        lost = ", ".join(ref.rpartition("#")[0] or ref for ref in missing)
        if any(ref.startswith(PARTITION) for ref in missing):
            raise InvalidRequest(
                "The left side of the join only takes new rows, and no key tells them apart: what comes of "
                "them changes, and is told apart by where they came from.",
                "Add `$partition` and `$offset` of that table to SELECT, or group the rows in one query.",
            )
        raise InvalidRequest(
            f"Rows of this query replace each other by {lost}, which is not among its columns.",
            f"Add {lost} to SELECT as it is.",
        )
    # Of rows that change, who reads them counts those that are there.
    most = None if upsert else limit
    record = _record(relation, columns)
    root = OutputRows(relation.operator, columns, relation.op, upsert, most, record, relation.sign)
    settle(root)
    _check_maps(root)
    schema = StructType([StructField(name, value.type, value.nullable) for name, value in columns])
    return Plan(
        root,
        schema,
        relation.changelog,
        tuple(names[ref] for ref in relation.key) if upsert else (),
        warnings,
        options,
        limit,
    )


def _check_maps(root: Operator) -> None:
    speaks = mentioned(root)
    for step in root.walk():
        for ref in sorted(step.unordered & speaks):
            raise InvalidRequest(
                f"Column '{ref.rpartition('#')[0]}' is a MAP, or has one, and rows that change are put in "
                "order: a MAP has none.",
                "Leave it out, or take what is needed from it: m['key'].",
            )


def _record(relation: Relation, columns: list[tuple[str, Typed]]) -> tuple[tuple[str, str], ...]:
    """Where rows that are made of one record each have its time and coordinates: who writes them keeps
    them in order by these."""
    scans = [step for step in relation.operator.walk() if isinstance(step, ScanRows)]
    gathers = any(step.state() is not None and not step.of_records for step in relation.operator.walk())
    if (relation.stateful and gathers) or len(scans) != 1:
        return ()
    taken = {name for name, _ in columns}
    return tuple((name, scans[0].ref(name)) for name in (ROWTIME, PARTITION, OFFSET) if name not in taken)


def check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise InvalidRequest(
                f"Column '{name}' is in the result twice.", "Give one of them another name with AS."
            )
        seen.add(name.lower())


def _limit(tree: exp.Query) -> tuple[exp.Query, int | None]:
    found = tree.args.get("limit")
    if found is None:
        return tree, None
    value = found.expression if isinstance(found, exp.Limit) and not found.args.get("offset") else None
    if not isinstance(value, exp.Literal) or value.is_string:
        raise InvalidRequest("LIMIT takes a whole number.")
    without = tree.copy()
    without.set("limit", None)
    return without, int(str(value.this))
