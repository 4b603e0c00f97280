"""The files of a Delta log: commits that are made once, checkpoints, and what is cut off at its old end.

The log has one writer, Headgate; any other is noticed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.delta.checkpoint import from_parquet, to_parquet
from headgate.delta.files import Files
from headgate.delta.state import DOMAIN, LogState, Mirrored, vectors_of
from headgate.delta.vectors import file_name, uuid_of
from headgate.errors import MirrorStopped, StaleLog
from headgate.failpoints import failpoint

Json = dict[str, Any]
FOLDER = "_delta_log"
LAST_CHECKPOINT = f"{FOLDER}/_last_checkpoint"
# Vectors lie where neither Iceberg's clean-up nor Delta's looks.
VECTORS = "_delta_vectors"
# Commits from one checkpoint to the next.
CHECKPOINT_EVERY = 20
# Checkpoints that are kept: the newest, and one of so many versions, for readers that go back.
NEWEST_CHECKPOINTS = 3
SPARSE_CHECKPOINTS = 500
# For how long a checkpoint tells of files that were removed.
REMOVED_MILLIS = 7 * 24 * 3600 * 1000
ENGINE = "headgate"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
REBUILD = "Write it anew from the Iceberg side: `headgate table mirror {topic} --rebuild`."


@dataclass(frozen=True)
class Listing:
    """The versions that the log's folder has files for."""

    commits: tuple[int, ...]
    checkpoints: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """What a commit says of itself: the snapshot it shows, and the vector files it brought."""

    snapshot: int | None
    vectors: frozenset[str]


