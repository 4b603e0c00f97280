"""Masks of columns, value by value the same as the masking functions of statements give.

A value is masked once for each batch that it is in, however many rows have it.
"""

import base64
import hashlib
import hmac
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import InvalidRequest
from headgate.export.columns import Column
from headgate.export.definition import ExportOptions, Mask

REDACTED = "***"
_HIDDEN_DIGITS = re.compile(r"[0-9](?=(?:[^0-9]*[0-9]){2})")
_SALT = "token:"
_KEY_PURPOSE = b"headgate export key"
Hide = Callable[[Any], Any]


class Masking:
    """The masks of one run. `secret` gives keys by their names."""

    def __init__(
        self, options: ExportOptions, columns: Sequence[Column], secret: Callable[[str], str]
    ) -> None:
        zone = ZoneInfo(options.zone)
        self._hiding: dict[str, Callable[[pa.Array], pa.Array]] = {
            column.name: _column_mask(column, options.masks[column.name], secret, zone)
            for column in columns
            if column.name in options.masks
        }
        self.columns = [column.name for column in columns if column.name in self._hiding]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            self._hiding[name](column) if name in self._hiding else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def key_versions(names: Sequence[str], secret: Callable[[str], str]) -> Mapping[str, str]:
    """By name, which key it was: eight digits that change with the key."""
    return {
        name: hmac.new(secret(name).encode(), _KEY_PURPOSE, hashlib.sha256).hexdigest()[:8]
        for name in sorted(names)
    }


def _column_mask(
    column: Column, mask: Mask, secret: Callable[[str], str], zone: ZoneInfo
) -> Callable[[pa.Array], pa.Array]:
    if mask.mask == "redact":
        return lambda array: pc.if_else(pc.is_null(array), pa.scalar(None, pa.string()), REDACTED)
    if mask.mask in ("year", "month"):
        if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
            raise _unfit(column, mask, "a time or a date")
        return lambda array: _each(array, lambda at: _first_day(at, mask.mask, zone), pa.date32())
    keyed = mask.mask in ("hash", "token")
    if not column.is_text and not (keyed and pa.types.is_integer(column.type)):
        raise _unfit(column, mask, "a text or a whole number" if keyed else "a text")
    hide = _text_mask(mask, secret)
    return lambda array: _each(array, lambda value: hide(str(value)), pa.string())


def _unfit(column: Column, mask: Mask, needed: str) -> InvalidRequest:
    return InvalidRequest(
        f"Mask {mask.mask} hides {needed}, and column '{column.name}' is {column.type}.",
        "Use redact, or CAST the column in the query.",
    )


def _each(array: pa.Array, hide: Hide, kind: pa.DataType) -> pa.Array:
    coded = array.dictionary_encode()
    values = [None if value is None else hide(value) for value in coded.dictionary.to_pylist()]
    return pa.array(values, kind).take(coded.indices)


def _text_mask(mask: Mask, secret: Callable[[str], str]) -> Callable[[str], str]:
    if mask.secret is not None:
        key = secret(mask.secret).encode()
        return (
            (lambda value: mask_hash(value, key))
            if mask.mask == "hash"
            else (lambda value: mask_token(value, key, mask.length))
        )
    if mask.mask == "email":
        return mask_email
    if mask.mask == "phone":
        return mask_phone
    return lambda value: mask_partial(value, mask.front, mask.back)


def mask_hash(value: str, key: bytes) -> str:
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()


def mask_token(value: str, key: bytes, length: int) -> str:
    digest = hmac.new(key, f"{_SALT}{value}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")[:length]


def mask_email(value: str) -> str:
    name, at, domain = value.rpartition("@")
    if not at or value.startswith("@"):
        return "*" * len(value)
    hidden = "*" * len(name) if len(name) <= 2 else f"{name[0]}{'*' * (len(name) - 2)}{name[-1]}"
    return f"{hidden}@{domain}"


def mask_phone(value: str) -> str:
    return _HIDDEN_DIGITS.sub("*", value)


def mask_partial(value: str, front: int, back: int) -> str:
    if len(value) <= front + back:
        return _starred(value)
    end = len(value) - back
    return value[:front] + _starred(value[front:end]) + value[end:]


def _starred(text: str) -> str:
    return "".join("*" if unicodedata.category(letter)[0] in "LN" else letter for letter in text)


def _first_day(at: datetime | date, unit: str, zone: ZoneInfo) -> date:
    day = at
    if isinstance(at, datetime):
        day = at.astimezone(zone).date() if at.tzinfo is not None else at.date()
    return date(day.year, 1 if unit == "year" else day.month, 1)
