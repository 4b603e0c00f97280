"""What a request says of a table becomes a TableSpec, or is refused with what would do."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from headgate.config import parse_duration
from headgate.errors import InvalidRequest
from headgate.model import OnError, Start, StartKind, TableFormat, TableMode, TableSpec

Choice = TypeVar("Choice", bound=StrEnum)
_OFFSETS = re.compile(r"^\d+:\d+(,\d+:\d+)*$")
_DEFAULT = TableSpec("")


class TableRequest(BaseModel):
    """A topic that is to be a table."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    topic: str = Field(min_length=1)
    formats: list[str] = Field([f.value for f in _DEFAULT.formats], min_length=1)
    mode: str = _DEFAULT.mode.value
    start: str = Field(
        "earliest",
        alias="from",
        description="`earliest`, `latest`, a time (`2026-01-31T12:00:00Z`), or offsets (`0:12,1:40`).",
    )
    freshness: str = Field(f"{_DEFAULT.freshness_seconds:g}s", description="`10s`, `5m`")
    on_error: str = _DEFAULT.on_error.value
    flush_bytes: int = Field(_DEFAULT.flush_bytes, ge=1)

    def spec(self) -> TableSpec:
        return TableSpec(
            topic=self.topic,
            formats=tuple(dict.fromkeys(choose(TableFormat, name, "format") for name in self.formats)),
            mode=choose(TableMode, self.mode, "mode"),
            start=parse_start(self.start),
            freshness_seconds=parse_duration(self.freshness),
            flush_bytes=self.flush_bytes,
            on_error=choose(OnError, self.on_error, "error policy"),
        )


def choose(kind: type[Choice], value: str, noun: str) -> Choice:
    try:
        return kind(value)
    except ValueError as error:
        supported = ", ".join(kind)
        raise InvalidRequest(
            f"The {noun} '{value}' is not supported.", f"Supported now: {supported}."
        ) from error


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
