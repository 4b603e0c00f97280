"""When a table wants maintenance, from what its snapshots say of themselves: nothing is read for it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.config import Maintenance

# A file under this share of the wanted size is a small one.
SMALL = 0.25
# Iceberg's word for a snapshot that holds the same rows in other files.
REPLACE = "replace"


@dataclass(frozen=True)
class Added:
    """What one snapshot brought."""

    snapshot_id: int
    operation: str
    files: int
    bytes: int


def small_files(added: Iterable[Added], target_bytes: int, seen: int | None) -> int:
    """Small files since the last rewrite, or since the snapshot `seen`; newest snapshot first."""
    found = 0
    for one in added:
        if one.operation == REPLACE or one.snapshot_id == seen:
            break
        if one.files and one.bytes / one.files < target_bytes * SMALL:
            found += one.files
    return found


def deleted_ratio(summary: Mapping[str, str]) -> float:
    """The share of rows in the files that are deleted."""
    rows = int(summary.get("total-records") or 0)
    return int(summary.get("total-position-deletes") or 0) / rows if rows else 0.0


def wants_compaction(small: int, deleted: float, settings: Maintenance) -> bool:
    return small >= settings.small_files or (deleted > 0 and deleted >= settings.deleted_ratio)


def wants_expiry(expirable: int, oldest_age: float, settings: Maintenance) -> bool:
    """Not for each single snapshot: the oldest must be a fifth over its time."""
    return expirable > 0 and oldest_age >= settings.snapshots_older_than * 1.2


def wants_cleaning(since_last: float | None, settings: Maintenance) -> bool:
    """A listing of the whole folder: as often as files may come of age three times over."""
    return since_last is None or since_last >= settings.orphans_older_than / 3
