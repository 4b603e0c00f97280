"""What becomes of each Protobuf type: its table type, and the way from plain columns to it.

A message is first read into plain columns: numbers, bytes, and structs of them, each NULL where the message
does not have it. A `Kind` makes the table's columns of those, whole columns at a time, and notes what is not
exact.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Wire
from google.protobuf.message import DecodeError
from pyspark.sql import types as t

from headgate.decode.protobuf_wire import Flaw, bad_text, check, unknown_constant

# 0001-01-01 and 9999-12-31T23:59:59: what google.protobuf.Timestamp allows.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
# More digits than 64 bytes and a scale of 100 can make.
_DIGITS = Context(prec=400)


@dataclass
class Findings:
    """By row: what is wrong with it; and which rows must be put into the plainest form first."""

    problems: dict[int, str] = field(default_factory=dict)
    unclear: set[int] = field(default_factory=set)

    def note(self, rows: Any, bad: Any, problem: Callable[[int], str] | str) -> None:
        """`bad` has the elements that are; `rows` the row of each element."""
        for index in np.flatnonzero(bad).tolist():
            text = problem if isinstance(problem, str) else problem(index)
            self.problems.setdefault(int(rows[index]), text)

    def doubt(self, rows: Any, unclear: Any) -> None:
        self.unclear.update(rows[np.flatnonzero(unclear)].tolist())


class Kind(ABC):
    """A type of values. `wire` is what they are read as, `parts` the fields when that is a message."""

    spark: t.DataType
    wire: Wire.Type.ValueType
    parts: "tuple[Part, ...]" = ()
    #: What an unset field of this kind means, where it means something.
    default: Any = None

    @abstractmethod
    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        """The table's values; NULL stays NULL. `rows` has the row of each element."""


class Number(Kind):
    """Numbers, booleans and bytes: as they are, in the smallest type that holds all of their values."""

    def __init__(
        self, wire: Wire.Type.ValueType, spark: t.DataType, arrow: pa.DataType, default: Any
    ) -> None:
        self.wire, self.spark, self.default = wire, spark, default
        self._arrow = arrow

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        return found if found.type == self._arrow else found.cast(self._arrow)


class Text(Kind):
    wire = Wire.TYPE_BYTES
    spark = t.StringType()
    default = ""

    def __init__(self, path: str) -> None:
        self._path = path

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            bad = np.array([not _is_text(value) for value in found.to_pylist()], bool)
            findings.note(rows, bad, bad_text(self._path))
            return pc.if_else(pa.array(bad), pa.scalar(None, found.type), found).cast(pa.string())


class Constant(Kind):
    """An enum by the names of its constants; of several names for one number, the first."""

    wire = Wire.TYPE_INT32
    spark = t.StringType()

    def __init__(self, enum: EnumDescriptor, path: str) -> None:
        self._enum, self._path = enum, path
        self._numbers = pa.array(list(enum.values_by_number), pa.int32())
        self._names = pa.array([_first_name(enum, number) for number in enum.values_by_number], pa.string())
        self.default = _first_name(enum, enum.values[0].number)

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        places = pc.index_in(found, self._numbers, skip_nulls=True)
        lacking = _mask(pc.and_(found.is_valid(), places.is_null()))
        if lacking.any():
            findings.note(rows, lacking, lambda i: unknown_constant(found[i].as_py(), self._enum, self._path))
        return self._names.take(places)


class Timestamp(Kind):
    wire = Wire.TYPE_MESSAGE
    spark = t.TimestampType()

    def __init__(self, path: str) -> None:
        self._path = path
        self.parts = (_plain("seconds", 1, Wire.TYPE_INT64), _plain("nanos", 2, Wire.TYPE_INT32))

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        seconds, nanos = _numbers(found)
        there = _mask(found.is_valid())
        outside = (seconds < FIRST_SECOND) | (seconds > LAST_SECOND) | (nanos < 0) | (nanos > 999_999_999)
        findings.note(rows, there & outside, f"has a time in field '{self._path}' that is out of range")
        finer = nanos % 1000 != 0
        findings.note(
            rows, there & finer, f"has a time in field '{self._path}' that is finer than microseconds"
        )
        micros = np.where(outside, 0, seconds) * 1_000_000 + nanos // 1000
        return pa.array(micros, mask=~there | outside).cast(pa.timestamp("us", "UTC"))


