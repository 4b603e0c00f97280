"""The parts that an Avro schema is made of, each as Spark decodes it and as the table has it.

Spark's decoder takes some bytes for what they are not: a decimal of more than 64 bits wraps around, so does
an int of more than 32, any byte but one is false, the second value of a key replaces the first, and a union
of a date and a timestamp comes out as plain numbers. So it is never given the writer's schema itself but a
shadow of it: a schema of the same encoding in wider types, whose values are checked before they are narrowed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor, log10
from typing import Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode import connect

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
_WIDE = 38
# Decimals of more digits than this are not kept in a long, and do not wrap around.
_LONG_DIGITS = 18
_SHADOW_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)

Expression = Callable[[Column], Column]


@dataclass(frozen=True)
class Check:
    """Something that must hold of a decoded value; it holds of NULL."""

    holds: Expression
    #: Completes 'the record …' where it does not.
    problem: str


@dataclass(frozen=True)
class Part:
    """One type of a schema, at one place."""

    #: What Spark decodes the bytes with.
    shadow: Any
    #: What the table has.
    type: t.DataType
    #: Makes the one of the other; None where it is the same.
    read: Expression | None = None
    checks: tuple[Check, ...] = ()
    #: Whether the fields of a struct can stand for it as columns.
    shape: Literal["value", "record", "union"] = "value"

    def value(self, decoded: Column) -> Column:
        return decoded if self.read is None else self.read(decoded)


@dataclass(frozen=True)
class Field:
    """A field of a record."""

    name: str
    part: Part


def every(conditions: Sequence[Column]) -> Column:
    """All of them, as a balanced tree: a wide record would make a chain too deep for the optimizer."""
    if not conditions:
        return f.lit(True)
    if len(conditions) == 1:
        return conditions[0]
    middle = len(conditions) // 2
    return every(conditions[:middle]) & every(conditions[middle:])


def shadow_names(fields: Sequence[Field]) -> list[str]:
    """The names of the fields themselves, unless Avro's parser would not take one."""
    names = [field.name for field in fields]
    if all(_SHADOW_NAME.fullmatch(name) for name in names):
        return names
    return [f"f{index}" for index in range(len(names))]


# Plain types


def plain(shadow: Any, kind: t.DataType) -> Part:
    """What Spark decodes exactly."""
    return Part(shadow, kind)


def boolean(new_name: str, path: str) -> Part:
    return Part(
        {"type": "fixed", "name": new_name, "size": 1},
        t.BooleanType(),
        lambda v: v == f.lit(b"\x01"),
        (
            Check(
                lambda v: v.isNull() | (v == f.lit(b"\x01")) | (v == f.lit(b"\x00")),
                f"has a byte in '{path}' that is neither true nor false",
            ),
        ),
    )


def integer(path: str) -> Part:
    return Part("long", t.IntegerType(), _as_int, (_int_check(path),))


def date(path: str) -> Part:
    return Part("long", t.DateType(), lambda v: f.date_from_unix_date(_as_int(v)), (_int_check(path),))


def time_millis(path: str) -> Part:
    """Microseconds since midnight, as those of time-micros."""
    return Part("long", t.LongType(), lambda v: f.try_multiply(v, f.lit(1000)), (_int_check(path),))


def text(path: str) -> Part:
    return Part(
        "string",
        t.StringType(),
        checks=(
            Check(
                lambda v: f.coalesce(f.is_valid_utf8(v), f.lit(True)),
                f"has text in '{path}' that is not UTF-8",
            ),
        ),
    )


def zoned_timestamp(path: str) -> Part:
    base, kind = text(path), t.TimestampType()
    check = Check(lambda v: v.isNull() | connect.zoned_timestamp(v).isNotNull(), _not_exact(path, kind))
    return Part(base.shadow, kind, connect.zoned_timestamp, (*base.checks, check))


def enum(symbols: Sequence[str], path: str) -> Part:
    """Decoded as the symbol's number: Avro's parser is strict with symbols, and this is cheaper besides."""
    return Part(
        "long",
        t.StringType(),
        lambda v: f.get(f.array(*(f.lit(symbol) for symbol in symbols)), _as_int(v)),
        (
            Check(
                lambda v: v.isNull() | v.between(0, len(symbols) - 1),
                f"has a number in '{path}' that is no symbol of its enum",
            ),
        ),
    )


def fixed(new_name: str, size: int) -> Part:
    return Part({"type": "fixed", "name": new_name, "size": size}, t.BinaryType())


def uuid(new_name: str) -> Part:
    return replace(fixed(new_name, 16), type=t.StringType(), read=_uuid_text)


