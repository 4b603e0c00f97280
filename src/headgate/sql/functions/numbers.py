"""Functions of numbers."""

from pyspark.sql.types import DecimalType, DoubleType, FloatType

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Function, Session, check, literal_int, simple
from headgate.sql.typed import Typed, call, unify
from headgate.sql.types import DOUBLE, STRING, adjusted, as_decimal, is_whole, spark_name


def _whole(name: str) -> Function:
    """CEIL and FLOOR keep the type: Spark's make a BIGINT of a DOUBLE."""

    def rule(args: list[Typed], _: Session) -> Typed:
        value = check(name, "n", args)[0]
        if is_whole(value.type):
            return value
        kind = DecimalType(value.type.precision, 0) if isinstance(value.type, DecimalType) else value.type
        if isinstance(kind, (DoubleType, FloatType)):
            # By way of a BIGINT a great number would be lost.
            up = "" if name == "FLOOR" else "-"
            sql = f"({up}floor({up}CAST({value.sql} AS DOUBLE)))"
            big = f"abs({value.sql}) >= 9.0E15D OR isnan({value.sql})"
            return call(
                f"CASE WHEN {big} THEN {value.sql} ELSE CAST({sql} AS {spark_name(kind)}) END".replace(
                    "{", "{{"
                ).replace("}", "}}"),
                kind,
                [value],
            )
        return call(f"CAST({name.lower()}({{0}}) AS {spark_name(kind)})", kind, [value])

    what = (
        "smallest whole number that is not less"
        if name == "CEIL"
        else "greatest whole number that is not more"
    )
    return Function(
        name,
        f"{name}(x)",
        f"The {what}. With `{name}(t TO HOUR)`: a time, to the unit (SECOND, MINUTE, HOUR, DAY, MONTH, "
        f"YEAR).",
        rule,
        1,
        1,
    )


def _round(args: list[Typed], _: Session) -> Typed:
    value = check("ROUND", "n", args[:1])[0]
    digits = literal_int("ROUND", 2, args[1]) if len(args) > 1 else 0
    kind = value.type
    if isinstance(kind, DecimalType):
        scale = max(min(kind.scale, digits), 0)
        kind = DecimalType(min(kind.precision - kind.scale + scale + 1, 38), scale)
    return call(f"CAST(round({{0}}, {digits}) AS {spark_name(kind)})", kind, [value])


def _truncate(args: list[Typed], _: Session) -> Typed:
    value = check("TRUNCATE", "n", args[:1])[0]
    digits = literal_int("TRUNCATE", 2, args[1]) if len(args) > 1 else 0
    if is_whole(value.type) and digits >= 0:
        return value
    kind = spark_name(value.type)
    return call(
        f"CAST(CASE WHEN {{0}} >= 0 THEN floor({{0}}, {digits}) ELSE ceil({{0}}, {digits}) END AS {kind})",
        value.type,
        [value],
    )


def _mod(args: list[Typed], _: Session) -> Typed:
    left, right = unify(check("MOD", "nn", args), "MOD")
    return call("({0} % {1})", left.type, [left, right])


def _extreme(name: str) -> Function:
    def rule(args: list[Typed], _: Session) -> Typed:
        values = unify(args, name)
        inner = ", ".join(v.sql for v in values)
        maybe = [v for v in values if v.nullable]
        sql = f"{name.lower()}({inner})"
        if maybe:
            # Spark's skips NULLs.
            sql = f"CASE WHEN {' OR '.join(f'{v.sql} IS NULL' for v in maybe)} THEN NULL ELSE {sql} END"
        return call("{sql}", values[0].type, values, bool(maybe), sql=sql)

    what = "greatest" if name == "GREATEST" else "least"
    return Function(name, f"{name}(x, …)", f"The {what} of them; NULL if one is NULL.", rule, 1, None)


def _log(args: list[Typed], _: Session) -> Typed:
    given = check("LOG", "dd", args)
    return call("ln({0})" if len(given) == 1 else "log({0}, {1})", DOUBLE, given, True)


def _sign(args: list[Typed], _: Session) -> Typed:
    value = check("SIGN", "n", args)[0]
    return call(f"CAST(sign({{0}}) AS {spark_name(value.type)})", value.type, [value])


