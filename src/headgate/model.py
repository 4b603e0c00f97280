"""The nouns of Headgate, frozen. No I/O here."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Self

from headgate.errors import InvalidRequest

# Keys of snapshot summaries and table properties. The catalog and the engine read the same ones.
POSITION_KEY = "headgate.position"
FROM_KEY = "headgate.from"
BATCH_KEY = "headgate.batch-id"
OPERATION_KEY = "headgate.operation"
# How long a batch took up to its commit, and what the table has taken in since it was enabled.
SECONDS_KEY = "headgate.batch-seconds"
RECORDS_KEY = "headgate.records-materialized"
FILES_KEY = "headgate.files-created"
REPLAY_KEY = "headgate.replay"
# By which partition spec a snapshot's files are laid out: Iceberg's snapshots do not say.
SPEC_KEY = "headgate.partition-spec"
# What was asked of the engine, where a snapshot is all that came of it.
REQUEST_KEY = "headgate.request"
# Of a batch: records that were left out, and that became dead letters.
SKIPPED_KEY = "headgate.skipped"
DEAD_KEY = "headgate.dead"
# Of a rollback: the newest snapshot before it, the one it went back to, and what became of the records
# between their positions.
ROLLED_BACK_FROM_KEY = "headgate.rolled-back-from"
ROLLED_BACK_TO_KEY = "headgate.rolled-back-to"
ROLLED_BACK_RECORDS_KEY = "headgate.rolled-back-records"
# Who asked for what a snapshot did, where somebody did.
ASKED_BY_KEY = "headgate.asked-by"
ROLLBACK = "rollback"
DEAD_LETTERS_KEY = "headgate.dead-letters"
MANAGED_KEY = "headgate.managed"
TOPIC_KEY = "headgate.topic"
POSITION_TAG = "headgate-position"
# Tags that hold the snapshots of exports begin so.
EXPORT_TAG = "headgate-export-"
# Which formats a table is read in. One that is Delta alone has an Iceberg side that readers are not shown.
FORMATS_KEY = "headgate.formats"


class TableFormat(StrEnum):
    """What readers take a table for. The rows are in the same files, whatever is chosen."""

    ICEBERG = "iceberg"
    DELTA = "delta"


class TableMode(StrEnum):
    """What a record is to the table."""

    AUTO = "auto"  # by the topic: upsert where it is compacted, append otherwise
    APPEND = "append"  # a row
    UPSERT = "upsert"  # the present state of its key's row
    SCD2 = "scd2"  # a version of its key's row, from when to when it held


class Deletes(StrEnum):
    """How an upsert table says that rows are gone."""

    DELETION_VECTORS = "deletion-vectors"  # format version 3
    COPY_ON_WRITE = "copy-on-write"  # files are written anew; every reader knows that
    POSITION_DELETES = "position-deletes"  # format version 2


# The format version that has a way of deleting; the one that is not here is of both.
_NEEDED_FORMAT: Mapping[Deletes, int] = {Deletes.DELETION_VECTORS: 3, Deletes.POSITION_DELETES: 2}


class Envelope(StrEnum):
    """Whether values are rows, or changes of rows."""

    AUTO = "auto"  # changes, where the schema is Debezium's and the table is an upsert table
    NONE = "none"  # rows
    DEBEZIUM = "debezium"  # changes


# Engines that read format version 3, deletion vectors with it, by the names that `readers` takes; the others
# read version 2.
READERS: Mapping[str, bool] = {
    "spark": True,
    "duckdb": True,
    "pyiceberg": True,
    "trino": True,
    "flink": True,
    "delta-rs": True,
    "polars": True,
    "databricks": True,
    "snowflake": True,
    "athena": False,
    "bigquery": False,
    "clickhouse": False,
    "doris": False,
    "dremio": False,
    "redshift": False,
    "starrocks": False,
    "other": False,
}
# Of those that read Delta's side: the ones that refuse a table of which a column's type was widened.
WITHOUT_WIDENING = frozenset({"delta-rs", "polars"})


class OnError(StrEnum):
    """What becomes of a record that cannot be decoded exactly."""

    SUSPEND = "suspend"  # the table stops before its batch
    SKIP = "skip"  # it is left out and counted
    LOG = "log"  # it goes to the dead letters, to be replayed


class RecordFormat(StrEnum):
    """How the bytes of a key or a value are read."""

    AUTO = "auto"  # by the schema id that each record carries: Avro, JSON Schema or Protobuf
    JSON = "json"  # JSON with declared columns
    JSON_TEXT = "json-text"  # JSON as one column of text
    JSON_VARIANT = "json-variant"  # JSON as one column of Iceberg's variant type
    CONNECT_JSON = "connect-json"  # Kafka Connect's JSON with its schema in each message
    STRING = "string"
    BYTES = "bytes"
    NONE = "none"  # not read at all


class RecordTypes(StrEnum):
    """What to do when records of several types are in one topic."""

    SINGLE = "single"  # another type suspends the table
    UNION = "union"  # each type is an optional struct column


class Tombstones(StrEnum):
    """What a record without a value is to an append table."""

    BAD = "bad"  # a bad record, for the error policy
    SKIP = "skip"  # nothing: left out


class Metadata(StrEnum):
    """What Kafka knows of a record, as columns named `_kafka_…`."""

    TOPIC = "topic"
    PARTITION = "partition"
    OFFSET = "offset"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TYPE = "timestamp-type"
    KEY = "key"
    HEADERS = "headers"
    LEADER_EPOCH = "leader-epoch"
    SCHEMA_ID = "schema-id"

    @property
    def column(self) -> str:
        return "_kafka_" + self.value.replace("-", "_")


class TableState(StrEnum):
    """Where a table stands, as users see it."""

    PENDING = "Pending"  # wanted, the engine has not taken it up yet
    SYNCING = "Syncing"  # working through a backlog
    RUNNING = "Running"  # within its freshness
    SUSPENDED = "Suspended"  # stopped, by its owner or with a reason that needs one
    DEGRADED = "Degraded"  # going on, with something its owner should know
    FAILED = "Failed"  # retried and failing still


# How the reason begins of a table that is `Pending` though the engine has looked at it.
WAITING_FOR_SCHEMA = "waiting for a schema"


class StatementState(StrEnum):
    """Where a statement stands, as users see it."""

    PENDING = "Pending"  # wanted, and not running yet, or not again
    RUNNING = "Running"
    STOPPED = "Stopped"  # by its owner; it goes on where it was
    FAILED = "Failed"  # with a reason that needs its owner, or retried and failing still
    COMPLETED = "Completed"  # nothing is left to do


@dataclass(frozen=True)
class Topic:
    """A topic as the broker describes it now. A topic created anew under the same name has another id."""

    name: str
    id: str
    partitions: tuple[int, ...]
    internal: bool = False


@dataclass(frozen=True)
class Era:
    """Records of one topic on one timeline of its source, and where the table stopped to read them."""

    topic_id: str
    ends: Mapping[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ends", MappingProxyType(dict(sorted(self.ends.items()))))


@dataclass(frozen=True)
class SnapshotCount:
    """How many snapshots of Debezium followed stream events in a partition, and where the last one began."""

    count: int = 0
    since: int = 0
    #: Whether a stream event has come since.
    streamed: bool = False


@dataclass(frozen=True)
class Position:
    """How far a table has come in its topic: the next offset to read, for each partition."""

    cluster_id: str
    topic_id: str
    offsets: Mapping[int, int]
    #: What was read before the topic was created again, or its source's timeline ended; oldest first.
    earlier: tuple[Era, ...] = ()
    #: By partition, since then.
    snapshots: Mapping[int, SnapshotCount] = field(default_factory=dict)
    #: By partition: the epoch of the leader that what is before the offset was read from.
    epochs: Mapping[int, int] = field(default_factory=dict)
    #: By partition: up to where a table that was rolled back had read; it keeps these dead letters.
    reread: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("offsets", "snapshots", "epochs", "reread"):
            sorted_by_partition = dict(sorted(getattr(self, name).items()))
            object.__setattr__(self, name, MappingProxyType(sorted_by_partition))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        offsets = _by_text(self.offsets)
        found: dict[str, Any] = {"cluster": self.cluster_id, "topic": self.topic_id, "offsets": offsets}
        if self.earlier:
            found["earlier"] = [{"topic": era.topic_id, "ends": _by_text(era.ends)} for era in self.earlier]
        if self.snapshots:
            found["snapshots"] = {str(p): [n.count, n.since, n.streamed] for p, n in self.snapshots.items()}
        if self.epochs:
            found["epochs"] = _by_text(self.epochs)
        if self.reread:
            found["reread"] = _by_text(self.reread)
        return found

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        return cls(
            raw["cluster"],
            raw["topic"],
            _by_number(raw["offsets"]),
            tuple(Era(era["topic"], _by_number(era["ends"])) for era in raw.get("earlier", ())),
            {int(p): SnapshotCount(*counted) for p, counted in raw.get("snapshots", {}).items()},
            _by_number(raw.get("epochs", {})),
            _by_number(raw.get("reread", {})),
        )

    def advanced_to(self, offsets: Mapping[int, int]) -> Self:
        now = {**self.offsets, **offsets}
        ahead = {p: end for p, end in self.reread.items() if end > now.get(p, 0)}
        return replace(self, offsets=now, reread=ahead)

    @property
    def once_read(self) -> Self:
        """The farthest position that a table has had: beyond this one, while records are read again."""
        return replace(self, offsets={**self.offsets, **self.reread}, reread={})

    def in_new_era(self, cluster_id: str, topic_id: str, offsets: Mapping[int, int]) -> Self:
        """A position whose records are never compared with those before it."""
        earlier = (*self.earlier, Era(self.topic_id, self.offsets))
        same = topic_id == self.topic_id
        epochs, reread = (self.epochs, self.reread) if same else ({}, {})
        return type(self)(cluster_id, topic_id, offsets, earlier, epochs=epochs, reread=reread)


def _by_text(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _by_number(offsets: Mapping[str, Any]) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in offsets.items()}


@dataclass(frozen=True)
class OffsetRange:
    """Records of one partition from `start` up to, not including, `end`."""

    partition: int
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Batch:
    """One commit's worth of records of one table."""

    start: Position
    end: Position
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The ranges that hold something, by partition. A partition new in `end` starts at 0."""
        found = (OffsetRange(p, self.start.offsets.get(p, 0), end) for p, end in self.end.offsets.items())
        return tuple(r for r in found if r.end > r.start)

    @property
    def offsets(self) -> int:
        """How many offsets it spans: at least as many as there are records."""
        return sum(len(r) for r in self.ranges)

    def summary(self) -> dict[str, str]:
        """What the batch's snapshot says of it; the catalog judges the commit by this."""
        return {
            POSITION_KEY: self.end.to_json(),
            FROM_KEY: self.start.to_json(),
            BATCH_KEY: self.id,
            OPERATION_KEY: "batch",
        }


