"""Who may add rows to a managed table, judged on plain data.

A batch of the engine says where it starts (`from`), where it ends (`position`) and which batch it is. It may
join `main` only if it starts where the snapshot ended that the request itself asserts to be the head of
`main`. Iceberg's client refreshes before every attempt and would happily put a stale append on top of a newer
head: the assertion alone does not stop it, the position does.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from headgate.catalog.errors import bad_request, commit_failed, commit_unknown, forbidden
from headgate.model import (
    BATCH_KEY,
    FROM_KEY,
    OPERATION_KEY,
    POSITION_KEY,
    POSITION_TAG,
    ROLLBACK,
    Position,
)

MAIN = "main"
REPLACE = "replace"  # Iceberg's operation for rewrites: the same rows in other files
JUDGED_KEYS = (BATCH_KEY, FROM_KEY, POSITION_KEY, OPERATION_KEY)


@dataclass(frozen=True)
class Snapshot:
    """What the judgement needs to know of a snapshot; `summary` holds Headgate's keys only."""

    id: int
    parent_id: int | None
    sequence_number: int
    operation: str | None
    summary: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TableState:
    """A table as it is before the commit. A table that does not exist yet has no snapshots."""

    managed: bool
    snapshots: Mapping[int, Snapshot] = field(default_factory=dict)
    main: int | None = None
    tagged: int | None = None  # the snapshot under the tag `headgate-position`


@dataclass(frozen=True)
class Proposal:
    """What a commit request would do. `asserts_main` with `asserted` None: `main` is not there yet."""

    asserts_main: bool
    asserted: int | None = None
    added: tuple[Snapshot, ...] = ()
    main_targets: tuple[int, ...] = ()
    makes_managed: bool = False
    removed: frozenset[int] = frozenset()
    # Whether the tag `headgate-position` is set or removed, and the snapshot that it has then.
    moves_tag: bool = False
    tag_target: int | None = None


def proposed_batches(proposal: Proposal) -> tuple[str, ...]:
    """The batch ids that would join `main`: what the caller looks up among those committed before."""
    return tuple(s.summary[BATCH_KEY] for s in _joining(proposal) if BATCH_KEY in s.summary)


def judge(table: TableState, proposal: Proposal, committed: Set[str]) -> tuple[str, ...]:
    """The batch ids to record with the commit, or a CatalogError. `committed`: those recorded before."""
    joining = _joining(proposal)
    if not (table.managed or proposal.makes_managed):
        return ()
    if table.managed:
        _judge_moves(table, proposal)
        _judge_expiry(table, proposal)
    if not joining:
        return ()
    batches = proposed_batches(proposal)
    for batch in batches:
        # Before anything else that could answer 4xx: the client would then delete files that are the table's.
        if batch in committed:
            raise _committed_before(batch)
    if len(set(batches)) < len(batches):
        raise bad_request("Two snapshots of one commit carry the same batch id.")
    if not proposal.asserts_main:
        raise bad_request(
            "A commit to a managed table must carry assert-ref-snapshot-id for main: "
            "without it nobody can tell which state of the table it was made from."
        )
    started = proposal.asserted is not None or len(table.snapshots) > 0
    position = position_at(table, proposal.asserted) if started else None
    for snapshot in joining:
        if snapshot.summary.get(OPERATION_KEY) == ROLLBACK:
            position = _position_gone_back_to(snapshot, table, proposal.asserted)
        _judge_snapshot(snapshot, table, position, started)
        if POSITION_KEY in snapshot.summary:
            position = _parse(snapshot.summary[POSITION_KEY], POSITION_KEY)
        started = True
    return batches


def position_at(table: TableState, head: int | None) -> Position | None:
    """Where a table whose `main` is at `head` stands in its topic.

    The nearest reachable ancestor that says so. Only where there is none, the tagged snapshot: expiry breaks
    the chain of parents, the tag survives it. After a rollback the tag is newer than the rows that are left.
    """
    ancestor = _find(table, head)
    while ancestor is not None and POSITION_KEY not in ancestor.summary:
        ancestor = _find(table, ancestor.parent_id)
    carrier = ancestor or _find(table, table.tagged)
    if carrier is None or POSITION_KEY not in carrier.summary:
        return None
    return _parse(carrier.summary[POSITION_KEY], POSITION_KEY)


