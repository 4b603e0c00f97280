"""JSON by its schema: exact to the last digit, or not exact."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.decode.json_schema import JsonSchemaReader
from tests.integration.decode.json_reading import Read, read

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NUMBER = {"type": "number"}
DEEP = 10_000


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def closed(**properties: Any) -> dict[str, Any]:
    return {**obj(**properties), "additionalProperties": False}


def reader(
    schema: Any, references: tuple[tuple[str, Any], ...] = (), column: str = "value"
) -> JsonSchemaReader:
    texts = [(name, json.dumps(reference)) for name, reference in references]
    return JsonSchemaReader(json.dumps(schema), texts, column)


def connect(kind: str, connect_type: str, title: str, **parameters: str) -> dict[str, Any]:
    """As Confluent's JSON Schema converter writes the schemas of Kafka Connect."""
    said = {"type": kind, "connect.type": connect_type, "title": title}
    return {**said, "connect.parameters": parameters} if parameters else said


def text_of(form: str) -> dict[str, Any]:
    return {"type": "string", "format": form}


def many(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


def keyed(value: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


BASE64 = {"type": "string", "contentEncoding": "base64"}
FLOAT = {"type": "number", "connect.type": "float32"}
INT8 = {"type": "integer", "connect.type": "int8"}
INT16 = {"type": "integer", "connect.type": "int16"}
INT32 = {"type": "integer", "connect.type": "int32"}
DECIMAL = "org.apache.kafka.connect.data.Decimal"
CLOSED = closed(a=TEXT, c=TEXT)
TEN_DIGITS = {"scale": "2", "connect.decimal.precision": "10"}
LONG = "1" * 29
DIGITS_38 = "0.12345678901234567890123456789012345678"


# A schema, a text of its value, and what the column holds; … for what must not be exact.
VALUES: list[tuple[str, Any, str, Any]] = [
    ("text", TEXT, '"x"', "x"),
    ("empty text", TEXT, '""', ""),
    ("text that is a number", TEXT, '"5"', "5"),
    ("text that is a word", TEXT, '"true"', "true"),
    ("text that is an object", TEXT, '"{}"', "{}"),
    ("text with escapes", TEXT, r'"a\n\"\\\/\u00e9\ud83d\ude00"', 'a\n"\\/é😀'),
    ("text with a zero", TEXT, r'"\u0000"', "\0"),
    ("text of a backslash and letters", TEXT, r'"\\ud800"', r"\ud800"),
    ("number as text", TEXT, "5", ...),
    ("fraction as text", TEXT, "1.10", ...),
    ("word as text", TEXT, "true", ...),
    ("object as text", TEXT, "{}", ...),
    ("array as text", TEXT, "[1]", ...),
    ("null", TEXT, "null", None),
    ("high half of a pair", TEXT, r'"\ud800"', ...),
    ("low half of a pair", TEXT, r'"\udc00"', ...),
    ("halves apart", TEXT, r'"\ud83d\\\ude00"', ...),
    ("uuid", text_of("uuid"), '"1e5b0b6e-0000-4000"', "1e5b0b6e-0000-4000"),
    ("time", text_of("time"), '"10:00:00Z"', "10:00:00Z"),
    ("greatest long", WHOLE, "9223372036854775807", 2**63 - 1),
    ("least long", WHOLE, "-9223372036854775808", -(2**63)),
    ("past long", WHOLE, "9223372036854775808", ...),
    ("far past long", WHOLE, "1" * 999, ...),
    ("minus zero", WHOLE, "-0", 0),
    ("whole with a point", WHOLE, "1.0", ...),
    ("whole with an exponent", WHOLE, "1e2", ...),
    ("whole as text", WHOLE, '"1"', ...),
    ("int8", INT8, "-128", -128),
    ("past int8", INT8, "128", ...),
    ("past int8, a byte to Java", INT8, "255", ...),
    ("int16", INT16, "32767", 32767),
    ("past int16", INT16, "32768", ...),
    ("int32", {"type": "integer", "connect.type": "int32"}, "2147483647", 2**31 - 1),
    ("past int32", {"type": "integer", "connect.type": "int32"}, "2147483648", ...),
    ("tenth", NUMBER, "0.1", 0.1),
    ("number that is whole", NUMBER, "7", 7.0),
    ("minus zero point zero", NUMBER, "-0.0", -0.0),
    ("seventeen digits", NUMBER, "0.30000000000000004", 0.30000000000000004),
    ("two to 53", NUMBER, "9007199254740992", 2.0**53),
    ("two to 53, and one", NUMBER, "9007199254740993", ...),
    ("a digit too many", NUMBER, "0.12345678901234567", ...),
    ("as many digits as it has", NUMBER, "0.1000000000000000055511151231257827", ...),
    ("digits behind an exponent", NUMBER, "1.00000000000000000000001e5", ...),
    ("exponent", NUMBER, "1e22", 1e22),
    ("exponent and seventeen digits", NUMBER, "1.2345678901234568e-07", 1.2345678901234568e-07),
    ("what Java prints too long", NUMBER, "4.279903861295452e+18", 4.279903861295452e18),
    ("greatest double", NUMBER, "1.7976931348623157e308", 1.7976931348623157e308),
    ("least double", NUMBER, "4.9e-324", 4.9e-324),
    ("past double", NUMBER, "1e400", ...),
    ("under double", NUMBER, "1e-400", ...),
    ("not a number", NUMBER, "NaN", ...),
    ("infinity", NUMBER, "-Infinity", ...),
    ("not a number, as text", NUMBER, '"NaN"', ...),
    ("number as text for a number", NUMBER, '"1.5"', ...),
    ("float", FLOAT, "0.1", 0.10000000149011612),
    ("float as its double", FLOAT, "0.10000000149011612", 0.10000000149011612),
    ("more than a float", FLOAT, "0.123456789", ...),
    ("past float", FLOAT, "1e39", ...),
    ("true", {"type": "boolean"}, "true", True),
    ("true as text", {"type": "boolean"}, '"true"', ...),
    ("true as number", {"type": "boolean"}, "1", ...),
    ("leap day", text_of("date"), '"2024-02-29"', date(2024, 2, 29)),
    ("no such day", text_of("date"), '"2023-02-29"', ...),
    ("short date", text_of("date"), '"2023-2-1"', ...),
    ("date and more", text_of("date"), '"2023-02-01T00:00:00Z"', ...),
    (
        "instant",
        text_of("date-time"),
        '"2024-01-01T10:00:00.123456+02:00"',
        datetime(2024, 1, 1, 8, 0, 0, 123456, UTC),
    ),
    (
        "instant with zeros",
        text_of("date-time"),
        '"1960-01-01t10:00:00.120000000z"',
        datetime(1960, 1, 1, 10, 0, 0, 120000, UTC),
    ),
    ("instant without zone", text_of("date-time"), '"2024-01-01T10:00:00"', ...),
    ("nanoseconds", text_of("date-time"), '"2024-01-01T10:00:00.1234567Z"', ...),
    ("leap second", text_of("date-time"), '"2016-12-31T23:59:60Z"', ...),
    ("bytes", BASE64, '"AQI="', b"\1\2"),
    ("bytes without padding", BASE64, '"AQI"', ...),
    ("bytes with a blank", BASE64, '"AQ I="', ...),
    ("no bytes", {"type": "string", "connect.type": "bytes"}, '""', b""),
    ("enum", {"enum": ["a", "b"]}, '"a"', "a"),
    ("constant", {"const": 5}, "5", 5),
    ("optional by list", {"type": ["null", "string"]}, "null", None),
    ("optional by union", {"oneOf": [{"type": "null"}, WHOLE]}, "3", 3),
    ("branches alike", {"anyOf": [{"type": "string", "maxLength": 1}, TEXT]}, '"xx"', "xx"),
    ("union, a text", {"type": ["string", "integer"]}, '"5"', '"5"'),
    ("union, a number", {"type": ["string", "integer"]}, "5", "5"),
    ("union, null", {"type": ["string", "integer", "null"]}, "null", None),
    ("any value", {}, '{"b":[1,2.50,null],"a":"x"}', '{"a":"x","b":[1,2.5,null]}'),
    ("any number of 38 digits", {}, DIGITS_38, DIGITS_38),
    ("any number of 39 digits", {}, DIGITS_38 + "9", ...),
    ("any number with an exponent", {}, "1.5e-7", "1.5E-7"),
    ("any number with too many digits and an exponent", {}, "1.2345678901234567890e-7", ...),
    ("texts", many(TEXT), '["a",null,"5"]', ["a", None, "5"]),
    ("a number among texts", many(TEXT), '["a",5]', ...),
    ("numbers", many(NUMBER), "[1,2.5]", [1.0, 2.5]),
    ("a long one among numbers", many(NUMBER), "[1,9007199254740993]", ...),
    ("an object for an array", many(obj(a=TEXT)), '{"a":"x"}', ...),
    (
        "records",
        many(obj(a=TEXT, b=NUMBER)),
        '[{"a":"1","b":2},null,{}]',
        [{"a": "1", "b": 2.0}, None, {"a": None, "b": None}],
    ),
    ("a wrong record", many(obj(a=TEXT)), '[{"a":"x"},{"a":1}]', ...),
    ("map", keyed(NUMBER), '{"x.y":1,"":2.5}', [("x.y", 1.0), ("", 2.5)]),
    ("map with a key twice", keyed(NUMBER), '{"x":1,"x":2}', ...),
    ("map of texts with a number", keyed(TEXT), '{"x":"1","y":1}', ...),
    ("unknown property", obj(a=TEXT), '{"a":"x","b":{"c":[1]}}', {"a": "x"}),
    ("unknown property of a closed object", CLOSED, '{"a":"x","b":"y"}', ...),
    ("null of a closed object", CLOSED, '{"a":"x","c": null}', {"a": "x", "c": None}),
    ("key of a closed object before a blank", CLOSED, '{"a":"x","b" :1}', ...),
    ("a colon in a text of a closed object", CLOSED, r'{"a":":\":x"}', {"a": ':":x', "c": None}),
    ("closed objects in an array", many(CLOSED), '[{"a":"x"},{"b":1}]', ...),
    ("closed objects in a map", keyed(CLOSED), '{"x":{"a":"x"}}', [("x", {"a": "x", "c": None})]),
    ("opened in a map", keyed(CLOSED), '{"x":{"b":"x"}}', ...),
    ("key twice", obj(a=TEXT), '{"a":"x","a":"y"}', ...),
    ("key twice, first null", obj(a=TEXT), '{"a":null,"a":"y"}', ...),
    ("key twice, once escaped", obj(a=TEXT), r'{"a":"x","\u0061":"y"}', ...),
    ("unknown key twice", obj(a=TEXT), '{"b":1,"b":2}', ...),
    ("key escaped", obj(a=TEXT), r'{"\u0061":"y"}', {"a": "y"}),
    ("key of other case", obj(a=TEXT), '{"A":"y"}', {"a": None}),
    (
        "Connect's date",
        connect("integer", "int32", "org.apache.kafka.connect.data.Date"),
        "19782",
        date(2024, 2, 29),
    ),
    (
        "Connect's timestamp",
        connect("integer", "int64", "org.apache.kafka.connect.data.Timestamp"),
        "-1",
        datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
    ),
    (
        "Debezium's timestamp",
        connect("integer", "int64", "io.debezium.time.MicroTimestamp"),
        "1",
        datetime(1970, 1, 1, 0, 0, 0, 1),
    ),
    (
        "Debezium's instant",
        {"type": "string", "title": "io.debezium.time.ZonedTimestamp"},
        '"2024-01-01T00:00:00Z"',
        datetime(2024, 1, 1, tzinfo=UTC),
    ),
    ("decimal in bytes", connect("string", "bytes", DECIMAL, scale="2"), '"BNI="', Decimal("12.34")),
    ("decimal as number", connect("number", "bytes", DECIMAL, **TEN_DIGITS), "12.340", Decimal("12.34")),
    (
        "many digits",
        connect("number", "bytes", DECIMAL, scale="9"),
        f"{LONG}.000000001",
        Decimal(f"{LONG}.000000001"),
    ),
    ("a digit too many", connect("number", "bytes", DECIMAL, **TEN_DIGITS), "12.345", ...),
    ("ten digits", connect("number", "bytes", DECIMAL, **TEN_DIGITS), "123456789", ...),
    (
        "Debezium's number of any scale",
        {
            **obj(scale=INT32, value={"type": "string", "connect.type": "bytes"}),
            "title": "io.debezium.data.VariableScaleDecimal",
        },
        '{"scale":3,"value":"BNI="}',
        Decimal("1.234"),
    ),
]


def family(schema: Any) -> str:
    """Some types change how all of a record is looked at. Each such family has a reader of its own."""
    text = json.dumps(schema)
    if DECIMAL in text:
        return "decimals"
    if "additionalProperties" in text:
        return "closed" if '"additionalProperties": false' in text else "maps"
    if schema == {} or '["string", ' in text:
        return "documents"
    return str(schema.get("type", "no type")) if "title" not in schema else "logical types"


@pytest.mark.parametrize("name", sorted({family(schema) for _, schema, _, _ in VALUES}))
def test_values(spark: SparkSession, name: str) -> None:
    """Each value is a field of its own, in a document of its own."""
    cases = [case for case in VALUES if family(case[1]) == name]
    made = reader(obj(**{field: schema for field, schema, _, _ in cases}))
    found = read(spark, made, [f'{{"{field}":{text}}}'.encode() for field, _, text, _ in cases])
    for (field, _, _, expected), one in zip(cases, found, strict=True):
        if expected is ...:
            assert not one.exact, field
            assert one.problem, field
        else:
            assert one.exact, (field, one.problem)
            assert one.value is not None
            assert one.value[field] == expected, field
            assert repr(one.value[field]) == repr(expected) or not isinstance(expected, float), field
            assert all(value is None for other, value in one.value.items() if other != field)


# What is no object of any schema, each with a part of what is said of it.
POISON: list[tuple[bytes, str]] = [
    (b"", "types of its schema"),
    (b"  ", "types of its schema"),
    (b"null", "types of its schema"),
    (b"5", "types of its schema"),
    (b'"a"', "types of its schema"),
    (b"[]", "types of its schema"),
    (b'[{"a":"x"}]', "types of its schema"),
    (b"{}x", "one JSON document"),
    (b"{}{}", "one JSON document"),
    (b"{},{}", "types of its schema"),
    (b"{}]", "types of its schema"),
    (b"{}}", "one JSON document"),
    (b'{},"end":1}', "one JSON document"),
    (b'{},"end":1}]', "one JSON document"),
    (b'{}],"end":1}', "types of its schema"),
    (b'{},"a":"x"', "one JSON document"),
    (b'{"a":"x"', "one JSON document"),
    (b'{"a":"x",}', "one JSON document"),
    (b'{"a" "x"}', "one JSON document"),
    (b"{'a':'x'}", "one JSON document"),
    (b'{a:"x"}', "one JSON document"),
    (b"{/* a */}", "one JSON document"),
    (b"{}// a", "one JSON document"),
    (b'{"n":01}', "one JSON document"),
    (b'{"n":+1}', "one JSON document"),
    (b'{"n":.5}', "one JSON document"),
    (b'{"n":1.}', "one JSON document"),
    (b'{"n":0x1}', "one JSON document"),
    (b'{"a":"x\ny"}', "one JSON document"),
    (b'{"a":"\\q"}', "one JSON document"),
    (b'{"a":"\\u12"}', "one JSON document"),
    (b'{"a":True}', "one JSON document"),
    (b'{"a":"\xff"}', "UTF-8"),
    (b'{"a":"\xed\xa0\x80"}', "UTF-8"),
    (b'{"a":"\xc0\xaf"}', "UTF-8"),
    (b"\xfe\xff\x00{\x00}", "UTF-8"),
    (b"\xef\xbb\xbf{}", "one JSON document"),
    (b"\x00{}", "one JSON document"),
    (b"{}\x00", "one JSON document"),
    (b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}", "one JSON document"),
    (b"[" * DEEP, "one JSON document"),
    (b'{"x":' * DEEP + b"1" + b"}" * DEEP, "one JSON document"),
    (b'{"x":' * DEEP, "one JSON document"),
    (b'{"n":' + b"1" * 2000 + b"}", "one JSON document"),
    (b'{"d":1e-999999999}', "types of its schema"),
    (b'{"c":1e999999999}', "types of its schema"),
    (b'{"c":1e-400000000}', "types of its schema"),
    (b'{"c":"1e-400000000"}', "types of its schema"),
]

EVERYTHING = obj(
    a=TEXT,
    n=WHOLE,
    d=NUMBER,
    c=connect("number", "bytes", DECIMAL, scale="2"),
    u={},
    m=keyed(TEXT),
    r=many(CLOSED),
)


def test_poison_is_never_exact_and_ends_no_job(spark: SparkSession) -> None:
    bodies = [body for body, _ in POISON]
    found = read(spark, reader(EVERYTHING), [*bodies, None, b'{"a":"x"}'])
    for (body, said), one in zip(POISON, found, strict=False):
        assert not one.exact, body[:40]
        assert said in (one.problem or ""), (body[:40], one.problem)
    assert [one.exact for one in found[-2:]] == [False, True]


def test_the_problem_names_the_fields(spark: SparkSession) -> None:
    schema = obj(a=TEXT, d=NUMBER, r=many(obj(x=TEXT)), day=text_of("date"))
    bodies = [b'{"a":5,"d":0.1,"r":[{"x":1}]}', b'{"d":9007199254740993}', b'{"day":"x"}', b'{"a":"\\ud800"}']
    problems = [one.problem for one in read(spark, reader(schema), bodies)]
    assert problems == [
        "has what its column does not hold as it is written: a, r[].x",
        "has what its column does not hold as it is written: d",
        "has what its column does not hold as it is written: day",
        "has half of a surrogate pair in a text",
    ]


NAMES = [
    "a.b",
    "a b",
    "a`b",
    "ä\u00df",
    "日本",
    "a'b",
    'a"b',
    "a\\b",
    "$x",
    "a[0]",
    "a{}",
    "value",
    "end",
    " ",
]


def test_any_name(spark: SparkSession) -> None:
    schema = obj(**{name: obj(**{name: TEXT, "n": NUMBER}) for name in NAMES})
    good = {name: {name: f"{index}", "n": 0.1} for index, name in enumerate(NAMES)}
    wrong = {name: {name: 5, "n": 0.1} for name in NAMES}
    texts = [json.dumps(good), json.dumps(good, ensure_ascii=False), json.dumps(wrong)]
    bodies = [text.encode() for text in texts]
    found = read(spark, reader(schema), bodies)
    assert found[0] == found[1] == Read(True, good, None)
    assert not found[2].exact


def test_references(spark: SparkSession) -> None:
    schema = {
        "$id": "https://shop.example/order.json",
        "title": "Order",
        "type": "object",
        "definitions": {"name": {"$anchor": "name", "type": "string"}, "a/b": WHOLE},
        "properties": {
            "by": {"$ref": "#/definitions/name"},
            "anchored": {"$ref": "#name"},
            "pointed": {"$ref": "#/definitions/a~1b"},
            "to": {"$ref": "address.json"},
            "tag": {"$ref": "tags.json#/$defs/tag"},
            "both": {"allOf": [{"$ref": "address.json"}, obj(floor=WHOLE)]},
        },
    }
    address = {**obj(city={"$ref": "#/$defs/city"}), "$defs": {"city": TEXT}}
    tags = {"$id": "https://shop.example/tags.json", "$defs": {"tag": text_of("date")}}
    made = reader(schema, (("https://shop.example/address.json", address), ("tags", tags)))
    assert made.record_name == "Order"
    text = b'{"by":"5","anchored":"x","pointed":1,"to":{"city":"B"},"tag":"2024-01-01",'
    [found] = read(spark, made, [text + b'"both":{"city":"C","floor":2}}'])
    assert found.value == {
        "by": "5",
        "anchored": "x",
        "pointed": 1,
        "to": {"city": "B"},
        "tag": date(2024, 1, 1),
        "both": {"city": "C", "floor": 2},
    }


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        (TEXT, '"5"', "5"),
        (TEXT, "5", ...),
        (NUMBER, "9007199254740993", ...),
        (NUMBER, " 0.5 ", 0.5),
        (WHOLE, "7 8", ...),
        (WHOLE, "null", None),
        (many(WHOLE), "[1,2]", [1, 2]),
        (keyed(WHOLE), '{"a":1}', [("a", 1)]),
        (True, "[1,{}]", "[1,{}]"),
        (True, "1,2", ...),
    ],
)
def test_a_document_that_is_no_object_is_one_column(
    spark: SparkSession, schema: Any, text: str, expected: Any
) -> None:
    [found] = read(spark, reader(schema, column="key"), [text.encode()])
    assert found.exact is (expected is not ...), found
    if expected is not ...:
        assert found.value == {"key": expected}


def test_messages_of_many_megabytes(spark: SparkSession) -> None:
    long_text = "\\n" * 5_000_000 + "x"
    numbers = ",".join(["0.30000000000000004"] * 100_000)
    schema = obj(a=TEXT, d=many(NUMBER))
    bodies = [f'{{"a":"{long_text}"}}'.encode(), f'{{"d":[{numbers}]}}'.encode()]
    found = read(spark, reader(schema), bodies)
    assert [one.exact for one in found] == [True, True]
    assert found[0].value == {"a": "\n" * 5_000_000 + "x", "d": None}
    assert found[1].value == {"a": None, "d": [0.1 + 0.2] * 100_000}
