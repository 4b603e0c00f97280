"""The Delta log of a table follows its Iceberg metadata, over the same files.

What is committed to the log is the difference between the metadata that its newest version shows and the
table's own: one version for each snapshot on a straight way, one for all otherwise. The log itself says what
it shows, so that a crash anywhere is healed by doing it again.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from pyspark.sql import SparkSession

from headgate import __version__
from headgate.delta.actions import (
    OPERATIONS,
    VECTORS,
    add_action,
    commit_info,
    deletes_of,
    high_water_action,
    log_path,
    mark_actions,
    metadata_action,
    protocol_action,
    remove_action,
    with_vector,
)
from headgate.delta.files import Files, files_at
from headgate.delta.log import FOLDER as LOG_FOLDER
from headgate.delta.log import REBUILD, DeltaLog
from headgate.delta.log import VECTORS as VECTORS_FOLDER
from headgate.delta.schema import WIDENING, DeltaSchema, conflict, delta_schema, may_conflict, widened_types
from headgate.delta.state import LogState, Mirrored, live_rows
from headgate.delta.stats import file_stats
from headgate.delta.vectors import Blob, file_name, pack
from headgate.errors import MirrorStopped, StaleLog
from headgate.failpoints import failpoint
from headgate.tables.lake import Lake
from headgate.tables.mirror_source import DataFile, Held, MirrorSource, held_columns, items

Json = dict[str, Any]
# The log's number, once there is one; before and after it, what is being done to it.
GENERATION_KEY = "headgate.delta"
CREATING, REMOVING, REMOVED = "creating", "removing", "none"
# Other engines that are at the same log: so often the log is read again.
TRIES = 3
_OWN_PROPERTIES = frozenset({GENERATION_KEY})


class NeedsRewrite(MirrorStopped):
    """Live files name columns otherwise than the table's schema does, or hold narrower types."""


class NeedsWiderFiles(NeedsRewrite):
    """Live files hold narrower types than the table's schema, and somebody reads who does not widen them."""


@dataclass(frozen=True)
class View:
    """The table at one snapshot, as the log is to show it."""

    metadata: Any
    snapshot: Any | None
    schema_id: int
    schema: DeltaSchema
    properties: Mapping[str, str]
    # When it became so.
    at: int


@dataclass
class FileActions:
    """What a commit does to files; vectors that are yet to be written are by path."""

    removed: list[str]
    added: list[DataFile]
    vectors: dict[str, tuple[Any, ...]]