def arithmetic(operator: str, left: Typed, right: Typed) -> Typed:
    """`+ - * /` and `%` on numbers. Whole numbers divide to whole numbers."""
    if (
        operator in "/%"
        and right.known
        and right.literal == 0
        and not isinstance(right.type, (DoubleType, FloatType))
    ):
        raise InvalidRequest("Something is divided by 0.")
    one, other = left.type, right.type
    exact = not any(isinstance(t, (DoubleType, FloatType)) for t in (one, other))
    if exact and (isinstance(one, DecimalType) or isinstance(other, DecimalType)):
        return _decimal(operator, left.cast(as_decimal(one)), right.cast(as_decimal(other)))
    left, right = unify([left, right], f"'{operator}'")
    if operator == "/" and is_whole(left.type):
        return call(f"CAST(({{0}} DIV {{1}}) AS {spark_name(left.type)})", left.type, [left, right])
    return call(f"({{0}} {operator} {{1}})", left.type, [left, right])


def _decimal(operator: str, left: Typed, right: Typed) -> Typed:
    """The same digits that Spark gives: the type is said here so that it is known beforehand."""
    assert isinstance(left.type, DecimalType)
    assert isinstance(right.type, DecimalType)
    p1, s1, p2, s2 = left.type.precision, left.type.scale, right.type.precision, right.type.scale
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            kind = adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            kind = adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            kind = adjusted(p1 - s1 + s2 + scale, scale)
        case _:
            scale = max(s1, s2)
            kind = adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    return call(f"CAST(({{0}} {operator} {{1}}) AS {spark_name(kind)})", kind, [left, right])


def _double(name: str, form: str, meaning: str, template: str) -> Function:
    return simple(name, form, meaning, "d" * form.count("x") if "y" not in form else "dd", DOUBLE, template)


NUMBERS = (
    simple("ABS", "ABS(x)", "Without its sign.", "n", None, "abs({0})"),
    _whole("CEIL"),
    _whole("FLOOR"),
    Function(
        "ROUND", "ROUND(x[, n])", "To `n` digits behind the point; halves away from zero.", _round, 1, 2
    ),
    Function("TRUNCATE", "TRUNCATE(x[, n])", "Cut behind `n` digits, towards zero.", _truncate, 1, 2),
    Function(
        "MOD", "MOD(x, y)", "What is left of `x` by `y`, with the sign of `x`. The same as `%`.", _mod, 2, 2
    ),
    Function("SIGN", "SIGN(x)", "-1, 0 or 1.", _sign, 1, 1),
    _extreme("GREATEST"),
    _extreme("LEAST"),
    _double("POWER", "POWER(x, y)", "`x` to the power of `y`.", "power({0}, {1})"),
    _double("SQRT", "SQRT(x)", "Square root.", "sqrt({0})"),
    _double("EXP", "EXP(x)", "e to the power of `x`.", "exp({0})"),
    _double("LN", "LN(x)", "Natural logarithm.", "ln({0})"),
    _double("LOG10", "LOG10(x)", "Logarithm to base 10.", "log10({0})"),
    _double("LOG2", "LOG2(x)", "Logarithm to base 2.", "log2({0})"),
    Function("LOG", "LOG([base, ]x)", "Logarithm, natural without a base.", _log, 1, 2),
    _double("SIN", "SIN(x)", "Sine.", "sin({0})"),
    _double("COS", "COS(x)", "Cosine.", "cos({0})"),
    _double("TAN", "TAN(x)", "Tangent.", "tan({0})"),
    _double("ATAN2", "ATAN2(x, y)", "The angle of a point.", "atan2({0}, {1})"),
    _double("RADIANS", "RADIANS(x)", "Degrees to radians.", "radians({0})"),
    _double("DEGREES", "DEGREES(x)", "Radians to degrees.", "degrees({0})"),
    simple("PI", "PI()", "3.14159…", "", DOUBLE, "pi()", nullable=False),
    simple(
        "HEX",
        "HEX(x)",
        "A whole number, or the UTF-8 bytes of a string, in hexadecimal.",
        "*",
        STRING,
        "hex({0})",
    ),
)
