"""Rows as files: read back by Python's own readers, the same bytes however rows are cut."""

import csv
import gzip
import hashlib
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import InvalidRequest
from headgate.export.cells import texts_of
from headgate.export.definition import ExportOptions
from headgate.export.encoders import ENCODERS
from headgate.export.folder import CountingFile
from headgate.export.packing import packed

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("amount", pa.decimal128(38, 9)),
        ("at", pa.timestamp("us", "UTC")),
        ("wall", pa.timestamp("us")),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("share", pa.float64()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.struct([("n", pa.decimal128(10, 2)), ("s", pa.string())]))),
    ]
)
FIRST = {
    "id": 9_223_372_036_854_775_807,
    "text": 'a "b",\r\nc',
    "amount": Decimal("0.000000001"),
    "at": datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    "wall": datetime(2026, 3, 29, 2, 30),
    "day": date(2026, 3, 29),
    "flag": True,
    "share": 0.1,
    "raw": b"\x00\xff",
    "tags": [{"n": Decimal("1.50"), "s": None}],
}


def options(**said: Any) -> ExportOptions:
    return ExportOptions.model_validate({"sql": "SELECT * FROM t", "zone": "Europe/Berlin", **said})


def written(batches: list[pa.RecordBatch], said: ExportOptions) -> bytes:
    out = io.BytesIO()
    counting = CountingFile(out)
    inner = "none" if said.format == "parquet" else said.compression
    with packed(counting, inner) as sink:
        encoder = ENCODERS[said.format](sink, batches[0].schema.names, said)
        encoder.begin(batches[0].schema)
        for batch in batches:
            encoder.write(batch)
        encoder.end()
    assert counting.figures.bytes == len(out.getvalue())
    assert counting.figures.sha256 == hashlib.sha256(out.getvalue()).hexdigest()
    return out.getvalue()


def rows(*values: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(values), schema=SCHEMA)


def test_values_are_exact_in_csv() -> None:
    content = written([rows(FIRST, {})], options(csv={"null": "NULL"})).decode()
    header, first, second = csv.reader(io.StringIO(content, newline=""))
    assert header == SCHEMA.names
    assert first == [
        "9223372036854775807",
        'a "b",\r\nc',
        "0.000000001",
        "2026-03-29T03:00:00.000000+02:00",
        "2026-03-29T02:30:00.000000",
        "2026-03-29",
        "true",
        "0.1",
        "AP8=",
        '[{"n":"1.50","s":null}]',
    ]
    assert second == ["NULL"] * len(SCHEMA)
    assert content.endswith("NULL\r\n")


def test_values_are_exact_in_json_lines() -> None:
    first, second = written([rows(FIRST, {})], options(format="jsonl")).decode().splitlines()
    assert json.loads(first) == {
        **{name: FIRST[name] for name in ("id", "text", "flag", "share")},
        "amount": "0.000000001",
        "at": "2026-03-29T03:00:00.000000+02:00",
        "wall": "2026-03-29T02:30:00.000000",
        "day": "2026-03-29",
        "raw": "AP8=",
        "tags": [{"n": "1.50", "s": None}],
    }
    assert set(json.loads(second).values()) == {None}


def test_values_keep_their_types_in_parquet() -> None:
    said = options(format="parquet", compression="zstd")
    table = pq.read_table(io.BytesIO(written([rows(FIRST, {})], said)))
    assert table.to_pylist() == [FIRST, dict.fromkeys(SCHEMA.names)]
    assert table.schema.field("amount").type == pa.decimal128(38, 9)


