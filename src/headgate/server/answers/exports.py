"""Scheduled exports and their runs."""

from typing import Literal

from pydantic import Field

from headgate.export.definition import ExportOptions
from headgate.server.answers.shape import Shape
from headgate.store import RunState


class ExportAnswer(Shape):
    """An export. Of its `spec` what was said; `next` is null while it is paused."""

    name: str
    state: Literal["active", "paused"]
    spec: ExportOptions
    schedule: str
    zone: str
    next: str | None
    warnings: list[str]
    created_at: float


class PartAnswer(Shape):
    """One of the files of a run that was cut into parts."""

    file: str
    rows: int
    bytes: int
    sha256: str


class RunAnswer(Shape):
    """A run of an export. Figures are null until it has come to them. `since` is the snapshot of the run
    before, of an incremental export."""

    id: str
    export: str
    state: RunState
    reason: str
    from_: str = Field(alias="from")
    to: str
    made_by: str
    attempts: int
    retry_at: float | None
    file: str | None
    rows: int | None
    bytes: int | None
    sha256: str | None
    seconds: float | None
    progress: int | None
    snapshots: dict[str, int] | None
    message_id: str | None
    pruned: str | None
    parts: list[PartAnswer]
    since: int | None
    unrepeatable: list[str]
    warnings: list[str]
    told: dict[str, str]
    created_at: float
    started_at: float | None
    ended_at: float | None


class ListedExportAnswer(ExportAnswer):
    """An export in a list, with its last run."""

    last_run: RunAnswer | None


class ShownExportAnswer(ExportAnswer):
    """One export, with its last runs."""

    runs: list[RunAnswer]


class MailTestAnswer(Shape):
    """Whom a test mail was sent to; who was refused, and why."""

    to: list[str]
    refused: dict[str, str]
