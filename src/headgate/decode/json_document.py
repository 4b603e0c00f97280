"""JSON text becomes columns with Spark's own parser, and nothing that the parser forgives gets through.

`from_json` is fast and lenient: a number in a text field becomes text, decimals are rounded, doubles lose
digits, the second of two equal keys wins, what follows the document is not looked at. So each document is
parsed a second time, by a strict parser that knows which keys it has met. And where a value can have been
something else, a text that looks like a number or a number of many digits, its tokens are looked at one by
one: they are parsed as variants, which say what they were, with long numbers made texts before.

For the first parser the document is the value of `{"value":…,"end":1}`, for the second the item of `[…]`.
What closes the one early leaves no `end`; what closes the other early is not the value of an object.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import add, and_, or_
from typing import Literal, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from headgate.decode.connect import Conversion
from headgate.decode.reader import Reader

Expression = Callable[[Column], Column]

_CORRUPT = "corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowComments": "false",
    "allowUnquotedFieldNames": "false",
    "allowSingleQuotes": "false",
    "allowNumericLeadingZeros": "false",
    "allowNonNumericNumbers": "false",
    "allowBackslashEscapingAnyCharacter": "false",
    "allowUnquotedControlChars": "false",
    # As long as a message can be.
    "maxStringLen": str(2**31 - 1),
}
# Sixteen digits, or an exponent: a number that its column may not hold. Any shorter one is held by a double,
# and has no more than 14 digits after the point.
_LONG_NUMBER = r"[:,\[]\s*+-?(?:[0-9.]{16}|[0-9.]++[eE])"
_PLAIN_PLACES = 14
# Rounding a decimal of such an exponent would take the whole memory.
_HUGE = r"-?[0-9.]++[eE][-+]?[0-9]{4}"
_HUGE_EXPONENT = rf'[:,\[]\s*+(?:{_HUGE}|"{_HUGE}[0-9]*+")'
# The quantifiers are possessive: Java's would need a stack as deep as the text is long.
_STRING = r'"(?:[^"\\]++|\\.)*+"'
_NUMBER_TOKEN = rf'\G((?:[^"0-9-]++|{_STRING})*+)(-?[0-9][0-9.eE+-]*+)'
_UNSURE_NUMBER = r"-?[0-9][0-9.]*+[eE][-+]?[0-9]++|-?[0-9.]{39,}+"
_NUMBER_TEXT = r"^-?[0-9][0-9.eE+-]*$"
_DECIMAL_TEXT = r"^-?[0-9]++(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?$"
# What a number token begins with once it is made a text token.
_MARK = "\x01number:"
_MARK_ESCAPED = r"\\u0001number:"
_SURROGATE_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATE = r"\\u[dD][89a-fA-F]"
# Any number of so many digits is a double's, and no two of them are the same double's.
_SURE_DIGITS = 15
_MAX_DIGITS = 38


@dataclass(frozen=True)
class Flag:
    """true or false."""


@dataclass(frozen=True)
class Whole:
    """A number without point and exponent."""

    bits: int = 64


@dataclass(frozen=True)
class Real:
    """A number that a binary float prints again as it was written."""

    single: bool = False


@dataclass(frozen=True)
class Exact:
    """A decimal, as a number or as text."""

    type: t.DecimalType


@dataclass(frozen=True)
class Text:
    """A text; no number, however it is written."""


@dataclass(frozen=True)
class Document:
    """Any value: as JSON text with its keys in order, or as a variant."""

    variant: bool = False


@dataclass(frozen=True)
class Record:
    """An object of known keys; `closed` where it may have no others."""

    fields: tuple[tuple[str, "Node"], ...]
    closed: bool = False


@dataclass(frozen=True)
class Items:
    """An array."""

    item: "Node"


@dataclass(frozen=True)
class Entries:
    """An object of any keys."""

    value: "Node"


@dataclass(frozen=True)
class Logical:
    """A value that stands for another one: a text that is a date, a number that counts days."""

    plain: "Node"
    conversion: Conversion


Node = Flag | Whole | Real | Exact | Text | Document | Record | Items | Entries | Logical


class Check(NamedTuple):
    """Something that must hold at a place; it holds of NULL."""

    path: str
    get: Expression
    holds: Expression


class Step(NamedTuple):
    """One step down: into the key `key`, into each item of an array, or each value of a map."""

    into: Literal["key", "items", "values"]
    key: str = ""


def column_type(node: Node) -> t.DataType:
    """What the table has."""
    match node:
        case Whole(bits=bits):
            return t.LongType() if bits == 64 else t.IntegerType()
        case Real(single=True):
            return t.FloatType()
        case Exact(type=kind):
            return kind
        case Document(variant=False):
            return t.StringType()
        case Record(fields=fields):
            return t.StructType([t.StructField(name, column_type(child)) for name, child in fields])
        case Items(item=item):
            return t.ArrayType(column_type(item))
        case Entries(value=value):
            return t.MapType(t.StringType(), column_type(value))
        case Logical(conversion=conversion):
            return conversion.type
    return _parsed_type(node)


def _parsed_type(node: Node) -> t.DataType:
    """What Spark is asked to parse. Where it would round, there is room for more than the column holds."""
    match node:
        case Flag():
            return t.BooleanType()
        case Whole():
            return column_type(node)
        case Real():
            return t.DoubleType()
        case Exact(type=kind):
            whole = kind.precision - kind.scale
            return t.DecimalType(_MAX_DIGITS, max(kind.scale, min(_PLAIN_PLACES, _MAX_DIGITS - whole)))
        case Text():
            return t.StringType()
        case Document():
            return t.VariantType()
        case Record(fields=fields):
            return t.StructType([t.StructField(name, _parsed_type(child)) for name, child in fields])
        case Items(item=item):
            return t.ArrayType(_parsed_type(item))
        case Entries(value=value):
            return t.MapType(t.StringType(), _parsed_type(value))
        case Logical(plain=plain):
            return _parsed_type(plain)


def value_of(node: Node) -> Expression | None:
    """Makes the column of what was parsed; None where it is the same."""
    match node:
        case Real(single=True):
            return lambda parsed: parsed.cast("float")
        case Exact(type=kind) if _parsed_type(node) != kind:
            return lambda parsed: parsed.try_cast(kind)
        case Document(variant=False):
            return lambda parsed: f.when(parsed.isNotNull() & ~f.is_variant_null(parsed), f.to_json(parsed))
        case Document():
            return lambda parsed: f.when(parsed.isNotNull() & ~f.is_variant_null(parsed), parsed)
        case Record(fields=fields):
            return _record_value(fields)
        case Items(item=item):
            return _items_value(value_of(item))
        case Entries(value=child):
            return _entries_value(value_of(child))
        case Logical(plain=plain, conversion=conversion):
            return _after(value_of(plain), conversion.read)
    return None


def _after(first: Expression | None, then: Expression) -> Expression:
    """One after the other. What the second uses often is computed, and stands in the plan, only once."""
    return then if first is None else (lambda parsed: _bound(first(parsed), then))


def _bound(value: Column, use: Expression) -> Column:
    # Spark takes functions for lambdas, and nothing else that can be called.
    return f.transform(f.array(value), lambda bound: use(bound))[0]


def _record_value(fields: Sequence[tuple[str, Node]]) -> Expression | None:
    inner = [(name, value_of(child)) for name, child in fields]
    if all(child is None for _, child in inner):
        return None

    def value(parsed: Column) -> Column:
        columns = [(child or _same)(parsed[name]).alias(name) for name, child in inner]
        return f.when(parsed.isNotNull(), f.struct(*columns))

    return value


def _items_value(inner: Expression | None) -> Expression | None:
    return inner and (lambda parsed: f.transform(parsed, lambda item: inner(item)))


def _entries_value(inner: Expression | None) -> Expression | None:
    return inner and (lambda parsed: f.transform_values(parsed, lambda _, item: inner(item)))


def _same(column: Column) -> Column:
    return column


class JsonDocumentReader(Reader):
    """Reads documents of one shape. One that is no object is the only column, `column`."""

    def __init__(self, node: Node, column: str = "value") -> None:
        self._node = node
        self._column = None if isinstance(node, Record) else column
        kind = column_type(node)
        self.type = kind if isinstance(kind, t.StructType) else _single(column, kind)
        self._schema = _wrapper(_parsed_type(node))
        self._value = value_of(node)
        kinds = set(_kinds(node))
        self._has_decimals = Exact in kinds
        self._has_documents = Document in kinds
        self._has_numbers = not kinds.isdisjoint({Real, Exact, Document})
        self._fits = list(_each(node, _fits))
        self._texts = list(_each(node, _is_surely_text))
        self._tokens = list(_each(node, _is_token_exact))
        self._token_type = _token_type(node)
        self._closed = list(_closed(node))

    def raw(self, body: Column) -> Column:
        text = body.cast("string")
        wrapped = _wrapped(text)
        if self._has_decimals:
            wrapped = f.when(~self._inside(text).rlike(_HUGE_EXPONENT), wrapped)
        read = f.from_json(wrapped, self._schema, _OPTIONS)
        return f.struct(read.alias("read"), strict(text).alias("strict"))

    def value(self, raw: Column) -> Column:
        found = parsed(raw) if self._value is None else self._value(parsed(raw))
        return found if self._column is None else f.struct(found.alias(self._column))

    def field(self, raw: Column, *path: str) -> Column:
        node, found = self._node, parsed(raw)
        if self._column is not None:
            return super().field(raw, *path)
        for number, name in enumerate(path):
            if not isinstance(node, Record):
                value = (value_of(node) or _same)(found)
                return reduce(lambda inner, step: inner[step], path[number:], value)
            node, found = dict(node.fields)[name], found[name]
        return (value_of(node) or _same)(found)

    def is_exact(self, raw: Column, body: Column) -> Column:
        text, found = body.cast("string"), parsed(raw)
        sound = f.is_valid_utf8(text) & self._is_whole(raw) & _all(self._fits, found)
        sure = _has_whole_characters(text) & self._has_known_keys(raw, text)
        if self._tokens:
            written = _rarely(lambda: self._is_as_written(text))
            sure = sure & f.when(self._is_plain(raw, text), True).otherwise(written)
        if self._has_documents:
            doubles = _rarely(lambda: _are_doubles_exact(text))
            sure = sure & f.when(~self._has_long_numbers(text), True).otherwise(doubles)
        return f.coalesce(f.when(sound, sure), f.lit(False))

    def problem(self, raw: Column, body: Column) -> Column | None:
        text, found = body.cast("string"), parsed(raw)
        return (
            f.when(~f.is_valid_utf8(text), "is not UTF-8 text")
            .when(raw["strict"].isNull(), "is not one JSON document without repeated keys")
            .when(~f.coalesce(self._is_whole(raw), f.lit(False)), "does not have the types of its schema")
            .when(~_all(self._fits, found), _inexact(self._fits, found))
            .when(~_has_whole_characters(text), "has half of a surrogate pair in a text")
            .when(~self._has_known_keys(raw, text), "has a property that its schema does not allow")
            .otherwise(self._token_problem(text))
        )

    def _is_whole(self, raw: Column) -> Column:
        """Both parsers have read it. A null is a value, but no record."""
        whole = raw["strict"].isNotNull() & _is_parsed(raw["read"])
        return whole & parsed(raw).isNotNull() if self._column is None else whole

    def _is_plain(self, raw: Column, text: Column) -> Column:
        """Whether what was parsed can only have come from tokens of its own kind, of few digits."""
        plain = _all(self._texts, parsed(raw))
        # A decimal may be a text too, of any length.
        short = f.lit(False) if self._has_decimals else ~self._has_long_numbers(text)
        return plain & short if self._has_numbers else plain

    def _has_long_numbers(self, text: Column) -> Column:
        return self._inside(text).rlike(_LONG_NUMBER)

    def _inside(self, text: Column) -> Column:
        """The text such that every value in it comes after a colon, a comma or a bracket."""
        return text if self._column is None else f.concat(f.lit("["), text)

    def _is_as_written(self, text: Column) -> Column:
        return self._on_tokens(text, lambda read: _is_parsed(read) & _all(self._tokens, read["value"]))

    def _on_tokens(self, text: Column, ask: Expression) -> Column:
        """What `ask` says of the document as variants. It is parsed once."""
        assert self._token_type is not None
        if self._has_numbers:
            marked = f.regexp_replace(text, _NUMBER_TOKEN, rf'$1"{_MARK_ESCAPED}$2"')
            text = (
                marked if self._has_decimals else f.when(self._has_long_numbers(text), marked).otherwise(text)
            )
        return _bound(f.from_json(_wrapped(text), _wrapper(self._token_type), _OPTIONS), ask)

    def _has_known_keys(self, raw: Column, text: Column) -> Column:
        if not self._closed:
            return f.lit(True)
        looked_up = reduce(and_, (_is_closed(text, *closed) for closed in self._closed))
        as_many = _has_as_many_keys(text, self._node, parsed(raw))
        return f.when(as_many, True).otherwise(_rarely(lambda: looked_up))

    def _token_problem(self, text: Column) -> Column:
        digits = f.lit("has a number of more digits than a double holds")
        if not self._tokens:
            return digits
        named = self._on_tokens(text, lambda read: _inexact(self._tokens, read["value"]))
        return f.coalesce(named, digits)


def _rarely(ask: Callable[[], Column]) -> Column:
    """The answer as a lambda's: Spark does not put it into the code that it generates for all rows."""
    return f.exists(f.array(f.lit(1)), lambda _: ask())


