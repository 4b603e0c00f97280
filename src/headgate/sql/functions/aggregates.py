"""Aggregates: what a group of rows becomes. Each keeps a state that grows with groups, not with rows,
unless said."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.types import ArrayType, ByteType, DataType, DecimalType, DoubleType, FloatType, ShortType

from headgate.errors import InvalidRequest
from headgate.sql.typed import Typed
from headgate.sql.types import BIGINT, DOUBLE, INT, STRING, is_number, name_of, spark_name


@dataclass(frozen=True)
class Aggregate:
    """`rule` gives Spark's expression and its type; `order` is how rows came: their coordinates, as one
    struct."""

    name: str
    form: str
    meaning: str
    rule: Callable[[list[Typed], str], tuple[str, DataType, bool]]
    least: int = 1
    most: int = 1


def _number(name: str, value: Typed) -> None:
    if not is_number(value.type):
        raise InvalidRequest(f"{name} takes a number, not {name_of(value.type)}.", "Make it one with CAST.")


def _sum(args: list[Typed], _: str) -> tuple[str, DataType, bool]:
    _number("SUM", args[0])
    kind = args[0].type
    if isinstance(kind, DecimalType):
        kind = DecimalType(38, kind.scale)
    elif isinstance(kind, (ByteType, ShortType)):
        kind = INT
    elif isinstance(kind, FloatType):
        kind = DOUBLE
    return f"CAST(sum({args[0].sql}) AS {spark_name(kind)})", kind, True


def _avg(args: list[Typed], _: str) -> tuple[str, DataType, bool]:
    _number("AVG", args[0])
    kind: DataType = DOUBLE
    if isinstance(args[0].type, DecimalType):
        scale = max(6, args[0].type.scale)
        kind = DecimalType(38, scale)
        return f"CAST(avg({args[0].sql}) AS {spark_name(kind)})", kind, True
    return f"CAST(avg({args[0].sql}) AS double)", kind, True


def _extreme(name: str) -> Callable[[list[Typed], str], tuple[str, DataType, bool]]:
    return lambda args, _: (f"{name.lower()}({args[0].sql})", args[0].type, True)


def _double(name: str) -> Callable[[list[Typed], str], tuple[str, DataType, bool]]:
    def rule(args: list[Typed], _: str) -> tuple[str, DataType, bool]:
        _number(name, args[0])
        return f"{name.lower()}(CAST({args[0].sql} AS double))", DoubleType(), True

    return rule


def _edge(name: str) -> Callable[[list[Typed], str], tuple[str, DataType, bool]]:
    function = "min_by" if name == "FIRST_VALUE" else "max_by"

    def rule(args: list[Typed], order: str) -> tuple[str, DataType, bool]:
        if not order:
            raise InvalidRequest(
                f"{name} needs rows of one table: there is no first or last row of a join or a group."
            )
        value = args[0].sql
        # NULLs are skipped: with a NULL order Spark leaves the row out.
        return f"{function}({value}, CASE WHEN {value} IS NOT NULL THEN {order} END)", args[0].type, True

    return rule


def _listagg(args: list[Typed], order: str) -> tuple[str, DataType, bool]:
    separator = args[1].sql if len(args) > 1 else "','"
    value = f"CAST({args[0].sql} AS STRING)"
    if not order:
        sorted_values = f"array_sort(collect_list({value}))"
    else:
        pairs = (
            f"array_sort(collect_list(CASE WHEN {value} IS NOT NULL THEN struct({order} AS o, "
            f"{value} AS v) END))"
        )
        sorted_values = f"transform({pairs}, x -> x.v)"
    return f"CASE WHEN count({value}) > 0 THEN array_join({sorted_values}, {separator}) END", STRING, True


def _array_agg(args: list[Typed], order: str) -> tuple[str, DataType, bool]:
    kind = ArrayType(args[0].type)
    if not order:
        raise InvalidRequest("ARRAY_AGG needs rows of one table: the order of others is not known.")
    pairs = f"array_sort(collect_list(struct({order} AS o, {args[0].sql} AS v)))"
    return f"transform({pairs}, x -> x.v)", kind, True


AGGREGATES: dict[str, Aggregate] = {
    a.name: a
    for a in (
        Aggregate(
            "COUNT",
            "COUNT(*), COUNT(x), COUNT(DISTINCT x)",
            "How many rows, values that are not NULL, or different values; the last keeps every one of them.",
            lambda args, _: (f"count({args[0].sql if args else 1})", BIGINT, False),
            0,
            1,
        ),
        Aggregate(
            "SUM",
            "SUM(x)",
            "The sum, of the type of `x` (DECIMAL(38, s) for a DECIMAL). NULL of no values. An INT that "
            "overflows stops the statement.",
            _sum,
        ),
        Aggregate(
            "AVG", "AVG(x)", "The mean, a DOUBLE, or a DECIMAL of a DECIMAL; also of whole numbers.", _avg
        ),
        Aggregate("MIN", "MIN(x)", "The least.", _extreme("MIN")),
        Aggregate("MAX", "MAX(x)", "The greatest.", _extreme("MAX")),
        Aggregate(
            "FIRST_VALUE",
            "FIRST_VALUE(x)",
            "The first that came and is not NULL, by partition and offset.",
            _edge("FIRST_VALUE"),
        ),
        Aggregate(
            "LAST_VALUE",
            "LAST_VALUE(x)",
            "The last that came and is not NULL, by partition and offset.",
            _edge("LAST_VALUE"),
        ),
        Aggregate(
            "LISTAGG",
            "LISTAGG(x[, separator])",
            "As text, in the order in which they came, with `,` or the separator between. Keeps every value.",
            _listagg,
            1,
            2,
        ),
        Aggregate(
            "ARRAY_AGG",
            "ARRAY_AGG(x)",
            "As an array, in the order in which they came. Keeps every value.",
            _array_agg,
        ),
        Aggregate("STDDEV_POP", "STDDEV_POP(x)", "Standard deviation of all.", _double("STDDEV_POP")),
        Aggregate("STDDEV_SAMP", "STDDEV_SAMP(x)", "Standard deviation of a sample.", _double("STDDEV_SAMP")),
        Aggregate("VAR_POP", "VAR_POP(x)", "Variance of all.", _double("VAR_POP")),
        Aggregate("VAR_SAMP", "VAR_SAMP(x)", "Variance of a sample.", _double("VAR_SAMP")),
    )
}


def aggregate(name: str, args: list[Typed], distinct: bool, order: str) -> tuple[str, DataType, bool]:
    """Spark's expression, its type, and whether it can be NULL."""
    known = AGGREGATES[name]
    if not known.least <= len(args) <= known.most:
        raise InvalidRequest(f"{name} has {len(args)} arguments.", f"It is written {known.form}.")
    if not distinct:
        return known.rule(args, order)
    if name != "COUNT" or len(args) != 1:
        if name in ("MIN", "MAX"):
            return known.rule(args, order)
        raise InvalidRequest(f"{name}(DISTINCT …) is not supported.", "COUNT(DISTINCT x) of one value is.")
    # Spark does not stream distinct aggregates; a set of the values is the same, and as big.
    return f"CAST(size(collect_set({args[0].sql})) AS BIGINT)", BIGINT, False


__all__ = ["AGGREGATES", "Aggregate", "aggregate"]
