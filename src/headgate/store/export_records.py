"""What the control state says of exports and of their runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """`Written`: the file is there, and not all have been told."""

    WAITING = "Waiting"
    RUNNING = "Running"
    WRITTEN = "Written"
    DONE = "Done"
    FAILED = "Failed"


ERASED = "rows that it has read were erased"
# In a run's detail: why not all know of its failure yet.
NOT_TOLD = "not_told"
OPEN = (RunState.WAITING, RunState.RUNNING, RunState.WRITTEN)


@dataclass(frozen=True)
class ExportRecord:
    """An export, `active` or `paused`. Times of its schedule up to `scheduled_until` were seen to."""

    name: str
    spec: Mapping[str, Any]
    desired: str
    created_at: float
    updated_at: float
    scheduled_until: float


@dataclass(frozen=True)
class RunRecord:
    """A run of an export, about the time from `period_start` to `period_end`."""

    id: str
    export: str
    slot: str
    period_start: float
    period_end: float
    repeat: int
    spec: Mapping[str, Any]
    state: RunState
    reason: str
    attempts: int
    retry_at: float
    owner: str | None
    leased_until: float
    detail: Mapping[str, Any]
    created_at: float
    started_at: float | None
    ended_at: float | None


@dataclass(frozen=True)
class Slot:
    """A run that is to be: what made it, and the time it is about."""

    name: str
    start: float
    end: float