def parsed(raw: Column) -> Column:
    """The value that Spark's parser has read."""
    return raw["read"]["value"]


def strict(text: Column) -> Column:
    """An array of the document; NULL if a strict parser does not accept it, or a key is there twice."""
    return f.try_parse_json(f.concat(f.lit("["), text, f.lit("]")))


def is_valid(text: Column) -> Column:
    """Whether a strict parser sees one value; keys may be there twice."""
    end = t.StructType([t.StructField("end", t.IntegerType()), t.StructField(_CORRUPT, t.StringType())])
    array = f.concat(f.lit('{"value":['), text, f.lit('],"end":1}'))
    read = (f.from_json(wrapped, end, _OPTIONS) for wrapped in (_wrapped(text), array))
    return reduce(and_, map(_is_parsed, read))


def _wrapped(text: Column) -> Column:
    return f.concat(f.lit('{"value":'), text, f.lit(',"end":1}'))


def _wrapper(kind: t.DataType) -> t.StructType:
    return t.StructType(
        [
            t.StructField("value", kind),
            t.StructField("end", t.IntegerType()),
            t.StructField(_CORRUPT, t.StringType()),
        ]
    )


def _is_parsed(read: Column) -> Column:
    return read.isNotNull() & read[_CORRUPT].isNull() & f.coalesce(read["end"] == 1, f.lit(False))


