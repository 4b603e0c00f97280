"""Topics as tables: in a list, one of them, and what the engine knows of it."""

from typing import Literal

from pydantic import Field

from headgate.model import (
    Deletes,
    Envelope,
    Metadata,
    OnError,
    RecordFormat,
    RecordTypes,
    StartKind,
    TableFormat,
    TableMode,
    TableState,
    Tombstones,
)
from headgate.server.answers.catalogs import PublicationAnswer
from headgate.server.answers.events import AgedEventAnswer
from headgate.server.answers.positions import Offsets, PositionAnswer
from headgate.server.answers.shape import Maybe, Shape


class DeadLettersPlaceAnswer(Shape):
    """Where a table's dead letters are, and whether there have been any."""

    name: str
    exists: bool


class TableAnswer(Shape):
    """A table in a list. Numbers are null until the engine knows them."""

    topic: str
    state: TableState
    reason: str
    since: float
    desired: Literal["enabled", "suspended", "disabled", "purged"]
    position: PositionAnswer | None
    lag: int | None
    freshness: float | None
    rows: int | None
    files: int | None
    bytes: int | None
    records_materialized: int | None
    files_created: int | None
    kept_bytes: int | None
    delta_log_bytes: int | None
    dead_letters_count: int | None
    last_compaction_at: int | None = Field(description="Milliseconds since 1970.")
    dead_letters: DeadLettersPlaceAnswer | None
    updated_at: float


class StartAnswer(Shape):
    """Where a table began in its topic."""

    kind: StartKind
    timestamp_ms: Maybe[int]
    offsets: Maybe[Offsets]


class TableSpecAnswer(Shape):
    """What is wanted of a table."""

    topic: str
    formats: list[TableFormat]
    mode: TableMode
    start: StartAnswer
    freshness_seconds: float
    flush_bytes: int
    on_error: OnError
    value_format: RecordFormat
    key_format: RecordFormat
    value_columns: str | None
    key_columns: str | None
    metadata: list[Metadata]
    partition: list[str] | None
    event_time: str | None
    watermark: str | None
    record_types: RecordTypes
    tombstones: Tombstones
    renames: dict[str, str]
    dead_letters: str | None
    key: list[str] | None
    deletes: Deletes | None
    readers: list[str]
    personal: list[str]
    format_version: int | None
    envelope: Envelope
    rewrite: bool
    storage: str | None


class LastBatchAnswer(Shape):
    """The last batch that was committed."""

    rows: int
    bytes: int
    seconds: float
    at: float
    snapshot_id: str
    bad: Maybe[int]


class DeltaLogAnswer(Shape):
    """The Delta log; nothing of it before its first version."""

    version: Maybe[int]
    snapshot_id: Maybe[str | None]
    files: Maybe[int]
    rows: Maybe[int | None]
    widened_types: Maybe[bool]


class TableDetailAnswer(Shape):
    """What the engine knows of a table; what it does not know yet is missing."""

    synced: Maybe[str]
    last_batch: Maybe[LastBatchAnswer]
    behind_since: Maybe[float | None]
    position: Maybe[PositionAnswer]
    ends: Maybe[Offsets]
    lag: Maybe[int | None]
    location: Maybe[str]
    snapshot_id: Maybe[str | None]
    mode: Maybe[TableMode]
    rows: Maybe[int]
    deleted_rows: Maybe[int]
    records_materialized: Maybe[int]
    files_created: Maybe[int]
    files: Maybe[int]
    bytes: Maybe[int]
    schema_ids: Maybe[list[int]]
    dead_letters: Maybe[str | None]
    dead_letters_count: Maybe[int | None]
    last_compaction_at: Maybe[int | None]
    kept_bytes: Maybe[int]
    delta_log_bytes: Maybe[int | None]
    partition: Maybe[list[str]]
    partition_reason: Maybe[str]
    format_version: Maybe[int]
    delta: Maybe[DeltaLogAnswer]
    key: Maybe[list[str]]
    deletes: Maybe[Deletes | None]
    unique_keys: Maybe[int]
    index_bytes: Maybe[int]
    rows_of_earlier_generations: Maybe[int]


class ShownTableAnswer(TableAnswer):
    """One table, with all that is known of it."""

    spec: TableSpecAnswer
    from_: str = Field(alias="from")
    created_at: float
    age: float
    detail: TableDetailAnswer
    events: list[AgedEventAnswer]
    catalogs: list[PublicationAnswer]
    warnings: list[str]


class ResumedTableAnswer(ShownTableAnswer):
    """A table that is to go on; `request` is that of what was accepted."""

    request: Maybe[str]


class SyncAnswer(Shape):
    """The table has caught up when its `detail.synced` is the token."""

    token: str
