"""Why nothing more comes out of a statement that runs, in one sentence for who looks at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from headgate.statements.progress import Totals

_NAMED = 4


@dataclass(frozen=True)
class Holdup:
    """What holds event time up: the partitions of a topic whose next records move it.

    `unseen`: they have not had a record yet, and are left out after so many seconds.
    """

    topic: str
    partitions: Sequence[int]
    unseen_seconds: float | None = None


@dataclass(frozen=True)
class Standing:
    """Where a query stands that is one step of a statement.

    `waiting_rows`: those that it keeps until event time passes `due_ms`, None where none waits for it.
    """

    lag: int
    waiting_rows: int
    due_ms: int | None
    watermark_ms: int | None
    holdup: Holdup | None


def why_nothing_comes(
    steps: Sequence[Standing], totals: Totals, topics: Sequence[str], are_empty: bool
) -> str:
    """`topics`: those that the statement reads; `are_empty`: none of them ever had a record."""
    lag = sum(step.lag for step in steps)
    if lag:
        return f"{_records(lag)} {'is' if lag == 1 else 'are'} still to be read"
    for number, step in enumerate(steps, 1):
        reason = _waits(step, bool(totals.ahead_rows))
        if reason is not None:
            return reason if len(steps) == 1 else f"step {number} of {len(steps)}: {reason}"
    names = _list([f"'{name}'" for name in topics])
    if not totals.rows_in:
        if are_empty:
            return f"{names} {'is' if len(topics) == 1 else 'are'} empty"
        return f"no record has come to {names} since the statement began there"
    if totals.rows_out:
        return f"{names} {'is' if len(topics) == 1 else 'are'} read to the end"
    if totals.late_rows:
        passed = max((step.watermark_ms or 0 for step in steps), default=0)
        return (
            f"{totals.late_rows:,} of {_rows(totals.rows_in)} came behind event time, which is at "
            f"{moment(passed)}, and were left out"
        )
    return f"of {_rows(totals.rows_in)} none has come out: no condition or join of the query lets one through"


def _waits(step: Standing, has_ahead: bool) -> str | None:
    if not step.waiting_rows or step.due_ms is None:
        return None
    rows = f"{_rows(step.waiting_rows)} {'waits' if step.waiting_rows == 1 else 'wait'} for event time to"
    if step.watermark_ms is not None and step.watermark_ms >= step.due_ms:
        if has_ahead:
            return f"{rows} come to where they are: they are more than an hour ahead of the wall clock"
        return f"{rows} free the rows that a join keeps for them (sql.state-ttl)"
    return f"{rows} pass {moment(step.due_ms)}{_moves(step.holdup)}"


def _moves(holdup: Holdup | None) -> str:
    if holdup is None or not holdup.partitions:
        return ""
    one = len(holdup.partitions) == 1
    numbers = [str(partition) for partition in holdup.partitions[:_NAMED]]
    if len(holdup.partitions) > _NAMED:
        numbers.append(f"{len(holdup.partitions) - _NAMED} more")
    where = f"partition{'' if one else 's'} {_list(numbers)} of '{holdup.topic}'"
    if holdup.unseen_seconds is None:
        return f"; it moves with the next record{'' if one else 's'} of {where}"
    return (
        f"; it moves with the first record{'' if one else 's'} of {where}, or without after "
        f"{holdup.unseen_seconds:g} s of silence"
    )


def moment(time_ms: int) -> str:
    """A time as people write it."""
    exact = "milliseconds" if time_ms % 1000 else "seconds"
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(" ", exact).replace("+00:00", " UTC")


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _records(count: int) -> str:
    return f"{count:,} record{'' if count == 1 else 's'}"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