def _single(column: str, kind: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(column, kind)])


def _has_whole_characters(text: Column) -> Column:
    """Whether no escape is half of a surrogate pair: Java would make a question mark of it."""
    # An escaped backslash is no beginning of an escape; what stands for it must not join its neighbours.
    escapes = f.replace(text, f.lit("\\\\"), f.lit(" "))
    halves = f.regexp_replace(escapes, _SURROGATE_PAIR, " ").rlike(_SURROGATE)
    return f.when(text.contains("\\ud") | text.contains("\\uD"), ~halves).otherwise(True)


def _has_as_many_keys(text: Column, node: Node, found: Column) -> Column:
    """Whether the text has no more keys than were decoded. What only looks like a key counts as one."""
    keys, decoded = _count(text, '":'), _keys(node, found)
    nulls = _count(text, '":null') + _count(text, '": null')
    # A key that is not followed by its colon would not be counted.
    spaced = reduce(or_, (text.contains(f"{space}:") for space in " \t\n\r"))
    return f.coalesce(~spaced & ((keys == decoded) | (keys - nulls == decoded)), f.lit(False))


def _count(text: Column, part: str) -> Column:
    taken = f.octet_length(text) - f.octet_length(f.replace(text, f.lit(part), f.lit("")))
    return f.call_function("div", taken, f.lit(len(part)))


