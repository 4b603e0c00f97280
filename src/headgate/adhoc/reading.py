"""What a query reads of the lake, told from its plans: tables, snapshots, files, and what was skipped."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from py4j.java_gateway import is_instance_of
from pyspark.sql import DataFrame

from headgate.adhoc.skipping import Known, Scan, why_nothing_skipped
from headgate.errors import LimitReached
from headgate.spark import CATALOG
from headgate.statements.asking import Caller

FILES = ("resultDataFiles", "resultDeleteFiles")
SIZES = ("totalDataFileSize", "totalDeleteFileSize")
FIGURES = ("files", "bytes", "files_skipped", "bytes_skipped")
_METADATA_TABLE = "org.apache.iceberg.BaseMetadataTable"
_ICEBERG_TABLE = "org.apache.iceberg.spark.source.SparkTable"
_FILTERS = re.compile(r"\bfilters=(.*?)(?:, (?:runtimeFilters|groupedBy)=.*|[\])]*)$", re.DOTALL)
# Plans that hold another outside of their children.
_INNER = {
    "AdaptiveSparkPlanExec": "executedPlan",
    "ShuffleQueryStageExec": "plan",
    "BroadcastQueryStageExec": "plan",
    "TableCacheQueryStageExec": "plan",
    "ResultQueryStageExec": "plan",
}
_NO_BOUNDS = ("none", "counts")


@dataclass
class TableReading:
    """What was read of one snapshot of a table: data files and delete files, with their sizes.

    Skipped are the files of that snapshot that were not read; `reason` is why none was.
    """

    table: str
    snapshot_id: str | None
    files: int = 0
    bytes: int = 0
    files_skipped: int = 0
    bytes_skipped: int = 0
    reason: str | None = None


@dataclass(frozen=True)
class _Planned:
    """A scan of the optimized plan, with the conditions that Spark itself looks at above it."""

    relation: Any
    scan: Any
    conditions: Sequence[str]


class Reading:
    """What one query reads, as far as it has been planned. For several threads."""

    def __init__(self) -> None:
        self._query: Any = None
        self._is_instance: Any = None

    def attach(self, rows: DataFrame) -> None:
        """The query as Spark has it; it is planned here, and its files are looked for."""
        query = cast(Any, rows)._jdf.queryExecution()
        query.executedPlan()
        gateway: Any = rows.sparkSession.sparkContext._gateway
        self._is_instance = lambda thing, kind: is_instance_of(gateway, thing, kind)
        self._join = gateway.jvm.java.lang.String.join
        self._metrics = gateway.jvm.org.apache.iceberg.MetricsConfig
        self._query = query

    def check_planned(self, caller: Caller | None) -> None:
        """Raises LimitReached for a query that would read more than its caller may, before it runs.

        Scans whose files are known only when another part of the query has run are left for `check_running`.
        """
        if caller is not None and caller.scanned:
            _check(self._planned_bytes(), caller, "would read")

    def check_running(self, caller: Caller | None) -> None:
        """The same of a query that runs, by the scans that have begun."""
        if caller is not None and caller.scanned and self._query is not None:
            _check(sum(_metric(step, name) for step in self._scans() for name in SIZES), caller, "reads")

    def _planned_bytes(self) -> int:
        return sum(
            int(metric.value())
            for step in self._scans()
            if step.runtimeFilters().isEmpty()
            for metric in step.scan().reportDriverMetrics()
            if metric.name() in SIZES
        )

    def figures(self) -> dict[str, Any]:
        """The sums over all tables, and each table; complete when the query has ended."""
        if self._query is None:
            return {**dict.fromkeys(FIGURES, 0), "tables": []}
        tables = [asdict(one) for one in self._tables()]
        return {name: sum(one[name] for one in tables) for name in FIGURES} | {"tables": tables}

    def _tables(self) -> list[TableReading]:
        known: dict[tuple[str, str | None], TableReading] = {}
        for step, name in _logical(self._query.analyzed()):
            if name == "DataSourceV2Relation":
                self._entry(known, step.table())
        planned = list(_planned(self._query.optimizedPlan()))
        for step in self._scans():
            self._add_scan(known, step, planned)
        for one in planned:
            if one.scan.getClass().getSimpleName() == "SparkLocalScan":
                # Counts and extremes that the metadata tells: no file was opened.
                self._add(known, one.relation.table(), 0, 0)
        return list(known.values())

    def _scans(self) -> Iterator[Any]:
        for step in _physical(self._query.executedPlan()):
            if step.getClass().getSimpleName() == "BatchScanExec":
                yield step

    def _entry(self, known: dict[tuple[str, str | None], TableReading], table: Any) -> TableReading | None:
        """None for what is no table of Iceberg's."""
        if not self._is_instance(table, _ICEBERG_TABLE):
            return None
        key = (str(table.table().name()).removeprefix(f"{CATALOG}."), self._snapshot_id(table))
        return known.setdefault(key, TableReading(*key))

    def _snapshot_id(self, table: Any) -> str | None:
        """As text: JSON's numbers are too short for it. Metadata tables are of no snapshot."""
        if self._is_instance(table.table(), _METADATA_TABLE):
            return None
        pinned = table.snapshotId()
        if pinned is not None:
            return str(pinned)
        current = table.table().currentSnapshot()
        return None if current is None else str(current.snapshotId())

    def _add_scan(
        self, known: dict[tuple[str, str | None], TableReading], step: Any, planned: Sequence[_Planned]
    ) -> None:
        files, size = (sum(_metric(step, name) for name in names) for names in (FILES, SIZES))
        one, skipped = self._add(known, step.table(), files, size)
        if one is None or one.snapshot_id is None or skipped:
            return
        scan = step.scan()
        match = next((other for other in planned if other.scan.equals(scan)), None)
        pushed = _FILTERS.search(str(scan.description()))
        text = "" if pushed is None else pushed[1]
        about = Scan(
            files, 0, text, () if match is None else match.conditions, self._columns(step.table(), text)
        )
        one.reason = one.reason or why_nothing_skipped(about)

    def _add(
        self, known: dict[tuple[str, str | None], TableReading], table: Any, files: int, size: int
    ) -> tuple[TableReading | None, int]:
        """Adds a scan to its table; the table, and how many of its files this scan skipped."""
        one = self._entry(known, table)
        if one is None:
            return None, 0
        whole = _total(table.table(), one.snapshot_id)
        skipped = max(0, whole["files"] - files)
        one.files += files
        one.bytes += size
        one.files_skipped += skipped
        one.bytes_skipped += max(0, whole["bytes"] - size) if skipped else 0
        return one, skipped

    def _columns(self, table: Any, text: str) -> Mapping[str, Known]:
        """Those that are in the text, and those that the table is partitioned by."""
        iceberg = table.table()
        schema, spec = iceberg.schema(), iceberg.spec()
        names = str(self._join("\0", schema.idToName().values())).split("\0")
        parts = {str(schema.findColumnName(one.sourceId())) for one in spec.fields()}
        metrics = self._metrics.forTable(iceberg)
        known: dict[str, Known] = {}
        for name in names:
            if name in parts:
                known[name] = "partition"
            elif name and name in text:
                mode = str(metrics.columnMode(name)).casefold()
                known[name] = "nothing" if mode in _NO_BOUNDS else "statistics"
        return known


