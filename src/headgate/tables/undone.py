"""What lies beside a table follows a rollback: remembered deletes and dead letters."""

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import InvalidRequest
from headgate.failpoints import failpoint
from headgate.model import (
    BATCH_KEY,
    FROM_KEY,
    POSITION_KEY,
    REPLAY_KEY,
    ROLLED_BACK_RECORDS_KEY,
    Batch,
    Position,
)
from headgate.tables.dead_letters import DeadLetters, Owner
from headgate.tables.deleted_keys import DeletedKeys
from headgate.tables.generations import generation_of_mark
from headgate.tables.position import position_at
from headgate.tables.rollback import Records, RollbackPlan, undone_by

Coordinates = tuple[str, int, int]


def follow_rollback(
    table: Any,
    rolled_back: Any,
    dead: tuple[DeadLetters, Owner] | None,
    marks: DeletedKeys | None,
) -> None:
    """Before anything is read for the next batch. Done again, it finds nothing to do.

    Marks first: which of them replays have made is told by the letters, as long as they are not given back.
    """
    undone = undone_by(table, rolled_back)
    if not undone:
        return  # they have expired: this was finished long ago
    summaries = [one.summary() for one in undone]
    replays = [str(said.get(REPLAY_KEY)) for said in summaries if said.get(REPLAY_KEY)]
    kept_out = [
        kept_out_by(said.get(BATCH_KEY))
        for said in summaries
        if said.get(ROLLED_BACK_RECORDS_KEY) == Records.KEEP_OUT
    ]
    ids = [*replays, *kept_out]
    said = rolled_back.summary()
    back, end = (Position.from_json(said.get(key)) for key in (FROM_KEY, POSITION_KEY))
    returned: set[Coordinates] = set()
    if dead is not None and ids:
        letters, owner = dead
        returned = {(row.topic_id, row.partition, row.offset) for row in letters.taken_up_by(owner, ids)}
    was = position_at(table, undone[0])
    if marks is not None and was is not None:
        marks.drop(_undone_marks(back, was, returned), int(undone[0].sequenceNumber()))
        failpoint("rollback-marks-dropped")
    if dead is None:
        return
    letters, owner = dead
    if returned:
        letters.undo(owner, ids)
    failpoint("rollback-letters-returned")
    if said.get(ROLLED_BACK_RECORDS_KEY) == Records.KEEP_OUT:
        letters.keep_out(owner, Batch(back, end), kept_out_by(said.get(BATCH_KEY)))


def check_letters(plan: RollbackPlan, dead: tuple[DeadLetters, Owner] | None) -> None:
    """The dead letters of what is undone must be at hand: they are given back, or told from other records."""
    if not plan.dead and not plan.replays:
        return
    found = 0
    if dead is not None:
        letters, owner = dead
        found = letters.count_in(owner, Batch(plan.back, plan.was)) if plan.ranges else 0
    if dead is None or found < plan.dead:
        raise InvalidRequest(
            f"Since snapshot {plan.target.snapshotId()} table '{plan.topic}' has had dead letters that are "
            "not among those that it keeps now: what became of them could not follow.",
            f"Name the table that has them: `headgate table alter {plan.topic} --on-error log --dead-letters "
            "NAME`, or choose a younger snapshot.",
        )


def kept_out_by(rollback_id: str) -> str:
    """What stands for a replay's id with letters that a rollback keeps out of the table."""
    return f"kept-out {rollback_id}"


def _undone_marks(
    back: Position, was: Position, returned: set[Coordinates]
) -> Callable[[Mapping[str, Any]], bool]:
    """The marks of records between two positions, and of replays whose letters are dead again."""

    def goes(row: Mapping[str, Any]) -> bool:
        at = (row["topic_id"], row["partition"], row["offset"])
        if at in returned:
            return True
        written = row.get("generation")
        applied = generation_of_mark(was, *at, written) is not None
        return applied and generation_of_mark(back, *at, written) is None

    return goes