def duration(new_name: str) -> Part:
    """Three unsigned numbers that no interval type of a table has."""
    kind = t.StructType([t.StructField(name, t.LongType()) for name in ("months", "days", "millis")])
    return replace(fixed(new_name, 12), type=kind, read=_duration)


def decimal_of_bytes(precision: int, scale: int, path: str) -> Part:
    return _decimal({"type": "bytes"}, precision, scale, _WIDE, path)


def decimal_of_fixed(new_name: str, size: int, precision: int, scale: int, path: str) -> Part:
    base = {"type": "fixed", "name": new_name, "size": size}
    return _decimal(base, precision, scale, min(_WIDE, digits_of(size)), path)


def digits_of(size: int) -> int:
    """How many digits every number of so many bytes can have."""
    return floor(log10(2) * (8 * size - 1))


def _decimal(base: dict[str, Any], precision: int, scale: int, wide: int, path: str) -> Part:
    kind = t.DecimalType(precision, scale)
    shadow = {**base, "logicalType": "decimal", "scale": scale}
    if precision > _LONG_DIGITS or wide <= _LONG_DIGITS:
        # Spark compares those with their precision by itself, and they are not cut to 64 bits first.
        return Part({**shadow, "precision": precision}, kind)
    return Part(
        {**shadow, "precision": wide},
        kind,
        lambda v: v.try_cast(kind),
        (Check(lambda v: v.isNull() | v.try_cast(kind).isNotNull(), _not_exact(path, kind)),),
    )


def variable_scale_decimal(new_name: str, path: str, scale_first: bool) -> Part:
    """Debezium's record of a scale and an unscaled number."""
    number = {"type": "bytes", "logicalType": "decimal", "precision": _WIDE, "scale": 0}
    fields = [{"name": "scale", "type": "long"}, {"name": "value", "type": number}]
    kind = connect.VARIABLE_SCALE

    def read(v: Column) -> Column:
        return connect.variable_scale(v["value"], v["scale"])

    return Part(
        {"type": "record", "name": new_name, "fields": fields if scale_first else fields[::-1]},
        kind,
        read,
        (
            Check(lambda v: f.coalesce(v["scale"].between(INT_MIN, INT_MAX), f.lit(True)), _too_long(path)),
            Check(lambda v: v.isNull() | read(v).isNotNull(), _not_exact(path, kind)),
        ),
    )


# Types of types


def record(new_name: str, fields: Sequence[Field]) -> Part:
    same = shadow_names(fields) == [field.name for field in fields]
    as_decoded = same and all(field.part.read is None for field in fields)
    return Part(
        {"type": "record", "name": new_name, "fields": shadow_fields(fields)},
        t.StructType([t.StructField(field.name, field.part.type) for field in fields]),
        None if as_decoded else lambda v: f.when(v.isNotNull(), struct_of(v, fields)),
        checks_of(fields),
        shape="record",
    )


def shadow_fields(fields: Sequence[Field]) -> list[dict[str, Any]]:
    return [{"name": name, "type": field.part.shadow} for name, field in _named(fields)]


def struct_of(decoded: Column, fields: Sequence[Field]) -> Column:
    return f.struct(*(field.part.value(decoded[name]).alias(field.name) for name, field in _named(fields)))


def field_of(decoded: Column, fields: Sequence[Field], wanted: str) -> Column:
    shadow, field = next((name, field) for name, field in _named(fields) if field.name == wanted)
    return field.part.value(decoded[shadow])


def checks_of(fields: Sequence[Field]) -> tuple[Check, ...]:
    return tuple(check for name, field in _named(fields) for check in inside(field.part.checks, name))


def _named(fields: Sequence[Field]) -> Iterator[tuple[str, Field]]:
    return zip(shadow_names(fields), fields, strict=True)


def inside(checks: Sequence[Check], field: str) -> tuple[Check, ...]:
    """The checks of a field as checks of its record."""
    return tuple(_inside(check, field) for check in checks)


def array(item: Part, path: str) -> Part:
    shadow = {"type": "array", "items": item.shadow}
    kind = t.ArrayType(item.type)
    if isinstance(item.type, t.IntegerType) and item.shadow in ("long", ["null", "long"], ["long", "null"]):
        # Spark compiles these; what is given as a lambda it interprets.
        return Part(shadow, kind, lambda v: v.try_cast(kind), (Check(_are_ints, _too_long(path)),))
    read = item.read
    return Part(
        shadow,
        kind,
        None if read is None else lambda v: f.transform(v, read),
        _of_items(item.checks, path),
    )


