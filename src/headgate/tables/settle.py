"""What its owner left open about a table is settled once, when the table is made, and stays so."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from headgate.errors import TableStopped
from headgate.model import RecordFormat, TableMode, TableSpec
from headgate.tables.evolve import Message, Schemas
from headgate.tables.readers import frame_of

MODE_KEY = "headgate.mode"
KEY_FORMAT_KEY = "headgate.key-format"


def settled(spec: TableSpec, properties: Mapping[str, str]) -> TableSpec:
    """As an existing table was made."""
    mode = TableMode(properties.get(MODE_KEY) or TableMode.APPEND)
    if spec.mode not in (TableMode.AUTO, mode):
        raise TableStopped(
            f"Table '{spec.topic}' was made with the mode {mode}, and cannot become one with {spec.mode}.",
            "Disable it with --purge and enable it again, or enable it with the mode it has.",
        )
    key_format = RecordFormat(properties.get(KEY_FORMAT_KEY) or spec.key_format)
    return replace(spec, mode=mode, key_format=key_format)


def settle(
    spec: TableSpec,
    cleanup_policy: Callable[[], str],
    schemas: Schemas,
    peek: Callable[[], Iterable[Message]],
) -> TableSpec | None:
    """For a table that is not there yet; None while nothing tells what its keys are."""
    mode = spec.mode
    if mode is TableMode.AUTO:
        mode = TableMode.UPSERT if "compact" in cleanup_policy() else TableMode.APPEND
    if mode is TableMode.APPEND:
        return replace(spec, mode=mode)
    key_format: RecordFormat | None = spec.key_format
    if key_format is RecordFormat.NONE and spec.key is None:
        key_format = _key_format(spec, schemas, peek)
    return None if key_format is None else replace(spec, mode=mode, key_format=key_format)


def settled_properties(spec: TableSpec) -> dict[str, str]:
    """What a new table says of how it was settled."""
    return {MODE_KEY: spec.mode.value, KEY_FORMAT_KEY: spec.key_format.value}


def _key_format(
    spec: TableSpec, schemas: Schemas, peek: Callable[[], Iterable[Message]]
) -> RecordFormat | None:
    if schemas.latest(f"{spec.topic}-key") is not None:
        return RecordFormat.AUTO
    keys: list[Any] = [message for message in peek() if message.key is not None]
    if not keys:
        return None
    if any(frame_of(message.key, message.headers, "key") is not None for message in keys):
        return RecordFormat.AUTO
    if all(_is_text(message.key) for message in keys):
        return RecordFormat.STRING
    return RecordFormat.BYTES


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
