"""Protobuf messages become Arrow columns: exact, or named as not."""

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.decode.protobuf import (
    FIRST_MESSAGE_LONG,
    ProtobufReader,
    message_frames,
    parse_indexes,
)
from headgate.decode.protobuf_batch import Decoder
from headgate.decode.protos import compiled
from headgate.errors import UnsupportedSchema
from tests.unit.decode.protobuf_messages import messages, schemas
from tests.unit.decode.protobuf_oracle import assert_same, expected
from tests.unit.decode.protobuf_samples import EVERYTHING, base64_of, message_class, path_of

EVERY = message_class(EVERYTHING, "every.Every")
TIMES = 15 if os.environ.get("HEADGATE_SOAK") == "1" else 1


def decoder(text: str, name: str) -> Decoder:
    return Decoder(compiled(text).files, name)


DECODER = decoder(EVERYTHING, "every.Every")


def read(data: Sequence[bytes | None], by: Decoder = DECODER) -> list[Any]:
    found = by.decode(pa.array(data, pa.binary()))
    found.validate(full=True)
    return list(found.to_pylist())


def record(data: bytes, by: Decoder = DECODER) -> dict[str, Any]:
    [found] = read([data], by)
    assert found["problem"] is None
    made: dict[str, Any] = found["record"]
    return made


def problem(data: bytes, by: Decoder = DECODER) -> str:
    # Beside a good one: what is wrong with one message is no matter for another.
    good = b""
    before, found, after = read([good, data, good], by)
    assert before["problem"] is after["problem"] is None
    assert found["record"] is None
    return str(found["problem"])


def message(**fields: Any) -> bytes:
    return bytes(EVERY(**fields).SerializeToString())


def reader(fields: str, rest: str = "", head: str = 'syntax = "proto3";') -> ProtobufReader:
    return ProtobufReader(f"{head} message A {{ {fields} }} {rest}")


# -- types


def test_the_columns_of_every_type() -> None:
    found = ProtobufReader(EVERYTHING, (), path_of(EVERYTHING, "every.Every"))
    inner = "struct<x:int,tags:array<string>,flag:boolean>"
    assert found.record_name == "every.Every"
    assert {field.name: field.dataType.simpleString() for field in found.type.fields} == {
        **dict.fromkeys(("i32", "s32", "sf32"), "int"),
        **dict.fromkeys(("u32", "f32", "i64", "s64", "sf64"), "bigint"),
        **dict.fromkeys(("u64", "f64"), "decimal(20,0)"),
        "fl": "float",
        "db": "double",
        "bo": "boolean",
        "st": "string",
        "by": "binary",
        "co": "string",
        "me": inner,
        "l_i32": "array<int>",
        "l_st": "array<string>",
        "l_me": f"array<{inner}>",
        "l_co": "array<string>",
        "m_st": "map<string,int>",
        "m_u64": f"map<decimal(20,0),{inner}>",
        "m_i32": "map<int,string>",
        "o_st": "string",
        "o_i64": "bigint",
        "o_me": inner,
        "o_em": "boolean",
        "w_i64": "bigint",
        "w_st": "string",
        "w_u64": "decimal(20,0)",
        "w_by": "binary",
        "w_bo": "boolean",
        "w_db": "double",
        "w_fl": "float",
        "w_i32": "int",
        "w_u32": "bigint",
        "ts": "timestamp",
        "l_ts": "array<timestamp>",
        "du": "struct<seconds:bigint,nanos:int>",
        "da": "date",
        "tod": "struct<hours:int,minutes:int,seconds:int,nanos:int>",
        "js": "string",
        "jv": "string",
        "jl": "string",
        "an": "struct<type_url:string,value:binary>",
        "fm": "struct<paths:array<string>>",
        "em": "boolean",
        "de": "decimal(10,2)",
        "plain_de": "struct<value:binary,precision:bigint,scale:int>",
        "p_i32": "int",
        "p_st": "string",
        "p_co": "string",
        "l_bo": "array<boolean>",
        "l_db": "array<double>",
        "l_f32": "array<bigint>",
        "l_u64": "array<decimal(20,0)>",
        "m_bo": "map<boolean,timestamp>",
        "l_w": "array<bigint>",
        "l_by": "array<binary>",
        "l_s64": "array<bigint>",
        "m_w": "map<string,string>",
        "p_by": "binary",
        "p_u64": "decimal(20,0)",
        "p_db": "double",
    }


