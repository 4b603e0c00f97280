"""CAST and TRY_CAST: what users say, with the precision that they said."""

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Session
from headgate.sql.typed import Typed, call, null
from headgate.sql.types import SqlType, is_number, is_time, is_whole, name_of, spark_name

_CUT = {0: "SECOND", 3: "MILLISECOND"}


def cast(value: Typed, target: SqlType, safe: bool, session: Session) -> Typed:
    """An error at run time when a value does not fit, or NULL for TRY_CAST."""
    kind = target.spark
    if isinstance(value.type, NullType):
        return null(kind)
    if not _possible(value.type, kind):
        raise InvalidRequest(
            f"CAST of {name_of(value.type)} to {name_of(kind)} is not known.", _instead(value.type, kind)
        )
    word = "try_cast" if safe else "CAST"
    nullable = value.nullable or safe
    if isinstance(kind, StringType) and is_time(value.type):
        done = call("{sql}", kind, [value], nullable, sql=_time_text(value))
    elif is_whole(kind) and isinstance(value.type, StringType):
        # Text with a fraction is a number too; it is cut, as numbers are.
        done = call(
            f"{word}({word}(trim({{0}}) AS decimal(38, 10)) AS {spark_name(kind)})", kind, [value], nullable
        )
    elif isinstance(value.type, kind.__class__) and not isinstance(kind, DecimalType):
        done = value.cast(kind)
    else:
        done = call(f"{word}({{0}} AS {spark_name(kind)})", kind, [value], nullable)
    if is_time(kind) and target.precision is not None and target.precision < 6:
        return _cut(done, target.precision)
    if target.length is not None and isinstance(kind, StringType):
        return call(f"left({{0}}, {target.length})", kind, [done])
    return done


def _cut(value: Typed, precision: int) -> Typed:
    """Digits of a second behind the precision are cut off."""
    if precision in _CUT:
        sql = f"CAST(date_trunc('{_CUT[precision]}', {value.sql}) AS {spark_name(value.type)})"
        return call("{sql}", value.type, [value], sql=sql)
    step = 10 ** (6 - precision)
    moment = f"CAST({value.sql} AS timestamp)"
    micros = f"timestamp_micros(unix_micros({moment}) - pmod(unix_micros({moment}), {step}))"
    return call("{sql}", value.type, [value], sql=f"CAST({micros} AS {spark_name(value.type)})")


def _time_text(value: Typed) -> str:
    """`2026-01-31 12:00:00.000`, as these engines write times: with three digits, or six if there are
    more."""
    whole = f"date_format({value.sql}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    return f"CASE WHEN {whole} LIKE '%000' THEN left({whole}, 23) ELSE {whole} END"


def _possible(source: DataType, target: DataType) -> bool:
    if type(source) is type(target):
        if isinstance(source, StructType) and isinstance(target, StructType):
            return len(source.fields) == len(target.fields)
        return True
    simple = (StringType, BooleanType, DateType, TimestampNTZType, TimestampType)
    match source, target:
        case StringType(), (BooleanType() | DateType() | TimestampNTZType() | TimestampType() | BinaryType()):
            return True
        case (BinaryType(), StringType()):
            return True
        case (
            (DateType() | TimestampNTZType() | TimestampType()),
            (DateType() | TimestampNTZType() | TimestampType() | StringType()),
        ):
            return True
        case ((ArrayType() | MapType() | StructType()), StringType()):
            return True
    if is_number(target):
        return is_number(source) or isinstance(source, (StringType, BooleanType))
    if is_number(source):
        return isinstance(target, (StringType, BooleanType))
    return isinstance(source, simple) and isinstance(target, StringType)


def _instead(source: DataType, target: DataType) -> str:
    if is_number(source) and is_time(target):
        return "TO_TIMESTAMP_LTZ(n, 0) takes seconds, TO_TIMESTAMP_LTZ(n, 3) milliseconds since 1970."
    if is_time(source) and is_number(target):
        return "EXTRACT(EPOCH FROM t) gives seconds since 1970."
    return "Take it apart first."