class Date(Kind):
    wire = Wire.TYPE_MESSAGE
    spark = t.DateType()

    def __init__(self, path: str) -> None:
        self._path = path
        names = enumerate(("year", "month", "day"), 1)
        self.parts = tuple(_plain(name, number, Wire.TYPE_INT32) for number, name in names)

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        year, month, day = _numbers(found)
        there = _mask(found.is_valid())
        outside = (year < 1) | (year > 9999) | (month < 1) | (month > 12) | (day < 1) | (day > 31)
        months = np.where(outside, 0, (year - 1970) * 12 + month - 1).astype("datetime64[M]")
        days = months.astype("datetime64[D]") + np.where(outside, 0, day - 1)
        outside |= days.astype("datetime64[M]") != months
        findings.note(rows, there & outside, f"has no whole date in field '{self._path}'")
        return pa.array(days.astype("int64").astype("int32"), mask=~there | outside).cast(pa.date32())


class Number38(Kind):
    """confluent.type.Decimal, where the schema says how many digits there are."""

    wire = Wire.TYPE_MESSAGE

    def __init__(self, precision: int, scale: int, path: str) -> None:
        self.spark = t.DecimalType(precision, scale)
        self._precision, self._scale, self._path = precision, scale, path
        self.parts = (
            _plain("value", 1, Wire.TYPE_BYTES),
            _plain("precision", 2, Wire.TYPE_UINT32),
            _plain("scale", 3, Wire.TYPE_INT32),
        )

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        values, _, scales = found.flatten()
        read = [
            None if not there else self._decimal(value or b"", scale or 0)
            for there, value, scale in zip(
                found.is_valid().to_pylist(), values.to_pylist(), scales.to_pylist(), strict=True
            )
        ]
        bad = _mask(pc.and_(found.is_valid(), pa.array([value is None for value in read], pa.bool_())))
        kind = f"decimal({self._precision},{self._scale})"
        findings.note(rows, bad, f"has a number in field '{self._path}' that is no {kind}")
        return pa.array(read, pa.decimal128(self._precision, self._scale))

    def _decimal(self, unscaled: bytes, scale: int) -> Decimal | None:
        if not 0 < len(unscaled) <= 64 or abs(scale) > 100:
            return None
        value = Decimal(int.from_bytes(unscaled, "big", signed=True)).scaleb(-scale, _DIGITS)
        fitted = value.quantize(Decimal(1).scaleb(-self._scale), context=_DIGITS)
        return fitted if fitted == value and len(fitted.as_tuple().digits) <= self._precision else None


class Wrapped(Kind):
    """google.protobuf.Int64Value and the like: the value, or NULL."""

    wire = Wire.TYPE_MESSAGE

    def __init__(self, inner: Kind) -> None:
        self._inner = inner
        self.spark = inner.spark
        self.parts = (Part("value", 1, inner, implicit=True),)

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        values = self.parts[0].columns(found.flatten()[0], rows, _mask(found.is_valid()), findings)
        return pc.if_else(found.is_valid(), values, pa.scalar(None, values.type))


class Marker(Kind):
    """google.protobuf.Empty: true where it is set."""

    wire = Wire.TYPE_BYTES
    spark = t.BooleanType()

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        findings.doubt(rows, _mask(pc.fill_null(pc.greater(pc.binary_length(found), 0), False)))
        return pc.if_else(found.is_valid(), pa.scalar(True), pa.scalar(None, pa.bool_()))


