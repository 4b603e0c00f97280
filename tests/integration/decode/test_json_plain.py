"""JSON, texts and bytes that no registry knows."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import SparkSession

from headgate.decode.json_plain import (
    BytesReader,
    ConnectJsonReader,
    JsonReader,
    JsonTextReader,
    StringReader,
    parse_columns,
)
from tests.integration.decode.json_reading import read

HASH = "00e10007e48219e99999aa1e55555"
COLUMNS = """
    id bigint, price decimal(12,2), wide decimal(38,10), at timestamp, local timestamp_ntz, day date,
    tags array<string>, counts map<string, int>, address struct<city: string, `zip code`: string>,
    blob binary, v variant, f float, d double, ok boolean, name string
"""
WIDE = "1234567890123456789012345678.0123456789"
# A key, a text of its value, and what the column holds; … for what must not be exact.
DECLARED: list[tuple[str, str, Any]] = [
    ("id", "5", 5),
    ("id", '"5"', ...),
    ("price", "12.34", Decimal("12.34")),
    ("price", "12.3400000000000000000000000000000000000000", Decimal("12.34")),
    ("price", "-9999999999.99", Decimal("-9999999999.99")),
    ("price", "10000000000", ...),
    ("price", "12.345", ...),
    ("price", "12.34000000000000000000000000000000000000001", ...),
    ("price", "1e2", Decimal(100)),
    ("price", "1E+2", Decimal(100)),
    ("price", "0E-10", Decimal(0)),
    ("price", "1e-3", ...),
    ("price", "1e-30", ...),
    ("price", "1e-300", ...),
    ("price", "1e-99999999", ...),
    ("price", "1e99999999", ...),
    ("price", '"12.34"', Decimal("12.34")),
    ("price", '"1e-2"', Decimal("0.01")),
    ("price", '"1e-30"', ...),
    ("price", '"1e-99999999"', ...),
    ("price", '"1,000"', ...),
    ("price", '" 5"', ...),
    ("price", '"5."', ...),
    ("price", '""', ...),
    ("price", '"five"', ...),
    ("price", "true", ...),
    ("price", "null", None),
    ("wide", WIDE, Decimal(WIDE)),
    ("wide", WIDE + "1", ...),
    ("wide", "1" + WIDE, ...),
    ("wide", "0.00000000001", ...),
    ("at", '"2024-05-01T10:11:12.123456Z"', datetime(2024, 5, 1, 10, 11, 12, 123456, UTC)),
    ("at", '"2024-05-01T10:11:12"', ...),
    ("at", "1714558272", ...),
    ("local", '"2024-05-01T10:11:12.5"', datetime(2024, 5, 1, 10, 11, 12, 500000)),
    ("local", '"2024-05-01T10:11:12Z"', ...),
    ("day", '"2024-05-01"', date(2024, 5, 1)),
    ("day", "19844", ...),
    ("tags", '["1","b"]', ["1", "b"]),
    ("tags", '["1",2]', ...),
    ("counts", '{"a":1}', [("a", 1)]),
    ("counts", '{"a":2147483648}', ...),
    ("address", '{"city":"B","zip code":"007","x":1}', {"city": "B", "zip code": "007"}),
    ("blob", '"AAE="', b"\0\1"),
    ("v", '{"b":[1,2.50],"a":null}', '{"a":null,"b":[1,2.5]}'),
    ("v", "null", None),
    ("v", "1" * 39, ...),
    ("f", "0.5", 0.5),
    ("f", "0.123456789", ...),
    ("d", "9007199254740993", ...),
    ("name", f'"{HASH}"', HASH),
    ("name", '"5"', "5"),
    ("name", "5", ...),
]


def test_declared_columns(spark: SparkSession) -> None:
    found = read(
        spark,
        JsonReader(parse_columns(COLUMNS)),
        # A decimal column makes numbers be looked at more closely; a hash beside it is none.
        [f'{{"{key}":{text},"other":"{HASH}"}}'.encode() for key, text, _ in DECLARED],
    )
    for (key, text, expected), one in zip(DECLARED, found, strict=True):
        assert one.exact is (expected is not ...), (key, text, one)
        if expected is not ...:
            assert one.value is not None
            assert one.value[key] == expected, (key, text)
            assert sum(value is not None for value in one.value.values()) == (expected is not None)


KEPT = [
    b"{}",
    b' { "b" : 1.0, "a": [1e2, null] }\n',
    b'{"a":1,"a":2}',
    b'"\\ud800"',
    b"9007199254740993",
    b"1e400",
    "{\"ä\":'😀'}".replace("'", '"').encode(),
]
WRONG = [b"", b" ", b"{}x", b"{}{}", b"1,2", b"1]", b"1}", b'1,"end":1}', b"NaN", b"\xff", b"[" * 10_000]


def test_json_text_stays_as_it_is(spark: SparkSession) -> None:
    found = read(spark, JsonTextReader("doc", "string"), [*KEPT, *WRONG, None])
    assert [one.value for one in found[: len(KEPT)]] == [{"doc": body.decode()} for body in KEPT]
    for body, one in zip(WRONG, found[len(KEPT) :], strict=False):
        assert not one.exact, body
        assert one.problem in ("is not one JSON document", "is not UTF-8 text")
    assert not found[-1].exact


def test_json_as_variant(spark: SparkSession) -> None:
    good = [b'{"b":1.50,"a":[true,null,"x"]}', b"12345678901234567890123456789012345678", b"1.5e3", b"null"]
    bad = [b'{"a":1,"a":2}', b'"\\ud800"', b"1e400", b"1" * 39, b"1.00000000000000000001e5", *WRONG]
    found = read(spark, JsonTextReader("doc", "variant"), [*good, *bad, None])
    texts = ['{"a":[true,null,"x"],"b":1.5}', good[1].decode(), "1500.0", None]
    assert [one.value for one in found[: len(good)]] == [{"doc": text} for text in texts]
    assert not any(one.exact for one in found[len(good) :])


def test_texts_and_bytes(spark: SparkSession) -> None:
    bodies = [b"", "ä😀\0".encode(), b"\xff", b"\xed\xa0\x80", None]
    texts = read(spark, StringReader("text"), bodies)
    assert [one.value for one in texts] == [{"text": ""}, {"text": "ä😀\0"}, None, None, None]
    assert texts[2].problem == "is not UTF-8 text"
    raw = read(spark, BytesReader("raw"), bodies)
    assert [one.value for one in raw] == [*({"raw": body} for body in bodies[:4]), None]


def connect(kind: str, field: str | None = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    """A schema as Connect's JsonConverter writes it: the keys in its order."""
    said: dict[str, Any] = {"type": kind, "optional": True, **more}
    if name is not None:
        said |= {"name": name, "version": 1}
    return said if field is None else {**said, "field": field}