def _keys(node: Node, found: Column) -> Column:
    """How many keys a value was decoded from, those with a null aside. NULL where that is not known."""
    none = f.lit(0)
    match node:
        case Logical(plain=plain):
            return _keys(plain, found)
        case Document() | Entries():
            return f.when(found.isNull(), none)
        case Items(item=item) if not {Record, Document, Entries}.isdisjoint(_kinds(item)):
            sum_ = f.aggregate(found, none, lambda so_far, one: so_far + _keys(item, one))
            return f.when(found.isNull(), none).otherwise(sum_)
        case Record(fields=fields):
            members = (
                f.when(found[name].isNull(), none).otherwise(_keys(child, found[name]) + 1)
                for name, child in fields
            )
            return reduce(add, members)
    return none


def _kinds(node: Node) -> Iterator[type]:
    yield type(node)
    match node:
        case Record(fields=fields):
            for _, child in fields:
                yield from _kinds(child)
        case Items(item=child) | Entries(value=child) | Logical(plain=child):
            yield from _kinds(child)


def _each(node: Node, leaf: Callable[[Node], Expression | None], path: str = "") -> Iterator[Check]:
    """What `leaf` asks of each part, as asked of the whole."""
    match node:
        case Record(fields=fields):
            for name, child in fields:
                for check in _each(child, leaf, f"{path}.{name}" if path else name):
                    yield Check(check.path, _in_member(name, check.get), check.holds)
        case Items(item=item):
            for check in _each(item, leaf, f"{path}[]"):
                yield Check(check.path, _same, _in_items(check))
        case Entries(value=child):
            for check in _each(child, leaf, f"{path}{{}}"):
                yield Check(check.path, f.map_values, _in_items(check))
        case Logical(plain=plain):
            yield from _each(plain, leaf, path)
    holds = leaf(node)
    if holds is not None:
        yield Check(path, _same, holds)


