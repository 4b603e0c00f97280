"""Types: how users write them, how Spark has them, and which of them become others by themselves."""

from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

BOOLEAN, STRING, BYTES, DATE = BooleanType(), StringType(), BinaryType(), DateType()
INT, BIGINT, DOUBLE = IntegerType(), LongType(), DoubleType()
# TIMESTAMP is a date and a time of day, TIMESTAMP_LTZ a moment.
TIMESTAMP, TIMESTAMP_LTZ = TimestampNTZType(), TimestampType()
NULL = NullType()

_WHOLE: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
MAX_PRECISION = 38
_MIN_SCALE = 6


@dataclass(frozen=True)
class SqlType:
    """A type as it is written: precision and length are not Spark's, and matter to casts."""

    spark: DataType
    precision: int | None = None
    length: int | None = None

    def __str__(self) -> str:
        return name_of(self.spark, self.precision, self.length)


def name_of(kind: DataType, precision: int | None = None, length: int | None = None) -> str:
    """The name that users know it by."""
    match kind:
        case TimestampType() | TimestampNTZType():
            name = "TIMESTAMP_LTZ" if isinstance(kind, TimestampType) else "TIMESTAMP"
            return name if precision is None else f"{name}({precision})"
        case DecimalType():
            return f"DECIMAL({kind.precision}, {kind.scale})"
        case StringType():
            return "STRING" if length is None else f"VARCHAR({length})"
        case ArrayType():
            return f"ARRAY<{name_of(kind.elementType)}>"
        case MapType():
            return f"MAP<{name_of(kind.keyType)}, {name_of(kind.valueType)}>"
        case StructType():
            inner = (f"`{f.name}` {name_of(f.dataType)}" for f in kind.fields)
            return f"ROW<{', '.join(inner)}>"
        case BinaryType():
            return "BYTES"
        case NullType():
            return "NULL"
    return kind.simpleString().upper()


def spark_name(kind: DataType) -> str:
    """The type in Spark's SQL, with names quoted."""
    match kind:
        case ArrayType():
            return f"array<{spark_name(kind.elementType)}>"
        case MapType():
            return f"map<{spark_name(kind.keyType)},{spark_name(kind.valueType)}>"
        case StructType():
            inner = (f"{quote(f.name)}:{spark_name(f.dataType)}" for f in kind.fields)
            return f"struct<{','.join(inner)}>"
    return kind.simpleString()


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """A string literal of Spark's SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def is_whole(kind: DataType) -> bool:
    return isinstance(kind, _WHOLE)


def is_number(kind: DataType) -> bool:
    return isinstance(kind, NumericType)


def is_time(kind: DataType) -> bool:
    return isinstance(kind, (TimestampType, TimestampNTZType))


def as_decimal(kind: DataType) -> DecimalType:
    """The decimal that holds every value of a whole number's type."""
    if isinstance(kind, DecimalType):
        return kind
    return DecimalType(_DIGITS[type(kind)], 0)


def adjusted(precision: int, scale: int) -> DecimalType:
    """A decimal that is too wide loses digits behind the point first, but keeps six of them."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, _MIN_SCALE)))


def common(left: DataType, right: DataType) -> DataType | None:
    """The type that both become when they meet: in a comparison, a CASE, a UNION. None if there is none."""
    if left == right or isinstance(right, NullType):
        return left
    if isinstance(left, NullType):
        return right
    if is_number(left) and is_number(right):
        return _common_number(left, right)
    times = {type(left), type(right)}
    if times <= {DateType, TimestampNTZType, TimestampType}:
        return TIMESTAMP_LTZ if TimestampType in times else TIMESTAMP
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = common(left.elementType, right.elementType)
        return element and ArrayType(element, left.containsNull or right.containsNull)
    if isinstance(left, MapType) and isinstance(right, MapType):
        key, value = common(left.keyType, right.keyType), common(left.valueType, right.valueType)
        return MapType(key, value) if key and value else None
    if same_shape(left, right):
        return left
    return None


def _common_number(left: DataType, right: DataType) -> DataType:
    if isinstance(left, DoubleType) or isinstance(right, DoubleType):
        return DOUBLE
    if isinstance(left, FloatType) or isinstance(right, FloatType):
        # A FLOAT does not hold what a whole number or a decimal has.
        return FloatType() if left == right else DOUBLE
    if is_whole(left) and is_whole(right):
        return max(left, right, key=lambda kind: _WHOLE.index(type(kind)))
    one, other = as_decimal(left), as_decimal(right)
    scale = max(one.scale, other.scale)
    return adjusted(max(one.precision - one.scale, other.precision - other.scale) + scale, scale)


def same_shape(left: DataType, right: DataType) -> bool:
    """Equal but for what may be NULL inside, and for the names of fields."""
    match left, right:
        case ArrayType(), ArrayType():
            return same_shape(left.elementType, right.elementType)
        case MapType(), MapType():
            return same_shape(left.keyType, right.keyType) and same_shape(left.valueType, right.valueType)
        case StructType(), StructType():
            return len(left.fields) == len(right.fields) and all(
                same_shape(a.dataType, b.dataType) for a, b in zip(left.fields, right.fields, strict=True)
            )
    return left == right


def assignable(value: DataType, column: DataType) -> bool:
    """Whether a value of this type can be stored in a column without a cast: nothing may get lost."""
    if isinstance(value, NullType) or same_shape(value, column):
        return True
    if is_number(value) and is_number(column):
        if isinstance(column, DecimalType):
            # Digits behind the point are rounded, as in every SQL; digits before it are not dropped: a value
            # that is too big stops the statement.
            return is_whole(value) or isinstance(value, DecimalType)
        return common(value, column) == column
    match value, column:
        case DateType(), (TimestampNTZType() | TimestampType()):
            return True
        case (TimestampNTZType(), TimestampType()) | (TimestampType(), TimestampNTZType()):
            # Another meaning, not a wider type: somebody must say it.
            return False
        case ArrayType(), ArrayType():
            return assignable(value.elementType, column.elementType)
        case MapType(), MapType():
            return assignable(value.keyType, column.keyType) and assignable(value.valueType, column.valueType)
        case StructType(), StructType():
            return len(value.fields) == len(column.fields) and all(
                assignable(a.dataType, b.dataType) for a, b in zip(value.fields, column.fields, strict=True)
            )
    return False