ROW = [
    connect("int32", "id"),
    connect("bytes", "price", "org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"}),
    connect("int32", "day", "io.debezium.time.Date"),
    connect("int64", "made", "io.debezium.time.MicroTimestamp"),
    connect("string", "at", "io.debezium.time.ZonedTimestamp"),
    connect("double", "weight"),
    connect("array", "tags", items=connect("string")),
    connect("map", "counts", keys=connect("string"), values=connect("int64")),
]
ENVELOPE = connect(
    "struct",
    name="shop.public.orders.Envelope",
    fields=[
        connect("struct", "before", "shop.public.orders.Value", fields=ROW),
        connect("struct", "after", "shop.public.orders.Value", fields=ROW),
        connect(
            "struct", "source", "io.debezium.connector.postgresql.Source", fields=[connect("int64", "lsn")]
        ),
        connect("string", "op"),
        connect("int64", "ts_ms"),
    ],
)
AFTER = {
    "id": 7,
    "price": "BNI=",
    "day": 19844,
    "made": 1714558272123456,
    "at": "2024-05-01T10:11:12Z",
    "weight": 0.1,
    "tags": ["1"],
    "counts": {"a": 5},
}
PAYLOAD = {"before": None, "after": AFTER, "source": {"lsn": 2**62}, "op": "c", "ts_ms": 5}


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_debezium_with_its_schema_in_each_message(spark: SparkSession) -> None:
    made = ConnectJsonReader(ENVELOPE)
    assert made.record_name == "shop.public.orders.Envelope"
    reordered = dict(reversed(ENVELOPE.items()))
    narrower = {**ENVELOPE, "fields": ENVELOPE["fields"][1:]}
    bodies = [
        compact({"schema": ENVELOPE, "payload": PAYLOAD}),
        json.dumps({"schema": ENVELOPE, "payload": PAYLOAD}, indent=1),
        compact({"payload": PAYLOAD, "schema": reordered}),
        compact({"schema": narrower, "payload": PAYLOAD}),
        compact({"payload": PAYLOAD}),
        compact(PAYLOAD),
        compact({"schema": ENVELOPE, "payload": None}),
        compact({"schema": ENVELOPE, "payload": {**PAYLOAD, "op": 5}}),
        compact({"schema": ENVELOPE, "payload": {**PAYLOAD, "after": {**AFTER, "weight": 2**53 + 1}}}),
        compact({"schema": ENVELOPE, "payload": PAYLOAD}) + "x",
        compact({"schema": ENVELOPE, "payload": PAYLOAD})[:-1] + ',"schema":null}',
        compact({"schema": ENVELOPE, "payload": PAYLOAD})[:-1] + ',"payload":null}',
    ]
    found = read(spark, made, [body.encode() for body in bodies] + [None])
    after = {
        **AFTER,
        "price": Decimal("12.34"),
        "day": date(2024, 5, 1),
        "made": datetime(2024, 5, 1, 10, 11, 12, 123456),
        "at": datetime(2024, 5, 1, 10, 11, 12, tzinfo=UTC),
        "counts": [("a", 5)],
    }
    assert [one.value for one in found[:3]] == [{**PAYLOAD, "after": after}] * 3
    assert [one.problem for one in found[3:-1]] == [
        "has another embedded schema than the first message",
        "has another embedded schema than the first message",
        "has another embedded schema than the first message",
        "has no payload",
        "has what its column does not hold as it is written: payload.op",
        "has what its column does not hold as it is written: payload.after.weight",
        "is not one JSON document without repeated keys",
        "has another embedded schema than the first message",
        "is not one JSON document without repeated keys",
    ]
    assert not found[-1].exact