class Json(Kind):
    """google.protobuf.Struct, Value and ListValue: JSON text."""

    wire = Wire.TYPE_BYTES
    spark = t.StringType()

    def __init__(self, message: Any, path: str) -> None:
        self._message, self._path = message, path

    def columns(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        texts: list[str | None] = []
        for index, data in enumerate(found.to_pylist()):
            try:
                texts.append(None if data is None else self._text(data))
            except (Flaw, DecodeError, ValueError) as error:
                what = str(error) if isinstance(error, Flaw) else "has no JSON value"
                findings.problems.setdefault(int(rows[index]), f"{what}, in field '{self._path}'")
                texts.append(None)
        return pa.array(texts, pa.string())

    def _text(self, data: bytes) -> str:
        check(data, self._message.DESCRIPTOR)
        message: Any = self._message.FromString(data)
        return json.dumps(_json_value(message), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Record(Kind):
    """A message: a struct. The members of a oneof are fields like others, of which one is set at most."""

    wire = Wire.TYPE_MESSAGE

    def __init__(self, name: str, parts: "Sequence[Part]") -> None:
        self.name = name
        self.parts = tuple(sorted(parts, key=lambda part: part.number))
        # The table has the fields in the order of the schema, which is not always that of their numbers.
        self._order = [self.parts.index(part) for part in parts]
        self.spark = t.StructType([t.StructField(part.name, part.spark) for part in parts])

    def columns(self, found: pa.StructArray, rows: Any, findings: Findings) -> pa.StructArray:
        plain = found.flatten()
        there = _mask(found.is_valid())
        self._doubt_oneofs(plain, rows, findings)
        made = [part.columns(plain[i], rows, there, findings) for i, part in enumerate(self.parts)]
        arrays = [made[i] for i in self._order]
        names = [self.parts[i].name for i in self._order]
        return pa.StructArray.from_arrays(arrays, names, mask=found.is_null())

    def _doubt_oneofs(self, plain: Sequence[pa.Array], rows: Any, findings: Findings) -> None:
        """Of two members the last one written counts: that is for a parser to say."""
        groups: dict[str, list[int]] = {}
        for index, part in enumerate(self.parts):
            if part.oneof is not None:
                groups.setdefault(part.oneof, []).append(index)
        for members in groups.values():
            if len(members) > 1:
                count = sum(_mask(plain[i].is_valid()).astype("int32") for i in members)
                findings.doubt(rows, count > 1)


@dataclass(frozen=True)
class Part:
    """A field of a message."""

    name: str
    number: int
    kind: Kind
    path: str = ""
    #: Unset means the default, which the bytes do not tell from a set one.
    implicit: bool = False
    required: bool = False
    repeated: bool = False
    #: The kind of the keys: then this is a map, and `kind` is that of its values.
    key: Kind | None = None
    oneof: str | None = None

    @property
    def spark(self) -> t.DataType:
        if self.key is not None:
            return t.MapType(self.key.spark, self.kind.spark)
        return t.ArrayType(self.kind.spark) if self.repeated else self.kind.spark

    @property
    def entry(self) -> "tuple[Part, Part]":
        """What a map is written as: a list of messages of a key and a value."""
        assert self.key is not None
        return Part("key", 1, self.key), Part("value", 2, self.kind)

    def columns(self, found: pa.Array, rows: Any, there: Any, findings: Findings) -> pa.Array:
        """`there`: where the message is that this is a field of."""
        if self.key is not None:
            return self._map(found, rows, findings)
        if self.repeated:
            offsets, values, inner = _elements(found, rows)
            return pa.ListArray.from_arrays(offsets, self.kind.columns(values, inner, findings))
        if self.required:
            lacking = there & _mask(found.is_null())
            findings.note(rows, lacking, f"lacks its required field '{self.path}'")
        made = self.kind.columns(found, rows, findings)
        return pc.fill_null(made, pa.scalar(self.kind.default, made.type)) if self.implicit else made

    def _map(self, found: pa.Array, rows: Any, findings: Findings) -> pa.Array:
        assert self.key is not None
        offsets, entries, inner = _elements(found, rows)
        keys, values = entries.flatten()
        # What an entry leaves out is a default, and of equal keys the last counts: a parser has to say.
        findings.doubt(inner, _mask(pc.or_(keys.is_null(), values.is_null())))
        if len(keys) > 1:
            place = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets.to_numpy()))
            findings.doubt(inner, _repeats(place, keys))
        made = self.key.columns(keys, inner, findings)
        if made.null_count:  # a row with a problem; but Arrow takes no map with such a key
            made = pc.fill_null(made, pa.scalar(self.key.default, made.type))
        return pa.MapArray.from_arrays(offsets, made, self.kind.columns(values, inner, findings))