class StartKind(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class Start:
    """Where a table that has no snapshot yet begins in its topic."""

    kind: StartKind = StartKind.EARLIEST
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind.value}
        if self.timestamp_ms is not None:
            found["timestamp_ms"] = self.timestamp_ms
        if self.offsets is not None:
            found["offsets"] = {str(p): o for p, o in self.offsets.items()}
        return found

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        offsets = raw.get("offsets")
        return cls(
            StartKind(raw["kind"]),
            raw.get("timestamp_ms"),
            None if offsets is None else {int(p): int(o) for p, o in offsets.items()},
        )


DEAD_LETTERS_SUFFIX = ".dlq"
# Headers of a dead letter that say what was wrong with it begin so; they come after those that it had.
DEAD_LETTER_HEADERS = "headgate."


@dataclass(frozen=True)
class TableSpec:
    """What its owner wants of a table. The table is named after its topic."""

    topic: str
    formats: tuple[TableFormat, ...] = (TableFormat.ICEBERG,)
    mode: TableMode = TableMode.AUTO
    start: Start = field(default_factory=Start)
    freshness_seconds: float = 10.0
    flush_bytes: int = 250 * 1024 * 1024
    on_error: OnError = OnError.SUSPEND
    value_format: RecordFormat = RecordFormat.AUTO
    key_format: RecordFormat = RecordFormat.NONE
    # Declared columns of plain JSON, as in `id bigint, price decimal(12,2)`.
    value_columns: str | None = None
    key_columns: str | None = None
    metadata: tuple[Metadata, ...] = (Metadata.TIMESTAMP,)
    # Partition fields such as `day(at)`; none at all leaves the table unpartitioned, None is the default.
    partition: tuple[str, ...] | None = None
    # The column that says when the thing happened: what the default partition goes by.
    event_time: str | None = None
    # The column of the topic's WATERMARK, as it was declared when the topic was enabled.
    watermark: str | None = None
    record_types: RecordTypes = RecordTypes.SINGLE
    tombstones: Tombstones = Tombstones.BAD
    # Columns that were renamed by instruction, old name to new.
    renames: Mapping[str, str] = field(default_factory=dict)
    # The topic and table of dead letters; None is `<topic>.dlq`.
    dead_letters: str | None = None
    # The columns that make a row's key, in upsert tables; None: the fields of Kafka's key.
    key: tuple[str, ...] | None = None
    # How rows go, in upsert tables; None: as the declared readers can read it.
    deletes: Deletes | None = None
    readers: tuple[str, ...] = ()
    # Iceberg's; None: as the declared readers and the way of deleting need it.
    format_version: int | None = None
    envelope: Envelope = Envelope.AUTO
    # Whether files are written anew when a column's name in them is no longer the table's: readers of Delta
    # find columns by name.
    rewrite: bool = False
    # A storage integration, or a place in S3; None is the warehouse.
    storage: str | None = None

    def __post_init__(self) -> None:
        if self.freshness_seconds < 1:
            raise InvalidRequest(
                f"A freshness of {self.freshness_seconds} s is too small for table '{self.topic}'.",
                "Ask for 1 s or more.",
            )
        for reader in self.readers:
            if reader not in READERS:
                raise InvalidRequest(
                    f"Nothing is known of the reader '{reader}' of table '{self.topic}'.",
                    f"Known: {', '.join(READERS)}.",
                )
        self._check_format()
        if self.mode is TableMode.APPEND and (self.key is not None or self.deletes is not None):
            raise InvalidRequest(
                f"Table '{self.topic}' appends: it has no key, and rows of it are not deleted.",
                "Say --mode upsert, or leave --key and --deletes away.",
            )
        if self.has_delta and self.renames and not self.rewrite:
            raise InvalidRequest(
                f"Table '{self.topic}' is a Delta table: to rename columns ({', '.join(self.renames)}), its "
                "files must be written anew.",
                "Say --rewrite if that is what you want.",
            )
        if self.value_format is RecordFormat.NONE:
            raise InvalidRequest(f"The values of table '{self.topic}' must be read somehow.")
        for part, kind, columns in (
            ("value", self.value_format, self.value_columns),
            ("key", self.key_format, self.key_columns),
        ):
            if (kind is RecordFormat.JSON) != (columns is not None):
                raise InvalidRequest(
                    f"The {part} format '{kind}' of table '{self.topic}' "
                    + ("lacks its columns." if columns is None else "takes no columns."),
                    f"Declare --{part}-columns with --{part}-format json, and only with it.",
                )

    def _check_format(self) -> None:
        if self.format_version not in (None, 2, 3):
            raise InvalidRequest(
                f"Table '{self.topic}' cannot have format version {self.format_version}.",
                "There are 2 and 3.",
            )
        if self.deletes is not None and _NEEDED_FORMAT.get(self.deletes, self.format) != self.format:
            raise InvalidRequest(
                f"Table '{self.topic}' is of format version {self.format}: {self.deletes} are of version "
                f"{_NEEDED_FORMAT[self.deletes]}.",
                "Take the way of deleting of that version, or copy-on-write, which both have."
                if self.format == 3
                else "Say --format-version 3 for deletion-vectors; there is no way back.",
            )
        if self.format == 2 and RecordFormat.JSON_VARIANT in (self.value_format, self.key_format):
            raise InvalidRequest(
                f"Table '{self.topic}' is of format version 2, which has no variants.",
                "Say --value-format json-text, or --format-version 3.",
            )

    @property
    def format(self) -> int:
        """The format version of the table."""
        return self.needed_format if self.format_version is None else self.format_version

    @property
    def needed_format(self) -> int:
        """The format version that follows from how rows go, and who reads."""
        if self.deletes is not None and self.deletes in _NEEDED_FORMAT:
            return _NEEDED_FORMAT[self.deletes]
        return 3 if self._readers_are_new else 2

    @property
    def _readers_are_new(self) -> bool:
        return all(READERS[name] for name in self.readers)

    @property
    def has_delta(self) -> bool:
        return TableFormat.DELTA in self.formats

    @property
    def avoids_widening(self) -> bool:
        """Whether somebody reads its Delta side who refuses widened types: files are rewritten instead."""
        return self.has_delta and not WITHOUT_WIDENING.isdisjoint(self.readers)

    @property
    def is_upsert(self) -> bool:
        """Whether records are about rows that have keys."""
        return self.mode in (TableMode.UPSERT, TableMode.SCD2)

    @property
    def metadata_kept(self) -> tuple[Metadata, ...]:
        """What is wanted; rows that replace each other also keep where they came from."""
        own = (Metadata.PARTITION, Metadata.OFFSET) if self.is_upsert else ()
        return tuple(dict.fromkeys((*self.metadata, *own)))

    @property
    def deletes_by(self) -> Deletes:
        if self.deletes is not None:
            return self.deletes
        if self.format == 2:
            return Deletes.POSITION_DELETES
        return Deletes.DELETION_VECTORS if self._readers_are_new else Deletes.COPY_ON_WRITE

    @property
    def partition_fields(self) -> tuple[str, ...]:
        """What the table is partitioned by: the day of the event, or of the record, unless told otherwise.
        What the topic declares by its WATERMARK is the event's time too. Rows that are replaced are not laid
        out by time: what deletes them knows their key alone."""
        if self.partition is not None:
            return self.partition
        if self.is_upsert:
            return ()
        event_time = self.event_time or self.watermark
        if event_time is not None:
            return (f"day({event_time})",)
        return (f"day({Metadata.TIMESTAMP.column})",) if Metadata.TIMESTAMP in self.metadata else ()

    @property
    def partition_reason(self) -> str:
        """Why it is partitioned by that."""
        if self.partition is not None:
            return "as asked for"
        if self.is_upsert:
            return "rows that are replaced are not laid out by time"
        if self.event_time is not None:
            return "the day of the event time that was asked for"
        if self.watermark is not None:
            return "the day of the column of the topic's WATERMARK"
        if self.partition_fields:
            return "the day of the record: the topic declares no WATERMARK on a column of the table"
        return "records keep no timestamp"

    @property
    def dead_letters_name(self) -> str:
        return self.dead_letters or self.topic + DEAD_LETTERS_SUFFIX

    def to_dict(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "formats": [f.value for f in self.formats],
            "mode": self.mode.value,
            "start": self.start.to_dict(),
            "freshness_seconds": self.freshness_seconds,
            "flush_bytes": self.flush_bytes,
            "on_error": self.on_error.value,
            "value_format": self.value_format.value,
            "key_format": self.key_format.value,
            "value_columns": self.value_columns,
            "key_columns": self.key_columns,
            "metadata": [m.value for m in self.metadata],
            "partition": None if self.partition is None else list(self.partition),
            "event_time": self.event_time,
            "watermark": self.watermark,
            "record_types": self.record_types.value,
            "tombstones": self.tombstones.value,
            "renames": dict(self.renames),
            "dead_letters": self.dead_letters,
            "key": None if self.key is None else list(self.key),
            "deletes": None if self.deletes is None else self.deletes.value,
            "readers": list(self.readers),
            "format_version": self.format_version,
            "envelope": self.envelope.value,
            "rewrite": self.rewrite,
            "storage": self.storage,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        """Of what `to_dict` gave, now or in an earlier version: what was not known then is as it was then."""
        partition = raw.get("partition", [])
        return cls(
            topic=raw["topic"],
            formats=tuple(TableFormat(f) for f in raw["formats"]),
            mode=TableMode(raw["mode"]),
            start=Start.from_dict(raw["start"]),
            freshness_seconds=raw["freshness_seconds"],
            flush_bytes=raw["flush_bytes"],
            on_error=OnError(raw["on_error"]),
            value_format=RecordFormat(raw.get("value_format", RecordFormat.AUTO)),
            key_format=RecordFormat(raw.get("key_format", RecordFormat.NONE)),
            value_columns=raw.get("value_columns"),
            key_columns=raw.get("key_columns"),
            metadata=tuple(Metadata(m) for m in raw.get("metadata", [])),
            partition=None if partition is None else tuple(partition),
            event_time=raw.get("event_time"),
            watermark=raw.get("watermark"),
            record_types=RecordTypes(raw.get("record_types", RecordTypes.SINGLE)),
            tombstones=Tombstones(raw.get("tombstones", Tombstones.BAD)),
            renames=dict(raw.get("renames", {})),
            dead_letters=raw.get("dead_letters"),
            key=None if raw.get("key") is None else tuple(raw["key"]),
            deletes=None if raw.get("deletes") is None else Deletes(raw["deletes"]),
            readers=tuple(raw.get("readers", ())),
            # It followed from the way of deleting.
            format_version=raw.get("format_version", 2 if raw.get("deletes") == "position-deletes" else 3),
            envelope=Envelope(raw.get("envelope", Envelope.AUTO)),
            rewrite=bool(raw.get("rewrite", False)),
            storage=raw.get("storage"),
        )
