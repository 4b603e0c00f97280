"""What is typed becomes what is read, in every format; what does not fit is refused by its name."""

import json
from typing import Any, cast

import pytest

from headgate.errors import InvalidRequest, NotFound
from headgate.registry.client import ReferencedSchema, RegisteredSchema, SchemaSource
from headgate.registry.schemas import SchemaType
from headgate.server.messages.decoding import MessageReader
from headgate.server.messages.encoding import encode_hex, encode_plain, encode_with, parse_exact

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "clock", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "who", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "raw", "type": "bytes"},
        {"name": "mark", "type": {"type": "fixed", "name": "Mark", "size": 2}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
        {"name": "flow", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {
            "name": "to",
            "type": [
                "null",
                {"type": "record", "name": "Home", "fields": [{"name": "street", "type": "string"}]},
                {"type": "record", "name": "Box", "fields": [{"name": "number", "type": "int"}]},
            ],
        },
        {"name": "before", "type": ["null", "Home"], "default": None},
        {
            "name": "fee",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "default": "\u0064",
        },
    ],
}
TYPED: dict[str, Any] = {
    "id": "9007199254740993",
    "price": "1234567890123456789012345678.90",
    "at": "2026-11-19T12:30:15.123456Z",
    "seen": "2026-11-19T12:30:15.123000",
    "day": "2026-11-19",
    "clock": "12:30:15.123000",
    "who": "6f0f3c1e-8f0a-4a52-9d8e-0d5ce3d6cf35",
    "raw": "base64:AP8=",
    "mark": "base64:AQI=",
    "kind": "OLD",
    "flow": 0.1,
    "tags": ["a", "<script>"],
    "counts": {"high": "-9223372036854775808"},
    "note": None,
    "to": {"number": 7},
    "before": {"street": "Aare"},
    "fee": "1.00",
}


class Registry:
    """One schema, under id 7."""

    def __init__(self, kind: SchemaType, text: str, references: tuple[ReferencedSchema, ...] = ()) -> None:
        self.one = RegisteredSchema(7, kind, text, references)

    def schema(self, schema_id: int) -> RegisteredSchema:
        if schema_id != 7:
            raise NotFound("nothing")
        return self.one

    def reader(self) -> MessageReader:
        return MessageReader(cast(SchemaSource, self), lambda _: True)

    def through(self, value: Any, text: str | None = None) -> Any:
        """What is read of what was typed."""
        part = self.reader().read(encode_with(self.one, value, text, "value"))
        assert part.error is None, part.error
        assert part.schema_id == 7
        return part.content


AVRO = Registry(SchemaType.AVRO, json.dumps(ORDER))


def test_what_is_typed_by_an_avro_schema_is_read_again() -> None:
    assert AVRO.through(TYPED) == TYPED


