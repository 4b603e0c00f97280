"""The compiled encoders give the bytes that fastavro gives, for any value of the schemas."""

import io
import string
import struct
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.datagen.avro import compile_schema, encode_long, wire_header
from headgate.datagen.orders_schemas import SCHEMAS


def values(schema: Any) -> st.SearchStrategy[Any]:
    """Any value of the schema, the extremes included."""
    if isinstance(schema, list):
        return st.one_of(*(values(branch) for branch in schema))
    kind = schema if isinstance(schema, str) else schema["type"]
    match kind:
        case "record":
            return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in schema["fields"]})
        case "enum":
            return st.sampled_from(schema["symbols"])
        case "array":
            return st.lists(values(schema["items"]), max_size=5)
        case "map":
            return st.dictionaries(st.text(max_size=5), values(schema["values"]), max_size=3)
        case "bytes":
            bound = 10 ** schema["precision"] - 1
            return st.integers(-bound, bound).map(lambda n: Decimal(n).scaleb(-schema["scale"]))
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "int":
            return st.integers(-(2**31), 2**31 - 1)
        case "long":
            return st.integers(-(2**63), 2**63 - 1)
        case "float":
            return st.floats(width=32, allow_nan=False)
        case "double":
            return st.floats(allow_nan=False)
        case "string":
            return st.text(max_size=40)
    raise AssertionError(schema)


def fastavro_bytes(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@pytest.mark.parametrize("topic", sorted(SCHEMAS))
@given(data=st.data())
def test_values_of_each_topic(topic: str, data: st.DataObject) -> None:
    schema = SCHEMAS[topic]
    value = data.draw(values(schema))
    assert compile_schema(schema)(value) == fastavro_bytes(schema, value)


@given(st.integers(-(2**63), 2**63 - 1))
def test_longs(number: int) -> None:
    assert encode_long(number) == fastavro_bytes("long", number)


@pytest.mark.parametrize(
    "number", [0, 63, 64, 8191, 8192, 8193, 2**27, 2**28 - 1, 2**63 - 1, -1, -8192, -(2**63)]
)
def test_longs_at_the_bounds_of_the_tables(number: int) -> None:
    assert encode_long(number) == fastavro_bytes("long", number)


def test_a_string_of_several_bytes_of_length() -> None:
    schema = {"type": "record", "name": "One", "fields": [{"name": "text", "type": "string"}]}
    value = {"text": string.ascii_letters * 100 + "é"}
    assert compile_schema(schema)(value) == fastavro_bytes(schema, value)


def test_types_without_an_encoder_are_refused() -> None:
    field = {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 16}}
    with pytest.raises(ValueError, match="fixed"):
        compile_schema({"type": "record", "name": "One", "fields": [field]})


def test_the_wire_header_is_a_zero_and_the_id() -> None:
    assert wire_header(258) == struct.pack(">bI", 0, 258)
