"""Workbooks: read back by openpyxl, their bytes the same whenever and however they are written."""

import io
import time
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl.utils import get_column_letter
from openpyxl.utils.escape import unescape

from headgate.errors import InvalidRequest
from headgate.export import excel
from headgate.export.definition import ExportOptions
from headgate.export.encoders import ENCODERS
from headgate.export.folder import CountingFile
from tests.unit.export.test_formats import FIRST, SCHEMA, options, rows, written

TABS = st.characters(exclude_categories=["Cs"])


def sheet(content: bytes) -> list[list[Any]]:
    book = openpyxl.load_workbook(io.BytesIO(content))
    assert book.sheetnames == ["rows"]
    return [[cell.value for cell in row] for row in book["rows"].iter_rows()]


def column(*values: Any, kind: pa.DataType) -> list[Any]:
    """The cells below the header of a column of these values."""
    batch = pa.record_batch([pa.array(values, kind)], names=["v"])
    return [row[0] for row in sheet(written([batch], options(format="xlsx")))[1:]]


def test_values_are_exact_in_a_workbook() -> None:
    header, first, second = sheet(written([rows(FIRST, {"id": 1})], options(format="xlsx")))
    assert header == SCHEMA.names
    assert dict(zip(header, first, strict=True)) == {
        "id": "9223372036854775807",
        "text": FIRST["text"],
        "amount": 1e-9,
        "at": "2026-03-29T03:00:00.000000+02:00",
        "wall": "2026-03-29T02:30:00.000000",
        "day": datetime(2026, 3, 29),
        "flag": True,
        "share": 0.1,
        "raw": "AP8=",
        "tags": '[{"n":"1.50","s":null}]',
    }
    assert second == [1] + [None] * (len(header) - 1)


def test_what_a_spreadsheet_would_round_is_text() -> None:
    whole = [999_999_999_999_999, 10**15, -(10**15), -(2**63)]
    assert column(*whole, kind=pa.int64()) == [
        whole[0],
        "1000000000000000",
        "-1000000000000000",
        str(-(2**63)),
    ]
    assert column(2**64 - 1, 7, kind=pa.uint64()) == ["18446744073709551615", 7]
    exact = ["1234567890123.45", "12345678901234.56", "-0.05"]
    found = column(*map(Decimal, exact), kind=pa.decimal128(20, 2))
    assert found == [1234567890123.45, "12345678901234.56", -0.05]
    assert column(0.1 + 0.2, float("inf"), kind=pa.float64()) == [0.1 + 0.2, "inf"]
    # Spreadsheets have a 29th of February 1900.
    days = [date(1900, 2, 28), date(1900, 3, 1), date(9999, 12, 31)]
    assert column(*days, kind=pa.date32()) == ["1900-02-28", datetime(1900, 3, 1), datetime(9999, 12, 31)]


def test_decimals_are_shown_with_their_digits() -> None:
    batch = pa.record_batch([pa.array([Decimal("10.50")]), pa.array([Decimal(7)])], names=["a", "b"])
    book = openpyxl.load_workbook(io.BytesIO(written([batch], options(format="xlsx"))))
    assert [cell.number_format for cell in next(iter(book["rows"].iter_rows(min_row=2)))] == ["0.00", "0"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(TABS), min_size=1, max_size=5))
def test_texts_are_read_back_as_they_were(texts: list[str]) -> None:
    # openpyxl gives an empty text as no value, and leaves it to its users to unescape.
    found = [unescape(value or "") for value in column(*texts, kind=pa.string())]
    assert found == texts


def test_a_text_is_never_a_formula() -> None:
    content = written([rows({"text": "=1+1"})], options(format="xlsx"))
    cell = openpyxl.load_workbook(io.BytesIO(content))["rows"]["B2"]
    assert (cell.value, cell.data_type) == ("=1+1", "s")


def test_bytes_do_not_depend_on_the_time_or_on_how_rows_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    number = 30_000
    texts = pc.binary_join_element_wise("row ", pa.array(map(str, range(number))), "")
    whole = pa.record_batch([pa.array(range(number)), texts], names=["id", "text"])
    at_once = written([whole], options(format="xlsx"))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    cut = [whole.slice(start, 7_001) for start in range(0, number, 7_001)]
    assert written(cut, options(format="xlsx")) == at_once
    with zipfile.ZipFile(io.BytesIO(at_once)) as book:
        assert book.testzip() is None
        assert {entry.date_time for entry in book.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert sheet(at_once)[-1] == [number - 1, f"row {number - 1}"]


@pytest.mark.parametrize(
    ("limit", "value", "batch", "said"),
    [
        ("MOST_ROWS", 3, pa.record_batch([pa.array([1, 2, 3])], names=["a"]), "more than the 2 rows"),
        ("MOST_COLUMNS", 1, pa.record_batch([[1], [2]], names=["a", "b"]), "gives 2 columns"),
        ("MOST_BYTES", 400, pa.record_batch([["x" * 200]], names=["a"]), "too large for a workbook"),
        ("MOST_ROWS", 9, pa.record_batch([["😀" * 16_384]], names=["a"]), "'a' has a text of 32,768 letters"),
    ],
)
def test_what_does_not_fit_is_an_error_and_never_cut(
    limit: str, value: int, batch: pa.RecordBatch, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excel, limit, value)
    said_options = options(format="xlsx")
    encoder = ENCODERS["xlsx"](CountingFile(io.BytesIO()), batch.schema.names, said_options)
    with pytest.raises(InvalidRequest, match=said):
        fill(encoder, batch)
    encoder.abandon()


def fill(encoder: Any, batch: pa.RecordBatch) -> None:
    encoder.begin(batch.schema)
    encoder.write(batch)


def test_columns_are_named_as_spreadsheets_name_them() -> None:
    places = (0, 25, 26, 701, 702, 16_383)
    assert [excel._letters(place) for place in places] == [get_column_letter(place + 1) for place in places]


def test_a_workbook_is_not_packed_again() -> None:
    with pytest.raises(ValueError, match="leave compression out"):
        ExportOptions.model_validate({"sql": "SELECT * FROM t", "format": "xlsx", "compression": "gzip"})


def test_old_times_keep_their_offsets() -> None:
    (text,) = column(datetime(1890, 1, 1, tzinfo=UTC), kind=pa.timestamp("us", "UTC"))
    assert text.startswith("1890-01-01T00:53:28")
