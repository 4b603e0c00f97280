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
    if name == "COUNT":
        return count_left(value, sign), BIGINT, False
    if name in ("MIN", "MAX"):
        return best_left(value, sign, name == "MAX"), kind, nullable
    raise InvalidRequest(
        f"{name} over rows that change is not supported: {AGGREGATES[name].meaning.split('.')[0].lower()} is "
        "not known any more when a value is taken back.",
        "COUNT, SUM, AVG, MIN and MAX are.",
    )


def best_left(value: str, sign: str, greatest: bool) -> str:
    """The least or the greatest value that came more often than it was taken back; NULL if there is none."""
    came = _came(value, sign)
    return _folded(came, greatest, f"get({came}, -1).v", "r.v")


def count_left(value: str, sign: str) -> str:
    """How many different values came more often than they were taken back."""
    return _folded(_came(value, sign), True, "0L", "r.found + 1L")


def first_left(value: str, sign: str, most: int, greatest: bool) -> str:
    """The first so many values by their order, each as often as it is left; `value` is never NULL."""
    came = f"collect_list(named_struct('v', {value}, 's', {sign}))"
    nothing = f"transform(slice({came}, 1, 0), x -> x.v)"
    more = f"concat(r.found, array_repeat(r.v, least(r.n, {most} - size(r.found))))"
    return _folded(came, not greatest, nothing, f"IF(size(r.found) < {most}, {more}, r.found)")


def _came(value: str, sign: str) -> str:
    return f"collect_list(CASE WHEN {value} IS NOT NULL THEN named_struct('v', {value}, 's', {sign}) END)"


def _folded(came: str, ascending: bool, nothing: str, found: str) -> str:
    """What is found among the values that are left, one after the other by their order.

    Equal values follow each other when they are sorted, so that one pass sums up the signs of each. `found`
    is what is found with a value `r.v` that is left `r.n` times, where `r.found` was found before it.
    """
    ended = f"IF(r.n > 0, {found}, r.found)"
    begin = f"named_struct('v', get({came}, 0).v, 'n', 0, 'found', {nothing})"
    same = "named_struct('v', r.v, 'n', r.n + x.s, 'found', r.found)"
    other = f"named_struct('v', x.v, 'n', x.s, 'found', {ended})"
    step = f"(r, x) -> IF(x.v <=> r.v, {same}, {other})"
    return f"aggregate(sort_array({came}, {str(ascending).lower()}), {begin}, {step}, r -> {ended})"