def test_fields_are_known_by_number_at_every_depth() -> None:
    found = reader("B b = 7; repeated B l = 8; map<string, B> m = 9;", "message B { int32 x = 3; }")
    assert found.field_numbers == {"b": 7, "b.x": 3, "l": 8, "l[].x": 3, "m": 9, "m{}.x": 3}
    assert found.former_names == {}


def test_columns_have_the_order_of_the_schema() -> None:
    text = 'syntax = "proto3"; message A { int32 second = 2; string first = 1; }'
    data = message_class(text, "A")(first="a", second=5).SerializeToString()
    assert list(record(data, decoder(text, "A")).items()) == [("second", 5), ("first", "a")]
    assert ProtobufReader(text).type.names == ["second", "first"]


@pytest.mark.parametrize(
    ("fields", "rest", "said"),
    [
        ("B b = 1;", "message B { C c = 1; } message C { repeated B b = 1; }", "'b.c.b[]' has the recursive"),
        ("map<string, A> a = 1;", "", "'a{}' has the recursive type A"),
        ("int32 name = 1; int32 Name = 2;", "", "'Name' has a name that differs only by case from 'name'"),
        ("B b = 1;", "message B { int32 x = 1; int32 X = 2; }", "'b.X' has a name that differs only by case"),
        ("int32 _pos = 1;", "", "'_pos' has a name that Iceberg keeps"),
        ("B b = 1;", "message B {}", "'b' has the type B, which has no fields"),
        ("", "", "The message has the type A, which has no fields"),
    ],
)
def test_what_no_column_holds_is_refused_with_its_path(fields: str, rest: str, said: str) -> None:
    with pytest.raises(UnsupportedSchema) as refused:
        reader(fields, rest)
    assert said in str(refused.value)


def test_groups_are_refused() -> None:
    with pytest.raises(UnsupportedSchema, match="'inner' has a group"):
        reader("optional group Inner = 1 { optional int32 x = 1; }", head='syntax = "proto2";')
    delimited = "B b = 1 [features.message_encoding = DELIMITED];"
    with pytest.raises(UnsupportedSchema, match="'b' has a group"):
        reader(delimited, "message B { int32 x = 1; }", head='edition = "2023";')


@pytest.mark.parametrize(
    ("precision", "scale"), [("39", "0"), ("0", "0"), ("5", "6"), ("5", "-1"), ("many", "0")]
)
def test_decimals_that_no_column_is_are_refused(precision: str, scale: str) -> None:
    params = f'{{params: [{{key: "precision", value: "{precision}"}}, {{key: "scale", value: "{scale}"}}]}}'
    head = 'syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";'
    with pytest.raises(UnsupportedSchema, match="'d' has a decimal"):
        reader(f"confluent.type.Decimal d = 1 [(confluent.field_meta) = {params}];", head=head)


# -- values


def test_edges_of_numbers() -> None:
    low = message(i32=-(2**31), s32=-(2**31), sf32=-(2**31), i64=-(2**63), s64=-(2**63), sf64=-(2**63))
    found = record(low)
    assert [found[n] for n in ("i32", "s32", "sf32", "i64", "s64", "sf64")] == [-(2**31)] * 3 + [-(2**63)] * 3
    found = record(message(u32=2**32 - 1, f32=2**32 - 1, u64=2**64 - 1, f64=2**64 - 1, i64=2**63 - 1))
    assert [found[n] for n in ("u32", "f32", "u64", "f64", "i64")] == [
        2**32 - 1,
        2**32 - 1,
        Decimal(2**64 - 1),
        Decimal(2**64 - 1),
        2**63 - 1,
    ]


def test_unset_means_the_default_where_the_format_cannot_tell() -> None:
    found = record(b"")
    assert found["i32"] == 0
    assert found["st"] == ""
    assert found["co"] == "RED"
    assert (found["l_i32"], found["m_st"]) == ([], [])
    for name in ("me", "p_i32", "p_st", "p_co", "o_st", "o_me", "w_i64", "ts", "em", "js"):
        assert found[name] is None, name