def test_connect_values_of_other_kinds(spark: SparkSession) -> None:
    schema = connect("bytes", None, "org.apache.kafka.connect.data.Decimal", parameters={"scale": "2"})
    made = ConnectJsonReader(schema, "price", "numeric")
    texts = ["12.34", "12.345", "null", '"12.34"']
    bodies = [f'{{"schema":{compact(schema)},"payload":{text}}}'.encode() for text in texts]
    found = read(spark, made, bodies)
    assert [one.value for one in found] == [
        {"price": Decimal("12.34")},
        None,
        {"price": None},
        {"price": Decimal("12.34")},
    ]


def test_debezium_without_schema(spark: SparkSession) -> None:
    """`schemas.enable=false`: numbers that count days or microseconds are declared as what they are."""
    row = "struct<id: int, price: string, day: int, made: bigint, at: timestamp, weight: double>"
    made = JsonReader(parse_columns(f"before {row}, after {row}, source struct<lsn: bigint>, op string"))
    [found] = read(spark, made, [compact(PAYLOAD).encode()])
    at = datetime(2024, 5, 1, 10, 11, 12, tzinfo=UTC)
    kept = {key: AFTER[key] for key in ("id", "price", "day", "made", "weight")}
    after = {**kept, "at": at}
    assert found.value == {"before": None, "after": after, "source": {"lsn": 2**62}, "op": "c"}


def test_what_is_no_envelope_is_not_exact(spark: SparkSession) -> None:
    found = read(spark, ConnectJsonReader(ENVELOPE), [b"{}", b'{"schema":1,"payload":{}}'])
    assert [row.problem for row in found] == ["has another embedded schema than the first message"] * 2
