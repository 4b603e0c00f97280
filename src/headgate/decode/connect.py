"""Logical types of Kafka Connect and Debezium as columns, whatever format carries them.

Connect names a logical type beside the plain one (`connect.name` in Avro, `name` in JSON). Those that have an
exact column type are listed here. All others (`Json`, `Xml`, `Uuid`, `Enum`, `EnumSet`, `Bits`, `Year`,
`NanoTime`, `NanoTimestamp`, `ZonedTime`, `Interval`, the geometries…) keep their plain type.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"
VARIABLE_SCALE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
ZONED_TIMESTAMP = "io.debezium.time.ZonedTimestamp"
# Avro has the same types under names of its own: (plain type, logical type).
SAME_IN_AVRO: Mapping[str, tuple[str, str]] = {
    "org.apache.kafka.connect.data.Date": ("int", "date"),
    "org.apache.kafka.connect.data.Time": ("int", "time-millis"),
    "org.apache.kafka.connect.data.Timestamp": ("long", "timestamp-millis"),
    "io.debezium.time.Date": ("int", "date"),
    "io.debezium.time.Time": ("int", "time-millis"),
    "io.debezium.time.MicroTime": ("long", "time-micros"),
    # What a database column without a zone holds.
    "io.debezium.time.Timestamp": ("long", "local-timestamp-millis"),
    "io.debezium.time.MicroTimestamp": ("long", "local-timestamp-micros"),
}
# A number of any scale has no column type; this one holds 20 digits before the point and 18 after it.
VARIABLE_SCALE = t.DecimalType(38, 18)
# Connect's Avro converter says 64 digits where it does not know.
MAX_DIGITS = 38

# As Java prints an instant with an offset; digits past the microseconds may only be zeros.
_ZONED = r"^[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6}0*)?(Z|[+-]\d\d:\d\d(:\d\d)?)$"


@dataclass(frozen=True)
class Conversion:
    """How a column of the plain type becomes one of `type`."""

    type: t.DataType
    #: Gives NULL where the value cannot be exact, and never raises.
    read: Callable[[Column], Column]

    def is_exact(self, value: Column) -> Column:
        return value.isNull() | self.read(value).isNotNull()


def conversion(
    name: str, plain: t.DataType, parameters: Mapping[str, str] | None = None
) -> Conversion | None:
    """What `name` makes of a column of type `plain`; None where the column stays as it is.

    Integers are IntegerType or LongType, bytes are BinaryType, a VariableScaleDecimal is a struct with the
    fields `scale` and `value`. A name on a type that it does not belong to says nothing.
    """
    match name, plain:
        case _, t.IntegerType() | t.LongType() if name in SAME_IN_AVRO:
            return _NUMBERS[SAME_IN_AVRO[name][1]]
        case "io.debezium.time.ZonedTimestamp", t.StringType():
            return Conversion(t.TimestampType(), zoned_timestamp)
        case "org.apache.kafka.connect.data.Decimal", t.BinaryType():
            found = decimal_type(parameters or {})
            return None if found is None else Conversion(found, partial(decimal_of_bytes, kind=found))
        case "io.debezium.data.VariableScaleDecimal", t.StructType() if set(plain.names) == {
            "scale",
            "value",
        }:
            return Conversion(VARIABLE_SCALE, _variable_scale_of_bytes)
    return None


def decimal_type(parameters: Mapping[str, str]) -> t.DecimalType | None:
    """Connect's Decimal names its scale, and its precision where the source knows it."""
    try:
        scale = int(parameters["scale"])
        precision = min(int(parameters.get("connect.decimal.precision", MAX_DIGITS)), MAX_DIGITS)
    except (KeyError, ValueError):
        return None
    return t.DecimalType(precision, scale) if 0 <= scale <= precision > 0 else None


def is_envelope(kind: t.StructType) -> bool:
    """Whether these are the columns of a Debezium change event, not of a row."""
    found = {field.name: field.dataType for field in kind.fields}
    return (
        isinstance(found.get("before"), t.StructType)
        and isinstance(found.get("after"), t.StructType)
        and isinstance(found.get("source"), t.StructType)
        and isinstance(found.get("op"), t.StringType)
    )