def _judge_moves(table: TableState, proposal: Proposal) -> None:
    """`main` may go back to where it was, never to a snapshot that came to the table by another branch."""
    added = {s.id for s in proposal.added}
    for target in proposal.main_targets:
        current = _find(table, table.main)
        while target not in added and current is not None and current.id != target:
            current = _find(table, current.parent_id)
        if target not in added and current is None:
            raise forbidden(
                f"Snapshot {target} is not in the history of main: a table that is written by the engine "
                "alone takes no rows from other branches."
            )


def _position_gone_back_to(snapshot: Snapshot, table: TableState, head: int | None) -> Position | None:
    """Where the table stands at a rollback's parent, which must be in the history of what is asserted."""
    ancestor = _find(table, head)
    while ancestor is not None and ancestor.id != snapshot.parent_id:
        ancestor = _find(table, ancestor.parent_id)
    if ancestor is None:
        raise forbidden(
            f"Snapshot {snapshot.parent_id} is not in the history of main: a table is rolled back to "
            "snapshots of its own history only."
        )
    return position_at(table, ancestor.id)


def _judge_expiry(table: TableState, proposal: Proposal) -> None:
    """Whoever expires snapshots or moves the tag must leave the table where it stands in its topic."""
    if proposal.main_targets or not (proposal.removed or proposal.moves_tag):
        return
    tagged = proposal.tag_target if proposal.moves_tag else table.tagged
    after = replace(table, snapshots=_Without(table.snapshots, proposal.removed), tagged=tagged)
    if position_at(after, table.main) != position_at(table, table.main):
        raise forbidden(
            "Without these snapshots the table would forget where it stands in its topic, and read records "
            "twice. Expire them with `headgate table expire`, which keeps the position."
        )


class _Without(Mapping[int, Snapshot]):
    """Snapshots less some of them, without a look at each."""

    def __init__(self, snapshots: Mapping[int, Snapshot], removed: Set[int]) -> None:
        self._snapshots = snapshots
        self._removed = removed

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        if snapshot_id in self._removed:
            raise KeyError(snapshot_id)
        return self._snapshots[snapshot_id]

    def __iter__(self) -> Iterator[int]:
        return (found for found in self._snapshots if found not in self._removed)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _joining(proposal: Proposal) -> list[Snapshot]:
    """The added snapshots that would be reachable from `main`, oldest first."""
    added = {s.id: s for s in proposal.added}
    joining: set[int] = set()
    for target in proposal.main_targets:
        current: int | None = target
        while current in added and current not in joining:
            joining.add(current)
            current = added[current].parent_id
    return [s for s in proposal.added if s.id in joining]


def _judge_snapshot(snapshot: Snapshot, table: TableState, position: Position | None, started: bool) -> None:
    summary = snapshot.summary
    if BATCH_KEY not in summary:
        if OPERATION_KEY not in summary and snapshot.operation != REPLACE:
            raise forbidden(
                "This table is written by the engine alone: its rows are those of its topic. "
                "Write to another table: this one stays Headgate's while it exists, enabled or not."
            )
        return
    batch = summary[BATCH_KEY]
    missing = [key for key in (FROM_KEY, POSITION_KEY) if key not in summary]
    if missing:
        raise bad_request(f"Batch {batch} carries no {' and no '.join(missing)}.")
    start = _parse(summary[FROM_KEY], FROM_KEY)
    _parse(summary[POSITION_KEY], POSITION_KEY)
    if not started or start == position:
        return
    # A table that was registered here brought its history along, but not the record of its batches.
    if any(s.summary.get(BATCH_KEY) == batch for s in table.snapshots.values()):
        raise _committed_before(batch)
    if position is None:
        raise commit_failed(
            f"Batch {batch} starts at {start.to_json()}, but the table has snapshots and none that is "
            f"reachable, nor the tag {POSITION_TAG}, carries a position: it cannot be continued safely."
        )
    raise commit_failed(
        f"Batch {batch} starts at {start.to_json()}, but the table stands at {position.to_json()}: "
        "another engine has committed in between."
    )


def _find(table: TableState, snapshot_id: int | None) -> Snapshot | None:
    return None if snapshot_id is None else table.snapshots.get(snapshot_id)


def _parse(text: str, key: str) -> Position:
    try:
        return Position.from_json(text)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request(f"{key} does not hold a position: {text!r}") from error


def _committed_before(batch: str) -> Exception:
    return commit_unknown(
        f"Batch {batch} was committed to this table before. Its files are the table's: "
        "read the position and go on."
    )