def _elements(found: pa.ListArray, rows: Any) -> tuple[pa.Array, pa.Array, Any]:
    """Offsets from zero, all elements, and the row of each."""
    lengths = pc.fill_null(pc.list_value_length(found), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype="int64"))).astype("int32")
    return pa.array(offsets), found.flatten(), np.repeat(rows, lengths)


def _repeats(place: Any, keys: pa.Array) -> Any:
    """Which of the keys there are twice in one place."""
    table = pa.table({"place": place, "key": keys})
    counts = table.group_by(["place", "key"]).aggregate([([], "count_all")])
    if len(counts) == len(table):
        return np.zeros(len(table), bool)
    many = counts.filter(pc.greater(counts["count_all"], 1))["place"].unique()
    return np.isin(place, many.to_numpy(zero_copy_only=False))


def _numbers(found: pa.StructArray) -> list[Any]:
    return [pc.fill_null(part, 0).cast(pa.int64()).to_numpy(zero_copy_only=False) for part in found.flatten()]


def _mask(found: pa.Array) -> Any:
    return found.to_numpy(zero_copy_only=False)


def _plain(name: str, number: int, wire: Wire.Type.ValueType) -> Part:
    return Part(name, number, number_kind(wire))


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


def _first_name(enum: EnumDescriptor, number: int) -> str:
    return next(value.name for value in enum.values if value.number == number)


def _json_value(message: Any) -> Any:
    """Numbers keep the value of the double: JSON readers take 1.0 for 1, and -0.0 for itself."""
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Struct":
            return {key: _json_value(message.fields[key]) for key in sorted(message.fields)}
        case "google.protobuf.ListValue":
            return [_json_value(value) for value in message.values]
    which = message.WhichOneof("kind")
    if which in ("struct_value", "list_value"):
        return _json_value(getattr(message, which))
    if which is None:
        raise ValueError("a value of no kind")
    found = None if which == "null_value" else getattr(message, which)
    if isinstance(found, float) and not math.isfinite(found):
        raise ValueError("a number that JSON lacks")
    return found


_NUMBERS: Mapping[Wire.Type.ValueType, tuple[t.DataType, pa.DataType, Any]] = {
    Wire.TYPE_INT32: (t.IntegerType(), pa.int32(), 0),
    Wire.TYPE_SINT32: (t.IntegerType(), pa.int32(), 0),
    Wire.TYPE_SFIXED32: (t.IntegerType(), pa.int32(), 0),
    Wire.TYPE_UINT32: (t.LongType(), pa.int64(), 0),
    Wire.TYPE_FIXED32: (t.LongType(), pa.int64(), 0),
    Wire.TYPE_INT64: (t.LongType(), pa.int64(), 0),
    Wire.TYPE_SINT64: (t.LongType(), pa.int64(), 0),
    Wire.TYPE_SFIXED64: (t.LongType(), pa.int64(), 0),
    Wire.TYPE_UINT64: (t.DecimalType(20, 0), pa.decimal128(20, 0), Decimal(0)),
    Wire.TYPE_FIXED64: (t.DecimalType(20, 0), pa.decimal128(20, 0), Decimal(0)),
    Wire.TYPE_FLOAT: (t.FloatType(), pa.float32(), 0.0),
    Wire.TYPE_DOUBLE: (t.DoubleType(), pa.float64(), 0.0),
    Wire.TYPE_BOOL: (t.BooleanType(), pa.bool_(), False),
    Wire.TYPE_BYTES: (t.BinaryType(), pa.binary(), b""),
}


def number_kind(wire: Wire.Type.ValueType) -> Number:
    spark, arrow, default = _NUMBERS[wire]
    return Number(wire, spark, arrow, default)