def test_what_is_set_to_its_default_is_set() -> None:
    sent = EVERY(p_i32=0, p_st="", p_co=0, o_i64=0)
    for name in ("me", "w_i64", "w_st", "ts", "em", "js"):
        getattr(sent, name).SetInParent()
    found = record(sent.SerializeToString())
    assert (found["p_i32"], found["p_st"], found["p_co"], found["o_i64"]) == (0, "", "RED", 0)
    assert found["me"] == {"x": 0, "tags": [], "flag": None}
    assert (found["w_i64"], found["w_st"], found["em"], found["js"]) == (0, "", True, "{}")
    assert found["ts"] == datetime(1970, 1, 1, tzinfo=UTC)


def test_times() -> None:
    first, last = {"seconds": -62_135_596_800}, {"seconds": 253_402_300_799, "nanos": 999_999_000}
    found = record(message(ts=first, l_ts=[last, {"seconds": -1, "nanos": 999_999_000}]))
    assert found["ts"] == datetime(1, 1, 1, tzinfo=UTC)
    assert found["l_ts"] == [
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ]
    assert problem(message(ts={"nanos": 1})) == "has a time in field 'ts' that is finer than microseconds"
    for wrong in ({"seconds": 253_402_300_800}, {"seconds": -(2**63)}, {"nanos": -1000}, {"nanos": 10**9}):
        assert problem(message(l_ts=[first, wrong])) == "has a time in field 'l_ts[]' that is out of range"


def test_dates() -> None:
    assert record(message(da={"year": 2024, "month": 2, "day": 29}))["da"] == date(2024, 2, 29)
    assert record(message(da={"year": 1, "month": 1, "day": 1}))["da"] == date(1, 1, 1)
    assert record(message(da={"year": 9999, "month": 12, "day": 31}))["da"] == date(9999, 12, 31)
    for year, month, day in (
        (2023, 2, 29),
        (0, 5, 5),
        (2023, 0, 0),
        (2023, 13, 1),
        (10000, 1, 1),
        (1, 1, 32),
    ):
        wrong = message(da={"year": year, "month": month, "day": day})
        assert problem(wrong) == "has no whole date in field 'da'"


def test_decimals() -> None:
    def decimal(unscaled: int, scale: int, size: int = 16) -> bytes:
        return message(de={"value": unscaled.to_bytes(size, "big", signed=True), "scale": scale})

    for unscaled, scale, wanted in (
        (-12345, 2, "-123.45"),
        (0, 2, "0.00"),
        (9_999_999_999, 2, "99999999.99"),
        (15, 1, "1.50"),
        (7, 0, "7.00"),
        (1, -3, "1000.00"),
        (12300, 4, "1.23"),
    ):
        assert record(decimal(unscaled, scale))["de"] == Decimal(wanted)
    for unscaled, scale in ((10_000_000_000, 2), (1, 3), (12345, 4), (1, -8), (1, 2**31 - 1), (1, -(2**31))):
        assert problem(decimal(unscaled, scale)) == "has a number in field 'de' that is no decimal(10,2)"
    assert "no decimal" in problem(decimal(1, 2, size=65))
    assert "no decimal" in problem(message(de={"scale": 2}))


def test_json_text() -> None:
    sent = EVERY()
    sent.js.update({"b": [1, None, True, {"c": "é"}], "a": -0.0})
    sent.jv.null_value = 0
    sent.jl.extend([1.5])
    found = record(sent.SerializeToString())
    assert found["js"] == '{"a":-0.0,"b":[1.0,null,true,{"c":"é"}]}'
    assert (found["jv"], found["jl"]) == ("null", "[1.5]")
    for wrong in (EVERY(jv={}), EVERY(jv={"number_value": float("nan")})):
        assert problem(wrong.SerializeToString()) == "has no JSON value, in field 'jv'"