def _in_member(name: str, get: Expression) -> Expression:
    return lambda found: get(found[name])


def _in_items(check: Check) -> Expression:
    return lambda found: f.coalesce(f.forall(found, lambda item: check.holds(check.get(item))), f.lit(True))


def _all(checks: Sequence[Check], found: Column) -> Column:
    """All at once where the same is asked of several values: plans grow with every expression in them."""
    asked: dict[Expression, list[Column]] = {}
    for check in checks:
        asked.setdefault(check.holds, []).append(check.get(found))
    answers = (
        holds(values[0]) if len(values) == 1 else f.forall(f.array(*values), holds)
        for holds, values in asked.items()
    )
    return reduce(and_, answers, f.lit(True))


def _inexact(checks: Sequence[Check], found: Column) -> Column:
    """Names the places where a check does not hold; NULL if all do."""
    if not checks:
        return f.lit(None).cast("string")
    asked: dict[Expression, list[Column]] = {}
    for check in checks:
        place = f.struct(f.lit(check.path or "the value").alias("path"), check.get(found).alias("value"))
        asked.setdefault(check.holds, []).append(place)
    failing = (_failing(f.array(*places), holds) for holds, places in asked.items())
    said = f.lit("has what its column does not hold as it is written: ")
    paths = f.array_join(f.concat(*failing), ", ")
    return _bound(paths, lambda paths: f.when(paths != "", f.concat(said, paths)))


