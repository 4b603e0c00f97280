"""Aggregates over changes: each value comes with 1, or is taken back with -1."""

from pyspark.sql.types import DataType

from headgate.errors import InvalidRequest
from headgate.sql.functions.aggregates import AGGREGATES, aggregate
from headgate.sql.typed import Typed
from headgate.sql.types import BIGINT, spark_name


def retracting(name: str, args: list[Typed], distinct: bool, sign: str) -> tuple[str, DataType, bool]:
    """Spark's expression, its type, and whether it can be NULL; `sign` is a piece of Spark SQL.

    Sums and counts need a number for each group. The least, the greatest and the different values need all
    values that came.
    """
    _, kind, nullable = aggregate(name, args, distinct, "")
    if name == "COUNT" and not distinct:
        counted = f"CASE WHEN {args[0].sql} IS NOT NULL THEN {sign} ELSE 0 END" if args else sign
        return f"coalesce(sum(CAST({counted} AS BIGINT)), 0L)", BIGINT, False
    value = args[0].sql
    if name in ("SUM", "AVG"):
        total = f"sum(CASE WHEN {sign} < 0 THEN -({value}) ELSE {value} END)"
        count = f"sum(CASE WHEN {value} IS NOT NULL THEN {sign} ELSE 0 END)"
        made = total if name == "SUM" else f"{total} / {count}"
        return f"CASE WHEN {count} > 0 THEN CAST({made} AS {spark_name(kind)}) END", kind, True
    if name in ("MIN", "MAX") or (name == "COUNT" and distinct):
        left = values_left(value, sign)
        if name == "COUNT":
            return f"CAST(size({left}) AS BIGINT)", BIGINT, False
        return f"array_{name.lower()}({left})", kind, nullable
    raise InvalidRequest(
        f"{name} over rows that change is not supported: {AGGREGATES[name].meaning.split('.')[0].lower()} is "
        "not known any more when a value is taken back.",
        "COUNT, SUM, AVG, MIN and MAX are.",
    )


def values_left(value: str, sign: str) -> str:
    """The different values that came more often than they were taken back."""
    came = f"collect_list(CASE WHEN {value} IS NOT NULL THEN named_struct('v', {value}, 's', {sign}) END)"
    signs = f"aggregate(filter({came}, x -> x.v <=> v), 0, (all, x) -> all + x.s)"
    return f"filter(array_distinct(transform({came}, x -> x.v)), v -> {signs} > 0)"


def rows_left(value: str, sign: str) -> str:
    """The same, each as often as it is left; `value` is never NULL."""
    came = f"collect_list(named_struct('v', {value}, 's', {sign}))"
    signs = f"aggregate(filter({came}, x -> x.v <=> v), 0, (all, x) -> all + x.s)"
    often = f"transform(array_distinct(transform({came}, x -> x.v)), v -> array_repeat(v, {signs}))"
    return f"flatten({often})"
