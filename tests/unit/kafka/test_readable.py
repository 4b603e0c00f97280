"""Records as people read them."""

import io
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from headgate.errors import NotFound, RegistryUnavailable
from headgate.kafka.readable import Readable, Reader, WriterSchema

SCHEMA = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "level", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "raw", "type": "bytes"},
        {"name": "flow", "type": "double"},
        {"name": "marks", "type": {"type": "map", "values": "long"}},
    ],
}
VALUE: dict[str, Any] = {
    "level": Decimal("1234567890123456.7000"),
    "at": datetime(2026, 3, 1, 12, 30, 15, 123456, UTC),
    "day": date(2026, 3, 1),
    "raw": b"\x00\xff",
    "flow": float("inf"),
    "marks": {"high": 2**62},
}


def avro(schema_id: int) -> bytes:
    out = io.BytesIO(b"\0" + schema_id.to_bytes(4, "big"))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), VALUE)
    return out.getvalue()


def nothing(schema_id: int) -> WriterSchema:
    raise NotFound(f"no schema {schema_id}")


def always(kind: str, text: str = "{}") -> Callable[[int], WriterSchema]:
    return lambda schema_id: WriterSchema(kind, text)


@pytest.fixture
def reader() -> Reader:
    return Reader(nothing)


def test_avro_is_read_by_its_schema_and_nothing_is_rounded() -> None:
    found = Reader(always("AVRO", json.dumps(SCHEMA))).read(avro(7))
    assert found.format == "avro"
    assert found.schema_id == 7
    assert found.content == {
        "level": "1234567890123456.7000",
        "at": "2026-03-01T12:30:15.123456Z",
        "day": "2026-03-01",
        "raw": "base64:AP8=",
        "flow": "inf",
        "marks": {"high": 2**62},
    }
    assert json.loads(json.dumps(found.content, allow_nan=False)) == found.content


@pytest.mark.parametrize("change", [lambda data: data[:-3], lambda data: data + b"\0"])
def test_bytes_that_do_not_fit_their_schema_are_bytes(change: Callable[[bytes], bytes]) -> None:
    found = Reader(always("AVRO", json.dumps(SCHEMA))).read(change(avro(7)))
    assert found.format == "bytes"
    assert found.schema_id is None


def test_an_unknown_schema_leaves_bytes(reader: Reader) -> None:
    assert reader.read(b"\0\0\0\0\x07\xff") == Readable("base64:AAAAAAf/", "bytes")


def test_a_registry_that_does_not_answer_is_not_hidden() -> None:
    def silent(schema_id: int) -> WriterSchema:
        raise RegistryUnavailable("no answer")

    with pytest.raises(RegistryUnavailable):
        Reader(silent).read(avro(7))


def test_json_by_schema() -> None:
    assert Reader(always("JSON")).read(b'\0\0\0\0\x03{"a": 1}') == Readable({"a": 1}, "json", 3)


def test_protobuf_is_shown_as_bytes_with_its_schema() -> None:
    assert Reader(always("PROTOBUF")).read(b"\0\0\0\0\x03\x00\x08") == Readable(
        "base64:AAAAAAMACA==", "bytes", 3
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, Readable(None, "none")),
        (b"", Readable("", "text")),
        ("Søren\tOtter".encode(), Readable("Søren\tOtter", "text")),
        (b'{"a": [1, null, 0.1]}', Readable({"a": [1, None, 0.1]}, "json")),
        (b"[0.12345678901234567890, 1e999]", Readable(["0.12345678901234567890", "1e999"], "json")),
        (b"{not json", Readable("{not json", "text")),
        (b"\xff\xfe", Readable("base64://4=", "bytes")),
        (b"a\x1b[31m", Readable("base64:YRtbMzFt", "bytes")),
    ],
)
def test_without_a_schema(reader: Reader, data: bytes | None, expected: Readable) -> None:
    assert reader.read(data) == expected