@dataclass
class DeltaLog:
    """The log of one table. `topic` is for messages."""

    files: Files
    topic: str
    _entries: dict[int, Entry] = field(default_factory=dict)

    # -- reading

    def listing(self, after: str = "") -> Listing:
        commits, checkpoints = [], []
        for name in self.files.names(FOLDER, after):
            if found := _COMMIT.fullmatch(name):
                commits.append(int(found[1]))
            elif found := _CHECKPOINT.fullmatch(name):
                checkpoints.append(int(found[1]))
        return Listing(tuple(commits), tuple(checkpoints))

    def load(self) -> LogState | None:
        """The newest version; None when there is no log."""
        listing = self.listing(self._hint())
        if not listing.checkpoints:
            listing = self.listing()
        if not listing.commits and not listing.checkpoints:
            return None
        return self.state_at(max(listing.commits, default=-1), listing)

    def state_at(self, version: int, listing: Listing | None = None) -> LogState:
        listing = self.listing() if listing is None else listing
        base = max((one for one in listing.checkpoints if one <= version), default=None)
        state = LogState()
        if base is not None:
            state.apply(base, self._checkpoint(base))
            # Checkpoints do not hold what commits say of themselves.
            infos = [action["commitInfo"] for action in self._commit(base) if "commitInfo" in action]
            state.timestamp = infos[0]["inCommitTimestamp"]
        for one in range(0 if base is None else base + 1, version + 1):
            state.apply(one, self._commit(one))
        if state.version < 0:
            raise self._damaged(f"the log's folder holds no version up to {version}")
        return state

    def _hint(self) -> str:
        """A name in the folder after which the newest checkpoint is."""
        said = self.files.read(LAST_CHECKPOINT)
        try:
            return "" if said is None else f"{int(json.loads(said)['version']):020d}"
        except (ValueError, KeyError, TypeError):
            return ""

    def _commit(self, version: int) -> list[Json]:
        data = self.files.read(commit_name(version))
        if data is None:
            raise self._damaged(f"version {version} is missing")
        try:
            actions = [json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()]
        except ValueError as error:
            raise self._damaged(f"version {version} cannot be read") from error
        self._check_ours(version, actions)
        self._note(version, actions)
        return actions

    def _check_ours(self, version: int, actions: Sequence[Json]) -> None:
        info: Json = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
        marked = any(action.get("domainMetadata", {}).get("domain") == DOMAIN for action in actions)
        if not marked or "inCommitTimestamp" not in info:
            who = info.get("engineInfo") or "another writer"
            raise MirrorStopped(
                f"Version {version} of the Delta log of table '{self.topic}' was written by {who}: the log "
                "has no other writer than Headgate.",
                REBUILD.format(topic=self.topic) + " What was written there is not in the table.",
            )

    def _checkpoint(self, version: int) -> list[Json]:
        data = self.files.read(checkpoint_name(version))
        if data is None:
            raise self._damaged(f"the checkpoint of version {version} is missing")
        try:
            return from_parquet(data)
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError) as error:
            raise self._damaged(f"the checkpoint of version {version} cannot be read") from error

    def _damaged(self, what: str) -> MirrorStopped:
        return MirrorStopped(
            f"The Delta log of table '{self.topic}' is damaged: {what}.", REBUILD.format(topic=self.topic)
        )

    # -- writing

    def commit(self, state: LogState, actions: Sequence[Json]) -> None:
        """The next version, made once, whoever tries; `state` is then at it."""
        version = state.version + 1
        if state.version >= 0 and not self.files.exists(commit_name(state.version)):
            raise self._damaged(f"version {state.version} is missing")
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        if not self.files.put_new(commit_name(version), text.encode("utf-8")):
            raise StaleLog(f"Version {version} of the Delta log of table '{self.topic}' is there already.")
        failpoint("mirror-committed")
        state.apply(version, actions)
        self._note(version, actions)

    def checkpoint_if_due(self, state: LogState) -> None:
        if state.version and state.version % CHECKPOINT_EVERY == 0:
            self.checkpoint(state)
            self._thin(state.version)

    def checkpoint(self, state: LogState, is_newest: bool = True) -> None:
        actions = state.actions(state.timestamp - REMOVED_MILLIS)
        # The same state gives the same file: whoever was first is right.
        self.files.put_new(checkpoint_name(state.version), to_parquet(actions))
        failpoint("mirror-checkpointed")
        if is_newest:
            said = {"version": state.version, "size": len(actions)}
            self.files.put(LAST_CHECKPOINT, json.dumps(said).encode())

    def write_vectors(self, name: str, data: bytes) -> None:
        self.files.put(f"{VECTORS}/{name}", data)
        failpoint("mirror-vectors-written")

    def _thin(self, newest: int) -> None:
        """Checkpoints of versions in between are not needed: their commits are there."""
        listing = self.listing()
        # The first may be what all else begins with.
        old = listing.checkpoints[1:-NEWEST_CHECKPOINTS]
        self.files.delete(checkpoint_name(one) for one in old if one % SPARSE_CHECKPOINTS)

    # -- the old end

    def first_shown(self, state: LogState, snapshots: set[int]) -> int:
        """The first version from which on all show snapshots that the table still has."""
        listing = self.listing()
        first = state.version
        for version in reversed(listing.commits):
            if version > state.version:
                continue
            entry = self._entry(version)
            if entry.snapshot is not None and entry.snapshot not in snapshots:
                break
            first = version
        return first

    def truncate(self, state: LogState, first: int) -> int:
        """Versions before `first` are no more, nor what only they needed; how many were cut off."""
        listing = self.listing()
        if listing.commits[0] < first:
            base = self.state_at(first, listing)
            if first not in listing.checkpoints:
                self.checkpoint(base, is_newest=first > max(listing.checkpoints, default=-1))
            failpoint("mirror-truncating")
            self.files.delete(commit_name(one) for one in listing.commits if one < first)
            self.files.delete(checkpoint_name(one) for one in listing.checkpoints if one < first)
            self._remove_vectors(base, range(first, state.version + 1))
        return sum(1 for one in listing.commits if one < first)

    def _remove_vectors(self, base: LogState, versions: range) -> None:
        there = self.files.names(VECTORS)
        if not there:
            return
        needed = {name for add in base.files.values() if (name := vectors_of(add)) is not None}
        for version in versions:
            needed |= self._entry(version).vectors
        kept = {vector_file(name) for name in needed}
        self.files.delete(f"{VECTORS}/{name}" for name in there if name not in kept)

    def remove(self) -> None:
        """All of the log. Commits go from the newest, so that what a reader finds meanwhile is no table."""
        self._entries = {}
        self.files.delete([LAST_CHECKPOINT])
        names = self.files.names(FOLDER)
        self.files.delete(f"{FOLDER}/{name}" for name in reversed(names))
        failpoint("mirror-removed")
        self.files.delete(f"{VECTORS}/{name}" for name in self.files.names(VECTORS))

    # -- what is remembered of commits

    def _note(self, version: int, actions: Sequence[Mapping[str, Any]]) -> None:
        snapshot, vectors = None, set[str]()
        for action in actions:
            said = action.get("domainMetadata")
            if said is not None and said["domain"] == DOMAIN:
                snapshot = Mirrored.from_json(said["configuration"]).snapshot
            if "add" in action and (name := vectors_of(action["add"])) is not None:
                vectors.add(name)
        self._entries[version] = Entry(snapshot, frozenset(vectors))

    def _entry(self, version: int) -> Entry:
        if version not in self._entries:
            self._commit(version)
        return self._entries[version]

    def history(self) -> Iterator[tuple[int, Entry]]:
        """The versions that there are, the oldest first."""
        for version in self.listing().commits:
            yield version, self._entry(version)


def commit_name(version: int) -> str:
    return f"{FOLDER}/{version:020d}.json"


def checkpoint_name(version: int) -> str:
    return f"{FOLDER}/{version:020d}.checkpoint.parquet"


def vector_file(path: str) -> str:
    """The file of a vector's path: a folder, then a UUID in twenty letters."""
    return file_name(uuid_of(path))
