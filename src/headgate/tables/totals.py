"""What a table has taken in since it was enabled: carried from batch to batch in the snapshots themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from headgate.model import FILES_KEY, POSITION_TAG, RECORDS_KEY, SECONDS_KEY


@dataclass(frozen=True)
class Totals:
    """Records and data files, over all batches: compaction and expiry take nothing from them."""

    records: int = 0
    files: int = 0

    @classmethod
    def of(cls, table: Any) -> Self:
        """By the newest ancestor that says so, or the tag; of a table that was never counted, what it has."""
        snapshot = table.currentSnapshot()
        while snapshot is not None:
            if snapshot.summary().get(RECORDS_KEY) is not None:
                return cls._said(snapshot.summary())
            parent = snapshot.parentId()
            snapshot = table.snapshot(parent) if parent is not None else None
        tag = table.refs().get(POSITION_TAG)
        tagged = table.snapshot(tag.snapshotId()) if tag is not None else None
        if tagged is not None and tagged.summary().get(RECORDS_KEY) is not None:
            return cls._said(tagged.summary())
        head = table.currentSnapshot()
        summary = {} if head is None else head.summary()
        return cls(int(summary.get("total-records") or 0), int(summary.get("total-data-files") or 0))

    @classmethod
    def _said(cls, summary: Any) -> Self:
        return cls(int(summary.get(RECORDS_KEY)), int(summary.get(FILES_KEY) or 0))

    def plus(self, records: int, files: int) -> "Totals":
        return Totals(self.records + records, self.files + files)

    def summary(self, seconds: float) -> Mapping[str, str]:
        """What the snapshot of a batch that took so long says."""
        return {RECORDS_KEY: str(self.records), FILES_KEY: str(self.files), SECONDS_KEY: f"{seconds:.3f}"}
