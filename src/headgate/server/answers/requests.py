"""What the engine was asked to do with a table, and what came of it."""

from typing import Literal

from pydantic import Field

from headgate.server.answers.positions import OffsetRangeAnswer
from headgate.server.answers.shape import Shape
from headgate.server.answers.tables import DeltaLogAnswer


class AskedAnswer(Shape):
    """The id of a request."""

    request: str


class NothingYetAnswer(Shape):
    """Of a request that waits, or has nothing to tell."""


class ProgressAnswer(Shape):
    """How far a request has come."""

    progress: str


class RequestFailedAnswer(Shape):
    """Why a request has failed."""

    error: str


class CompactedAnswer(Shape):
    """What packing files has changed."""

    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    delete_files_before: int
    delete_files_after: int
    files_rewritten: int
    manifests_rewritten: int


class ExpiredAnswer(Shape):
    """What the expiry of snapshots has changed; `held_by` are refs that kept some."""

    snapshots_before: int
    snapshots_after: int
    data_files_removed: int
    delete_files_removed: int
    held_by: list[str]


class CleanedAnswer(Shape):
    """Files that no snapshot knew."""

    orphans_removed: int


class ErasedAnswer(Shape):
    """What the erasure of rows has removed."""

    rows_erased: int
    files_rewritten: int
    snapshots_removed: int
    data_files_removed: int
    orphans_removed: int
    held_by: list[str]


class TaggedAnswer(Shape):
    """A tag, and until when it holds its snapshot, in milliseconds."""

    name: str
    snapshot_id: str
    kept_until: int | None


class UntaggedAnswer(Shape):
    """A tag that was removed."""

    name: str
    snapshot_id: str


class AcceptedAnswer(Shape):
    """What was accepted."""

    accepted: Literal["new-topic", "new-timeline", "lost"]


class ReplayedAnswer(Shape):
    """How many dead letters went into the table, and how many are left."""

    replayed: int
    dead: int


class RollbackPlanAnswer(Shape):
    """What a rollback would mean."""

    from_: str = Field(alias="from")
    to: str
    committed_at: int
    rows: int
    rows_after: int
    undone: dict[str, int]
    offsets: int
    ranges: list[OffsetRangeAnswer]
    dead_letters: int
    refused: dict[str, str] = Field(description="What cannot become of the records, and why.")


class RolledBackAnswer(Shape):
    """What a rollback has done."""

    snapshot_id: str
    from_: str = Field(alias="from")
    to: str
    records: Literal["again", "keep-out"]
    rows_before: int | None
    rows: int
    offsets: int


class VerificationCheckAnswer(Shape):
    """One check of a verification."""

    name: str
    state: Literal["ok", "damaged", "skipped"]
    findings: int
    detail: str


class FindingAnswer(Shape):
    """A piece of damage."""

    check: str
    where: str
    message: str


class VerifiedAnswer(Shape):
    """What a verification has found; of the findings the first hundred."""

    snapshot_id: str
    deep: bool
    files: int
    rows: int
    damaged: bool
    checks: list[VerificationCheckAnswer]
    findings: list[FindingAnswer]
    findings_total: int


class RequestAnswer(Shape):
    """A request and its result. A Delta log that was brought up to date is shown as it is then."""

    id: str
    kind: Literal[
        "accept",
        "clean",
        "compact",
        "erase",
        "expire",
        "mirror",
        "plan-rollback",
        "replay",
        "rollback",
        "tag",
        "untag",
        "verify",
    ]
    state: Literal["waiting", "done", "failed"]
    result: (
        NothingYetAnswer
        | ProgressAnswer
        | RequestFailedAnswer
        | CompactedAnswer
        | ExpiredAnswer
        | CleanedAnswer
        | ErasedAnswer
        | TaggedAnswer
        | UntaggedAnswer
        | AcceptedAnswer
        | ReplayedAnswer
        | DeltaLogAnswer
        | RollbackPlanAnswer
        | RolledBackAnswer
        | VerifiedAnswer
    )
