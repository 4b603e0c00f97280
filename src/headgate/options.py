"""What users say of a table, in YAML, on the command line and to the API, becomes a TableSpec."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from headgate.errors import ConfigError, InvalidRequest
from headgate.model import (
    POSITION_TAG,
    Deletes,
    Envelope,
    Metadata,
    OnError,
    RecordFormat,
    RecordTypes,
    Start,
    StartKind,
    TableFormat,
    TableMode,
    TableSpec,
    Tombstones,
)
from headgate.partition import parse_partition

Choice = TypeVar("Choice", bound=StrEnum)
_OFFSETS = re.compile(r"^\d+:\d+(,\d+:\d+)*$")
# References of a table that nobody else moves.
OWN_REFS = ("main", POSITION_TAG)
# Not of digits alone: those are ids.
_TAG = re.compile(r"(?=.*[^0-9])[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
# What can be said of a table only before it exists: its rows were made by it.
SETTLED = (
    "mode",
    "start",
    "value_format",
    "value_columns",
    "key_format",
    "key_columns",
    "record_types",
    "key",
    "envelope",
    "storage",
)


class TableOptions(BaseModel):
    """What is not said stays as it is, or is the default."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)

    formats: list[str] | None = Field(None, min_length=1)
    mode: str | None = None
    start: str | None = Field(
        None,
        alias="from",
        description="`earliest`, `latest`, a time (`2026-01-31T12:00:00Z`), or offsets (`0:12,1:40`).",
    )
    freshness: str | None = Field(None, description="`10s`, `5m`")
    flush_bytes: int | None = Field(None, ge=1)
    on_error: str | None = None
    dead_letters: str | None = Field(None, min_length=1, description="Topic and table of dead letters.")
    value_format: str | None = None
    value_columns: str | None = Field(None, description="`id bigint, price decimal(12,2)`, for plain JSON.")
    key_format: str | None = None
    key_columns: str | None = None
    metadata: list[str] | None = Field(None, description="`[offset, timestamp]`, `[all]` or `[none]`.")
    partition: list[str] | None = Field(None, description="`[day(at)]`, `[none]` or `[default]`.")
    event_time: str | None = None
    record_types: str | None = None
    tombstones: str | None = None
    renames: dict[str, str] | None = Field(None, description="Columns by instruction: old name to new.")
    key: list[str] | None = Field(
        None, min_length=1, description="Columns that make a row's key, in upsert tables."
    )
    deletes: str | None = Field(None, description="How rows go, in upsert tables.")
    readers: list[str] | None = Field(None, description="Engines that read the table: `[spark, athena]`.")
    personal: list[str] | None = Field(
        None, description="Columns with personal data: exports hide them, or do not let them out."
    )
    format_version: int | None = Field(None, ge=2, le=3, description="Iceberg's: 2 or 3.")
    envelope: str | None = Field(None, description="Whether values are rows or changes of rows.")
    storage: str | None = Field(
        None, min_length=1, description="A storage integration, or a place as `s3://bucket/prefix`."
    )
    rewrite: bool | None = Field(
        None, description="Write files anew when their columns have other names than the table's (Delta)."
    )

    def apply(self, spec: TableSpec) -> TableSpec:
        """`spec` with what is said here."""
        said: dict[str, Any] = {}
        if self.formats is not None:
            names = (choose(TableFormat, name, "format") for name in self.formats)
            said["formats"] = tuple(dict.fromkeys(names))
        if self.start is not None:
            said["start"] = parse_start(self.start)
        if self.freshness is not None:
            said["freshness_seconds"] = parse_duration(self.freshness)
        if self.metadata is not None:
            said["metadata"] = parse_metadata(self.metadata)
        if self.partition is not None:
            said["partition"] = parse_partitions(self.partition)
        if self.renames is not None:
            said["renames"] = {**spec.renames, **self.renames}
        for name in ("key", "readers", "personal"):
            if (value := getattr(self, name)) is not None:
                said[name] = tuple(dict.fromkeys(value))
        for name, kind, noun in _CHOICES:
            if (value := getattr(self, name)) is not None:
                said[name] = choose(kind, value, noun)
        for name in _AS_SAID:
            if (value := getattr(self, name)) is not None:
                said[name] = value
        self._settle_format(spec, said)
        return replace(spec, **said)

    def _settle_format(self, spec: TableSpec, said: dict[str, Any]) -> None:
        """A table that is there is taken to version 3 in place, and never back."""
        if said.get("deletes") is Deletes.DELETION_VECTORS and spec.format_version == 2:
            said.setdefault("format_version", 3)
        if said.get("format_version") == 2 and spec.format_version == 3:
            raise InvalidRequest(
                f"Table '{spec.topic}' is of format version 3, and cannot go back to 2.",
                "Disable the table with --purge and enable it again with --format-version 2.",
            )

    def check_alterable(self, topic: str) -> None:
        """A table that is there keeps what its rows were made by."""
        fixed = [name for name in SETTLED if getattr(self, name) is not None]
        if fixed:
            names = ", ".join("from" if name == "start" else name for name in fixed)
            raise InvalidRequest(
                f"What table '{topic}' was made by cannot be altered: {names}.",
                "Disable the table with --purge and enable it again.",
            )