def reading_of(rows: DataFrame) -> dict[str, Any]:
    """What was read for these rows, after they were."""
    reading = Reading()
    reading.attach(rows)
    return reading.figures()


def _check(size: int, caller: Caller, verb: str) -> None:
    if size > caller.scanned:
        raise LimitReached(
            f"The query {verb} {size} bytes of files, and {caller.name} may read {caller.scanned}.",
            f"Narrow it by a condition that skips files, or raise {caller.limits}.scanned.",
        )


def _total(iceberg: Any, snapshot_id: str | None) -> dict[str, int]:
    """How many files a snapshot has, and how large they are together."""
    snapshot = None if snapshot_id is None else iceberg.snapshot(int(snapshot_id))
    if snapshot is None:
        return {"files": 0, "bytes": 0}
    summary = snapshot.summary()
    counts = ("total-data-files", "total-delete-files")
    files = sum(int(summary.get(name) or 0) for name in counts)
    return {"files": files, "bytes": int(summary.get("total-files-size") or 0)}


def _metric(step: Any, name: str) -> int:
    metric = step.metrics().get(name)
    return int(metric.get().value()) if metric.isDefined() else 0


def _physical(plan: Any) -> Iterator[Any]:
    """Every step of a plan that runs, those of its stages and subqueries too."""
    yield plan
    into = _INNER.get(plan.getClass().getSimpleName())
    if into is not None:
        yield from _physical(getattr(plan, into)())
    for below in (plan.children(), plan.subqueries()):
        for number in range(below.size()):
            yield from _physical(below.apply(number))


def _logical(plan: Any) -> Iterator[tuple[Any, str]]:
    """Every step of a query before it is a plan of operators, with the name of its class."""
    yield plan, str(plan.getClass().getSimpleName())
    for below in (plan.children(), plan.subqueries()):
        for number in range(below.size()):
            yield from _logical(below.apply(number))


def _planned(plan: Any, conditions: tuple[str, ...] = ()) -> Iterator[_Planned]:
    name = str(plan.getClass().getSimpleName())
    if name == "DataSourceV2ScanRelation":
        yield _Planned(plan.relation(), plan.scan(), conditions)
        return
    if name == "Filter":
        text = str(plan.condition().sql())
        # What Spark adds for itself, to prune by the other side of a join.
        conditions = conditions if "dynamicpruning" in text else (*conditions, text)
    elif name != "Project":
        conditions = ()
    for number in range(plan.children().size()):
        yield from _planned(plan.children().apply(number), conditions)
    for number in range(plan.subqueries().size()):
        yield from _planned(plan.subqueries().apply(number))
