"""A commit request and its table, from Iceberg's objects to the plain data that is judged.

From the objects and not from the JSON: Iceberg's parser accepts more spellings than one, and what is judged
must be what is applied.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headgate.catalog.errors import bad_request
from headgate.catalog.fencing import JUDGED_KEYS, MAIN, Proposal, Snapshot, TableState
from headgate.catalog.iceberg import TableMetadata, UpdateTableRequest, is_a
from headgate.model import MANAGED_KEY, POSITION_TAG


def table_state(base: TableMetadata | None) -> TableState:
    if base is None:
        return TableState(managed=False)
    tag, main = base.ref(POSITION_TAG), base.ref(MAIN)
    return TableState(
        managed=is_managed(base.property(MANAGED_KEY, None)),
        snapshots=SnapshotsOf(base),
        main=None if main is None else main.snapshotId(),
        tagged=None if tag is None else tag.snapshotId(),
    )


def is_managed(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


def is_create(request: UpdateTableRequest) -> bool:
    """Whether the request creates its table; nothing else can be required of a table that is not there."""
    creating = [is_a(requirement, "AssertTableDoesNotExist") for requirement in request.requirements()]
    if any(creating) and not all(creating):
        raise bad_request("assert-create cannot be combined with other requirements.")
    return any(creating)


def proposal(request: UpdateTableRequest) -> Proposal:
    asserts = [r for r in request.requirements() if is_a(r, "AssertRefSnapshotID") and r.refName() == MAIN]
    creating = is_create(request)
    added: list[Snapshot] = []
    targets: list[int] = []
    makes_managed = moves_tag = False
    removed: set[int] = set()
    tagged: int | None = None
    for update in request.updates():
        match update.getClass().getSimpleName():
            case "AddSnapshot":
                added.append(_snapshot(update.snapshot()))
            case "SetSnapshotRef" if update.name() == MAIN:
                targets.append(update.snapshotId())
            case "SetSnapshotRef" if update.name() == POSITION_TAG:
                moves_tag, tagged = True, update.snapshotId()
            case "RemoveSnapshotRef" if update.name() == POSITION_TAG:
                moves_tag, tagged = True, None
            case "RemoveSnapshots":
                removed |= set(update.snapshotIds())
            case "SetProperties":
                makes_managed = makes_managed or is_managed(update.updated().get(MANAGED_KEY))
    return Proposal(
        asserts_main=creating or bool(asserts),
        asserted=asserts[0].snapshotId() if asserts else None,
        added=tuple(added),
        main_targets=tuple(targets),
        makes_managed=makes_managed,
        removed=frozenset(removed),
        moves_tag=moves_tag,
        tag_target=tagged,
    )


class SnapshotsOf(Mapping[int, Snapshot]):
    """The snapshots of a table, fetched as they are asked for: a long history costs nothing until walked."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._metadata.snapshot(snapshot_id)
        if found is None:
            raise KeyError(snapshot_id)
        return _snapshot(found)

    def __iter__(self) -> Iterator[int]:
        for snapshot in self._metadata.snapshots():
            yield snapshot.snapshotId()

    def __len__(self) -> int:
        size: int = self._metadata.snapshots().size()
        return size


def _snapshot(snapshot: Any) -> Snapshot:
    summary = snapshot.summary()
    found = {key: summary.get(key) for key in JUDGED_KEYS} if summary is not None else {}
    return Snapshot(
        id=snapshot.snapshotId(),
        parent_id=snapshot.parentId(),
        sequence_number=snapshot.sequenceNumber(),
        operation=snapshot.operation(),
        summary={key: value for key, value in found.items() if value is not None},
    )
