"""One run of an export, step by step. Each step can be done again: what is decided is written down first.

Chosen (the snapshots), held (their tags), written (a draft), recorded (its figures), moved (under its name),
with its manifest; then the run is `Written`, and those who wait for it are told. See docs/adr/0025.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import pyarrow as pa

from headgate.errors import HeadgateError, InvalidRequest, TransientError
from headgate.export.columns import Column, check_columns, flat_columns, has_fractions, ordering
from headgate.export.definition import ExportOptions
from headgate.export.files import PARTS, FileWriter, WrittenFile, even_blocks, files_of, name_in
from headgate.export.folder import FileFigures
from headgate.export.incremental import (
    CHANGE,
    Increment,
    TableKind,
    checked_kind,
    next_increment,
    relation,
)
from headgate.export.lake import SnapshotState
from headgate.export.lease import Lease
from headgate.export.manifest import manifest_of, manifest_text
from headgate.export.masks import Masking, key_versions
from headgate.export.names import ANY_PART, MANIFEST, ending_of, file_name
from headgate.export.personal import Suspicion
from headgate.export.places import Destination
from headgate.export.schedule import Bounds
from headgate.export.sql import (
    TableName,
    at_snapshot,
    bind,
    exploded,
    pin,
    rows_query,
    shape_query,
    tables_of,
    unrepeatable,
    without_end,
)
from headgate.export.tags import holders_of, personal_columns
from headgate.failpoints import failpoint
from headgate.model import EXPORT_TAG
from headgate.store import RunRecord, RunState

log = logging.getLogger(__name__)

PROGRESS_SECONDS = 2.0
# A run whose snapshots are gone takes others, so often.
CHOICES = 3
# In a run's detail: what it is about, of an incremental export; and whether all of the table was asked for.
INCREMENT, WHOLE_ASKED = "increment", "whole"
SINCE_SUFFIX = "-since"


class Tables(Protocol):
    """The tables of the catalog: `CatalogTables`."""

    def exists(self, table: TableName) -> bool: ...

    def snapshot(self, table: TableName) -> int: ...

    def state(self, table: TableName, snapshot: int) -> SnapshotState | None: ...

    def hold(self, table: TableName, tag: str, snapshot: int, seconds: float) -> bool: ...

    def release(self, table: TableName, tag: str) -> None: ...


class Rows(Protocol):
    """What answers queries of the lake: `QueryRows`."""

    def shape(self, sql: str, zone: str, name: str) -> pa.Schema: ...

    def batches(
        self, sql: str, zone: str, name: str
    ) -> AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]: ...


@dataclass(frozen=True)
class Surroundings:
    """What a run needs: tables and rows of the lake, keys by name, where files go, the cluster whose tables
    are named without a namespace, how tables take records, what the last run of an incremental export was
    about, and which columns of a table are personal."""

    tables: Tables
    rows: Rows
    secret: Callable[[str], str]
    destination: Callable[[ExportOptions], Destination]
    cluster: str
    kind: Callable[[TableName], TableKind | None]
    last_increment: Callable[[str], Mapping[str, Any] | None]
    personal: Callable[[TableName], frozenset[str]]


def tag_of(run: RunRecord) -> str:
    return f"{EXPORT_TAG}{run.id}"


def since_tag_of(run: RunRecord) -> str:
    """Of the snapshot that the run before has read."""
    return f"{tag_of(run)}{SINCE_SUFFIX}"


def bounds_of(run: RunRecord) -> Bounds:
    return Bounds(datetime.fromtimestamp(run.period_start, UTC), datetime.fromtimestamp(run.period_end, UTC))


def name_of(run: RunRecord, options: ExportOptions, part: str | None = None) -> str:
    ending = ending_of(options.format, options.compression)
    zone = ZoneInfo(options.zone)
    return file_name(options.file_name, ending, run.export, run.id, bounds_of(run), zone, run.repeat, part)


class FileRun:
    """A run up to the file with its manifest. `detail` is what is known of it, kept in the control state."""

    def __init__(self, run: RunRecord, options: ExportOptions, around: Surroundings, lease: Lease) -> None:
        self._run = run
        self._options = options
        self._around = around
        self._lease = lease
        self._bounds = bounds_of(run)
        self._manifest = f"{name_of(run, options)}{MANIFEST}"
        self.detail: dict[str, Any] = dict(run.detail)

    def carry_out(self) -> None:
        """The file is there when it ends, and the run is `Written`."""
        failpoint("export-taken")
        began = time.monotonic()
        tables = self._tables()
        snapshots = self._held(tables)
        failpoint("export-held")
        text = pin(self._bound, self._around.cluster, self._relations(snapshots))
        text = exploded(text, self._options.explode)
        columns = self._columns(text)
        folder = self._around.destination(self._options)
        folder.forget_drafts(self._name_of(ANY_PART))
        folder.forget_drafts(self._manifest)
        files = self._written(folder) or self._write(folder, text, columns)
        failpoint("export-moved")
        manifest = manifest_of(self._run, self._options, files, columns, self.detail)
        self._write_manifest(folder, manifest_text(manifest))
        failpoint("export-manifest")
        self.detail["seconds"] = round(time.monotonic() - began, 3)
        if INCREMENT in self.detail:
            self.detail[INCREMENT] = {**self.detail[INCREMENT], "done": True}
        self._note(RunState.WRITTEN)

    def give_up(self) -> None:
        """The snapshots of a run that has failed for good need not be held. The next run of an incremental
        export takes its rows: a file that got its name goes."""
        for table in self._chosen():
            try:
                self._release(table)
            except HeadgateError as error:
                log.warning("run %s: a tag stays until it expires: %s", self._run.id, error)
        if INCREMENT in self.detail:
            # It may be known as done here alone, where the control state did not take it.
            self.detail[INCREMENT] = {**self.detail[INCREMENT], "done": False}
            try:
                if "file" in self.detail:
                    self._remove_written(self._around.destination(self._options))
            except HeadgateError as error:
                log.warning("run %s: its files stay: %s", self._run.id, error)

    # -- the snapshots

    @property
    def _bound(self) -> str:
        return without_end(bind(self._options.sql, self._bounds))

    def _tables(self) -> list[TableName]:
        found, own = tables_of(self._options.sql, self._around.cluster)
        for name in sorted(own):
            if self._around.tables.exists(TableName((self._around.cluster,), name)):
                raise InvalidRequest(
                    f"The query names a query of its own '{name}' (WITH), as a table is called.",
                    "Give it another name: which is meant must be plain.",
                )
        return sorted(found)

    def _held(self, tables: list[TableName]) -> Mapping[TableName, int]:
        """A snapshot of each table, chosen once, recorded, and held by a tag."""
        for _ in range(CHOICES):
            chosen = self._chosen()
            if set(chosen) != set(tables):
                chosen = {table: self._around.tables.snapshot(table) for table in tables}
                self.detail["snapshots"] = {str(table): snapshot for table, snapshot in chosen.items()}
                self.detail["tables"] = [[*table.namespace, table.name] for table in chosen]
                if (table := self._incremental(chosen)) is not None:
                    self.detail[INCREMENT] = self._increment(table, chosen[table]).to_dict()
                self._note(RunState.RUNNING)
                failpoint("export-chosen")
            seconds = self._options.hold_for.total_seconds()
            tag = tag_of(self._run)
            if all(
                self._around.tables.hold(table, tag, snapshot, seconds) for table, snapshot in chosen.items()
            ):
                self._hold_since(chosen, seconds)
                return chosen
            # Expired before it was held, or an erasure has let it go: what was written is of other rows.
            for table in chosen:
                self._release(table)
            self._forget_written()
            self.detail.pop("tables")
        raise TransientError("The snapshots of its tables expire while they are taken.")

    def _chosen(self) -> dict[TableName, int]:
        names = [TableName(tuple(parts[:-1]), parts[-1]) for parts in self.detail.get("tables") or ()]
        return {table: int(self.detail["snapshots"][str(table)]) for table in names}

    def _release(self, table: TableName) -> None:
        tables = self._around.tables
        tables.release(table, tag_of(self._run))
        if INCREMENT in self.detail:
            tables.release(table, since_tag_of(self._run))

    # -- what was committed since the run before

    def _incremental(self, tables: Iterable[TableName]) -> TableName | None:
        """The table that it is about, of an incremental export."""
        named = [table for table in tables if table.name == self._options.incremental]
        return named[0] if named else None

    def _increment(self, table: TableName, snapshot: int) -> Increment:
        state = self._around.tables.state(table, snapshot)
        if state is None:
            raise TransientError("The snapshots of its tables expire while they are taken.")
        kind = checked_kind(table, self._around.kind(table), state)
        before = self._around.last_increment(self._run.export)
        known = None if before is None else Increment.from_dict(before)
        return next_increment(table, snapshot, state, kind.key, known, bool(self.detail.get(WHOLE_ASKED)))

    def _hold_since(self, tables: Iterable[TableName], seconds: float) -> None:
        """Changes of an upsert table are told from the snapshot of the run before: it is held too, if it is
        still there."""
        table = self._incremental(tables)
        if table is not None:
            increment = Increment.from_dict(self.detail[INCREMENT])
            if increment.key and increment.since is not None:
                self._around.tables.hold(table, since_tag_of(self._run), increment.since, seconds)

    def _relations(self, snapshots: Mapping[TableName, int]) -> dict[TableName, str]:
        """What the query reads instead of each table."""
        found = {table: at_snapshot(table, snapshot) for table, snapshot in snapshots.items()}
        if (table := self._incremental(snapshots)) is not None:
            tables, increment = self._around.tables, Increment.from_dict(self.detail[INCREMENT])
            now = tables.state(table, increment.snapshot)
            if now is None:
                raise TransientError(f"The snapshot of table '{table}' is not there any more.")
            before = None if increment.since is None else tables.state(table, increment.since)
            found[table] = relation(table, increment, now, before)
        return found

    def _check_tags(self, columns: list[Column]) -> None:
        """What a table or a schema calls personal leaves masked."""
        chosen = self._chosen()
        tagged = frozenset[str]().union(*map(self._around.personal, chosen))
        holders = holders_of(self._states(chosen), tagged)
        bare = [
            name
            for name in personal_columns(self._bound, columns, tagged, holders)
            if name not in self._options.masks
        ]
        if bare:
            listed = ", ".join(f"'{name}'" for name in bare)
            raise InvalidRequest(
                f"Its table or the schema of its topic calls {listed} personal, which would leave unmasked.",
                "Name how it is hidden under `masks`, or take it out of the query.",
            )

    def _states(self, chosen: Mapping[TableName, int]) -> list[SnapshotState]:
        """What the tables are at their snapshots."""
        states = [self._around.tables.state(table, snapshot) for table, snapshot in chosen.items()]
        found = [state for state in states if state is not None]
        if len(found) < len(states):
            raise TransientError("The snapshots of its tables expire while they are taken.")
        return found

    def _check_change(self, columns: list[Column]) -> None:
        """Rows of an upsert table say what became of them."""
        table = self._incremental(self._chosen())
        if table is None or not Increment.from_dict(self.detail[INCREMENT]).key:
            return
        if CHANGE not in [column.name for column in columns]:
            raise InvalidRequest(
                f"Rows of the upsert table '{table}' leave without what became of them.",
                f"Select its column {CHANGE} too: insert, update or delete.",
            )

    # -- the rows

    def _columns(self, text: str) -> list[Column]:
        schema = self._around.rows.shape(shape_query(text), self._options.zone, self._who)
        columns = flat_columns(schema)
        check_columns(columns, self._options)
        self._check_change(columns)
        self._check_tags(columns)
        self.detail["unrepeatable"] = unrepeatable(
            self._options.sql, has_fractions(columns), self._fractions()
        )
        self.detail["keys"] = key_versions(
            [mask.secret for mask in self._options.masks.values() if mask.secret is not None],
            self._around.secret,
        )
        return columns

    def _fractions(self) -> frozenset[str]:
        """Columns of the tables that are FLOAT or DOUBLE, or have such a field."""
        columns = [column for state in self._states(self._chosen()) for column in state.columns]
        return frozenset(column.name for column in columns if column.has_fractions)

    @property
    def _who(self) -> str:
        return f"export {self._run.export}"

    def _name_of(self, part: str) -> str:
        return name_of(self._run, self._options, None if self._options.part_bytes is None else part)

    def _written(self, folder: Destination) -> list[WrittenFile] | None:
        """The files of this run, if an earlier try has moved all of them already."""
        if "file" not in self.detail:
            return None
        files = files_of(self.detail)
        if any(folder.sha256(name_in(file)) != file["sha256"] for file in files):
            self._remove_written(folder)
            return None
        return [
            WrittenFile(name_in(file), file["rows"], FileFigures(file["bytes"], file["sha256"]))
            for file in files
        ]

    def _forget_written(self) -> None:
        """Files that an earlier try has written go, and what was recorded of them."""
        if "file" in self.detail:
            self._remove_written(self._around.destination(self._options))
            for name in ("file", "rows", "bytes", "sha256", PARTS):
                self.detail.pop(name, None)
            self._note(RunState.RUNNING)

    def _remove_written(self, folder: Destination) -> None:
        """The files of this run that have got their names."""
        for file in files_of(self.detail):
            if folder.sha256(name_in(file)) == file["sha256"]:
                folder.remove(name_in(file))

    def _write(self, folder: Destination, text: str, columns: list[Column]) -> list[WrittenFile]:
        """The files under their names."""
        order = ordering(columns, self._options.order_by)
        sql = rows_query(text, [(column.path, column.name) for column in columns], order)
        masking = Masking(self._options, columns, self._around.secret)
        suspicion = Suspicion([column.name for column in columns], masking.columns)
        files = self._encode(sql, masking, suspicion, folder)
        failpoint("export-written")
        recorded = [file.to_dict(folder) for file in files]
        self.detail |= {
            "file": recorded[0]["file"],
            "rows": sum(file.rows for file in files),
            "bytes": sum(file.figures.bytes for file in files),
            "warnings": suspicion.warnings,
            "manifest": self._manifest,
        }
        self.detail |= (
            {"sha256": files[0].figures.sha256} if self._options.part_bytes is None else {PARTS: recorded}
        )
        self._note(RunState.RUNNING)
        failpoint("export-recorded")
        for file in files:
            assert file.draft is not None
            folder.publish(file.draft, file.name, file.figures.sha256)
        return files

    def _encode(
        self, sql: str, masking: Masking, suspicion: Suspicion, folder: Destination
    ) -> list[WrittenFile]:
        with self._around.rows.batches(sql, self._options.zone, self._who) as (schema, batches):
            masked = masking.apply(pa.RecordBatch.from_pylist([], schema=schema)).schema
            blocks = batches if self._options.part_bytes is None else even_blocks(batches)
            with FileWriter(
                folder, self._options, masked, lambda part: self._name_of(f"{part:04}")
            ) as writer:
                self._put(blocks, masking, suspicion, writer)
        return writer.files

    def _put(
        self, blocks: Iterator[pa.RecordBatch], masking: Masking, suspicion: Suspicion, writer: FileWriter
    ) -> None:
        rows, reported = 0, time.monotonic()
        for block in blocks:
            suspicion.look(block)
            self._check_suspicion(suspicion)
            writer.write(masking.apply(block))
            rows += block.num_rows
            self._lease.check()
            if time.monotonic() - reported > PROGRESS_SECONDS:
                reported = time.monotonic()
                self._lease.note(RunState.RUNNING, {**self.detail, "progress": rows})
            failpoint("export-writing")
        self._check_suspicion(suspicion)
        writer.finish()

    def _check_suspicion(self, suspicion: Suspicion) -> None:
        if self._options.strict and suspicion.warnings:
            raise InvalidRequest(
                f"It is strict, and {'; '.join(suspicion.warnings)}: nothing leaves.",
                "Mask the column, take it out of the query, or say strict: false.",
            )

    def _write_manifest(self, folder: Destination, text: str) -> None:
        with folder.draft(self._manifest) as (draft, out):
            out.write(text.encode())
        folder.publish(draft, self._manifest, out.figures.sha256)

    def _note(self, state: RunState) -> None:
        self._lease.note(state, self.detail)