# -- bytes that are not what the schema says


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x08", "is no whole every.Every message"),  # a tag and no value
        (message(st="cut")[:-1], "is no whole every.Every message"),
        (b"\xff" * 20, "is no whole every.Every message"),
        (b"\x72\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "is no whole every.Every message"),  # absurd length
        (b"\x00\x01", "is no whole every.Every message"),  # field number 0
        (b"\x72\x02\xc3\x28", "has text in field 'st' that is not UTF-8"),
        (b"\x9a\x01\x01\xff", "has text in field 'l_st[]' that is not UTF-8"),
        (b"\xb2\x01\x05\x0a\x01\xff\x10\x01", "has text in field 'm_st{}' that is not UTF-8"),
        (b"\xf0\x07\x01", "has field number 126, which every.Every lacks"),
        (b"\x8a\x01\x02\x78\x01", "has field number 15 in 'me', which every.Inner lacks"),
        (b"\xb2\x02\x02\x18\x01", "has field number 3 in 'ts', which google.protobuf.Timestamp lacks"),
        (b"\x82\x03\x02\x08\x01", "has field number 1 in 'em', which google.protobuf.Empty lacks"),
        (b"\xf3\x07\xf4\x07", "has field number 126, which every.Every lacks"),  # as a group
        (b"\x80\x01\x63", "has 99 in field 'co', which enum every.Color lacks"),
        (b"\xaa\x01\x02\x00\x63", "has 99 in field 'l_co[]', which enum every.Color lacks"),
        (b"\x0d\x01\x00\x00\x00", "has another type than the schema's in field 'i32'"),
        (b"\x72\x00\x70\x01", "has another type than the schema's in field 'st'"),
        (b"\x08\x80\x80\x80\x80\x80\x80\x01", "has a number in field 'i32' that is too long for its type"),
        (b"\x20\x80\x80\x80\x80\x10", "has a number in field 'u32' that is too long for its type"),
        (b"\x68\x02", "has a number in field 'bo' that is too long for its type"),
    ],
)
def test_poison_is_found_and_named(data: bytes, said: str) -> None:
    assert problem(data) == said


def test_google_reads_some_of_that_and_loses_something() -> None:
    """Why a strict look is needed: the same bytes, by Google's parser."""
    assert EVERY.FromString(b"\x08\x80\x80\x80\x80\x80\x80\x01").i32 == 0
    assert EVERY.FromString(b"\x68\x02").bo is True
    assert EVERY.FromString(b"\xf0\x07\x01") != EVERY()


def test_other_spellings_of_the_same_message() -> None:
    """Fields out of order, twice, unpacked, set to the default, entries of maps without key or value."""
    found = record(b"\x72\x01b" + b"\x08\x05" + b"\x08\x07")
    assert (found["i32"], found["st"]) == (7, "b")
    assert record(b"\x90\x01\x05\x90\x01\x06")["l_i32"] == [5, 6]
    assert record(b"\x92\x01\x01\x05\x90\x01\x06\x92\x01\x02\x07\x08")["l_i32"] == [5, 6, 7, 8]
    assert record(b"\x08\x00")["i32"] == 0
    assert record(b"\x08\x85\x00")["i32"] == 5
    assert record(b"\xb2\x01\x00")["m_st"] == [("", 0)]
    assert record(b"\xba\x01\x02\x08\x05")["m_u64"] == [(5, {"x": 0, "tags": [], "flag": None})]
    twice = b"\xb2\x01\x05\x0a\x01a\x10\x01" + b"\xb2\x01\x05\x0a\x01a\x10\x02"
    assert record(twice)["m_st"] == [("a", 2)]
    both = EVERY(o_st="x").SerializeToString() + EVERY(o_i64=3).SerializeToString()
    assert (record(both)["o_st"], record(both)["o_i64"]) == (None, 3)
    merged = message(me={"x": 1, "tags": ["a"]}) + message(me={"tags": ["b"]})
    assert record(merged)["me"] == {"x": 1, "tags": ["a", "b"], "flag": None}
    merged = EVERY(js={"a": 1.0}).SerializeToString() + EVERY(js={"b": 2.0}).SerializeToString()
    assert record(merged)["js"] == '{"a":1.0,"b":2.0}'


def test_a_batch_keeps_its_order() -> None:
    good = [message(i32=i, st=f"s{i}") for i in range(20)]
    mixed: list[bytes | None] = [None, b"\x08", *good, b"\xff" * 12, None, b"\x72\x02\xc3\x28"]
    mixed.insert(7, b"\x72\x01z" + b"\x08\x05")  # spelled otherwise
    mixed.insert(9, b"\xf3\x07\xf4\x07")  # makes the decoder fail, and Google's parser not
    found = read(mixed)
    assert [row if row is None else row["problem"] for row in found[:2]] == [
        None,
        "is no whole every.Every message",
    ]
    values = [row["record"]["i32"] for row in found if row is not None and row["record"] is not None]
    assert values == [0, 1, 2, 3, 4, 5, *range(5, 20)]
    assert found[-1]["problem"] == "has text in field 'st' that is not UTF-8"
    assert found[7]["record"]["st"] == "z"
    assert [row is None for row in found] == [value is None for value in mixed]


