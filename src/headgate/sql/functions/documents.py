"""Functions of JSON, arrays and maps."""

import re
from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
)

from headgate.errors import InvalidRequest
from headgate.sql.functions.table import Function, Session, check, literal_text, simple
from headgate.sql.typed import Typed, call, unify
from headgate.sql.types import BOOLEAN, INT, STRING, common, name_of, spark_name, text

_PATH = re.compile(r"^\$(\.[A-Za-z_][A-Za-z0-9_]*|\[\d+\]|\['[^'\]]+'\]|\[\"[^\"\]]+\"\])*$")
_RETURNS: tuple[type[DataType], ...] = (StringType, IntegerType, LongType, DoubleType, BooleanType)


def _path(name: str, arg: Typed) -> str:
    given = literal_text(name, 2, arg).strip()
    given = given.removeprefix("lax ").strip()
    if not _PATH.match(given):
        raise InvalidRequest(
            f"{name} does not know the path '{given}'.",
            "Paths are like $.order.lines[0].price, without wildcards.",
        )
    return given


def json_call(
    name: str, value: Typed, path: Typed, returning: DataType | None, on: Mapping[str, str | Typed]
) -> Typed:
    """JSON_VALUE, JSON_QUERY, JSON_EXISTS."""
    value = check(name, "s", [value])[0]
    where = text(_path(name, path))
    node = f"try_variant_get(try_parse_json({value.sql}), {where}, 'variant')"
    if name == "JSON_EXISTS":
        return call("{sql}", BOOLEAN, [value], sql=f"({node} IS NOT NULL)")
    nested = f"(schema_of_variant({node}) LIKE 'OBJECT%' OR schema_of_variant({node}) LIKE 'ARRAY%')"
    found = f"get_json_object({value.sql}, {where})"
    if name == "JSON_QUERY":
        if on or returning is not None:
            raise InvalidRequest(
                "JSON_QUERY takes a document and a path, and gives NULL when there is nothing."
            )
        return call("{sql}", STRING, [value], True, sql=f"CASE WHEN {nested} THEN {found} END")
    kind = returning or STRING
    if not isinstance(kind, _RETURNS):
        raise InvalidRequest(
            f"JSON_VALUE does not return {name_of(kind)}.",
            "It returns STRING, INT, BIGINT, DOUBLE or BOOLEAN; then CAST.",
        )
    scalar = found if kind == STRING else f"try_cast({found} AS {spark_name(kind)})"
    parts: list[Typed] = [value]
    branches: list[str] = []
    for when, does in on.items():
        if does == "NULL":
            continue
        if isinstance(does, Typed):
            put = does.cast(kind)
            parts.append(put)
            result = put.sql
        elif does == "ERROR":
            result = (
                f"CAST(raise_error('JSON_VALUE: ' || {where} || ' is "
                f"{'missing' if when == 'on_empty' else 'no value'}') AS {spark_name(kind)})"
            )
        else:
            raise InvalidRequest(f"JSON_VALUE does not know {does}.")
        empty = f"({node} IS NULL OR is_variant_null({node}))"
        if when == "on_empty":
            branches.append(f"WHEN try_parse_json({value.sql}) IS NOT NULL AND {empty} THEN {result}")
        else:
            branches.append(
                f"WHEN {value.sql} IS NOT NULL AND (try_parse_json({value.sql}) IS NULL OR {nested}) "
                f"THEN {result}"
            )
    branches.append(f"WHEN {nested} THEN NULL")
    return call("{sql}", kind, parts, True, sql=f"CASE {' '.join(branches)} ELSE {scalar} END")


def _json_object(args: list[Typed], _: Session) -> Typed:
    pairs = []
    for place in range(0, len(args), 2):
        pairs.append(f"{text(literal_text('JSON_OBJECT', place + 1, args[place]))}, {args[place + 1].sql}")
    inner = f"named_struct({', '.join(pairs)})" if pairs else "map()"
    return call("{sql}", STRING, args, False, sql=f"to_json({inner}, map('ignoreNullFields', 'false'))")


def _json_array(args: list[Typed], _: Session) -> Typed:
    values = unify(args, "JSON_ARRAY")
    return call("{sql}", STRING, values, False, sql=f"to_json(array({', '.join(v.sql for v in values)}))")


def index(value: Typed, at: Typed) -> Typed:
    """`a[1]` and `m['k']`: NULL when there is none."""
    if isinstance(value.type, ArrayType):
        at = check("[]", "i", [at])[0].cast(INT)
        if at.known and isinstance(at.literal, int) and at.literal < 1:
            raise InvalidRequest(f"An array has no element {at.literal}.", "1 is the first.")
        sql = (
            "try_element_at({0}, {1})" if at.known else "CASE WHEN {1} > 0 THEN try_element_at({0}, {1}) END"
        )
        return call(sql, value.type.elementType, [value, at], True)
    if isinstance(value.type, MapType):
        key, _ = at.cast(value.type.keyType), None
        if common(at.type, value.type.keyType) is None:
            raise InvalidRequest(
                f"The keys of the map are {name_of(value.type.keyType)}, not {name_of(at.type)}."
            )
        return call("try_element_at({0}, {1})", value.type.valueType, [value, key], True)
    raise InvalidRequest(f"{name_of(value.type)} has no elements.", "[] is for an ARRAY or a MAP.")


