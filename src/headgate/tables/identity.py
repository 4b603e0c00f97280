"""Which row a record is about: the key's fields as one short, fixed id, the same whatever carries them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.errors import UnsupportedSchema

# Holds the id of a row whose columns do not tell it: its value says another key than its record's.
KEY_COLUMN = "_headgate_key"
# What of SHA-256 is kept, in hex digits: 128 bits, so that no two keys meet.
_DIGITS = 32
_PLAIN = (
    t.StringType,
    t.BooleanType,
    t.ByteType,
    t.ShortType,
    t.IntegerType,
    t.LongType,
    t.DecimalType,
    t.DateType,
    t.TimestampNTZType,
)


@dataclass(frozen=True)
class Identity:
    """What tells the rows of an upsert table apart."""

    columns: tuple[str, ...]
    #: Kafka's key says it; else the row's own columns do.
    from_key: bool
    #: The columns may say something else than the key, because values have fields of the same names.
    overlaps: bool = False
    #: Every version of a row is kept.
    versions: bool = False


def key_id(columns: Sequence[tuple[Column, t.DataType]]) -> Column:
    """An integer and a wider one, a string and an enum give the same id for the same value."""
    texts = [text for column, kind in columns for text in _texts(column, kind)]
    return f.unhex(f.substring(f.sha2(f.to_json(f.array(*texts)).cast("binary"), 256), 1, _DIGITS))


def is_blank(columns: Sequence[tuple[Column, t.DataType]]) -> Column:
    """Whether nothing at all is said."""
    blank = f.lit(True)
    for column, _ in columns:
        blank = blank & column.isNull()
    return blank


def check_key(topic: str, key: t.StructType) -> None:
    """A key must be told exactly, now and when its types grow wider."""
    if not key.fields:
        raise UnsupportedSchema(f"The key of topic '{topic}' has no fields.")
    for field in key.fields:
        _check(topic, field.name, field.dataType)


def _check(topic: str, path: str, kind: t.DataType) -> None:
    if isinstance(kind, t.StructType):
        for field in kind.fields:
            _check(topic, f"{path}.{field.name}", field.dataType)
    elif not isinstance(kind, (*_PLAIN, t.TimestampType, t.BinaryType)):
        raise UnsupportedSchema(
            f"Field '{path}' of the key of topic '{topic}' is of type {kind.simpleString()}, "
            "which cannot tell rows apart.",
            "Declare other columns as the key (--key), or enable the table with --mode append.",
        )


def _texts(column: Column, kind: t.DataType) -> list[Column]:
    match kind:
        case t.StructType():
            return [text for field in kind.fields for text in _texts(column[field.name], field.dataType)]
        case t.TimestampType():
            return [f.unix_micros(column).cast("string")]
        case t.BinaryType():
            return [f.hex(column)]
        case _:
            return [column.cast("string")]