def mapping(new_name: str, value: Part, path: str) -> Part:
    """Decoded as the list of entries that it is in the bytes, so that a key that comes twice is seen."""
    entry = record(new_name, (Field("key", text(f"{path} (key)")), Field("value", value)))
    entries = array(entry, path)
    kind = t.MapType(t.StringType(), value.type)
    return Part(
        entries.shadow,
        kind,
        lambda v: f.when(_has_distinct_keys(v), f.map_from_entries(entries.value(v))),
        (*entries.checks, Check(_has_distinct_keys, f"has a key twice in '{path}'")),
    )


def only_branch(part: Part) -> Part:
    """A union of one type: a zero stands before it."""
    return replace(part, shadow=[part.shadow])


def optional(part: Part, null_first: bool) -> Part:
    shadow = ["null", part.shadow] if null_first else [part.shadow, "null"]
    return replace(part, shadow=shadow)


def union(branches: Sequence[Field | None], new_names: Sequence[str]) -> Part:
    """A struct of which one field at most is not NULL; None among the branches stands for null.

    Each branch is decoded as a record of one field, whose bytes are the same: so Spark neither mixes up two
    branches nor widens one to the other.
    """
    real = [branch for branch in branches if branch is not None]
    return Part(
        _union_shadow([None if branch is None else branch.part for branch in branches], new_names),
        t.StructType([t.StructField(branch.name, branch.part.type) for branch in real]),
        lambda v: f.when(
            v.isNotNull(),
            f.struct(*(branch.part.value(_member(v, i)).alias(branch.name) for i, branch in enumerate(real))),
        ),
        _union_checks([branch.part for branch in real]),
        shape="union",
    )


def widened(branches: Sequence[Part | None], new_names: Sequence[str], kind: t.DataType) -> Part:
    """A union of two number types of which one holds the other's every value."""
    real = [branch for branch in branches if branch is not None]
    return Part(
        _union_shadow(branches, new_names),
        kind,
        lambda v: f.coalesce(*(part.value(_member(v, i)).cast(kind) for i, part in enumerate(real))),
        _union_checks(real),
    )


def _union_shadow(branches: Sequence[Part | None], new_names: Sequence[str]) -> list[Any]:
    return [
        "null"
        if branch is None
        else {"type": "record", "name": name, "fields": [{"name": "v", "type": branch.shadow}]}
        for branch, name in zip(branches, new_names, strict=True)
    ]


def _union_checks(parts: Sequence[Part]) -> tuple[Check, ...]:
    return tuple(
        check
        for index, part in enumerate(parts)
        for check in inside(inside(part.checks, "v"), f"member{index}")
    )


def _member(value: Column, index: int) -> Column:
    """Spark numbers the branches that are not null."""
    return value[f"member{index}"]["v"]


def _inside(check: Check, field: str) -> Check:
    return replace(check, holds=lambda v: check.holds(v[field]))


def _of_items(checks: tuple[Check, ...], path: str) -> tuple[Check, ...]:
    """One check, so that the items are gone through once."""
    if not checks:
        return ()
    problems = {check.problem for check in checks}
    problem = (
        problems.pop() if len(problems) == 1 else f"has an item in '{path}' that does not fit its schema"
    )
    return (
        Check(
            lambda v: f.coalesce(
                f.forall(v, lambda item: every([check.holds(item) for check in checks])), f.lit(True)
            ),
            problem,
        ),
    )


def _as_int(value: Column) -> Column:
    return value.try_cast("int")


def _int_check(path: str) -> Check:
    return Check(lambda v: v.isNull() | _as_int(v).isNotNull(), _too_long(path))


def _are_ints(values: Column) -> Column:
    low, high = f.array_min(values), f.array_max(values)
    return f.coalesce((low >= INT_MIN) & (high <= INT_MAX), f.lit(True))


def _has_distinct_keys(entries: Column) -> Column:
    keys = entries["key"]
    return f.coalesce(f.size(f.array_distinct(keys)) == f.size(keys), f.lit(True))


def _uuid_text(value: Column) -> Column:
    digits = f.lower(f.hex(value))
    parts = [
        f.substring(digits, start, length) for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    ]
    dashed = [column for part in parts for column in (f.lit("-"), part)]
    return f.concat(*dashed[1:])


def _duration(value: Column) -> Column:
    digits = f.hex(value)

    def number(start: int) -> Column:
        """Four bytes, the least first."""
        octets = [f.substring(digits, start + 2 * index, 2) for index in (3, 2, 1, 0)]
        return f.conv(f.concat(*octets), 16, 10).try_cast("long")

    numbers = (number(start).alias(name) for start, name in ((1, "months"), (9, "days"), (17, "millis")))
    return f.when(value.isNotNull(), f.struct(*numbers))


def _not_exact(path: str, kind: t.DataType) -> str:
    return f"has a value in '{path}' that {kind.simpleString()} does not hold exactly"


def _too_long(path: str) -> str:
    return f"has a number in '{path}' of more than 32 bits"
