"""Records of all scenarios as JSON and Protobuf: the same values as in Avro, by other people's parsers."""

import io
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.datagen import SCENARIOS
from headgate.datagen.formats import Format, key_encoder, registered_schema, value_encoder, wire_prefix
from headgate.datagen.protobuf import encode_varint
from headgate.datagen.scenario import Record
from headgate.decode.avro import AvroReader
from headgate.decode.json_schema import JsonSchemaReader
from headgate.decode.protobuf import ProtobufReader
from headgate.decode.protobuf_batch import PROBLEM, RECORD, decode
from headgate.errors import UnsupportedSchema
from tests.support.ledger import canonical, to_native
from tests.unit.decode.protobuf_oracle import expected, same_float
from tests.unit.decode.protobuf_samples import message_class

COUNT = 600


def records(name: str) -> dict[str, list[Record]]:
    by_topic: dict[str, list[Record]] = {}
    for record in SCENARIOS[name](3).records(COUNT):
        by_topic.setdefault(record.topic, []).append(record)
    return by_topic


def every_topic() -> list[Any]:
    return [pytest.param(name, topic, id=topic) for name in SCENARIOS for topic in SCENARIOS[name].schemas]


def from_json(value: Any, schema: Any) -> Any:
    """A parsed value as readers of a table have it."""
    match schema:
        case list():
            return None if value is None else from_json(value, schema[1])
        case {"logicalType": "date"}:
            return date.fromisoformat(value)
        case {"logicalType": "timestamp-millis" | "timestamp-micros"}:
            return datetime.fromisoformat(value)
        case {"type": "record", "fields": fields}:
            assert set(value) == {field["name"] for field in fields}
            return {field["name"]: from_json(value[field["name"]], field["type"]) for field in fields}
        case {"type": "array", "items": items}:
            return [from_json(item, items) for item in value]
        case {"type": "map", "values": values}:
            return sorted((key, from_json(item, values)) for key, item in value.items())
        case "float" | "double":
            return float(value)
    return value


@pytest.mark.parametrize(("name", "topic"), every_topic())
def test_json_has_the_values_exactly(name: str, topic: str) -> None:
    schema = SCENARIOS[name].schemas[topic]
    encode = value_encoder(Format.JSON, schema)
    for record in records(name)[topic]:
        parsed = json.loads(encode(record.value), parse_float=Decimal)
        assert canonical(from_json(parsed, schema)) == canonical(to_native(record.value, schema))


def plain(value: Any) -> Any:
    """Maps as the pairs that Arrow makes of them, and floats as their bits."""
    match value:
        case float():
            return same_float(value)
        case dict() if all(isinstance(item, str) for item in value.values()):
            return sorted(value.items())
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


@pytest.mark.parametrize(("name", "topic"), every_topic())
def test_protobuf_has_the_values_exactly(name: str, topic: str) -> None:
    schema = SCENARIOS[name].schemas[topic]
    full_name = f"{schema['namespace']}.{schema['name']}"
    message_type = message_class(registered_schema(Format.PROTOBUF, schema).text, full_name)
    encode = value_encoder(Format.PROTOBUF, schema)
    for record in records(name)[topic]:
        body = encode(record.value)
        message = message_type.FromString(body)
        assert len(message.SerializeToString()) == len(body)
        native = to_native(record.value, schema)
        assert canonical(plain(expected(message))) == canonical(plain(native))


@pytest.mark.parametrize(("name", "topic"), every_topic())
def test_headgate_reads_the_same_columns_of_each_format(name: str, topic: str) -> None:
    schema = SCENARIOS[name].schemas[topic]
    texts = {kind: registered_schema(kind, schema).text for kind in Format}
    columns = AvroReader(texts[Format.AVRO]).type
    assert JsonSchemaReader(texts[Format.JSON]).type == columns
    protobuf = ProtobufReader(texts[Format.PROTOBUF])
    assert protobuf.type.simpleString() == columns.simpleString()

    encode = value_encoder(Format.PROTOBUF, schema)
    values = [record.value for record in records(name)[topic]]
    decoded = decode(protobuf._files, str(protobuf.record_name), pyarrow.array(map(encode, values)))
    for row, value in zip(decoded.to_pylist(), values, strict=True):
        assert row[PROBLEM] is None
        assert canonical(plain(row[RECORD])) == canonical(plain(to_native(value, schema)))


@given(st.integers(-(2**63), 2**64 - 1))
def test_varints_are_those_of_protobuf(number: int) -> None:
    encoded = encode_varint(number)
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(encoded))
    assert value == number % 2**64
    assert [byte >> 7 for byte in encoded] == [1] * (len(encoded) - 1) + [0]
    assert len(encoded) == max(1, -(-(number % 2**64).bit_length() // 7))


def test_wire_prefixes_are_those_of_confluents_serializers() -> None:
    assert wire_prefix(Format.AVRO, 258) == wire_prefix(Format.JSON, 258) == b"\0\0\0\1\2"
    assert wire_prefix(Format.PROTOBUF, 258) == b"\0\0\0\1\2\0"


def test_change_events_as_json_have_the_rows_and_the_keys() -> None:
    scenario = SCENARIOS["hotels"](3, cdc=True)
    for topic, key_schema in scenario.key_schemas.items():
        encode = value_encoder(Format.JSON, scenario.schemas[topic])
        encode_key = key_encoder(Format.JSON, key_schema, 7)
        columns = AvroReader(json.dumps(scenario.schemas[topic])).type
        assert JsonSchemaReader(registered_schema(Format.JSON, scenario.schemas[topic]).text).type == columns
        for record in scenario.records(50):
            if record.topic == topic:
                assert json.loads(encode_key(record.key)[5:]) == {scenario.keys[topic]: record.key.decode()}
                if record.value:
                    parsed = json.loads(encode(record.value), parse_float=Decimal)
                    assert parsed["op"] == record.value["op"]
                    row = scenario.schemas[topic]["fields"][0]["type"]
                    for image in ("before", "after"):
                        native = to_native(record.value[image], row)
                        assert canonical(from_json(parsed[image], row)) == canonical(native)


def test_a_key_that_is_a_number_is_one_in_json() -> None:
    [schema] = SCENARIOS["orders"](cdc=True).key_schemas.values()
    assert key_encoder(Format.JSON, schema, 1)(b"12")[5:] == b'{"order_id":12}'
    avro = key_encoder(Format.AVRO, schema, 1)(b"12")[5:]
    assert fastavro.schemaless_reader(io.BytesIO(avro), schema, None) == {"order_id": 12}
    with pytest.raises(ValueError, match="Protobuf"):
        key_encoder(Format.PROTOBUF, schema, 1)


@pytest.mark.parametrize("kind", [Format.JSON, Format.PROTOBUF])
def test_types_that_no_scenario_has_are_refused(kind: Format) -> None:
    fixed = {"type": "fixed", "name": "Hash", "size": 16}
    schema = {"type": "record", "name": "One", "fields": [{"name": "hash", "type": fixed}]}
    with pytest.raises((ValueError, UnsupportedSchema)):
        registered_schema(kind, schema)
    with pytest.raises(ValueError, match="No encoder"):
        value_encoder(kind, schema)