def test_times_of_old_zones_keep_the_seconds_of_their_offsets() -> None:
    old = datetime(1900, 1, 1, tzinfo=UTC)
    content = written([rows({**FIRST, "at": old})], options(zone="Europe/Amsterdam")).decode()
    assert datetime.fromisoformat(next(csv.DictReader(io.StringIO(content, newline="")))["at"]) == old


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.none() | st.datetimes(datetime(1800, 1, 1), datetime(2100, 1, 1)), min_size=1, max_size=20),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Africa/Monrovia"]),
)
def test_times_are_those_of_pythons_own_clock(times: list[datetime | None], zone: str) -> None:
    moments = [None if at is None else at.replace(tzinfo=UTC) for at in times]
    found = texts_of(pa.array(moments, pa.timestamp("us", "UTC")), ZoneInfo(zone)).to_pylist()
    wanted = [
        None if at is None else at.astimezone(ZoneInfo(zone)).isoformat(timespec="microseconds")
        for at in moments
    ]
    assert found == wanted
    walls = texts_of(pa.array(times, pa.timestamp("us")), ZoneInfo(zone)).to_pylist()
    assert walls == [None if at is None else at.isoformat(timespec="microseconds") for at in times]


TEXTS = st.lists(
    st.none() | st.text(st.sampled_from("ab\",;\r\n '=+-@\té😀\\"), max_size=6), min_size=1, max_size=30
)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["needed", "all"]), st.data())
def test_texts_are_read_back_as_they_were(
    texts: list[str | None], delimiter: str, quote: str, data: st.DataObject
) -> None:
    said = options(csv={"delimiter": delimiter, "quote": quote, "formulas": "keep", "null": "\\N"})
    batch = pa.record_batch([pa.array(texts, pa.string()), pa.array(range(len(texts)))], names=["t", "n"])
    cut = data.draw(st.integers(0, len(texts)))
    content = written([batch.slice(0, cut), batch.slice(cut)], said)
    assert content == written([batch], said)
    found = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))
    assert found == [["t", "n"], *(["\\N" if t is None else t, str(n)] for n, t in enumerate(texts))]


def test_an_empty_text_is_told_from_null() -> None:
    batch = pa.record_batch([pa.array(["", None, "x"]), pa.array([1, 2, 3])], names=["t", "n"])
    assert written([batch], options(csv={"line_end": "lf"})) == b't,n\n"",1\n,2\nx,3\n'


@pytest.mark.parametrize("text", ["=1+1", "+31 6", "-2", "@SUM(A1)", "\t=1", "\r=1"])
def test_what_a_spreadsheet_takes_for_a_formula_is_neutralized(text: str) -> None:
    batch = pa.record_batch([pa.array([text, "safe"]), pa.array([-1, 2])], names=["=t", "n"])
    header, first, second = csv.reader(io.StringIO(written([batch], options()).decode(), newline=""))
    assert (header, first, second) == (["'=t", "n"], [f"'{text}", "-1"], ["safe", "2"])


def test_a_letter_that_an_encoding_lacks_is_named_and_not_replaced() -> None:
    batch = pa.record_batch([pa.array(["žluť"]), pa.array([1])], names=["t", "n"])
    with pytest.raises(InvalidRequest, match=r"U\+0165.*iso-8859-1|U\+017E.*iso-8859-1"):
        written([batch], options(csv={"encoding": "iso-8859-1"}))
    assert written([batch], options(csv={"encoding": "utf-8-bom"}))[:3] == b"\xef\xbb\xbf"


@pytest.mark.parametrize(
    "said",
    [{"compression": "gzip"}, {"compression": "zstd"}, {"format": "jsonl"}, {"format": "parquet"}],
    ids=str,
)
def test_the_same_rows_give_the_same_bytes_however_they_are_cut(said: dict[str, Any]) -> None:
    number = 150_000
    whole = pa.record_batch(
        [pa.array(range(number)), pc.binary_join_element_wise("row ", pa.array(map(str, range(number))), "")],
        names=["id", "text"],
    )
    at_once = written([whole], options(**said))
    for size in (1_000, 70_001):
        cut = [whole.slice(start, size) for start in range(0, number, size)]
        assert written(cut, options(**said)) == at_once
    if said.get("compression") == "gzip":
        assert at_once[4:8] == bytes(4)  # no time
        assert gzip.decompress(at_once) == written([whole], options())


def test_no_row_is_a_header_alone() -> None:
    nothing = pa.RecordBatch.from_pylist([], schema=SCHEMA)
    assert written([nothing], options()).decode() == ",".join(SCHEMA.names) + "\r\n"
    assert pq.read_table(io.BytesIO(written([nothing], options(format="parquet")))).num_rows == 0