class DeltaMirror:
    """Of one table. Not for two threads at once."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        topic: str,
        open_files: Callable[[str], Files] = files_at,
    ) -> None:
        self._lake = lake
        self._topic = topic
        self._source = MirrorSource(spark, topic)
        self._open_files = open_files
        # Whether the log is all that readers have: then every column must be exact in it.
        self.is_alone = False
        # Whether all who read it know columns whose type was widened.
        self.widens = True
        self._log: DeltaLog | None = None
        self._files: Files | None = None
        self._state: LogState | None = None
        # The metadata that the log was last compared with, and how many snapshots there were.
        self._which: tuple[str, str] | None = None
        self._seen: str | None = None
        self._snapshots = 0
        # The snapshot that the log's first version shows.
        self._oldest: int | None = None
        self._views: dict[tuple[int, bool], DeltaSchema] = {}
        self._held: dict[str, Held] = {}

    def forget(self) -> None:
        """Trust nothing that was read before."""
        self._state = self._seen = self._log = self._files = self._oldest = None
        self._views = {}

    @property
    def facts(self) -> dict[str, Any]:
        if self._state is None or self._state.mirrored is None:
            return {}
        snapshot = self._state.mirrored.snapshot
        return {
            "version": self._state.version,
            "snapshot_id": None if snapshot is None else str(snapshot),
            "files": len(self._state.files),
            "rows": self._state.rows,
            "widened_types": WIDENING in self._state.protocol.get("readerFeatures", ()),
        }

    def size(self) -> int | None:
        """The bytes of the log, with the vectors that are copied for it; None where it is not open."""
        if self._files is None:
            return None
        return self._files.size(LOG_FOLDER) + self._files.size(VECTORS_FOLDER)

    # -- what is asked of it

    def catch_up(self, table: Any) -> None:
        """Bring the log to where the table is. Raises MirrorStopped when it cannot without its owner."""
        for left in reversed(range(TRIES)):
            try:
                self._catch_up(table)
            except StaleLog:
                self.forget()
                if not left:
                    raise
            except BaseException:
                # What was done of it, the log itself knows.
                self.forget()
                raise
            else:
                return

    def rebuild(self, table: Any) -> None:
        """Write the log anew, with other version numbers, whatever it is like now."""
        self.forget()
        number, _ = _generation(table.properties().get(GENERATION_KEY))
        self._announce(table, CREATING, number + 1)
        self.catch_up(table)

    def remove(self, table: Any) -> None:
        """The table is no Delta table any more."""
        number, doing = _generation(table.properties().get(GENERATION_KEY))
        if not number or doing == REMOVED:
            return
        self.forget()
        self._announce(table, REMOVING, number)
        self._open(table).remove()
        self._announce(table, REMOVED, number)

    def truncate(self, table: Any, kept: frozenset[int] | None = None) -> int:
        """Cut off the versions whose snapshots the table has no more: their files are gone, or will be.
        `kept`: the snapshots that an expiry is about to leave. How many versions that were."""
        self.catch_up(table)
        if self._state is None:
            return 0
        log = self._open(table)
        there = snapshot_ids(table) if kept is None else kept
        cut = log.truncate(self._state, log.first_shown(self._state, set(there)))
        self._oldest = log.oldest()
        return cut

    # -- following

    def _catch_up(self, table: Any) -> None:
        metadata = table.operations().current()
        which = (str(metadata.uuid()), str(metadata.location()))
        if which != self._which:
            # A table of the same name that came after another.
            self.forget()
            self._which = which
        location = str(metadata.metadataFileLocation())
        if self._state is not None and location == self._seen:
            return
        log = self._open(table)
        number, doing = _generation(table.properties().get(GENERATION_KEY))
        state = self._state or self._load(log, number, doing)
        if state is None:
            number = max(number, 0) + (0 if doing == CREATING else 1)
            if doing != CREATING:
                self._announce(table, CREATING, number)
                metadata = table.operations().current()
            failpoint("mirror-announced")
            log.remove()
            state = LogState()
            self._first(table, log, state, metadata, number)
        else:
            self._follow(table, log, state, metadata)
        if str(table.properties().get(GENERATION_KEY)) != str(number):
            self._lake.set_property(table, GENERATION_KEY, str(number))
            table.refresh()
        metadata = table.operations().current()
        self._state, self._seen = state, str(metadata.metadataFileLocation())
        snapshots = int(metadata.snapshots().size())
        self._oldest = log.oldest() if self._oldest is None else self._oldest
        expired = self._oldest is not None and table.snapshot(self._oldest) is None
        if expired or snapshots < self._snapshots:
            # Some have expired, perhaps by another's hand.
            log.truncate(state, log.first_shown(state, set(snapshot_ids(table))))
            self._oldest = log.oldest()
        self._snapshots = snapshots

    def _load(self, log: DeltaLog, number: int, doing: str | None) -> LogState | None:
        """The log as it is; None when it is to be written from the beginning."""
        if doing == CREATING:
            try:
                state = log.load()
            except MirrorStopped:
                return None  # what is there is to go
            mirrored = None if state is None else state.mirrored
            return state if mirrored is not None and mirrored.generation == number else None
        if doing is not None or number <= 0:
            return None
        state = log.load()
        if state is None:
            raise MirrorStopped(
                f"The Delta log of table '{self._topic}' is gone.", REBUILD.format(topic=self._topic)
            )
        return state

    def _first(self, table: Any, log: DeltaLog, state: LogState, metadata: Any, number: int) -> None:
        """Version 0: all that the table has now."""
        snapshot = table.currentSnapshot()
        view = self._view(metadata, snapshot, metadata.currentSchemaId())
        live = self._source.live(table, snapshot)
        self._check_names(table, metadata, live)
        files = FileActions([], [], {})
        for path, (file, deletes) in live.items():
            files.added.append(self._source.data_file(table, file))
            if deletes:
                files.vectors[path] = deletes
        rows = metadata.formatVersion() >= 3 and all(file.rows is not None for file in files.added)
        mirrored = Mirrored(
            str(metadata.uuid()), number, str(metadata.metadataFileLocation()), _id(snapshot), view.schema_id
        )
        self._commit(table, log, state, view, mirrored, files, "CREATE TABLE", True, rows)
        self._oldest = None

    def _follow(self, table: Any, log: DeltaLog, state: LogState, metadata: Any) -> None:
        mirrored = state.mirrored
        if mirrored is None or mirrored.table != str(metadata.uuid()):
            raise MirrorStopped(
                f"The Delta log in the folder of table '{self._topic}' is that of another table.",
                REBUILD.format(topic=self._topic),
            )
        location = str(metadata.metadataFileLocation())
        if mirrored.metadata == location:
            return
        chain = self._chain(table, mirrored.snapshot)
        differs = metadata.currentSchemaId() != mirrored.schema and self._may_differ(metadata)
        if chain is None or differs:
            self._at_once(table, log, state, metadata, chain is None, check=differs)
        else:
            for snapshot in chain:
                self._one(table, log, state, metadata, snapshot)
        self._metadata_alone(table, log, state, metadata)

    def _chain(self, table: Any, since: int | None) -> list[Any] | None:
        """The snapshots after `since`, the oldest first; None when there is no straight way from there."""
        found: list[Any] = []
        snapshot = table.currentSnapshot()
        while snapshot is not None and snapshot.snapshotId() != since:
            found.append(snapshot)
            parent = snapshot.parentId()
            if parent is None:
                return None if since is not None else found[::-1]
            snapshot = table.snapshot(parent)
            if snapshot is None:
                return None
        return None if snapshot is None and since is not None else found[::-1]

    def _may_differ(self, metadata: Any) -> bool:
        """Whether files may hold columns that some reader of Delta would not find, or not read: then what is
        between two schemas is not shown, and files are looked into."""
        schemas = self._source.schemas(metadata).values()
        return may_conflict(schemas, self._source.spelling) or bool(self._widened(schemas))

    def _widened(self, schemas: Iterable[Mapping[str, Any]]) -> Mapping[int, str]:
        """The types that must be in the files themselves, by field id."""
        return {} if self.widens else widened_types(dict(one) for one in schemas)

    def _one(self, table: Any, log: DeltaLog, state: LogState, metadata: Any, snapshot: Any) -> None:
        """The version of one snapshot."""
        schema_id = snapshot.schemaId()
        view = self._view(metadata, snapshot, metadata.currentSchemaId() if schema_id is None else schema_id)
        changes = self._source.changes(table, snapshot)
        operation = str(snapshot.operation())
        files: FileActions | None = None
        if not changes.is_partial:
            files = FileActions(
                list(changes.removed),
                list(changes.added),
                {
                    path: () if file is None else (file,)
                    for path, file in changes.vectors.items()
                    if path not in set(changes.removed)
                },
            )
            if not self._adds_up(state, files, snapshot):
                files = None
        if files is None:
            files = self._difference(table, state, snapshot)
        self._commit(
            table,
            log,
            state,
            view,
            self._next(state, view),
            files,
            OPERATIONS.get(operation, "WRITE"),
            operation != "replace",
        )

    def _at_once(
        self, table: Any, log: DeltaLog, state: LogState, metadata: Any, restored: bool, check: bool
    ) -> None:
        """One version for all that happened since."""
        snapshot = table.currentSnapshot()
        view = self._view(metadata, snapshot, metadata.currentSchemaId())
        if check or self._may_differ(metadata):
            self._check_names(table, metadata, self._source.live(table, snapshot))
        files = self._difference(table, state, snapshot)
        operation = "RESTORE" if restored else "WRITE"
        at = max(view.at, int(metadata.lastUpdatedMillis()) if restored else view.at)
        self._commit(table, log, state, replace(view, at=at), self._next(state, view), files, operation, True)

    def _metadata_alone(self, table: Any, log: DeltaLog, state: LogState, metadata: Any) -> None:
        """Columns and properties that changed without a snapshot."""
        snapshot = table.currentSnapshot()
        view = replace(
            self._view(metadata, snapshot, metadata.currentSchemaId()), at=int(metadata.lastUpdatedMillis())
        )
        described = self._described(state, view, state.protocol, {})
        if not described:
            return
        if self._may_differ(metadata):
            self._check_names(table, metadata, self._source.live(table, snapshot))
        nothing = FileActions([], [], {})
        operation = "SET TBLPROPERTIES"
        if state.metadata["schemaString"] != view.schema.text:
            operation = "CHANGE COLUMNS"
        self._commit(table, log, state, view, self._next(state, view), nothing, operation, False)

    # -- commits

    def _commit(
        self,
        table: Any,
        log: DeltaLog,
        state: LogState,
        view: View,
        mirrored: Mirrored,
        files: FileActions,
        operation: str,
        data_change: bool,
        rows: bool | None = None,
    ) -> None:
        at = max(view.at, state.timestamp + 1) if state.version >= 0 else view.at
        with_rows = _tracks_rows(state) if rows is None else rows
        blobs = {
            path: self._source.blob(table, self._known_files(), path, deletes)
            for path, deletes in files.vectors.items()
            if deletes
        }
        # Position deletes of a whole partition may be about other files of it.
        blobs = {path: blob for path, blob in blobs.items() if blob.cardinality}
        described = self._described(state, view, state.protocol, blobs, mirrored, with_rows)
        vectors = self._write_vectors(log, state.version + 1, mirrored, blobs)
        actions: list[Json] = [
            commit_info(operation, at, mirrored, __version__),
            *described,
            *mark_actions(mirrored, at),
        ]
        if with_rows:
            actions.append(high_water_action(int(view.metadata.nextRowId())))
        actions += self._file_actions(state, view, files, vectors, at, data_change, with_rows)
        log.commit(state, actions)
        log.checkpoint_if_due(state)

    def _described(
        self,
        state: LogState,
        view: View,
        protocol: Mapping[str, Any],
        blobs: Mapping[str, Blob],
        mirrored: Mirrored | None = None,
        rows: bool | None = None,
    ) -> list[Json]:
        """What the log is to say of columns, properties and features, where it says something else now."""
        with_rows = _tracks_rows(state) if rows is None else rows
        mirrored = mirrored or self._next(state, view)
        features = {*protocol.get("readerFeatures", ()), *view.schema.features}
        if blobs:
            features.add(VECTORS)
        name, created = self._topic, state.metadata.get("createdTime", view.at)
        log_id = uuid.uuid5(uuid.UUID(mirrored.table), f"log {mirrored.generation}")
        metadata = metadata_action(log_id, name, view.schema, view.properties, features, with_rows, created)
        found = [protocol_action(features, with_rows), metadata]
        return [
            action
            for action, now in zip(found, (state.protocol, state.metadata), strict=True)
            if next(iter(action.values())) != now
        ]

    def _write_vectors(
        self, log: DeltaLog, version: int, mirrored: Mirrored, blobs: Mapping[str, Blob]
    ) -> dict[str, Json]:
        """By name they are those of this version and snapshot: done again, they are the same."""
        if not blobs:
            return {}
        said = f"{mirrored.generation} {version} {mirrored.snapshot}"
        name = uuid.uuid5(uuid.UUID(mirrored.table), said)
        data, vectors = pack(blobs, name, VECTORS_FOLDER)
        log.write_vectors(file_name(name), data)
        return vectors

    def _file_actions(
        self,
        state: LogState,
        view: View,
        files: FileActions,
        vectors: Mapping[str, Json],
        at: int,
        data_change: bool,
        rows: bool,
    ) -> list[Json]:
        removed, added = list[Json](), list[Json]()
        for path in files.removed:
            before = state.files.get(log_path(path))
            if before is not None:
                removed.append(remove_action(before, at, data_change))
        for file in files.added:
            vector = vectors.get(file.path)
            tag = self._source.deletes_tag(files.vectors.get(file.path, ()))
            stats = file_stats(file.json, view.schema.leaves, vector is not None)
            if rows and file.rows is None:
                raise AssertionError(f"file {file.path} has rows without ids")
            added.append(
                add_action(
                    log_path(file.path),
                    file.json,
                    stats,
                    at,
                    data_change,
                    file.rows if rows else None,
                    vector,
                    tag,
                )
            )
        fresh = {file.path for file in files.added}
        for path, deletes in files.vectors.items():
            before = state.files.get(log_path(path))
            if path in fresh or before is None:
                continue
            removed.append(remove_action(before, at, data_change))
            tag = self._source.deletes_tag(deletes)
            added.append(with_vector(before, vectors.get(path), tag, data_change))
        return [*removed, *added]

    def _difference(self, table: Any, state: LogState, snapshot: Any | None) -> FileActions:
        """From what the log has to what a snapshot has, file by file."""
        live = self._source.live(table, snapshot)
        found = FileActions([], [], {})
        listed = {log_path(path): path for path in live}
        found.removed = [unquote(path) for path in state.files if path not in listed]
        for logged, path in listed.items():
            file, deletes = live[path]
            before = state.files.get(logged)
            if before is None:
                found.added.append(self._source.data_file(table, file))
            if (before is None and deletes) or (
                before is not None and deletes_of(before) != self._source.deletes_tag(deletes)
            ):
                found.vectors[path] = deletes
        return found

    def _adds_up(self, state: LogState, files: FileActions, snapshot: Any) -> bool:
        """Whether the log would have as many rows and files as the snapshot says it has."""
        summary = snapshot.summary()
        total, gone = summary.get("total-records"), summary.get("total-position-deletes")
        count = summary.get("total-data-files")
        if total is None or count is None:
            return False
        removed = {log_path(path) for path in files.removed}
        if not removed <= state.files.keys():
            return False
        added = {log_path(file.path): file for file in files.added}
        rows = state.rows - sum(live_rows(state.files[path]) for path in removed)
        for logged, file in added.items():
            if logged in state.files and logged not in removed:
                return False
            rows += file.json["record-count"]
        for path, deletes in files.vectors.items():
            logged = log_path(path)
            if logged not in added and (logged not in state.files or logged in removed):
                return False
            if logged in state.files and logged not in added:
                rows += _vector_rows(state.files[logged])
            rows -= sum(int(one.recordCount()) for one in deletes)
        expected = int(total) - int(gone or 0)
        return rows == expected and len(state.files) - len(removed) + len(added) == int(count)

    # -- views

    def _view(self, metadata: Any, snapshot: Any | None, schema_id: int) -> View:
        made = self._views.get((schema_id, self.widens))
        if made is None:
            schemas = self._source.schemas(metadata)
            earlier = [schema for number, schema in schemas.items() if number <= schema_id and self.widens]
            made = delta_schema(schemas[schema_id], earlier, self._source.spelling)
            self._views[schema_id, self.widens] = made
        if self.is_alone and made.inexact:
            raise MirrorStopped(
                f"Delta has no type for columns of table '{self._topic}': {', '.join(made.inexact)}.",
                f"Have it as Iceberg too: `headgate table alter {self._topic} --formats iceberg,delta`.",
            )
        properties = {
            key: value
            for key, value in self._source.properties(metadata).items()
            if key not in _OWN_PROPERTIES
        }
        at = int(metadata.lastUpdatedMillis() if snapshot is None else snapshot.timestampMillis())
        return View(metadata, snapshot, schema_id, made, properties, at)

    def _next(self, state: LogState, view: View) -> Mirrored:
        before = state.mirrored
        if before is None:
            raise AssertionError("the log shows nothing yet")
        location = str(view.metadata.metadataFileLocation())
        current = view.metadata.currentSnapshot()
        if current is not None and view.snapshot is not None and not current.equals(view.snapshot):
            # Metadata of snapshots in between is not kept: the way goes on from here.
            location = before.metadata
        return replace(before, metadata=location, snapshot=_id(view.snapshot), schema=view.schema_id)

    def _check_names(self, table: Any, metadata: Any, live: Mapping[str, Any]) -> None:
        """Raises when live files hold a column under another name than the schema's, or narrower than some
        reader takes it."""
        if not self._may_differ(metadata):
            return
        schemas = self._source.schemas(metadata)
        schema, types = schemas[metadata.currentSchemaId()], self._widened(schemas.values())
        self._held = {path: held for path, held in self._held.items() if path in live}
        for path in live:
            if path not in self._held:
                self._held[path] = held_columns(self._known_files(), path)
            narrower = self._held[path].narrower(types)
            if narrower is not None:
                raise NeedsWiderFiles(
                    f"The Delta side of table '{self._topic}' waits: file {path} {narrower}, which is wider "
                    "now.",
                    f"Have such files rewritten: `headgate table compact {self._topic} --all`.",
                )
            why = conflict(schema, self._source.spelling, self._held[path].names)
            if why is not None:
                raise NeedsRewrite(
                    f"The Delta side of table '{self._topic}' waits: file {path} {why}, and readers of Delta "
                    "find columns by name.",
                    f"Have such files written anew: `headgate table alter {self._topic} --rewrite`.",
                )

    def _open(self, table: Any) -> DeltaLog:
        if self._log is None:
            self._files = self._open_files(str(table.location()))
            self._log = DeltaLog(self._files, self._topic)
        return self._log

    def _known_files(self) -> Files:
        if self._files is None:
            raise AssertionError("the log is not open")
        return self._files

    def _announce(self, table: Any, doing: str, number: int) -> None:
        self._lake.set_property(table, GENERATION_KEY, f"{doing} {number}")
        table.refresh()


def _generation(said: str | None) -> tuple[int, str | None]:
    """The log's number, and what is being done to it; 0 when there never was one."""
    if said is None:
        return 0, None
    doing, _, number = said.rpartition(" ")
    return int(number), doing or None


def snapshot_ids(table: Any) -> frozenset[int]:
    listed = table.operations().current().snapshots()
    return frozenset(int(one.snapshotId()) for one in items(listed))


def _tracks_rows(state: LogState) -> bool:
    return "rowTracking" in state.protocol.get("writerFeatures", ())


def _id(snapshot: Any | None) -> int | None:
    return None if snapshot is None else int(snapshot.snapshotId())


def _vector_rows(add: Mapping[str, Any]) -> int:
    vector = add.get("deletionVector")
    return 0 if vector is None else int(vector["cardinality"])