def zoned_timestamp(text: Column) -> Column:
    """The instant that `text` names; NULL if it is none, or has digits that microseconds do not hold."""
    return f.when(text.rlike(_ZONED), text.try_cast("timestamp"))


def variable_scale(unscaled: Column, scale: Column) -> Column:
    """`unscaled` (a decimal without digits after the point) shifted by `scale` digits, if that is exact."""
    digits = unscaled.cast("string")
    kept = f.rtrim(digits, f.lit("0"))
    # Trailing zeros may go; what is left after the point must fit. Scales beyond those bounds fit only for 0,
    # and are not tried: the power of ten alone would fill the memory.
    places = scale.cast("long") - f.length(digits) + f.length(kept)
    shifted = f.concat(kept, f.lit("E"), (-places).cast("string")).try_cast(VARIABLE_SCALE)
    known = unscaled.isNotNull() & scale.isNotNull()
    return f.when(known & (digits == "0"), f.lit(0).cast(VARIABLE_SCALE)).when(
        known & places.between(-MAX_DIGITS, VARIABLE_SCALE.scale), shifted
    )


def decimal_of_bytes(value: Column, kind: t.DecimalType) -> Column:
    """Connect's Decimal: the unscaled number as bytes; NULL where it has more digits than `kind`."""
    shifted = f.concat(whole_number(value).cast("string"), f.lit(f"E-{kind.scale}"))
    return shifted.try_cast(kind)


def whole_number(value: Column) -> Column:
    """Big-endian two's complement bytes as a decimal of 38 digits; NULL where they are none or more.

    Spark has no function for it: hex digits are taken eight at a time. A negative number is the complement
    of a positive one, less one.
    """
    text = f.hex(value)
    negative = f.substring(text, 1, 1) >= "8"
    plain = f.when(negative, f.translate(text, "0123456789ABCDEF", "FEDCBA9876543210")).otherwise(text)
    digits = f.ltrim(plain, f.lit("0"))
    padded = f.lpad(digits, 32, "0")
    number = f.lit(0).cast("decimal(38,0)")
    for start in (1, 9, 17, 25):
        part = f.conv(f.substring(padded, start, 8), 16, 10).try_cast("decimal(10,0)")
        number = f.try_add(f.try_multiply(number, f.lit(2**32).cast("decimal(10,0)")), part)
        number = number.try_cast("decimal(38,0)")
    # Not with a minus sign: Spark rounds to 34 digits there.
    below = f.try_subtract(f.lit(-1).cast("decimal(38,0)"), number).try_cast("decimal(38,0)")
    signed = f.when(negative, below).otherwise(number)
    return f.when((f.length(text) > 0) & (f.length(digits) <= 32), signed)


def _variable_scale_of_bytes(value: Column) -> Column:
    return variable_scale(whole_number(value["value"]), value["scale"])


def _local_timestamp(micros: Column) -> Column:
    """Without a detour over the session's time zone."""
    return f.timestamp_add("MICROSECOND", micros, f.lit("1970-01-01 00:00:00").cast("timestamp_ntz"))


def _micros(millis: Column) -> Column:
    return f.try_multiply(millis.cast("long"), f.lit(1000))


_NUMBERS: Mapping[str, Conversion] = {
    "date": Conversion(t.DateType(), lambda v: f.date_from_unix_date(v.try_cast("int"))),
    "time-millis": Conversion(t.LongType(), _micros),
    "time-micros": Conversion(t.LongType(), lambda v: v.cast("long")),
    "timestamp-millis": Conversion(t.TimestampType(), lambda v: f.timestamp_micros(_micros(v))),
    "local-timestamp-millis": Conversion(t.TimestampNTZType(), lambda v: _local_timestamp(_micros(v))),
    "local-timestamp-micros": Conversion(t.TimestampNTZType(), lambda v: _local_timestamp(v.cast("long"))),
}