def _failing(places: Column, holds: Expression) -> Column:
    wrong = f.filter(places, lambda place: ~holds(place["value"]))
    return f.transform(wrong, lambda place: place["path"])


@cache
def _fits(node: Node) -> Expression | None:
    """Asks a parsed value whether the column holds it."""
    match node:
        case Whole(bits=bits) if bits < 32:
            return lambda found: found.isNull() | found.between(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        case Real(single=True):
            return _fits_single
        case Exact(type=kind) if value_of(node) is not None:
            return lambda found: found.isNull() | f.coalesce(found.try_cast(kind) == found, f.lit(False))
        case Logical(plain=plain, conversion=conversion):
            return _after(value_of(plain), conversion.is_exact)
    return None


def _fits_single(found: Column) -> Column:
    """A float is written with its own digits, or with those of the double that it is."""
    single = found.cast("float")
    printed = single.cast("string").try_cast("double")
    return found.isNull() | (single.cast("double") == found) | f.coalesce(printed == found, f.lit(False))


def _is_surely_text(node: Node) -> Expression | None:
    """Asks a parsed text whether it can have been no other token."""
    return _looks_like_no_token if isinstance(node, Text) else None


def _looks_like_no_token(found: Column) -> Column:
    number = (found >= "-") & (found < ":") & found.rlike(_NUMBER_TEXT)
    word = (found == "true") | (found == "false")
    return found.isNull() | ~(number | word | found.startswith("{") | found.startswith("["))


def _token_type(node: Node) -> t.DataType | None:
    """The parts whose tokens must be looked at; None if there is none."""
    match node:
        case Text() | Real() | Exact():
            return t.VariantType()
        case Logical(plain=plain):
            return _token_type(plain)
        case Record(fields=fields):
            found = [(name, _token_type(child)) for name, child in fields]
            inner = [t.StructField(name, kind) for name, kind in found if kind is not None]
            return t.StructType(inner) if inner else None
        case Items(item=item):
            kind = _token_type(item)
            return None if kind is None else t.ArrayType(kind)
        case Entries(value=value):
            kind = _token_type(value)
            return None if kind is None else t.MapType(t.StringType(), kind)
    return None


@cache
def _is_token_exact(node: Node) -> Expression | None:
    """Asks the token of a value whether it is what the column says."""
    match node:
        case Text():
            return _token(lambda text: ~text.startswith(_MARK), others=False)
        case Real():
            return _token(lambda text: text.startswith(_MARK) & _is_double(_unmarked(text)), others=True)
        case Exact(type=kind):
            return _token(lambda text: _is_decimal(_unmarked(text), kind), others=False)
    return None


def _token(holds: Expression, others: bool) -> Expression:
    """`holds` is asked of a text; `others` is what is said of numbers, which are short if they are none."""

    def check(token: Column) -> Column:
        text = f.try_variant_get(token, "$", "string")
        is_text = f.schema_of_variant(token) == "STRING"
        found = f.when(is_text, f.coalesce(_bound(text, holds), f.lit(False))).otherwise(others)
        return token.isNull() | f.is_variant_null(token) | found

    return check


def _unmarked(text: Column) -> Column:
    return f.when(text.startswith(_MARK), f.substr(text, f.lit(len(_MARK) + 1))).otherwise(text)


def _is_double(number: Column) -> Column:
    """Whether the nearest double prints as it.

    Java 17 prints some doubles with a digit too many; without it, it is the same number.
    """
    double = number.try_cast("double")
    both = f.struct(
        double.alias("double"),
        _digits(number).alias("digits"),
        _digits(double.cast("string")).alias("printed"),
    )
    return _bound(both, _has_digits_of_double)


def _has_digits_of_double(both: Column) -> Column:
    digits, printed = both["digits"], both["printed"]
    short = (f.length(digits) <= _SURE_DIGITS) & f.abs(both["double"]).between(1e-280, 1e280)
    apart = f.abs(_eighteen(printed) - _eighteen(digits)).cast("double")
    last = f.pow(f.lit(10.0), 18 - f.length(digits))
    rounded = (f.length(printed) > f.length(digits)) & (apart < last)
    return (digits == "") | f.coalesce(short | (digits == printed) | rounded, f.lit(False))


def _is_decimal(number: Column, kind: t.DecimalType) -> Column:
    same = _digits(number) == _digits(number.try_cast(kind).cast("string"))
    return number.rlike(_DECIMAL_TEXT) & f.coalesce(same, f.lit(False))


def _digits(number: Column) -> Column:
    """The digits that count. Of two numbers as near as a rounding, those with the same ones are the same."""
    digits = f.regexp_replace(number, "[eE].*$|[-+.]", "")
    return f.regexp_replace(digits, "^0++|0++$", "")


def _eighteen(digits: Column) -> Column:
    return f.rpad(digits, 18, "0").try_cast("decimal(20,0)")


def _are_doubles_exact(text: Column) -> Column:
    """A variant keeps a number as it is written, but not one with an exponent or more than 38 digits."""
    numbers = f.regexp_replace(text, _STRING, '""')
    unsure = f.regexp_extract_all(numbers, f.lit(_UNSURE_NUMBER), f.lit(0))
    return f.forall(unsure, lambda number: _is_kept_in_variant(number) | _is_double(number))


def _is_kept_in_variant(number: Column) -> Column:
    places = f.length(f.regexp_extract(number, r"\.([0-9]*+)", 1))
    digits = f.length(f.regexp_replace(f.regexp_replace(number, "[-.]", ""), "^0++", ""))
    return ~number.rlike("[eE]") & (places <= _MAX_DIGITS) & (digits <= _MAX_DIGITS)


def _closed(node: Node, steps: tuple[Step, ...] = ()) -> Iterator[tuple[tuple[Step, ...], list[str]]]:
    """The objects that may have no other keys: where they are, and their keys."""
    match node:
        case Record(fields=fields, closed=closed):
            if closed:
                yield steps, [name for name, _ in fields]
            for name, child in fields:
                yield from _closed(child, (*steps, Step("key", name)))
        case Items(item=item):
            yield from _closed(item, (*steps, Step("items")))
        case Entries(value=value):
            yield from _closed(value, (*steps, Step("values")))
        case Logical(plain=plain):
            yield from _closed(plain, steps)


def _is_closed(text: Column, steps: Sequence[Step], keys: Sequence[str]) -> Column:
    """Whether there is nothing under another key. A null is nothing."""
    read = f.from_json(_wrapped(text), _wrapper(_keys_type(steps)), _OPTIONS)
    known = f.array(*map(f.lit, keys)).cast("array<string>")
    return f.coalesce(_has_only(read["value"], steps, known), f.lit(True))


def _keys_type(steps: Sequence[Step]) -> t.DataType:
    if not steps:
        return t.MapType(t.StringType(), t.VariantType())
    inner = _keys_type(steps[1:])
    match steps[0].into:
        case "key":
            return _single(steps[0].key, inner)
        case "items":
            return t.ArrayType(inner)
        case "values":
            return t.MapType(t.StringType(), inner)


def _has_only(found: Column, steps: Sequence[Step], known: Column) -> Column:
    if not steps:
        values = f.map_filter(found, lambda _, value: ~f.is_variant_null(value))
        return f.array_size(f.array_except(f.map_keys(values), known)) == 0
    rest = steps[1:]
    match steps[0].into:
        case "key":
            return _has_only(found[steps[0].key], rest, known)
        case "items":
            return f.forall(found, lambda item: f.coalesce(_has_only(item, rest, known), f.lit(True)))
        case "values":
            values = f.map_values(found)
            return f.forall(values, lambda item: f.coalesce(_has_only(item, rest, known), f.lit(True)))
