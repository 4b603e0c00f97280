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
MANAGED_KEY = "headgate.managed"
TOPIC_KEY = "headgate.topic"
POSITION_TAG = "headgate-position"


class TableFormat(StrEnum):
    ICEBERG = "iceberg"


class TableMode(StrEnum):
    APPEND = "append"


class OnError(StrEnum):
    SUSPEND = "suspend"


class TableState(StrEnum):
    """Where a table stands, as users see it."""

    PENDING = "Pending"  # wanted, the engine has not taken it up yet
    SYNCING = "Syncing"  # working through a backlog
    RUNNING = "Running"  # within its freshness
    SUSPENDED = "Suspended"  # stopped, by its owner or with a reason that needs one
    DEGRADED = "Degraded"  # going on, with something its owner should know
    FAILED = "Failed"  # retried and failing still


@dataclass(frozen=True)
class Topic:
    """A topic as the broker describes it now. A topic created anew under the same name has another id."""

    name: str
    id: str
    partitions: tuple[int, ...]
    internal: bool = False


@dataclass(frozen=True)
class Position:
    """How far a table has come in its topic: the next offset to read, for each partition."""

    cluster_id: str
    topic_id: str
    offsets: Mapping[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", MappingProxyType(dict(sorted(self.offsets.items()))))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        offsets = {str(partition): offset for partition, offset in self.offsets.items()}
        return {"cluster": self.cluster_id, "topic": self.topic_id, "offsets": offsets}

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        return cls(raw["cluster"], raw["topic"], {int(p): int(o) for p, o in raw["offsets"].items()})

    def advanced_to(self, offsets: Mapping[int, int]) -> Self:
        return replace(self, offsets={**self.offsets, **offsets})


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


@dataclass(frozen=True)
class TableSpec:
    """What its owner wants of a table. The table is named after its topic."""

    topic: str
    formats: tuple[TableFormat, ...] = (TableFormat.ICEBERG,)
    mode: TableMode = TableMode.APPEND
    start: Start = field(default_factory=Start)
    freshness_seconds: float = 10.0
    flush_bytes: int = 250 * 1024 * 1024
    on_error: OnError = OnError.SUSPEND

    def __post_init__(self) -> None:
        if self.freshness_seconds < 1:
            raise InvalidRequest(
                f"A freshness of {self.freshness_seconds} s is too small for table '{self.topic}'.",
                "Ask for 1 s or more.",
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "formats": [f.value for f in self.formats],
            "mode": self.mode.value,
            "start": self.start.to_dict(),
            "freshness_seconds": self.freshness_seconds,
            "flush_bytes": self.flush_bytes,
            "on_error": self.on_error.value,
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Self:
        return cls(
            topic=raw["topic"],
            formats=tuple(TableFormat(f) for f in raw["formats"]),
            mode=TableMode(raw["mode"]),
            start=Start.from_dict(raw["start"]),
            freshness_seconds=raw["freshness_seconds"],
            flush_bytes=raw["flush_bytes"],
            on_error=OnError(raw["on_error"]),
        )
