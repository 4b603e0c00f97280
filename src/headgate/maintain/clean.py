"""Files in a table's folder that no snapshot knows: what aborted batches and lost commits left behind."""

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from headgate.config import YOUNGEST_ORPHAN_SECONDS
from headgate.errors import InvalidRequest
from headgate.maintain.actions import Actions, check_may_delete

# Where Iceberg lists by prefix. On disks it must not: for `file:///` it takes no folder for a hidden one.
OBJECT_STORES = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"}


@dataclass(frozen=True)
class Cleaned:
    """What a clean-up did."""

    orphans_removed: int


def check_age(seconds: float, force: bool) -> None:
    """Refuses an age at which files may still be on their way into the table."""
    if seconds < 0 or (seconds < YOUNGEST_ORPHAN_SECONDS and not force):
        raise InvalidRequest(
            f"Files that are {seconds:g} s old may belong to a commit under way.",
            f"Say {YOUNGEST_ORPHAN_SECONDS / 3600:g}h or more, or --force when nothing writes to the table.",
        )


def clean(actions: Actions, table: Any, older_than_seconds: float, force: bool = False) -> Cleaned:
    """Remove orphans. Folders whose names begin with `_` are left alone, unless they are partitions."""
    check_age(older_than_seconds, force)
    actions.lake.refresh(table)
    check_may_delete(table)
    action = actions.of().deleteOrphanFiles(table)
    action = action.usePrefixListing(urlsplit(table.location()).scheme in OBJECT_STORES)
    result = action.olderThan(int((time.time() - older_than_seconds) * 1000)).execute()
    return Cleaned(int(result.orphanFilesCount()))
