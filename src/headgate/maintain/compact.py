"""Small files become few, and rows that are deleted leave the files: the same rows in other files."""

from dataclasses import dataclass
from typing import Any

from headgate.failpoints import failpoint
from headgate.maintain.actions import Actions, lost_commits
from headgate.model import ASKED_BY_KEY, OPERATION_KEY, SPEC_KEY

# Of a group of files that are too small, two are worth packing when somebody asks for it.
FEWEST_FILES = "2"
# Groups of files that are rewritten at the same time: batches of other tables want the machine too.
CONCURRENT_GROUPS = "2"
# From so many manifests on they are written anew, fewer and sorted by partition.
MANY_MANIFESTS = 30


@dataclass(frozen=True)
class Compaction:
    """How to compact. By default: all small files, and every file of which some row is deleted."""

    target_bytes: int
    fewest_files: str = FEWEST_FILES
    # The share of deleted rows from which on a file is written anew; None: any.
    deleted_ratio: float | None = None
    everything: bool = False
    only_deleted: bool = False
    many_manifests: int = MANY_MANIFESTS
    # Who wants it; nobody when the table's thresholds do.
    asked_by: str = ""

    def options(self) -> dict[str, str]:
        """As Iceberg's rewrite takes them."""
        found = {
            "target-file-size-bytes": str(self.target_bytes),
            "min-input-files": self.fewest_files,
            "max-concurrent-file-group-rewrites": CONCURRENT_GROUPS,
            # Deletes that another writer adds meanwhile must still apply to the rows that moved.
            "use-starting-sequence-number": "true",
        }
        if self.deleted_ratio is None:
            found["delete-file-threshold"] = "1"
        else:
            found["delete-ratio-threshold"] = str(self.deleted_ratio)
        if self.everything:
            found["rewrite-all"] = "true"
        if self.only_deleted:
            # No size is wrong: only what is deleted counts.
            found |= {"min-file-size-bytes": "0", "max-file-size-bytes": str(2**62)}
        return found


@dataclass(frozen=True)
class Compacted:
    """What a compaction did."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    delete_files_before: int
    delete_files_after: int
    files_rewritten: int
    manifests_rewritten: int


def compact(actions: Actions, table: Any, how: Compaction) -> Compacted:
    """Rewrite what is worth it, in one commit of its own; positions stay where they are."""
    actions.lake.refresh(table)
    before = table.currentSnapshot()
    if before is None:
        return Compacted(0, 0, 0, 0, 0, 0, 0, 0)
    with lost_commits(f"compact table '{table.name()}'"):
        rewrite = actions.of().rewriteDataFiles(table).binPack()
        for key, value in how.options().items():
            rewrite = rewrite.option(key, value)
        if _count(before, "total-delete-files"):
            # Vectors of files that go leave with them; others may have lost theirs before.
            rewrite = rewrite.option("remove-dangling-deletes", "true")
        failpoint("maintain-compacting")
        rewritten = _told(rewrite, table, how.asked_by).execute()
    failpoint("maintain-compacted")
    manifests = rewrite_manifests(actions, table, how.many_manifests, how.asked_by)
    actions.lake.refresh(table)
    after = table.currentSnapshot()
    return Compacted(
        _count(before, "total-data-files"),
        _count(after, "total-data-files"),
        _count(before, "total-files-size"),
        _count(after, "total-files-size"),
        _count(before, "total-delete-files"),
        _count(after, "total-delete-files"),
        int(rewritten.rewrittenDataFilesCount()),
        manifests,
    )


def rewrite_manifests(actions: Actions, table: Any, many: int, asked_by: str = "") -> int:
    """Fewer manifests, when there are many; how many were rewritten."""
    actions.lake.refresh(table)
    with lost_commits(f"rewrite the manifests of table '{table.name()}'"):
        if table.currentSnapshot().allManifests(table.io()).size() < many:
            return 0
        rewrite = _told(actions.of().rewriteManifests(table), table, asked_by)
        return sum(1 for _ in rewrite.execute().rewrittenManifests())


def _told(rewrite: Any, table: Any, asked_by: str) -> Any:
    """The rewrite, whose snapshot says what it was and who wanted it."""
    said = {OPERATION_KEY: "compact", SPEC_KEY: str(table.spec().specId()), ASKED_BY_KEY: asked_by}
    for key, value in said.items():
        rewrite = rewrite.snapshotProperty(key, value) if value else rewrite
    return rewrite


def _count(snapshot: Any, key: str) -> int:
    return int(snapshot.summary().get(key) or 0)
