"""The part of Iceberg's Table that tells a table's position, without a JVM: snapshots and references."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.model import POSITION_TAG


@dataclass(frozen=True)
class PlainSnapshot:
    """A snapshot with the methods that Iceberg's has."""

    id: int
    parent: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    at_ms: int = 0

    def snapshotId(self) -> int:  # noqa: N802
        return self.id

    def parentId(self) -> int | None:  # noqa: N802
        return self.parent

    def summary(self) -> Mapping[str, str]:
        return self.properties

    def timestampMillis(self) -> int:  # noqa: N802
        return self.at_ms

    def sequenceNumber(self) -> int:  # noqa: N802
        return self.id

    def operation(self) -> str:
        return "append"

    def equals(self, other: object) -> bool:
        return self == other


@dataclass(frozen=True)
class PlainRef:
    """A branch or tag; `max_age_ms` is how long it is kept after its snapshot was made."""

    snapshot: int
    max_age_ms: int | None = None

    def maxRefAgeMs(self) -> int | None:  # noqa: N802
        return self.max_age_ms

    def isTag(self) -> bool:  # noqa: N802
        return True

    def snapshotId(self) -> int:  # noqa: N802
        return self.snapshot

    def minSnapshotsToKeep(self) -> int | None:  # noqa: N802
        return None

    def maxSnapshotAgeMs(self) -> int | None:  # noqa: N802
        return None


@dataclass(frozen=True)
class PlainEntry:
    """Since when a snapshot was the newest."""

    snapshot: PlainSnapshot

    def snapshotId(self) -> int:  # noqa: N802
        return self.snapshot.id

    def timestampMillis(self) -> int:  # noqa: N802
        return self.snapshot.at_ms


class PlainTable:
    """`main` is the head; `removed` counts snapshots that were there once and have expired."""

    def __init__(
        self,
        *snapshots: PlainSnapshot,
        main: int | None = None,
        tagged: int | None = None,
        removed: int = 0,
        tags: Mapping[str, PlainRef] | None = None,
        log: Sequence[int] = (),
    ) -> None:
        """`log`: which snapshots were the newest, one after the other."""
        self._tags = dict(tags or {})
        self._log = log
        self._snapshots = {one.id: one for one in snapshots}
        self._main = main
        self._tagged = tagged
        self._sequence = len(snapshots) + removed

    def currentSnapshot(self) -> PlainSnapshot | None:  # noqa: N802
        return None if self._main is None else self._snapshots[self._main]

    def snapshot(self, snapshot_id: int) -> PlainSnapshot | None:
        return self._snapshots.get(snapshot_id)

    def refs(self) -> dict[str, PlainRef]:
        found = {"main": self._main, POSITION_TAG: self._tagged}
        return self._tags | {name: PlainRef(target) for name, target in found.items() if target is not None}

    def history(self) -> list["PlainEntry"]:
        return [PlainEntry(self._snapshots[number]) for number in self._log]

    def operations(self) -> "PlainTable":
        return self

    def current(self) -> "PlainTable":
        return self

    def snapshots(self) -> "PlainTable":
        return self

    def size(self) -> int:
        return len(self._snapshots)

    def lastSequenceNumber(self) -> int:  # noqa: N802
        return self._sequence