_AS_SAID = (
    "flush_bytes",
    "dead_letters",
    "value_columns",
    "key_columns",
    "event_time",
    "rewrite",
    "storage",
    "format_version",
)
_CHOICES: tuple[tuple[str, type[StrEnum], str], ...] = (
    ("mode", TableMode, "mode"),
    ("on_error", OnError, "error policy"),
    ("value_format", RecordFormat, "value format"),
    ("key_format", RecordFormat, "key format"),
    ("record_types", RecordTypes, "handling of record types"),
    ("tombstones", Tombstones, "handling of tombstones"),
    ("deletes", Deletes, "way of deleting"),
    ("envelope", Envelope, "envelope"),
)


def choose(kind: type[Choice], value: str, noun: str) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        supported = ", ".join(kind)
        raise InvalidRequest(
            f"The {noun} '{value}' is not supported.", f"Supported now: {supported}."
        ) from error


def parse_metadata(names: list[str]) -> tuple[Metadata, ...]:
    if names == ["all"]:
        return tuple(Metadata)
    if names == ["none"]:
        return ()
    return tuple(dict.fromkeys(choose(Metadata, name, "metadata column") for name in names))


def parse_partitions(fields: list[str]) -> tuple[str, ...] | None:
    """None stands for the default."""
    if fields == ["default"]:
        return None
    if fields == ["none"]:
        return ()
    return tuple(dict.fromkeys(str(parse_partition(field)) for field in fields))


def parse_start(text: str) -> Start:
    if text in (StartKind.EARLIEST, StartKind.LATEST):
        return Start(StartKind(text))
    if _OFFSETS.match(text):
        return Start(StartKind.OFFSETS, offsets=_offsets(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidRequest(
            f"'{text}' is not a place to start from.",
            "Say earliest, latest, a time as 2026-01-31T12:00:00Z, or offsets by partition as 0:12,1:40.",
        ) from error
    # A time without a zone would mean another moment on each machine.
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.timestamp() < 0:
        raise InvalidRequest(f"'{text}' is before 1970: no record has such a time.")
    return Start(StartKind.TIMESTAMP, timestamp_ms=round(moment.timestamp() * 1000))


def _offsets(text: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for pair in text.split(","):
        partition, offset = map(int, pair.split(":"))
        if partition in found:
            raise InvalidRequest(f"Partition {partition} is named twice in '{text}'.")
        found[partition] = offset
    return found


_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?\s*$")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}


def check_tag(name: str) -> None:
    """Raises InvalidRequest for what is no name of a snapshot's tag, or is Headgate's own."""
    if name in OWN_REFS:
        raise InvalidRequest(f"'{name}' is the table's own: it says where the table stands.")
    if not _TAG.fullmatch(name):
        raise InvalidRequest(
            f"'{name}' cannot be the name of a tag.",
            "Up to 128 letters, digits, '_', '-' and '.', not beginning with '-' or '.', not digits alone.",
        )


def parse_duration(text: str) -> float:
    """`10s`, `5m`, `2h` in seconds."""
    match = _DURATION.match(text)
    if not match:
        raise ConfigError(f"'{text}' is not a duration.", "Write for instance 10s, 5m or 2h.")
    return float(match[1]) * _UNITS[match[2]]