def test_what_is_left_out_has_its_default() -> None:
    typed = {name: value for name, value in TYPED.items() if name not in ("note", "before", "fee")}
    assert AVRO.through(typed) == TYPED | {"before": None}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 2**63}, "Field 'id' of the value is 9223372036854775808, and should be a whole number of 64"),
        ({"id": True}, "Field 'id' of the value is true"),
        ({"id": 1.5}, "Field 'id'"),
        (
            {"price": "1.234"},
            "Field 'price' of the value is \"1.234\", and should be a decimal of 30 digits, 2",
        ),
        ({"price": "NaN"}, "Field 'price'"),
        ({"at": "tomorrow"}, "Field 'at' of the value is \"tomorrow\", and should be a time such as"),
        ({"day": "19.11.2026"}, "Field 'day'"),
        ({"who": "me"}, "Field 'who'"),
        ({"raw": "AP8="}, "Field 'raw' of the value is \"AP8=\", and should be bytes, written as base64"),
        ({"mark": "base64:AQ=="}, "Field 'mark' of the value is \"base64:AQ==\", and should be 2 bytes"),
        ({"kind": "NEWER"}, "Field 'kind' of the value is \"NEWER\", and should be one of NEW, OLD"),
        ({"flow": "fast"}, "Field 'flow'"),
        ({"tags": ["a", 1]}, r"Field 'tags\[1\]' of the value is 1, and should be a text"),
        ({"counts": {"low": "x"}}, "Field 'counts.low'"),
        ({"note": 1}, "Field 'note' of the value is 1, and should be a text"),
        ({"to": {"city": "Bern"}}, "Field 'to' of the value is .* should be null or a .*Home or a .*Box"),
        ({"extra": 1}, "Field 'extra' of the value is not in its schema"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_field(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        encode_with(AVRO.one, TYPED | change, None, "value")


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(InvalidRequest, match="Field 'kind' of the key is missing: it is one of NEW, OLD"):
        encode_with(AVRO.one, {k: v for k, v in TYPED.items() if k != "kind"}, None, "key")


def test_json_is_checked_by_its_schema_and_stays_as_it_was_written() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "home": {"$ref": "home.json"}},
        "required": ["id"],
    }
    home = ReferencedSchema("home.json", '{"type": "object", "required": ["street"]}')
    registry = Registry(SchemaType.JSON, json.dumps(schema), (home,))
    text = '{"id": 9007199254740993, "price": 0.12345678901234567890, "home": {"street": "Aare"}}'
    sent = encode_with(registry.one, parse_exact(text, "value"), text, "value")
    assert sent[5:].decode() == text
    assert registry.reader().read(sent).content == {
        "id": "9007199254740993",
        "price": "0.12345678901234567890",
        "home": {"street": "Aare"},
    }
    for value, said in (
        ({"id": "x"}, "Field 'id' of the value does not fit its schema"),
        ({}, "The value does not fit its schema"),
        ({"id": 1, "home": {}}, "Field 'home' of the value"),
    ):
        with pytest.raises(InvalidRequest, match=said):
            encode_with(registry.one, value, None, "value")


def test_protobuf_is_written_by_the_first_type_and_read_again() -> None:
    registry = Registry(
        SchemaType.PROTOBUF,
        'syntax = "proto3"; package shop; message Order { int64 id = 1; repeated string tags = 2; '
        "Kind kind = 3; enum Kind { NEW = 0; OLD = 1; } message Inner { bool on = 1; } Inner inner = 4; }",
    )
    typed = {"id": "9007199254740993", "tags": ["a"], "kind": "OLD", "inner": {"on": True}}
    assert registry.through(typed) == typed
    for value, said in (({"id": "x"}, "id"), ({"none": 1}, "none"), (None, "does not fit")):
        with pytest.raises(InvalidRequest, match=said):
            encode_with(registry.one, value, None, "value")


def test_a_message_of_another_type_of_the_file_is_read_by_its_path() -> None:
    registry = Registry(
        SchemaType.PROTOBUF,
        'syntax = "proto3"; message A { int32 a = 1; } message B { message C { int32 c = 1; } }',
    )
    # Two places, 1 and 0, zigzag: B.C.
    assert registry.reader().read(b"\0\0\0\0\7" + bytes([4, 2, 0]) + b"\x08\x05").content == {"c": 5}
    wrong = registry.reader().read(b"\0\0\0\0\7" + bytes([2, 18]) + b"\x08\x05")
    assert wrong.content == "00000000070212" + "0805"
    assert "message type [9]" in str(wrong.error)


def test_what_cannot_be_decoded_is_in_hex_and_says_why() -> None:
    reader = AVRO.reader()
    bad = reader.read(b"\0\0\0\0\7\xff")
    assert (bad.content, bad.format, bad.schema_id) == ("0000000007ff", "bytes", 7)
    assert "cannot be decoded by schema 7" in str(bad.error)
    unknown = reader.read(b"\0\0\0\0\x09\xff")
    assert unknown.error == "names schema 9, which the registry does not have"
    plain = reader.read(b"\xff\xfe")
    assert (plain.content, plain.format, plain.error) == ("fffe", "bytes", None)


def test_plain_parts_are_text_json_or_bytes() -> None:
    assert encode_plain("as it is", None) == b"as it is"
    assert encode_plain({"a": [1, 2.5, None]}, None) == b'{"a":[1,2.5,null]}'
    assert encode_plain(None, '{"a": 1.10}') == b'{"a": 1.10}'
    assert encode_hex("00ff", "value") == b"\0\xff"
    with pytest.raises(InvalidRequest, match="The key is not in hex"):
        encode_hex("0x", "key")
