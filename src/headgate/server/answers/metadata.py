"""What tables are made of and what was done to them."""

from typing import Literal

from pydantic import Field

from headgate.server.answers.positions import Offsets
from headgate.server.answers.shape import Shape

# Of a partition: JSON's types only.
PartitionValue = str | int | float | bool | None


class SnapshotTotalsAnswer(Shape):
    """What a table had at a snapshot."""

    rows: int
    deleted_rows: int
    files: int
    delete_files: int
    bytes: int


class RolledBackFromAnswer(Shape):
    """From which snapshot a table was put back to which, and what became of the records between."""

    from_: str = Field(alias="from")
    to: str
    records: str


class SnapshotAnswer(Shape):
    """What a snapshot did. `committed_at` is in milliseconds."""

    snapshot_id: str
    sequence: int
    parent_id: str | None
    committed_at: int
    operation: str | None
    action: str | None = Field(description="What of Headgate's it was: batch, replay, compact, erase, …")
    rows_added: int
    rows_removed: int
    rows_deleted: int
    files_added: int
    files_removed: int
    delete_files_added: int
    delete_files_removed: int
    bytes_added: int
    bytes_removed: int
    before: SnapshotTotalsAnswer | None
    after: SnapshotTotalsAnswer
    seconds: float | None
    from_: Offsets | None = Field(alias="from")
    to: Offsets | None
    rolled_back: RolledBackFromAnswer | None
    asked_by: str | None
    schema_id: int | None
    schema_changes: list[str]
    partition_change: str | None = Field(description="How it has laid files out, where that is new.")
    is_current_ancestor: bool
    refs: list[str]


class PartitionSpecAnswer(Shape):
    """A way in which a table is partitioned: fields such as `day(at)`."""

    spec_id: int
    fields: list[str]


class HistoryAnswer(Shape):
    """Snapshots of a table, the newest first, of `total`; and what it takes with all of them. `next` is
    the `before` of the next page."""

    snapshots: list[SnapshotAnswer]
    next: int | None
    total: int
    format_version: int | None
    last_compaction_at: int | None
    kept_bytes: int
    partition_specs: list[PartitionSpecAnswer]
    partition_spec_id: int | None


class TableFieldAnswer(Shape):
    """A field of a schema at any depth; `depth` is 0 for a column."""

    id: int
    name: str
    path: str
    depth: int
    type: str
    required: bool
    identifier: bool = Field(description="Whether it is one of those that tell rows apart.")
    doc: str | None


class TableSchemaAnswer(Shape):
    """A schema of a table. `committed_at`: of the first snapshot that is kept with it, in milliseconds."""

    schema_id: int
    committed_at: int | None
    changes: list[str]
    fields: list[TableFieldAnswer]


class TableSchemasAnswer(Shape):
    """The schemas of a table, the newest first; `schema_id` is that of the present one."""

    schema_id: int | None
    versions: list[TableSchemaAnswer]


class SnapshotRowAnswer(Shape):
    """A row of `t$snapshots`."""

    committed_at: int
    snapshot_id: str
    parent_id: str | None
    operation: str | None
    manifest_list: str | None
    summary: dict[str, str]


class HistoryRowAnswer(Shape):
    """A row of `t$history`."""

    made_current_at: int
    snapshot_id: str
    parent_id: str | None
    is_current_ancestor: bool


class RefRowAnswer(Shape):
    """A row of `t$refs`."""

    name: str
    type: Literal["BRANCH", "TAG"]
    snapshot_id: str
    max_reference_age_in_ms: int | None
    min_snapshots_to_keep: int | None
    max_snapshot_age_in_ms: int | None


class FileRowAnswer(Shape):
    """A row of `t$files`."""

    content: Literal["DATA", "POSITION_DELETES", "EQUALITY_DELETES"]
    file_path: str
    file_format: str
    spec_id: int
    partition: dict[str, PartitionValue]
    record_count: int
    file_size_in_bytes: int


class PartitionRowAnswer(Shape):
    """A row of `t$partitions`."""

    partition: dict[str, PartitionValue]
    spec_id: int
    record_count: int
    file_count: int
    total_size: int
    delete_file_count: int


class ManifestRowAnswer(Shape):
    """A row of `t$manifests`."""

    content: Literal["DATA", "DELETES"]
    path: str
    length: int
    partition_spec_id: int
    added_snapshot_id: str
    added_data_files_count: int | None
    added_rows_count: int | None
    existing_data_files_count: int | None
    existing_rows_count: int | None
    deleted_data_files_count: int | None
    deleted_rows_count: int | None


class SizeBucketAnswer(Shape):
    """Data files of at least `from`, and less than `to` bytes."""

    from_: int = Field(alias="from")
    to: int | None
    files: int
    bytes: int


class LayoutPartitionAnswer(Shape):
    """A partition: rows, bytes and number of its data files."""

    partition: dict[str, PartitionValue]
    spec_id: int
    rows: int
    bytes: int
    files: int
    delete_files: int


class LayoutAnswer(Shape):
    """How a table's rows lie in files. Of very many partitions the newest are listed."""

    files: int
    bytes: int
    rows: int
    delete_files: int
    delete_bytes: int
    sizes: list[SizeBucketAnswer]
    partitions: list[LayoutPartitionAnswer]
    partitions_total: int


MetadataAnswer = (
    list[SnapshotRowAnswer]
    | list[HistoryRowAnswer]
    | list[RefRowAnswer]
    | list[FileRowAnswer]
    | list[PartitionRowAnswer]
    | list[ManifestRowAnswer]
)
