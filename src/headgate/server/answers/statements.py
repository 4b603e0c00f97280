"""Statements: in a list, one of them, and what the engine knows of it."""

from typing import Literal

from pydantic import JsonValue

from headgate.model import StatementState
from headgate.server.answers.events import AgedEventAnswer
from headgate.server.answers.positions import Offsets
from headgate.server.answers.shape import Maybe, Shape

# By topic.
TopicOffsets = dict[str, Offsets]


class StatementAnswer(Shape):
    """A statement in a list. Numbers are null until it has run."""

    name: str
    kind: str
    state: StatementState
    reason: str
    since: float
    desired: Literal["running", "stopped", "reset", "deleted"]
    rows_in: int | None
    rows_out: int | None
    late_rows: int | None
    bad_rows: int | None
    events_without_row: int | None
    ahead_rows: int | None
    lag: int | None
    state_rows: int | None
    state_bytes: int | None
    batch_seconds: float | None
    watermark: str | None
    position: TopicOffsets | None
    waiting: str | None
    updated_at: float


class StepAnswer(Shape):
    """One query of a statement that runs as several."""

    step: int
    reads: list[str]
    batch: int | None
    batch_seconds: float | None
    lag: int | None
    state_rows: int | None
    state_bytes: int | None


class FinishedAnswer(Shape):
    """The answer to a request to close what has come: rows before the watermark are late since."""

    request: str
    watermark: str | None


class StatementDetailAnswer(Shape):
    """What the engine knows of a statement; what it does not know yet is missing."""

    batches: Maybe[int]
    rows_in: Maybe[int]
    rows_out: Maybe[int]
    late_rows: Maybe[int]
    bad_rows: Maybe[int]
    events_without_row: Maybe[int]
    ahead_rows: Maybe[int]
    finished: Maybe[FinishedAnswer]
    watermarks: Maybe[dict[str, str | None]]
    steps: Maybe[list[StepAnswer]]
    batch: Maybe[int]
    batch_seconds: Maybe[float | None]
    watermark: Maybe[str | None]
    lag: Maybe[int | None]
    lags: Maybe[dict[str, int]]
    offsets: Maybe[TopicOffsets]
    state_rows: Maybe[int | None]
    state_bytes: Maybe[int | None]
    waiting: Maybe[str | None]


class WatermarkAnswer(Shape):
    """The column of event time, and how far behind it event time is."""

    column: str
    delay_ms: int


class PinnedTableAnswer(Shape):
    """A table as it was when a statement was made; its columns as Spark writes a type."""

    columns: Maybe[JsonValue]
    primary_key: Maybe[list[str] | None]
    changelog: Maybe[str | None]
    watermark: Maybe[WatermarkAnswer | None]
    options: Maybe[dict[str, str]]
    distributed: Maybe[list[str]]
    buckets: Maybe[int | None]


class OutputAnswer(Shape):
    """The topic that a statement writes."""

    topic: str
    columns: Maybe[JsonValue]
    key: Maybe[list[str]]
    changelog: Maybe[Literal["append", "upsert", "retract"]]
    format: Maybe[Literal["avro", "json"]]
    partitions: Maybe[int]
    in_place: Maybe[int]


class PinnedTablesAnswer(Shape):
    """What a statement reads and writes, as it was when the statement was made."""

    tables: Maybe[dict[str, PinnedTableAnswer]]
    views: Maybe[dict[str, str]]
    record_keys: Maybe[dict[str, list[str]]]
    output: Maybe[OutputAnswer]


class StatementEndsAnswer(Shape):
    """Of a topic that is read up to an end: its id, and the offsets by partition."""

    id: str
    offsets: dict[str, tuple[int, int]]


class StatementOptionsAnswer(Shape):
    """What was set for a statement; the rest is missing."""

    idle_seconds: Maybe[float]
    idle_flush_seconds: Maybe[float]
    interval_seconds: Maybe[float]
    max_rows: Maybe[int]
    on_bad_record: Maybe[Literal["fail", "skip"]]
    initial_offset_from: Maybe[str]
    finish: Maybe[str]
    starts: Maybe[dict[str, str]]
    state_ttl_ms: Maybe[int]
    zone: Maybe[str]
    tables: Maybe[PinnedTablesAnswer]
    ends: Maybe[dict[str, StatementEndsAnswer]]


class ShownStatementAnswer(StatementAnswer):
    """One statement, with all that is known of it."""

    id: str
    script: str
    options: StatementOptionsAnswer
    created_at: float
    age: float
    detail: StatementDetailAnswer
    events: list[AgedEventAnswer]


class FinishingStatementAnswer(StatementAnswer):
    """A statement that is to close what has come; `finish` is the request."""

    finish: str


class SpanAnswer(Shape):
    """Offsets of a partition, the end not included."""

    topic: str
    partition: int
    start: int
    end: int


class ResetPlanAnswer(Shape):
    """What a statement repeats and skips."""

    places: str | dict[str, str]
    starts: dict[str, str]
    repeats: list[SpanAnswer]
    skips: list[SpanAnswer]


class AskedQueryAnswer(Shape):
    """A SELECT of a script, as it is to be asked."""

    sql: str
    settings: dict[str, str]


class OutcomeAnswer(Shape):
    """What came of one statement of a script."""

    kind: str
    message: str
    columns: list[str]
    rows: list[list[str]]
    statement: str | None
    warnings: list[str]
    query: AskedQueryAnswer | None


class ScriptAnswer(Shape):
    """What came of a script, and what is SET after it."""

    outcomes: list[OutcomeAnswer]
    settings: dict[str, str]