def _of_element(
    name: str, form: str, meaning: str, template: str, result: DataType | None, empty: bool = False
) -> Function:
    """A function of an array and a value of its elements' type."""

    def rule(args: list[Typed], _: Session) -> Typed:
        array = check(name, "a", args[:1])[0]
        assert isinstance(array.type, ArrayType)
        element = args[1]
        if common(element.type, array.type.elementType) is None:
            raise InvalidRequest(
                f"{name}: the array has {name_of(array.type.elementType)}, not {name_of(element.type)}."
            )
        return call(template, result or array.type, [array, element.cast(array.type.elementType)])

    return Function(name, form, meaning, rule, 2, 2)


def _arrays(name: str, form: str, meaning: str, template: str) -> Function:
    def rule(args: list[Typed], _: Session) -> Typed:
        values = unify(check(name, "a" * len(args), args), name)
        return call("{sql}", values[0].type, values, sql=template.format(", ".join(v.sql for v in values)))

    return Function(name, form, meaning, rule, 2, None if name == "ARRAY_CONCAT" else 2)


def _edge(name: str, what: str) -> Function:
    def rule(args: list[Typed], _: Session) -> Typed:
        array = check(name, "a", args)[0]
        assert isinstance(array.type, ArrayType)
        return call(f"{name.lower()}({{0}})", array.type.elementType, [array], True)

    return Function(name, f"{name}(a)", what, rule, 1, 1)


def _cardinality(args: list[Typed], _: Session) -> Typed:
    if not isinstance(args[0].type, (ArrayType, MapType)):
        raise InvalidRequest(f"CARDINALITY takes an ARRAY or a MAP, not {name_of(args[0].type)}.")
    return call("CASE WHEN {0} IS NOT NULL THEN size({0}) END", INT, args)


def _element(args: list[Typed], _: Session) -> Typed:
    array = check("ELEMENT", "a", args)[0]
    assert isinstance(array.type, ArrayType)
    sql = (
        "CASE WHEN size({0}) > 1 THEN raise_error('ELEMENT: the array has more than one element') "
        "ELSE try_element_at({0}, 1) END"
    )
    return call(sql, array.type.elementType, [array], True)


def _map_part(name: str, what: str, part: str) -> Function:
    def rule(args: list[Typed], _: Session) -> Typed:
        given = check(name, "m", args)[0]
        assert isinstance(given.type, MapType)
        return call(f"{name.lower()}({{0}})", ArrayType(getattr(given.type, part)), [given])

    return Function(name, f"{name}(m)", what, rule, 1, 1)


DOCUMENTS = (
    Function(
        "JSON_OBJECT",
        "JSON_OBJECT(KEY 'k' VALUE v, …)",
        "A JSON object as text; NULLs stay in it as null.",
        _json_object,
        0,
        None,
    ),
    Function(
        "JSON_ARRAY",
        "JSON_ARRAY(v, …)",
        "A JSON array as text, of values that have a type in common.",
        _json_array,
        1,
        None,
    ),
    simple(
        "IS_JSON",
        "s IS JSON",
        "Whether the text is a JSON document.",
        "s",
        BOOLEAN,
        "({0} IS NOT NULL AND try_parse_json({0}) IS NOT NULL)",
        nullable=False,
    ),
)
ARRAYS = (
    Function("CARDINALITY", "CARDINALITY(a)", "How many elements an array or a map has.", _cardinality, 1, 1),
    Function("ELEMENT", "ELEMENT(a)", "The only element of an array; NULL of an empty one.", _element, 1, 1),
    _of_element(
        "ARRAY_CONTAINS", "ARRAY_CONTAINS(a, x)", "Whether `x` is in it.", "array_contains({0}, {1})", BOOLEAN
    ),
    _of_element(
        "ARRAY_POSITION",
        "ARRAY_POSITION(a, x)",
        "Where `x` is first; 0 if nowhere.",
        "CAST(array_position({0}, {1}) AS INT)",
        INT,
    ),
    _of_element("ARRAY_REMOVE", "ARRAY_REMOVE(a, x)", "Without any `x`.", "array_remove({0}, {1})", None),
    _of_element("ARRAY_APPEND", "ARRAY_APPEND(a, x)", "With `x` at its end.", "array_append({0}, {1})", None),
    simple("ARRAY_DISTINCT", "ARRAY_DISTINCT(a)", "Each element once.", "a", None, "array_distinct({0})"),
    simple("ARRAY_REVERSE", "ARRAY_REVERSE(a)", "From the end to the front.", "a", None, "reverse({0})"),
    _arrays("ARRAY_CONCAT", "ARRAY_CONCAT(a, b, …)", "One after the other.", "concat({})"),
    _arrays("ARRAY_UNION", "ARRAY_UNION(a, b)", "Elements of both, each once.", "array_union({})"),
    _arrays(
        "ARRAY_INTERSECT",
        "ARRAY_INTERSECT(a, b)",
        "Elements that are in both, each once.",
        "array_intersect({})",
    ),
    _arrays(
        "ARRAY_EXCEPT",
        "ARRAY_EXCEPT(a, b)",
        "Elements of `a` that are not in `b`, each once.",
        "array_except({})",
    ),
    _edge("ARRAY_MAX", "The greatest element."),
    _edge("ARRAY_MIN", "The least element."),
    simple(
        "ARRAY_JOIN",
        "ARRAY_JOIN(a, separator[, null])",
        "Elements as text with the separator between; NULLs are left out, or are the text `null`.",
        "ass",
        STRING,
        "array_join({0}, {1}) | array_join({0}, {1}, {2})",
        1,
    ),
    _map_part("MAP_KEYS", "The keys of a map.", "keyType"),
    _map_part("MAP_VALUES", "The values of a map.", "valueType"),
)
