"""Maintenance as the engine calls it: asked for, or by itself when a table's thresholds say so.

It runs in the slot of the table's batches, one at a time: this engine's writer is never in its way. Another
engine may be: a commit that loses is tried again, and nothing that is live is touched.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from pyspark.sql import SparkSession

from headgate.config import Maintenance as Settings
from headgate.errors import InvalidRequest, TransientError
from headgate.maintain.actions import Actions
from headgate.maintain.clean import clean
from headgate.maintain.compact import Compacted, Compaction, compact
from headgate.maintain.erase import erase, export_tags
from headgate.maintain.expire import expirable, expire
from headgate.maintain.tags import tag, untag
from headgate.maintain.thresholds import (
    Added,
    deleted_ratio,
    small_files,
    wants_cleaning,
    wants_compaction,
    wants_expiry,
)
from headgate.model import EXPORT_TAG, FORMATS_KEY, TableFormat
from headgate.options import parse_duration
from headgate.store import Exports, Request, Store
from headgate.tables.lake import Lake
from headgate.tables.mirror import DeltaMirror

log = logging.getLogger(__name__)

KINDS = ("compact", "expire", "clean", "erase", "tag", "untag")
# Events in which the last run of a kind is looked for.
EVENTS = 200


class Maintenance:
    """Of all tables of one engine; each call is for one table, in that table's worker."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        settings: Settings,
        store: Store,
        mirrors: Callable[[str], DeltaMirror | None] = lambda _: None,
    ) -> None:
        """`mirrors` knows the Delta log of a topic's table, if it has one."""
        self._actions = Actions(spark, lake)
        self._mirrors = mirrors
        self._lake = lake
        self._settings = settings
        self._store = store
        self._looked_at: dict[str, float] = {}
        # Snapshots at which a compaction found nothing to do: what was there before is as it should be.
        self._seen: dict[str, int] = {}

    # -- what is asked for

    def carry_out(self, request: Request) -> dict[str, Any]:
        """What came of a request of one of `KINDS`."""
        topic, said, asked_by = request.topic, request.arguments, request.asked_by
        table = self._known(topic)
        settings = self._settings
        match request.kind:
            case "compact":
                everything = bool(said.get("all"))
                how = Compaction(settings.target_file_bytes, everything=everything, asked_by=asked_by)
                return asdict(compact(self._actions, table, how))
            case "expire":
                seconds = _seconds(said.get("older_than"), settings.snapshots_older_than)
                last = int(said.get("keep_last") or settings.keep_snapshots)
                mirror = self._mirror(topic, table)
                return asdict(expire(self._actions, table, topic, _before(seconds), last, mirror))
            case "clean":
                age = _seconds(said.get("older_than"), settings.orphans_older_than)
                return asdict(clean(self._actions, table, age, bool(said.get("force"))))
            case "erase":
                where, size = str(said["where"]), settings.target_file_bytes
                mirror = self._mirror(topic, table)
                runs = {tag.removeprefix(EXPORT_TAG).partition("-")[0] for tag in export_tags(table)}
                Exports(self._store.engine).note_erasure(runs)
                return asdict(erase(self._actions, table, topic, where, size, request.id, mirror, asked_by))
            case "tag":
                keep = said.get("keep")
                kept = None if keep is None else parse_duration(str(keep))
                return asdict(tag(self._lake, table, topic, str(said["name"]), said.get("snapshot"), kept))
            case "untag":
                return asdict(untag(self._lake, table, topic, str(said["name"])))
        raise InvalidRequest(f"Tables are not maintained by '{request.kind}'.")

    def rewrite(self, topic: str) -> None:
        """All files anew, so that columns have their names of today in them."""
        how = Compaction(self._settings.target_file_bytes, everything=True)
        done = compact(self._actions, self._known(topic), how)
        self._store.log(topic, "rewrite done", f"{done.files_rewritten} files, for the names of columns")

    def _mirror(self, topic: str, table: Any) -> DeltaMirror | None:
        formats = str(table.properties().get(FORMATS_KEY) or "").split(",")
        return self._mirrors(topic) if TableFormat.DELTA.value in formats else None

    # -- by itself

    def is_due(self, topic: str, now: float) -> bool:
        """Whether to look at a table again; the first time is a full interval after it was met."""
        if not self._settings.enabled:
            return False
        return now - self._looked_at.setdefault(topic, now) >= self._settings.every

    def look(self, topic: str) -> bool:
        """Do what the thresholds ask for; whether the table was changed. Trouble is for the next look."""
        self._looked_at[topic] = time.monotonic()
        changed = False
        try:
            table = self._lake.load(topic)
            if table is None or table.currentSnapshot() is None:
                return False
            for kind, run in (
                ("compact", self._compact_if_due),
                ("expire", self._expire_if_due),
                ("clean", self._clean_if_due),
            ):
                result = run(topic, table)
                if result is not None:
                    changed = True
                    said = ", ".join(f"{key}: {value}" for key, value in result.items())
                    self._store.log(topic, f"{kind} done", f"by itself, {said}")
        except TransientError as error:
            log.info("Maintenance of table '%s' waits: %s", topic, error)
            return True  # what was lost may still have changed something
        except Exception as error:
            log.warning("Maintenance of table '%s' failed", topic, exc_info=error)
            self._store.log(topic, "maintenance failed", str(error).splitlines()[0])
            return True
        return changed

    def _compact_if_due(self, topic: str, table: Any) -> dict[str, Any] | None:
        settings, head = self._settings, table.currentSnapshot()
        small = small_files(_added(table), settings.target_file_bytes, self._seen.get(topic))
        summary = {key: head.summary().get(key) or "0" for key in ("total-records", "total-position-deletes")}
        if self._seen.get(topic) == head.snapshotId():
            return None
        if not wants_compaction(small, deleted_ratio(summary), settings):
            return None
        how = Compaction(settings.target_file_bytes, "5", deleted_ratio=settings.deleted_ratio)
        done: Compacted = compact(self._actions, table, how)
        if done.files_rewritten or done.manifests_rewritten:
            return asdict(done)
        self._seen[topic] = head.snapshotId()
        return None

    def _expire_if_due(self, topic: str, table: Any) -> dict[str, Any] | None:
        settings = self._settings
        before, keep = _before(settings.snapshots_older_than), settings.keep_snapshots
        snapshots = table.operations().current().snapshots()
        if snapshots.size() <= keep:
            return None
        age = time.time() - snapshots.get(0).timestampMillis() / 1000
        if not wants_expiry(1, age, settings):
            return None
        if not wants_expiry(expirable(table, before, keep), age, settings):
            return None
        done = expire(self._actions, table, topic, before, keep, self._mirror(topic, table))
        return asdict(done) if done.snapshots_after != done.snapshots_before else None

    def _clean_if_due(self, topic: str, table: Any) -> dict[str, Any] | None:
        times = [e["at"] for e in self._store.events(topic, EVENTS) if e["kind"] == "clean done"]
        since = time.time() - max(times) if times else None
        if not wants_cleaning(since, self._settings):
            return None
        return asdict(clean(self._actions, table, self._settings.orphans_older_than))

    def _known(self, topic: str) -> Any:
        table = self._lake.load(topic)
        if table is None:
            raise InvalidRequest(f"Table '{topic}' does not exist yet: there is nothing to maintain.")
        return table


def _added(table: Any) -> Iterator[Added]:
    """What the snapshots of `main` brought, the newest first."""
    snapshot = table.currentSnapshot()
    while snapshot is not None:
        summary: Mapping[str, str] = snapshot.summary()
        files, size = (int(summary.get(key) or 0) for key in ("added-data-files", "added-files-size"))
        yield Added(snapshot.snapshotId(), str(snapshot.operation()), files, size)
        parent = snapshot.parentId()
        snapshot = None if parent is None else table.snapshot(parent)


def _seconds(text: object, default: float) -> float:
    return default if text is None else parse_duration(str(text))


def _before(seconds: float) -> int:
    """Milliseconds of the epoch; 0 s ago is after all that there is now."""
    return int((time.time() - seconds) * 1000) + (1 if not seconds else 0)
