"""Every Avro type at its edges, and every way in which bytes can be wrong, in real Spark jobs."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pyspark.sql import SparkSession

from tests.integration.decode.avro_reading import encoded, evaluate, read, read_all, rows
from tests.support.avro import record

INT_MIN, INT_MAX, LONG_MIN, LONG_MAX = -(2**31), 2**31 - 1, -(2**63), 2**63 - 1
NANOS = 1_700_000_000_123_456_789


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def fixed(size: int, **more: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": f"F{size}", "size": size, **more}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return logical("bytes", "decimal", precision=precision, scale=scale)


def varint(number: int) -> bytes:
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    rest &= 2**64 - 1
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


NUMBER = 10**38 - 1
# A type, the values that are written, and those that are read where they differ.
EDGES: list[tuple[Any, list[Any], list[Any] | None]] = [
    ("boolean", [True, False], None),
    ("int", [INT_MIN, -1, 0, 1, INT_MAX], None),
    ("long", [LONG_MIN, -1, 0, 1, LONG_MAX], None),
    ("float", [0.0, 1.5, float("inf"), float("-inf"), 1.401298464324817e-45, 3.4028234663852886e38], None),
    ("double", [0.0, 5e-324, 1.7976931348623157e308, float("-inf")], None),
    ("bytes", [b"", b"\x00", bytes(range(256))], None),
    ("string", ["", "snö ☃ \x00 '\"`", "\U0001f600", "x" * 10_000], None),
    (logical("string", "uuid"), ["6ba7b810-9dad-11d1-80b4-00c04fd430c8"], None),
    (
        fixed(16, logicalType="uuid"),
        [UUID(int=0).bytes, UUID(int=2**128 - 1).bytes, UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8").bytes],
        [
            "00000000-0000-0000-0000-000000000000",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ],
    ),
    (fixed(1), [b"\x00", b"\xff"], None),
    ({"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}, ["A", "B", "C"], None),
    (
        logical("int", "date"),
        [date(1, 1, 1), date(1582, 10, 10), date(1969, 12, 31), date(9999, 12, 31)],
        None,
    ),
    (
        logical("long", "timestamp-millis"),
        [utc(1, 1, 1), utc(1969, 12, 31, 23, 59, 59, 999_000), utc(9999, 12, 31, 23, 59, 59, 999_000)],
        None,
    ),
    (
        logical("long", "timestamp-micros"),
        [utc(1, 1, 1), utc(1969, 12, 31, 23, 59, 59, 999_999), utc(9999, 12, 31, 23, 59, 59, 999_999)],
        None,
    ),
    (
        logical("long", "local-timestamp-millis"),
        [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999_000), datetime(9999, 12, 31)],
        None,
    ),
    (
        logical("long", "local-timestamp-micros"),
        [datetime(1, 1, 1), datetime(2024, 3, 31, 2, 30), datetime(9999, 12, 31, 23, 59, 59, 999_999)],
        None,
    ),
    (logical("long", "timestamp-nanos"), [NANOS, -NANOS, LONG_MAX], None),
    (logical("long", "local-timestamp-nanos"), [NANOS, LONG_MIN], None),
    (logical("int", "time-millis"), [0, 86_399_999, INT_MIN], [0, 86_399_999_000, INT_MIN * 1000]),
    (logical("long", "time-micros"), [0, 86_399_999_999, LONG_MIN], None),
    (decimal(1, 0), [Decimal(9), Decimal(-9), Decimal(0)], None),
    (decimal(10, 2), [Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.00")], None),
    (decimal(18, 18), [Decimal(10**18 - 1).scaleb(-18), Decimal(1 - 10**18).scaleb(-18)], None),
    (decimal(19, 4), [Decimal(10**19 - 1).scaleb(-4), Decimal(1 - 10**19).scaleb(-4)], None),
    (decimal(38, 0), [Decimal(NUMBER), Decimal(-NUMBER)], None),
    (decimal(38, 38), [Decimal(f"0.{NUMBER}"), Decimal(f"-0.{NUMBER}")], None),
    (
        fixed(16, logicalType="decimal", precision=38, scale=9),
        [Decimal("12345678901234567890123456789.123456789"), Decimal("-0.000000001")],
        None,
    ),
    (fixed(3, logicalType="decimal", precision=5, scale=1), [Decimal("9999.9"), Decimal("-9999.9")], None),
    (fixed(20, logicalType="decimal", precision=5, scale=1), [Decimal("9999.9"), Decimal("-9999.9")], None),
    (
        fixed(12, logicalType="duration"),
        [bytes(12), b"\xff" * 12, b"\x01\x00\x00\x00\x02\x01\x00\x00\x00\x00\x00\x80"],
        [
            {"months": 0, "days": 0, "millis": 0},
            {"months": 2**32 - 1, "days": 2**32 - 1, "millis": 2**32 - 1},
            {"months": 1, "days": 258, "millis": 2**31},
        ],
    ),
]


def test_every_type_at_its_edges(spark: SparkSession) -> None:
    """Each as it is, as an option, in a record that is an option, in a list and in a map."""
    cases: list[tuple[Any, list[bytes | None]]] = []
    expected = []
    for kind, written, wanted in EDGES:
        schema = record(
            ("plain", kind),
            ("option", ["null", _name_of(kind)]),
            ("last", [_name_of(kind), "null"]),
            ("inner", ["null", record(("x", _name_of(kind)), name="Inner")]),
            ("items", {"type": "array", "items": ["null", _name_of(kind)]}),
            ("values", {"type": "map", "values": _name_of(kind)}),
        )
        bodies: list[bytes | None] = []
        for value in written:
            bodies.append(
                encoded(schema, _row(value, value, value, {"x": value}, [value, None], {"k": value}))
            )
            bodies.append(encoded(schema, _row(value, None, None, None, [], {})))
        cases.append((schema, bodies))
        found = written if wanted is None else wanted
        expected.append(
            [
                row
                for value in found
                for row in (
                    _row(value, value, value, {"x": value}, [value, None], [("k", value)]),
                    _row(value, None, None, None, [], []),
                )
            ]
        )
    for (schema, _), got, want in zip(cases, read_all(spark, cases), expected, strict=True):
        assert [one.value for one in got] == want, schema


def _row(plain: Any, option: Any, last: Any, inner: Any, items: Any, values: Any) -> dict[str, Any]:
    return {
        "plain": plain,
        "option": option,
        "last": last,
        "inner": inner,
        "items": items,
        "values": values,
    }


def _name_of(kind: Any) -> Any:
    """A named type can be defined once."""
    return kind["name"] if isinstance(kind, dict) and "name" in kind else kind


def test_the_sign_of_zero_and_what_is_no_number_stay(spark: SparkSession) -> None:
    schema = record(("d", "double"), ("f", "float"))
    found = rows(spark, schema, [{"d": -0.0, "f": -0.0}, {"d": float("nan"), "f": float("nan")}])
    assert [str(row) for row in found] == ["{'d': -0.0, 'f': -0.0}", "{'d': nan, 'f': nan}"]


def test_unions_of_every_kind(spark: SparkSession) -> None:
    days = logical("int", "date")
    schema = record(
        (
            "u",
            [
                "null",
                "boolean",
                days,
                logical("long", "timestamp-micros"),
                "float",
                "double",
                "bytes",
                "string",
                {"type": "array", "items": "int"},
                {"type": "map", "values": "string"},
                record(("x", "int"), ("y", ["null", "string"]), name="a.One"),
                record(("x", "int"), ("y", ["null", "string"]), name="b.Two"),
                {"type": "enum", "name": "Kind", "symbols": ["P", "Q"]},
                fixed(2),
            ],
        ),
        ("wide", ["int", "null", "long"]),
        ("real", ["double", "float"]),
        ("only", ["string"]),
    )
    # Written by hand: fastavro would choose the branch by the value.
    branches: list[tuple[bytes, str, Any]] = [
        (b"\x01", "boolean", True),
        (varint(-1), "int", date(1969, 12, 31)),
        (varint(-1), "long", datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)),
        (b"\x00\x00\xc0\x3f", "float", 1.5),
        (bytes(8), "double", 0.0),
        (varint(1) + b"\xff", "bytes", b"\xff"),
        (varint(1) + b"s", "string", "s"),
        (varint(1) + varint(7) + varint(0), "array", [7]),
        (varint(1) + varint(1) + b"k" + varint(1) + b"v" + varint(0), "map", [("k", "v")]),
        (varint(7) + varint(0), "One", {"x": 7, "y": None}),
        (varint(8) + varint(1) + varint(1) + b"y", "Two", {"x": 8, "y": "y"}),
        (varint(1), "Kind", "Q"),
        (b"ab", "F2", b"ab"),
    ]
    wide = [
        (varint(0) + varint(INT_MIN), INT_MIN),
        (varint(2) + varint(LONG_MAX), LONG_MAX),
        (varint(1), None),
    ]
    real = [(varint(1) + b"\x00\x00\xc0\x3f", 1.5), (varint(0) + bytes(8), 0.0)]
    only = varint(0) + varint(0)
    bodies = [
        varint(index) + body + wide[index % 3][0] + real[index % 2][0] + only
        for index, (body, _, _) in enumerate([(b"", "", None), *branches])
    ]
    names = [name for _, name, _ in branches]
    found = read(spark, schema, [*bodies, varint(14) + wide[0][0] + real[0][0] + only])
    assert not found.pop().exact
    for index, one in enumerate(found):
        assert one.exact, one
        assert one.value is not None
        assert one.value["wide"] == wide[index % 3][1]
        assert one.value["real"] == real[index % 2][1]
        assert one.value["only"] == ""
        if index == 0:
            assert one.value["u"] is None
        else:
            _, name, value = branches[index - 1]
            assert one.value["u"] == {**dict.fromkeys(names), name: value}


def test_messages_that_are_no_records(spark: SparkSession) -> None:
    both = [record(("a", ["null", "int"]), name="n.A"), record(("a", "string"), name="n.B")]
    cases: list[tuple[Any, list[bytes | None]]] = [
        ("string", [b"\x02x", b"\x00", b""]),
        (["null", "string"], [b"\x00", b"\x02\x02x", b"\x04"]),
        (["long", "int"], [b"\x00\x02", b"\x02\x04"]),
        ({"type": "array", "items": "string"}, [b"\x00", b"\x02\x02x\x00"]),
        ({"type": "map", "values": "long"}, [b"\x02\x02k\x04\x00"]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, [b"\x02", b"\x04"]),
        (fixed(2), [b"ab", b"abc", b"a"]),
        (decimal(4, 2), [b"\x04\x27\x0f"]),
        (["null", record(("a", ["null", "int"]), name="R")], [b"\x02\x00", b"\x02\x02\x02", b"\x00"]),
        ([record(("a", "int"), name="R")], [b"\x00\x02", b"\x02"]),
        (both, [b"\x00\x00", b"\x02\x02x"]),
        (["null", *both], [b"\x00", b"\x02\x02\x06", b"\x06"]),
    ]
    found = [[one.value if one.exact else "bad" for one in got] for got in read_all(spark, cases)]
    assert found == [
        [{"value": "x"}, {"value": ""}, "bad"],
        [{"value": None}, {"value": "x"}, "bad"],
        [{"value": 1}, {"value": 2}],
        [{"value": []}, {"value": ["x"]}],
        [{"value": [("k", 2)]}],
        [{"value": "B"}, "bad"],
        [{"value": b"ab"}, "bad", "bad"],
        [{"value": Decimal("99.99")}],
        # Columns of NULL would say that there was a record.
        [{"a": None}, {"a": 1}, "bad"],
        [{"a": 1}, "bad"],
        [{"A": {"a": None}, "B": None}, {"A": None, "B": {"a": "x"}}],
        [{"A": None, "B": None}, {"A": {"a": 3}, "B": None}, "bad"],
    ]


TEXT_BEYOND = varint(2) + b"\xc3\x28"
NOT_INT = b"\xff\xff\xff\xff\x7f"
BIG = (2**64 + 5).to_bytes(16, "big")
# A type, bytes of it that are wrong, and words of the reason.
POISON: list[tuple[str, Any, bytes, str]] = [
    ("cut text", "string", varint(5) + b"abcd", "cut short"),
    ("cut number", "long", b"\x80", "cut short"),
    ("cut double", "double", bytes(7), "cut short"),
    ("number without end", "long", b"\xff" * 11, "does not decode"),
    ("bytes after the end", "long", varint(1) + b"\x00", "after its end"),
    ("more after the end", "long", varint(1) + bytes(range(100)), "after its end"),
    ("bad text", "string", TEXT_BEYOND, "text in 'c' that is not UTF-8"),
    ("surrogate", "string", varint(3) + b"\xed\xa0\x80", "text in 'c'"),
    ("overlong", "string", varint(2) + b"\xc0\x80", "text in 'c'"),
    ("bad text for Java", {"type": "string", "avro.java.string": "String"}, TEXT_BEYOND, "text in 'c'"),
    ("bad text in an option", ["null", "string"], varint(1) + TEXT_BEYOND, "text in 'c'"),
    (
        "bad text in a list",
        {"type": "array", "items": "string"},
        varint(1) + TEXT_BEYOND + b"\x00",
        "text in 'c",
    ),
    (
        "bad text in a key",
        {"type": "map", "values": "int", "avro.java.string": "String"},
        varint(1) + TEXT_BEYOND + b"\x00\x00",
        "'c'",
    ),
    (
        "bad text in a map",
        {"type": "map", "values": "string"},
        varint(1) + b"\x02k" + TEXT_BEYOND + b"\x00",
        "'c'",
    ),
    ("bad text in a record", record(("x", "string"), name="I"), TEXT_BEYOND, "text in 'c.x'"),
    ("bad text in a union", ["int", "string"], varint(1) + TEXT_BEYOND, "text in 'c.string'"),
    ("bad uuid text", logical("string", "uuid"), TEXT_BEYOND, "text in 'c'"),
    (
        "a key twice",
        {"type": "map", "values": "int"},
        varint(2) + b"\x02k\x02\x02k\x04\x00",
        "a key twice in 'c'",
    ),
    ("long int", "int", NOT_INT, "more than 32 bits"),
    ("long int in a union", ["int", "long"], varint(0) + NOT_INT, "more than 32 bits"),
    ("long int in a list", {"type": "array", "items": "int"}, varint(1) + NOT_INT + b"\x00", "32 bits"),
    ("long int in a map", {"type": "map", "values": "int"}, varint(1) + b"\x02k" + NOT_INT + b"\x00", "'c'"),
    ("long date", logical("int", "date"), NOT_INT, "more than 32 bits"),
    ("long time", logical("int", "time-millis"), varint(2**40), "more than 32 bits"),
    ("time past all", logical("int", "time-millis"), varint(LONG_MAX), "more than 32 bits"),
    ("boolean of two", "boolean", b"\x02", "neither true nor false"),
    ("boolean of 255", ["null", "boolean"], b"\x02\xff", "neither true nor false"),
    ("no such symbol", {"type": "enum", "name": "E", "symbols": ["A"]}, varint(1), "no symbol"),
    ("negative symbol", {"type": "enum", "name": "E", "symbols": ["A"]}, varint(-1), "no symbol"),
    ("no such branch", ["null", "int"], varint(2) + varint(2), "does not decode"),
    ("negative branch", ["null", "int"], varint(-1) + varint(2), "does not decode"),
    ("negative length", "string", varint(-1), "does not decode"),
    ("negative length of bytes", "bytes", varint(LONG_MIN), "does not decode"),
    ("two gigabytes of text", "string", varint(INT_MAX - 8) + b"ab", "does not decode"),
    ("two gigabytes of bytes", "bytes", varint(INT_MAX - 8) + b"ab", "does not decode"),
    ("exabytes", "bytes", varint(LONG_MAX) + b"ab", "does not decode"),
    (
        "two billion items",
        {"type": "array", "items": "long"},
        varint(INT_MAX - 8) + b"\x02",
        "does not decode",
    ),
    (
        "two billion entries",
        {"type": "map", "values": "long"},
        varint(INT_MAX - 8) + b"\x02a\x02",
        "not decode",
    ),
    ("ten million items", {"type": "array", "items": "long"}, varint(10**7) + b"\x02", "does not decode"),
    ("digits past the precision", decimal(10, 2), varint(5) + (10**10).to_bytes(5, "big"), "decimal(10,2)"),
    ("digits past 64 bits", decimal(10, 2), varint(16) + BIG, "decimal(10,2)"),
    ("digits past 64 bits, fixed", fixed(16, logicalType="decimal", precision=10), BIG, "decimal(10,0)"),
    (
        "nine bytes, fixed",
        fixed(9, logicalType="decimal", precision=3),
        b"\x01" + bytes(7) + b"\x05",
        "decimal(3,0)",
    ),
    ("digits past 38", decimal(38, 0), varint(16) + (10**38).to_bytes(16, "big"), "does not decode"),
    ("a thousand digits", decimal(10, 2), varint(400) + b"\x7f" * 400, "does not decode"),
    (
        "small fixed",
        fixed(2, logicalType="decimal", precision=4),
        (9999 + 1).to_bytes(2, "big"),
        "does not decode",
    ),
    ("decimal of no bytes", decimal(10, 2), varint(0), "does not decode"),
    (
        "decimals in a list",
        {"type": "array", "items": decimal(4, 2)},
        varint(1) + varint(16) + BIG + b"\0",
        "decimal",
    ),
    ("time past the calendar", logical("long", "timestamp-millis"), varint(2**62), "does not decode"),
]


def test_every_poison_is_seen_and_none_raises(spark: SparkSession) -> None:
    """Beside a good message of the same schema in each case, so that nothing is left over from the bad."""
    cases: list[tuple[Any, list[bytes | None]]] = []
    for _, kind, body, _ in POISON:
        cases.append((record(("before", "string"), ("c", kind)), [varint(1) + b"x" + body, None, b""]))
    for (name, _, _, words), got in zip(POISON, read_all(spark, cases, why=True), strict=True):
        assert not got[0].exact, name
        assert words in str(got[0].problem), name
        assert not got[1].exact
        assert not got[2].exact
    evaluate(spark, cases)


def test_a_message_cut_anywhere_or_with_more_behind_it(spark: SparkSession) -> None:
    schema = record(
        ("all", ["null", "string"]),
        ("of", ["null", "long"]),
        ("them", ["null", record(("x", ["null", "int"]), name="I")]),
        ("end", ["null", "long"]),
        ("END_", ["null", "boolean"]),
    )
    full = encoded(schema, {"all": "text", "of": 10**12, "them": {"x": 3}, "end": 2**61, "END_": True})
    nulls = encoded(schema, dict.fromkeys(("all", "of", "them", "end", "END_")))
    bad = [full[:length] for length in range(len(full))] + [nulls[:length] for length in range(len(nulls))]
    bad += [full + more for more in (b"\x00", b"\x01", full, bytes(20))] + [nulls + b"\x00", nulls + nulls]
    found = read(spark, schema, [full, nulls, *bad])
    assert [one.exact for one in found] == [True, True] + [False] * len(bad)
    assert found[1].value == dict.fromkeys(("all", "of", "them", "end", "END_"))


def test_numbers_in_more_bytes_than_they_need_are_the_same_numbers(spark: SparkSession) -> None:
    """Some encoders pad decimals and numbers; the values are whole."""
    schema = record(("n", "int"), ("d", decimal(6, 2)))
    found = read(spark, schema, [b"\x82\x80\x00" + varint(12) + (-12345).to_bytes(12, "big", signed=True)])
    assert found[0].value == {"n": 1, "d": Decimal("-123.45")}


def test_lists_in_several_blocks(spark: SparkSession) -> None:
    schema = record(("a", {"type": "array", "items": "int"}), ("m", {"type": "map", "values": "int"}))
    blocks = varint(2) + varint(1) + varint(2) + varint(-1) + varint(1) + varint(3) + varint(0)
    entries = varint(1) + b"\x02a\x02" + varint(-1) + varint(3) + b"\x02b\x04" + varint(0)
    assert read(spark, schema, [blocks + entries])[0].value == {"a": [1, 2, 3], "m": [("a", 1), ("b", 2)]}


def test_names_that_avro_does_not_allow(spark: SparkSession) -> None:
    """Some registries take them."""
    kind = {"type": "enum", "name": "E", "symbols": ["in transit", "2-day"]}
    inner = record(("größe", "string"), ("the-rest", "int"), name="I")
    schema = record(("f1", "string"), ("a b", "long"), ("état", inner), ("kind", kind))
    body = varint(0) + varint(1) + varint(1) + b"x" + varint(2) + varint(1)
    assert read(spark, schema, [body])[0].value == {
        "f1": "",
        "a b": 1,
        "état": {"größe": "x", "the-rest": 2},
        "kind": "2-day",
    }


def test_a_wide_record(spark: SparkSession) -> None:
    width = 200
    kinds = ["string", "int", decimal(10, 2), "boolean"]
    schema = record(*((f"c{index}", kinds[index % 4]) for index in range(width)))
    values = ["x", 7, Decimal("1.00"), True]
    row = {f"c{index}": values[index % 4] for index in range(width)}
    good = encoded(schema, row)
    found = read(spark, schema, [good, good[:-1], good + b"\x00"])
    assert [one.exact for one in found] == [True, False, False]
    assert found[0].value == row


def test_days_and_times_beyond_what_python_knows(spark: SparkSession) -> None:
    """The table holds them; here they only must not raise."""
    cases: list[tuple[Any, list[bytes | None]]] = [
        (logical("int", "date"), [varint(INT_MAX), varint(INT_MIN)]),
        (logical("long", "timestamp-micros"), [varint(LONG_MAX), varint(LONG_MIN)]),
        (logical("long", "local-timestamp-micros"), [varint(LONG_MAX), varint(LONG_MIN)]),
    ]
    evaluate(spark, cases)


def test_the_shortest_messages(spark: SparkSession) -> None:
    assert read(spark, record(("a", "int")), [b"\x00"])[0].value == {"a": 0}
