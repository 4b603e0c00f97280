"""Typed expressions: a piece of Spark SQL, and what is known of its value before anything runs."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, DateType, DecimalType, DoubleType, NullType, StringType

from headgate.errors import InvalidRequest
from headgate.sql.durations import Span
from headgate.sql.types import (
    BIGINT,
    BOOLEAN,
    INT,
    NULL,
    STRING,
    common,
    is_time,
    name_of,
    quote,
    same_shape,
    spark_name,
    text,
)

if TYPE_CHECKING:
    from headgate.sql.scope import Attribute

Value = str | int | Decimal | bool | Span | None


@dataclass(frozen=True)
class Typed:
    """`literal` is set when `known` is; `attribute` when this is nothing but a column."""

    sql: str
    type: DataType
    nullable: bool = True
    known: bool = False
    literal: Value = None
    attribute: "Attribute | None" = None
    secrets: frozenset[str] = field(default_factory=frozenset)

    def cast(self, kind: DataType) -> "Typed":
        """Made another type, as it happens by itself when types meet. An error when the value does not
        fit."""
        if self.type == kind or same_shape(self.type, kind):
            return self if self.type == kind else replace(self, type=kind)
        return replace(self, sql=f"CAST({self.sql} AS {spark_name(kind)})", type=kind, attribute=None)


def call(
    template: str, kind: DataType, args: Iterable[Typed], nullable: bool | None = None, **more: str
) -> Typed:
    """`template` with the arguments in it, NULL when one of them is unless said otherwise."""
    given = list(args)
    return Typed(
        template.format(*(a.sql for a in given), **more),
        kind,
        any(a.nullable for a in given) if nullable is None else nullable,
        secrets=frozenset().union(*(a.secrets for a in given)),
    )


def string(value: str) -> Typed:
    return Typed(text(value), STRING, False, True, value)


def number(value: str) -> Typed:
    """A number as it is written: whole, exact with a point, and DOUBLE with an exponent."""
    if "e" in value.lower():
        return Typed(f"{value}D", DoubleType(), False, True, Decimal(value))
    if "." not in value:
        size = int(value)
        if -(2**31) <= size < 2**31:
            return Typed(value, INT, False, True, size)
        if -(2**63) <= size < 2**63:
            return Typed(f"{value}L", BIGINT, False, True, size)
        raise InvalidRequest(f"{value} is too big a number.", "BIGINT ends at 9223372036854775807.")
    exact = Decimal(value)
    digits = exact.as_tuple()
    scale = -int(digits.exponent)
    return Typed(f"{value}BD", DecimalType(max(len(digits.digits), scale), scale), False, True, exact)


def boolean(value: bool) -> Typed:
    return Typed("true" if value else "false", BOOLEAN, False, True, value)


def null(kind: DataType = NULL) -> Typed:
    sql = "NULL" if isinstance(kind, NullType) else f"CAST(NULL AS {spark_name(kind)})"
    return Typed(sql, kind, True, True, None)


def column(ref: str, kind: DataType, nullable: bool, attribute: "Attribute | None" = None) -> Typed:
    return Typed(quote(ref), kind, nullable, attribute=attribute)


def unify(values: list[Typed], where: str) -> list[Typed]:
    """All of one type: the one that they have in common."""
    kind: DataType = NULL
    for value in values:
        kind = _common_with_text(kind, value, values, where)
    return [value.cast(kind) for value in values]


def _common_with_text(kind: DataType, value: Typed, values: list[Typed], where: str) -> DataType:
    found = common(kind, value.type)
    if found is not None:
        return found
    # A text that is written down is a date or a time where one is expected.
    pair = (kind, value.type)
    for one, other in (pair, pair[::-1]):
        timed = isinstance(one, StringType) and (is_time(other) or isinstance(other, DateType))
        if timed and all(v.known for v in values if isinstance(v.type, StringType)):
            return other
    raise InvalidRequest(
        f"{where} has {name_of(kind)} and {name_of(value.type)}, which have no type in common.",
        "Say with CAST what is meant.",
    )
