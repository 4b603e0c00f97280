"""Functions that choose."""

from pyspark.sql.types import BooleanType

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Function, Session
from headgate.sql.typed import Typed, call, unify
from headgate.sql.types import name_of


def _coalesce(args: list[Typed], _: Session) -> Typed:
    values = unify(args, "COALESCE")
    nullable = all(v.nullable for v in values)
    return call(
        "{sql}", values[0].type, values, nullable, sql=f"coalesce({', '.join(v.sql for v in values)})"
    )


def _nullif(args: list[Typed], _: Session) -> Typed:
    left, right = unify(args, "NULLIF")
    return call("nullif({0}, {1})", left.type, [left, right], True).cast(args[0].type)


def _if(args: list[Typed], _: Session) -> Typed:
    if not isinstance(args[0].type, BooleanType):
        raise InvalidRequest(f"IF takes a condition first, not {name_of(args[0].type)}.")
    yes, no = unify(args[1:], "IF")
    return call("if({0}, {1}, {2})", yes.type, [args[0], yes, no], yes.nullable or no.nullable)


CONDITIONS = (
    Function("COALESCE", "COALESCE(x, …)", "The first that is not NULL.", _coalesce, 1, None),
    Function("IFNULL", "IFNULL(x, y)", "`y` if `x` is NULL.", _coalesce, 2, 2),
    Function("NULLIF", "NULLIF(x, y)", "NULL if both are equal, else `x`.", _nullif, 2, 2),
    Function("IF", "IF(condition, x, y)", "`x` if it holds, else `y`, also when it is NULL.", _if, 3, 3),
)