def test_json_that_is_too_deep() -> None:
    data = b""
    for _ in range(5_000):
        data = b"\x32" + _length(data) + data  # Value.list_value
        data = b"\x0a" + _length(data) + data  # ListValue.values
    sent = b"\xea\x02" + _length(data) + data
    assert problem(sent) == "is nested too deeply in field 'values', in field 'jl'"
    assert problem(sent + b"\x08\x01") == "is nested too deeply in field 'jl'"


def _length(data: bytes) -> bytes:
    low, high, top = len(data) & 0x7F, len(data) >> 7 & 0x7F, len(data) >> 14
    return bytes([low | 0x80, high | 0x80, top])


def test_what_serializers_write_is_read_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at messages one by one is for what others write, and slow."""

    def never(*_: object) -> bytes:
        raise AssertionError

    monkeypatch.setattr(Decoder, "_plainest", never)
    sent = EVERY(
        i32=-1, u64=2**64 - 1, fl=-0.0, db=float("nan"), st="é", co=-5, l_i32=[0, -1], l_st=["", "a"]
    )
    sent.MergeFrom(EVERY(m_st={"b": 0, "a": 1}, m_u64={7: {}}, m_bo={False: {"seconds": 1}}, o_me={}))
    sent.MergeFrom(EVERY(me={}, l_me=[{}, {"x": 1}], w_i64={}, w_st={"value": "w"}, ts={"seconds": -1}))
    sent.MergeFrom(
        EVERY(js={"a": [1.0]}, em={}, p_i32=0, p_co=0, l_bo=[True, False], l_u64=[2**63], l_w=[{}])
    )
    found = record(sent.SerializeToString())
    assert_same(found, expected(sent))


def test_nothing_in_a_batch() -> None:
    assert read([]) == []
    assert read([None, None]) == [None, None]
    assert read([b"\x08"]) == [{"problem": "is no whole every.Every message", "record": None}]


# -- proto2 and editions


PROTO2 = """
syntax = "proto2";
enum Size { SMALL = 1; LARGE = 2; ALSO_LARGE = 2; option allow_alias = true; }
message Old {
  required int32 id = 1; optional int32 count = 2 [default = 5]; repeated int32 numbers = 3;
  repeated int32 packed = 4 [packed = true]; optional Size size = 5; optional string text = 6;
  optional Part part = 7;
  extensions 100 to 200;
}
message Part { required string name = 1; }
extend Old { optional int32 more = 100; }
"""


def test_proto2() -> None:
    old, by = message_class(PROTO2, "Old"), decoder(PROTO2, "Old")
    sent = old(id=0, numbers=[1, 2], packed=[3, 4], size=2, part={"name": ""})
    found = record(sent.SerializeToString(), by)
    assert found == {
        "id": 0,
        "count": None,  # its default is no value that was sent
        "numbers": [1, 2],
        "packed": [3, 4],
        "size": "LARGE",
        "text": None,
        "part": {"name": ""},
    }
    assert record(b"\x08\x01", by)["numbers"] == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "lacks its required field 'id'"),
        (b"\x10\x01", "lacks its required field 'id'"),
        (b"\x08\x01\x3a\x00", "lacks its required field 'part.name'"),
        (b"\x08\x01\x28\x03", "has 3 in field 'size', which enum Size lacks"),
        (b"\x08\x01\x32\x01\xff", "has text in field 'text' that is not UTF-8"),
        (b"\x08\x01\xa0\x06\x07", "has field number 100, which Old lacks"),  # an extension
    ],
)
def test_proto2_poison(data: bytes, said: str) -> None:
    good = b"\x08\x01"
    found = read([good, data], decoder(PROTO2, "Old"))
    assert [row["problem"] for row in found] == [None, said]


def test_editions() -> None:
    text = """edition = "2023"; message A {
        int32 explicit = 1; int32 implicit = 2 [features.field_presence = IMPLICIT];
        int32 required = 3 [features.field_presence = LEGACY_REQUIRED];
        repeated int32 expanded = 4 [features.repeated_field_encoding = EXPANDED];
        repeated int32 packed = 5; }"""
    by = decoder(text, "A")
    sent = message_class(text, "A")(required=1, expanded=[1, 2], packed=[3])
    assert record(sent.SerializeToString(), by) == {
        "explicit": None,
        "implicit": 0,
        "required": 1,
        "expanded": [1, 2],
        "packed": [3],
    }
    assert read([b""], by)[0]["problem"] == "lacks its required field 'required'"


def test_a_root_that_is_a_known_type_is_read_as_the_message_it_is() -> None:
    text = 'syntax = "proto3"; package google.protobuf; message StringValue { string value = 1; }'
    assert record(b"\x0a\x01k", decoder(text, "google.protobuf.StringValue")) == {"value": "k"}


# -- indexes


NESTED = """
syntax = "proto3"; package n;
message A { map<string, int32> m = 1; message B { message C { int32 x = 1; } C c = 1; } B b = 2; }
message D { int32 x = 1; }
"""


def test_frames_of_all_messages() -> None:
    frames = message_frames(NESTED)
    assert frames == {
        (0,): b"\x00",
        (0, 1): b"\x04\x00\x02",
        (0, 1, 0): b"\x06\x00\x02\x00",
        (1,): b"\x02\x02",
    }
    assert message_frames(base64_of(NESTED)) == frames
    for path, frame in frames.items():
        assert parse_indexes(frame + b"body") == (path, len(frame))
        assert ProtobufReader(NESTED, (), path).record_name is not None
    assert ProtobufReader(NESTED, (), (0, 1, 0)).record_name == "n.A.B.C"
    assert parse_indexes(FIRST_MESSAGE_LONG + b"\x08\x01") == ((0,), 2)
    many = "".join(f"message M{i} {{ int32 x = 1; }} " for i in range(70))
    assert message_frames(f'syntax = "proto3"; {many}')[(64,)] == b"\x02\x80\x01"


@pytest.mark.parametrize("data", [b"", b"\x04\x00", b"\x80", b"\x02\x80", b"\x01", b"\x02\x01", b"\xff" * 9])
def test_indexes_that_are_none(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"index|indexes"):
        parse_indexes(data)


def test_a_path_without_a_message_is_refused() -> None:
    for path in ((2,), (0, 0), (1, 0), ()):
        with pytest.raises(UnsupportedSchema, match="no message type at the indexes"):
            ProtobufReader(NESTED, (), path)


# -- everything


@settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(messages(EVERY), min_size=1, max_size=4))
def test_random_messages_are_read_exactly(sent: list[Any]) -> None:
    # And one that is spelled otherwise: the first field again, and last.
    data = [m.SerializeToString() for m in sent] + [sent[0].SerializeToString() + b"\x08\x09"]
    turned = EVERY.FromString(data[-1])
    for row, wanted in zip(read(data), [*sent, turned], strict=True):
        assert row["problem"] is None
        assert_same(row["record"], expected(wanted))


@settings(max_examples=25 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_schemas(data: st.DataObject) -> None:
    text = data.draw(schemas(data.draw(st.sampled_from(("proto2", "proto3")))))
    kind = message_class(text, "t.M0")
    sent = data.draw(st.lists(messages(kind), min_size=1, max_size=5))
    found = read([m.SerializeToString() for m in sent], decoder(text, "t.M0"))
    for row, wanted in zip(found, sent, strict=True):
        assert row["problem"] is None
        assert_same(row["record"], expected(wanted))


@settings(max_examples=40 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_messages_are_read_as_google_reads_them_or_not_at_all(data: st.DataObject) -> None:
    whole = data.draw(messages(EVERY)).SerializeToString()
    damaged = [data.draw(st.binary(max_size=30))]
    for _ in range(12):
        at = data.draw(st.integers(0, max(len(whole) - 1, 0)))
        flipped = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
        damaged += [whole[:at], flipped, whole[at:]]
    for sent, row in zip(damaged, read(damaged), strict=True):
        if row["problem"] is None:
            assert_same(row["record"], expected(EVERY.FromString(sent)))
