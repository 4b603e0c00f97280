"""What was committed to a table since the run before: the rows of it, or the changes of an upsert table.

Rows of an append table are known by the number of the commit that wrote them, which compaction keeps
(Iceberg's row lineage, format version 3). Rows of an upsert table are compared by their keys in the snapshots
of both runs; those that came of the same record are the same, in whatever file they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from headgate.errors import InvalidRequest, TransientError
from headgate.export.lake import SnapshotState
from headgate.export.sql import TableName, at_snapshot
from headgate.model import TableMode
from headgate.sql.athena import quoted
from headgate.store import Store
from headgate.tables.identity import KEY_COLUMN

CHANGE = "_change"
INSERT, UPDATE, DELETE = "insert", "update", "delete"
LINEAGE_FORMAT = 3
_SEQUENCE = "_last_updated_sequence_number"
_COORDINATES = ("_kafka_partition", "_kafka_offset")
_NEW, _OLD, _KNOWN = "_headgate_new", "_headgate_old", "_headgate_known"
WHOLE = "Run it once about the whole table: `headgate export run NAME --whole`."


@dataclass(frozen=True)
class TableKind:
    """How a table takes records; `key` are the columns that tell the rows of an upsert table apart."""

    mode: TableMode = TableMode.APPEND
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Increment:
    """The commits of a table that a run is about: those up to `snapshot`, without those up to `since`.

    The runs of an export are numbered; `key` are the columns of an upsert table's key; `since` is None where
    the run takes the whole table.
    """

    number: int
    table_uuid: str
    key: tuple[str, ...]
    snapshot: int
    sequence: int
    since: int | None = None
    since_sequence: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        fields = {name: said[name] for name in cls.__dataclass_fields__}
        return cls(**{**fields, "key": tuple(said["key"])})


def next_increment(
    table: TableName,
    snapshot: int,
    state: SnapshotState,
    key: tuple[str, ...],
    before: Increment | None,
    is_whole: bool,
) -> Increment:
    """What a run is about that comes behind `before`."""
    number = 1 if before is None else before.number + 1
    if before is None or is_whole:
        return Increment(number, state.table_uuid, key, snapshot, state.sequence)
    if before.table_uuid != state.table_uuid:
        raise InvalidRequest(f"Table '{table}' is another one than the run before has read.", WHOLE)
    return Increment(
        number, state.table_uuid, key, snapshot, state.sequence, before.snapshot, before.sequence
    )


def kind_of(store: Store, cluster: str, table: TableName) -> TableKind | None:
    """As the engine has said; None of a table that no topic is materialized in."""
    if table.namespace != (cluster,):
        return None
    record = next((one for one in store.tables() if one.spec.topic == table.name), None)
    if record is None:
        return None
    detail = record.status.detail
    if "mode" not in detail:
        raise TransientError(f"Table '{table}' is not materialized yet.", "The run is tried again.")
    return TableKind(TableMode(detail["mode"]), tuple(detail.get("key") or ()))


def checked_kind(table: TableName, kind: TableKind | None, state: SnapshotState) -> TableKind:
    """How a table takes records, where it can be told what is new in it."""
    if kind is None:
        if state.is_materialized:
            raise InvalidRequest(
                f"Table '{table}' is disabled: how its topic came into it is not known any more.",
                "Enable it again, or export it without `incremental`.",
            )
        kind = TableKind()
    if kind.mode is TableMode.SCD2:
        raise InvalidRequest(
            f"Table '{table}' keeps versions of its rows (scd2), which end when another begins.",
            "Incremental exports read append and upsert tables.",
        )
    if kind.key and CHANGE in (column.name for column in state.columns):
        raise InvalidRequest(
            f"Table '{table}' has a column '{CHANGE}' of its own.", "Export it without `incremental`."
        )
    if not kind.key and state.format_version < LINEAGE_FORMAT:
        raise InvalidRequest(
            f"Table '{table}' has format version {state.format_version}, which does not say when rows came.",
            f"headgate table alter {table.name} --format-version 3",
        )
    return kind


def relation(
    table: TableName,
    increment: Increment,
    now: SnapshotState,
    before: SnapshotState | None,
) -> str:
    """What a run reads instead of the table. `before` is the state of `since`, of an upsert table."""
    current = at_snapshot(table, increment.snapshot)
    if not increment.key:
        if increment.since is None:
            return current
        return f"(SELECT * FROM {current} WHERE {_SEQUENCE} > {increment.since_sequence:d})"
    if increment.since is None:
        return f"(SELECT *, '{INSERT}' AS {quoted(CHANGE)} FROM {current})"
    if before is None:
        raise InvalidRequest(
            f"Table '{table}' no longer has the snapshot that the run before has read.", WHOLE
        )
    return _changes(current, at_snapshot(table, increment.since), increment.key, now, before)


def _changes(
    current: str, earlier: str, key: Sequence[str], now: SnapshotState, before: SnapshotState
) -> str:
    """Rows that came or are others now, and those that went, as they were."""
    old_names = {column.id: column.name for column in before.columns}
    named = [column for column in now.columns if column.name in (*key, KEY_COLUMN)]
    same = " AND ".join(
        f"{_of(_NEW, column.name)} <=> {_of(_OLD, old_names[column.id])}"
        for column in named
        if column.id in old_names
    )
    unmoved = " AND ".join(f"{_of(_NEW, name)} <=> {_of(_OLD, name)}" for name in _COORDINATES)
    known = f"(SELECT *, TRUE AS {quoted(_KNOWN)} FROM {earlier})"
    kept = ", ".join(_of(_NEW, column.name) for column in now.columns)
    is_new = f"{_of(_OLD, _KNOWN)} IS NULL"
    types = {column.id: column for column in before.columns}
    gone = ", ".join(_as_it_was(column.id, column.name, column.type, types) for column in now.columns)
    return (
        f"(SELECT {kept}, CASE WHEN {is_new} THEN '{INSERT}' ELSE '{UPDATE}' END AS {quoted(CHANGE)}"
        f" FROM {current} AS {quoted(_NEW)} LEFT JOIN {known} AS {quoted(_OLD)} ON {same}"
        f" WHERE {is_new} OR NOT ({unmoved})"
        f" UNION ALL SELECT {gone}, '{DELETE}' AS {quoted(CHANGE)}"
        f" FROM {earlier} AS {quoted(_OLD)} LEFT ANTI JOIN {current} AS {quoted(_NEW)} ON {same})"
    )


def _as_it_was(column_id: int, name: str, kind: str, before: Mapping[int, Any]) -> str:
    """A column of a row that is gone; NULL where it was not there, or was a struct of other fields."""
    was = before.get(column_id)
    if was is None or (was.type != kind and (was.is_nested or kind.startswith("{"))):
        return f"NULL AS {quoted(name)}"
    return f"{_of(_OLD, was.name)} AS {quoted(name)}"


def _of(alias: str, name: str) -> str:
    return f"{quoted(alias)}.{quoted(name)}"
